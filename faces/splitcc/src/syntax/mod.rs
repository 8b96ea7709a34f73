//! The parser: tokens to a tree with types.
//!
//! It reads C89 to C17 in GNU's dialect with K&R definitions and implicit `int`, and Split-C. It
//! refuses what it cannot read, with the place; what is wrong with plain C it leaves to the C
//! compiler, which sees the same lines. After an error it goes on behind the statement or
//! declaration. Nesting is bounded ([`NESTING_LIMIT`], [`DEPTH_LIMIT`]).

pub mod declarations;
pub mod declarators;
pub mod expressions;
pub mod functions;
pub mod initializers;
pub mod primaries;
pub mod records;
mod redeclarations;
pub mod statements;
pub mod tree;

use crate::lex::{Token, TokenKind};
use crate::scope::{Scopes, Symbol};
use crate::source::{Diagnostics, Files, Position};
use crate::types::Ty;
use std::collections::HashSet;
use std::rc::Rc;
use tree::{Expr, External, NameRole, Span};

/// How deep parentheses, braces and declarators may be nested.
pub const NESTING_LIMIT: u32 = 400;
/// How deep a tree may be: the length of `a + b + ...`.
pub const DEPTH_LIMIT: u32 = 10_000;

/// The construct could not be read; the error has been reported.
#[derive(Debug)]
pub struct Broken;

/// A result of the parser.
pub type Parse<T> = Result<T, Broken>;

/// What is known of the function that is being read.
#[derive(Debug)]
pub struct FunctionState {
    /// Its result.
    pub result: Ty,
    /// Whether a `return` had a value.
    pub returns_value: bool,
    /// Whether it asks for atomic procedures without waiting for them.
    pub has_atomic: bool,
}

/// The parser.
pub struct Parser<'a> {
    pub(crate) tokens: &'a [Token],
    pub(crate) at: usize,
    pub(crate) files: &'a Files,
    pub(crate) diagnostics: &'a mut Diagnostics,
    pub(crate) scopes: Scopes,
    pub(crate) nesting: u32,
    /// How many `?` wait for their `:` within the innermost brackets.
    pub(crate) open_conditions: u32,
    pub(crate) function: Option<FunctionState>,
    pub(crate) made_up: u32,
    /// Names of functions that this file defines itself.
    pub(crate) defined: HashSet<Rc<str>>,
    /// Names of the program that are functions of system headers, too.
    pub(crate) own: HashSet<Rc<str>>,
    /// Functions that some header defines `extern inline` without an external definition.
    pub(crate) extern_inline: HashSet<Rc<str>>,
    /// Declarations of functions that the program does not declare.
    pub(crate) implicit: Vec<String>,
    /// Whether an initialiser of something static is being read.
    pub(crate) in_static_initializer: bool,
    /// Whether operands are not evaluated (`sizeof`, `typeof`).
    pub(crate) unevaluated: u32,
}

/// What was read from a file.
pub struct Unit {
    /// In the order of the file.
    pub externals: Vec<External>,
    /// Structures, unions and enumerations.
    pub scopes: Scopes,
    /// Functions to make static: defined `extern inline`.
    pub extern_inline: HashSet<Rc<str>>,
    /// Names of the program that are functions of system headers, too.
    pub own: HashSet<Rc<str>>,
    /// Declarations of functions that the program does not declare.
    pub implicit: String,
}

const RESERVED: &[&str] = &[
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "int",
    "long",
    "register",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "__attribute__",
    "__asm__",
    "__typeof__",
    "__extension__",
    "_Static_assert",
    "_Generic",
    "_Bool",
    "__inline__",
    "__inline",
    "__builtin_va_arg",
    "__builtin_offsetof",
    "_Noreturn",
    "_Alignas",
    "_Alignof",
    "_Complex",
    "_Thread_local",
    "__thread",
];

/// Whether `word` cannot be a name.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

impl<'a> Parser<'a> {
    /// A parser of `tokens`, whose last one is the end.
    pub fn new(tokens: &'a [Token], files: &'a Files, diagnostics: &'a mut Diagnostics) -> Self {
        Self {
            tokens,
            at: 0,
            files,
            diagnostics,
            scopes: Scopes::new(),
            nesting: 0,
            open_conditions: 0,
            function: None,
            made_up: 0,
            defined: HashSet::new(),
            own: HashSet::new(),
            extern_inline: HashSet::new(),
            implicit: Vec::new(),
            in_static_initializer: false,
            unevaluated: 0,
        }
    }

    /// Reads the whole file.
    pub fn unit(mut self) -> Unit {
        let mut externals = Vec::new();
        while self.token().kind != TokenKind::End && !self.diagnostics.is_full() {
            let start = self.at;
            match self.external(&mut externals) {
                Ok(()) => {}
                Err(Broken) => {
                    self.scopes.close_to(1);
                    self.nesting = 0;
                    self.open_conditions = 0;
                    self.function = None;
                    self.in_static_initializer = false;
                    self.unevaluated = 0;
                    self.skip_external(start);
                }
            }
        }
        Unit {
            externals,
            scopes: self.scopes,
            extern_inline: self.extern_inline,
            own: self.own,
            implicit: self.implicit.concat(),
        }
    }

    // --- Tokens
    // ---------------------------------------------------------------------------------------------------

