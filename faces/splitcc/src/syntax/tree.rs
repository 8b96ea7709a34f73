//! The syntax tree, in which each expression has its type.
//!
//! A node names the tokens it was read from. What has nothing to do with Split-C is written out as
//! those tokens again; so a tree says no more of plain C than its parts and its types.

use crate::types::{Field, Ty};
use std::rc::Rc;

/// Tokens from the first up to, not including, the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first token.
    pub start: usize,
    /// One past the last token.
    pub end: usize,
}

/// Where an expression denotes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It denotes none.
    None,
    /// In this processor's memory.
    Local,
    /// Behind a global address.
    Global,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameRole {
    /// A variable, parameter or function; the text under which C knows it.
    Object(Rc<str>),
    /// The place of the call in the source, for messages of the runtime.
    CallPlace,
    /// An operation of the runtime: its name in C, and whether it takes a place.
    Library(Rc<str>, bool),
    /// `tolocal`, `toglobal`, `toproc`, `atomic`, ...
    Builtin(Builtin),
    /// Left to the C compiler.
    Foreign,
}

/// Operations that the front end carries out itself, because their types depend on their arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// `tolocal(gp)`.
    ToLocal,
    /// `toglobal(proc, p)`.
    ToGlobal,
    /// `toproc(gp)`.
    ToProc,
    /// `atomic(f, gp, ...)` and its typed forms.
    Atomic,
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Ty,
    /// Where its object is, if it denotes one.
    pub place: Place,
    /// Its tokens.
    pub span: Span,
    /// Whether it must be written anew, or one of its parts must.
    pub special: bool,
    /// How deep the tree below it is.
    pub depth: u32,
}