    pub(crate) fn token(&self) -> &'a Token {
        self.ahead(0)
    }

    pub(crate) fn ahead(&self, count: usize) -> &'a Token {
        &self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.is_ahead(0, text)
    }

    /// Whether the token `count` ahead is that word or mark.
    pub(crate) fn is_ahead(&self, count: usize, text: &str) -> bool {
        let token = self.ahead(count);
        matches!(token.kind, TokenKind::Word | TokenKind::Mark) && &*token.text == text
    }

    pub(crate) fn is_any(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| self.is(text))
    }

    /// Whether two tokens stand here that touch, as in `:=`.
    pub(crate) fn is_pair(&self, first: &str, second: &str) -> bool {
        self.is(first) && self.is_ahead(1, second) && self.ahead(1).touches
    }

    pub(crate) fn next(&mut self) -> &'a Token {
        let token = self.token();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    pub(crate) fn accept(&mut self, text: &str) -> bool {
        let found = self.is(text);
        if found {
            self.next();
        }
        found
    }

    pub(crate) fn expect(&mut self, text: &str, after: &str) -> Parse<()> {
        if self.accept(text) {
            return Ok(());
        }
        // What is missing is missing behind the last token.
        let found = self.token().text.clone();
        let at = if text == ";" && self.at > 0 {
            self.tokens[self.at - 1].at
        } else {
            self.token().at
        };
        self.fail(at, format!("expected '{text}' {after} before '{found}'"))
    }

    /// Reports an error and gives up the construct.
    pub(crate) fn fail<T>(&mut self, at: Position, message: impl Into<String>) -> Parse<T> {
        self.diagnostics.error(at, message);
        Err(Broken)
    }

    pub(crate) fn here(&self) -> Position {
        self.token().at
    }

    pub(crate) fn position(&self, span: Span) -> Position {
        self.tokens[span.start.min(self.tokens.len() - 1)].at
    }

    pub(crate) fn span_from(&self, start: usize) -> Span {
        Span {
            start,
            end: self.at.max(start),
        }
    }

    /// Whether this token can be a name.
    pub(crate) fn is_name(&self) -> bool {
        self.is_name_ahead(0)
    }

    pub(crate) fn is_name_ahead(&self, count: usize) -> bool {
        let token = self.ahead(count);
        token.kind == TokenKind::Word && !is_reserved(&token.text)
    }

    /// Goes one level deeper; the caller goes back by [`Self::leave`].
    pub(crate) fn enter(&mut self) -> Parse<()> {
        self.nesting += 1;
        if self.nesting > NESTING_LIMIT {
            let at = self.here();
            return self.fail(
                at,
                format!("nested more than {NESTING_LIMIT} levels deep; take it apart"),
            );
        }
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.nesting = self.nesting.saturating_sub(1);
    }

    /// Skips from an opening bracket to behind the closing one.
    pub(crate) fn skip_balanced(&mut self) -> Parse<()> {
        let start = self.here();
        let mut open = Vec::new();
        loop {
            let token = self.token();
            if token.kind == TokenKind::End {
                return self.fail(start, "this bracket is never closed");
            }
            if token.kind == TokenKind::Mark {
                match &*token.text {
                    "(" => open.push(")"),
                    "[" => open.push("]"),
                    "{" => open.push("}"),
                    text @ (")" | "]" | "}") if open.pop() != Some(text) => {
                        let at = token.at;
                        return self
                            .fail(at, format!("'{text}' closes a bracket that is not open"));
                    }
                    _ => {}
                }
            }
            self.next();
            if open.is_empty() {
                return Ok(());
            }
        }
    }

    /// After an error outside of functions: skips to behind the next `;` or `}` at the outermost
    /// level.
    fn skip_external(&mut self, start: usize) {
        // The error may have been found in the middle of a body: braces that are open there are
        // counted from the start.
        let mut depth = 0i32;
        for token in &self.tokens[start..self.at.min(self.tokens.len())] {
            if token.kind == TokenKind::Mark {
                match &*token.text {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    _ => {}
                }
            }
        }
        if self.at == start {
            depth = 0;
        }
        loop {
            let token = self.token();
            match (token.kind, &*token.text) {
                (TokenKind::End, _) => return,
                (TokenKind::Mark, "{") => depth += 1,
                (TokenKind::Mark, "}") => {
                    depth -= 1;
                    if depth <= 0 {
                        self.next();
                        self.accept(";");
                        return;
                    }
                }
                (TokenKind::Mark, ";") if depth <= 0 => {
                    self.next();
                    return;
                }
                _ => {}
            }
            self.next();
        }
    }

    // --- Names
    // ----------------------------------------------------------------------------------------------------

    pub(crate) fn fresh(&mut self, stem: &str) -> Rc<str> {
        self.made_up += 1;
        format!("splitc_{stem}_{}", self.made_up).into()
    }

    pub(crate) fn declare(
        &mut self,
        name: &Rc<str>,
        ty: Ty,
        is_typedef: bool,
        role: NameRole,
        at: Position,
    ) {
        let is_foreign = self.files.is_system(at.file);
        let symbol = Symbol {
            ty,
            is_typedef,
            role,
            is_enumerator: false,
            is_foreign,
        };
        self.scopes.declare(name.clone(), symbol);
    }

    /// Whether the token `count` ahead names a type that was declared.
    pub(crate) fn is_typedef_name(&self, count: usize) -> bool {
        let token = self.ahead(count);
        token.kind == TokenKind::Word
            && self
                .scopes
                .find(&token.text)
                .is_some_and(|symbol| symbol.is_typedef)
    }
}

/// The depth of a node above these.
pub(crate) fn depth_above<'e>(parts: impl IntoIterator<Item = &'e Expr>) -> u32 {
    parts.into_iter().map(|part| part.depth).max().unwrap_or(0) + 1
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