/// What an expression is.
#[derive(Debug)]
pub enum ExprKind {
    /// A name.
    Name(Rc<str>, NameRole),
    /// A constant; the flag says that it is a zero, which may stand for a null pointer.
    Constant(bool),
    /// One or more string literals.
    Text,
    /// `(e)`.
    Parentheses(Box<Expr>),
    /// `f(a, b)`.
    Call(Box<Expr>, Vec<Expr>),
    /// `a[i]`: the array or pointer first, also if it was written `i[a]`.
    Index(Box<Expr>, Box<Expr>, bool),
    /// `s.f`, or `p->f` if the flag is set.
    Member(Box<Expr>, Rc<str>, bool, Option<Field>),
    /// `*p`.
    Dereference(Box<Expr>),
    /// `&x`.
    Address(Box<Expr>),
    /// `-x`, `!x`, `~x`, `+x`, `__real__ x`, ...
    Unary(&'static str, Box<Expr>),
    /// `++x` or `--x` (the step), or afterwards.
    Step(Box<Expr>, bool, bool),
    /// `a + b`.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `a = b`, `a += b`: the operator without `=`.
    Assign(&'static str, Box<Expr>, Box<Expr>),
    /// `a := b`.
    SplitAssign(Box<Expr>, Box<Expr>),
    /// `a :- b`.
    Store(Box<Expr>, Box<Expr>),
    /// `c ? a : b`; `a` may be left out.
    Conditional(Box<Expr>, Option<Box<Expr>>, Box<Expr>),
    /// `(T) e`.
    Cast(TypeName, Box<Expr>),
    /// A conversion that the language makes: to the type of the node.
    Convert(Box<Expr>),
    /// `sizeof e`, `_Alignof e`.
    SizeOf(&'static str, Box<Expr>),
    /// `sizeof (T)`, `_Alignof (T)`.
    SizeOfType(&'static str, TypeName),
    /// `a, b`.
    Comma(Box<Expr>, Box<Expr>),
    /// `(T){...}`.
    Compound(TypeName, Box<Initializer>),
    /// `({ ... })`.
    Statement(Box<Stmt>),
    /// Anything else: its parts, in order.
    Other(Vec<Part>),
}

/// A part of a node that is otherwise copied.
#[derive(Debug)]
pub enum Part {
    /// An expression.
    Expr(Expr),
    /// A type name.
    Type(TypeName),
}

/// A type name, as in a cast.
#[derive(Debug)]
pub struct TypeName {
    /// The type.
    pub ty: Ty,
    /// Its tokens.
    pub span: Span,
    /// Whether it was written with words of Split-C.
    pub special: bool,
    /// Its parts.
    pub parts: Vec<DeclPart>,
}

/// An initialiser.
#[derive(Debug)]
pub enum Initializer {
    /// An expression.
    Expr(Expr),
    /// `{ a, b }`: its tokens, its parts (also of designators) in order.
    List(Span, Vec<Initializer>),
}

/// A part of specifiers or declarators that is written by itself.
#[derive(Debug)]
pub enum DeclPart {
    /// A member or parameter declaration.
    Declaration(Declaration),
    /// An expression: a dimension, the value of an enumerator, a width.
    Expr(Rc<Expr>),
    /// A name made up for a tag that has none: written after this token.
    TagName(usize, Rc<str>),
}

/// What a declaration stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Outside of functions.
    File,
    /// In a block.
    Block,
    /// A member of a structure or union.
    Member,
    /// A parameter.
    Parameter,
}

/// Storage classes and the like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Storage {
    /// `typedef`.
    pub is_typedef: bool,
    /// `extern`.
    pub is_extern: bool,
    /// `static`.
    pub is_static: bool,
    /// `inline`.
    pub is_inline: bool,
    /// `__attribute__((gnu_inline))`.
    pub is_gnu_inline: bool,
    /// An attribute makes another type of it, as `vector_size` does.
    pub changes_type: bool,
}

/// A declaration.
#[derive(Debug)]
pub struct Declaration {
    /// Its tokens, with the semicolon if it has one.
    pub span: Span,
    /// The tokens of its specifiers.
    pub specifiers: Span,
    /// The parts of the specifiers.
    pub parts: Vec<DeclPart>,
    /// What it declares.
    pub declarators: Vec<Declarator>,
    /// Storage classes.
    pub storage: Storage,
    /// Where it stands.
    pub context: Context,
    /// Whether it must be written anew.
    pub special: bool,
    /// The type that the specifiers name.
    pub base: Ty,
    /// Whether it declares operations of the runtime only: nothing is written.
    pub library: bool,
}

/// One declarator with its initialiser.
#[derive(Debug)]
pub struct Declarator {
    /// The name, and the token that it is.
    pub name: Option<(Rc<str>, usize)>,
    /// Its type.
    pub ty: Ty,
    /// Its tokens, attributes included, initialiser not.
    pub span: Span,
    /// Its parts.
    pub parts: Vec<DeclPart>,
    /// `asm("name")` and attributes.
    pub attributes: Vec<Span>,
    /// The names of a K&R parameter list.
    pub old_parameters: Option<Vec<Rc<str>>>,
    /// The initialiser.
    pub initializer: Option<Initializer>,
    /// The width of a bit-field.
    pub width: Option<Rc<Expr>>,
    /// The name under which C knows it, if another.
    pub emitted: Option<Rc<str>>,
    /// Whether it was written with words of Split-C.
    pub special: bool,
    /// Whether it declares an operation of the runtime: nothing is written.
    pub library: bool,
    /// A last word `global` or `spread` of a parameter, which may be its name: the token.
    pub reach_word: Option<usize>,
    /// Dimensions to evaluate at the declaration, with the names of their variables.
    pub captures: Vec<(Rc<str>, Rc<Expr>)>,
}

/// A statement.
#[derive(Debug)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Its tokens.
    pub span: Span,
}

/// What a statement is.
#[derive(Debug)]
pub enum StmtKind {
    /// `e;`
    Expr(Expr),
    /// A declaration.
    Declaration(Declaration),
    /// `{ ... }`
    Block(Vec<Stmt>),
    /// `if`.
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    /// `while`.
    While(Expr, Box<Stmt>),
    /// `do`.
    Do(Box<Stmt>, Expr),
    /// `for`: what comes first, the condition, the step, the body.
    For(Option<Box<Stmt>>, Option<Expr>, Option<Expr>, Box<Stmt>),
    /// `switch`.
    Switch(Expr, Box<Stmt>),
    /// `return e;`
    Return(Option<Expr>),
    /// `case a:`, `case a ... b:`, `default:`, a label; and the statement behind it.
    Labelled(Vec<Expr>, Box<Stmt>),
    /// `break`, `continue`, `goto`.
    Jump(Option<Expr>),
    /// `asm`, with its operands.
    Assembly(Vec<Expr>),
    /// A function inside a function.
    Function(Box<Function>),
    /// `;`, or what could not be read.
    Empty,
}

/// A function definition.
#[derive(Debug)]
pub struct Function {
    /// Specifiers and declarator.
    pub declaration: Declaration,
    /// The declarations of K&R parameters.
    pub old_declarations: Vec<Declaration>,
    /// The body.
    pub body: Stmt,
    /// Dimensions of spread parameters, evaluated on entry.
    pub captures: Vec<(Rc<str>, Rc<Expr>)>,
    /// Whether a `return` has a value.
    pub returns_value: bool,
    /// Whether it asks for atomic procedures without waiting for them.
    pub has_atomic: bool,
}

/// Something outside of functions.
#[derive(Debug)]
pub enum External {
    /// A declaration.
    Declaration(Declaration),
    /// A function.
    Function(Box<Function>),
    /// `asm(...)`, a lone semicolon: copied.
    Raw(Span),
}
