//! Declarations and what stands outside of functions.

use super::tree::{
    Context, DeclPart, Declaration, Declarator, External, Function, Initializer, NameRole, Span,
    Storage,
};
use super::{Parse, Parser, is_reserved};
use crate::lex::TokenKind;
use crate::types::{Kind, Rank, Ty, Type};
use std::rc::Rc;

/// What the specifiers of a declaration say.
#[derive(Debug)]
pub(crate) struct Specifiers {
    pub(crate) base: Ty,
    pub(crate) storage: Storage,
    pub(crate) parts: Vec<DeclPart>,
    pub(crate) span: Span,
    /// Whether a type was named.
    pub(crate) has_type: bool,
    /// Whether anything was there at all.
    pub(crate) any: bool,
    /// `__splitc_calls__(name)` and `__splitc_named__(name)`.
    pub(crate) library: Option<(Rc<str>, bool)>,
    /// A tag without a name was defined: where its name would stand.
    pub(crate) unnamed_tag: Option<(usize, Rc<str>)>,
}

/// Words of the type specifiers, counted.
#[derive(Default)]
struct Words {
    signed: bool,
    unsigned: bool,
    short: bool,
    long: u32,
    complex: bool,
    base: Option<&'static str>,
}

impl Words {
    fn ty(&self) -> Option<Ty> {
        let integer = |rank| Type::integer(rank, self.unsigned);
        Some(match self.base {
            Some("void") => Type::new(Kind::Void),
            Some("_Bool") => Type::new(Kind::Bool),
            Some("char") => Type::new(Kind::Integer {
                rank: Rank::Char,
                unsigned: self.unsigned,
                explicit: self.signed,
            }),
            Some("__int128") => integer(Rank::Int128),
            Some("float") if self.complex => Type::new(Kind::Floating("_Complex float", 4)),
            Some("float") => Type::new(Kind::Floating("float", 1)),
            Some("double") if self.complex && self.long > 0 => {
                Type::new(Kind::Floating("_Complex long double", 6))
            }
            Some("double") if self.complex => Type::new(Kind::Floating("_Complex double", 5)),
            Some("double") if self.long > 0 => Type::new(Kind::Floating("long double", 3)),
            Some("double") => Type::double(),
            Some(
                name @ ("_Float128" | "_Float64" | "_Float32" | "_Float64x" | "_Float32x"
                | "_Float16"),
            ) => Type::new(Kind::Floating(name, 3)),
            Some("int") | None
                if self.base.is_some()
                    || self.signed
                    || self.unsigned
                    || self.short
                    || self.long > 0 =>
            {
                if self.short {
                    integer(Rank::Short)
                } else {
                    match self.long {
                        0 => integer(Rank::Int),
                        1 => integer(Rank::Long),
                        _ => integer(Rank::LongLong),
                    }
                }
            }
            None if self.complex => Type::new(Kind::Floating("_Complex double", 5)),
            _ => return None,
        })
    }

    fn any(&self) -> bool {
        self.signed
            || self.unsigned
            || self.short
            || self.complex
            || self.long > 0
            || self.base.is_some()
    }
}

/// The standard spelling of a word of the specifiers.
fn plain_word(word: &str) -> &str {
    match word {
        "__signed__" | "__signed" => "signed",
        "__const" | "__const__" => "const",
        "__volatile" | "__volatile__" => "volatile",
        "__restrict" | "__restrict__" => "restrict",
        "__inline" | "__inline__" => "inline",
        "__complex__" | "__complex" => "_Complex",
        "__attribute" => "__attribute__",
        "__typeof" | "typeof" | "__typeof__" => "typeof",
        "__asm" | "asm" => "__asm__",
        "__float128" => "_Float128",
        "__int128_t" => "__int128",
        "__thread" => "_Thread_local",
        "__alignof__" | "__alignof" => "_Alignof",
        other => other,
    }
}

impl Parser<'_> {
    /// Whether a declaration's specifiers begin `count` tokens ahead.
    pub(crate) fn is_declaration_start(&self, count: usize) -> bool {
        let token = self.ahead(count);
        if token.kind != TokenKind::Word {
            return false;
        }
        matches!(
            plain_word(&token.text),
            "typedef"
                | "extern"
                | "static"
                | "auto"
                | "register"
                | "_Thread_local"
                | "inline"
                | "_Noreturn"
                | "const"
                | "volatile"
                | "restrict"
                | "_Atomic"
                | "void"
                | "char"
                | "short"
                | "int"
                | "long"
                | "float"
                | "double"
                | "signed"
                | "unsigned"
                | "_Bool"
                | "_Complex"
                | "_Float128"
                | "_Float64"
                | "_Float32"
                | "_Float64x"
                | "_Float32x"
                | "_Float16"
                | "__int128"
                | "__builtin_va_list"
                | "struct"
                | "union"
                | "enum"
                | "typeof"
                | "_Alignas"
                | "_Static_assert"
                | "__attribute__"
                | "__auto_type"
                | "__uint128_t"
        ) || (&*token.text == "__extension__" && self.is_declaration_start(count + 1))
            || self.is_typedef_name(count)
    }

    /// Whether a type name begins `count` tokens ahead.
    pub(crate) fn is_type_start(&self, count: usize) -> bool {
        self.is_declaration_start(count)
            && !matches!(
                &*self.ahead(count).text,
                "typedef" | "extern" | "static" | "auto" | "register" | "_Static_assert"
            )
    }

    /// Reads specifiers; `context` decides what an unnamed structure may be.
    pub(crate) fn specifiers(&mut self, context: Context) -> Parse<Specifiers> {
        let start = self.at;
        let mut words = Words::default();
        let mut named: Option<Ty> = None;
        let mut storage = Storage::default();
        let (mut is_const, mut is_volatile, mut any) = (false, false, false);
        let mut parts = Vec::new();
        let mut library = None;
        let mut unnamed_tag = None;
        loop {
            let token = self.token();
            if token.kind != TokenKind::Word {
                break;
            }
            let word = plain_word(&token.text);
            match word {
                "typedef" => storage.is_typedef = true,
                "extern" => storage.is_extern = true,
                "static" => storage.is_static = true,
                "inline" => storage.is_inline = true,
                "auto" | "register" | "_Thread_local" | "_Noreturn" | "__extension__"
                | "restrict" => {}
                "const" => is_const = true,
                "volatile" => is_volatile = true,
                "_Atomic" if !self.is_ahead(1, "(") => {}
                "signed" => words.signed = true,
                "unsigned" => words.unsigned = true,
                "short" => words.short = true,
                "long" => words.long += 1,
                "_Complex" => words.complex = true,
                "void" | "char" | "int" | "float" | "double" | "_Bool" | "__int128"
                | "_Float128" | "_Float64" | "_Float32" | "_Float64x" | "_Float32x"
                | "_Float16" => {
                    let known = [
                        "void",
                        "char",
                        "int",
                        "float",
                        "double",
                        "_Bool",
                        "__int128",
                        "_Float128",
                        "_Float64",
                        "_Float32",
                        "_Float64x",
                        "_Float32x",
                        "_Float16",
                    ];
                    if words.base.is_some() {
                        let at = self.here();
                        return self.fail(
                            at,
                            "two types in one declaration; is a ';' missing before it?",
                        );
                    }
                    words.base = known.into_iter().find(|known| *known == word);
                }
                "__attribute__" => {
                    self.attribute(&mut storage, &mut library)?;
                    any = true;
                    continue;
                }
                "_Alignas" => {
                    self.next();
                    self.skip_balanced()?;
                    any = true;
                    continue;
                }
                "typeof" | "_Atomic" => {
                    named = Some(self.type_of(&mut parts)?);
                    any = true;
                    continue;
                }
                "struct" | "union" | "enum" => {
                    let (ty, unnamed) = self.tagged(&mut parts)?;
                    named = Some(ty);
                    unnamed_tag = unnamed;
                    any = true;
                    continue;
                }
                "__builtin_va_list" | "__auto_type" | "__uint128_t" => {
                    named = Some(if word == "__auto_type" {
                        Type::unknown()
                    } else {
                        Type::new(Kind::Named(word.into()))
                    });
                }
                _ => {
                    if named.is_some() || words.any() || !self.is_typedef_name(0) {
                        break;
                    }
                    named = self
                        .scopes
                        .find(&token.text)
                        .map(|symbol| symbol.ty.clone());
                }
            }
            any = true;
            self.next();
        }
        let has_type = named.is_some() || words.any();
        let base = match named {
            Some(ty) => ty,
            None => words.ty().unwrap_or_else(Type::int),
        };
        let base = Type::qualified(&base, is_const, is_volatile);
        if let Some((index, name)) = &unnamed_tag {
            // `struct { ... };` inside a structure has no name: its fields are those of the
            // structure around it.
            if !(context == Context::Member && self.is(";")) {
                parts.push(DeclPart::TagName(*index, name.clone()));
            }
        }
        Ok(Specifiers {
            base,
            storage,
            parts,
            span: self.span_from(start),
            has_type,
            any,
            library,
            unnamed_tag,
        })
    }

    /// `__attribute__((...))`: skipped, but for what matters here.
    pub(crate) fn attribute(
        &mut self,
        storage: &mut Storage,
        library: &mut Option<(Rc<str>, bool)>,
    ) -> Parse<()> {
        self.next();
        let start = self.at;
        if !self.is("(") {
            let at = self.here();
            return self.fail(at, "expected '(' after '__attribute__'");
        }
        self.skip_balanced()?;
        for index in start..self.at {
            match &*self.tokens[index].text {
                "gnu_inline" | "__gnu_inline__" => storage.is_gnu_inline = true,
                "vector_size" | "__vector_size__" | "mode" | "__mode__" => {
                    storage.changes_type = true
                }
                word @ ("__splitc_calls__" | "__splitc_named__") if index + 2 < self.at => {
                    *library = Some((
                        self.tokens[index + 2].text.clone(),
                        word == "__splitc_calls__",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// `typeof (e)`, `typeof (T)`, `_Atomic (T)`.
    fn type_of(&mut self, parts: &mut Vec<DeclPart>) -> Parse<Ty> {
        self.next();
        self.expect("(", "after 'typeof'")?;
        let ty = if self.is_type_start(0) {
            let name = self.type_name()?;
            let ty = name.ty.clone();
            parts.extend(name.parts);
            ty
        } else {
            self.unevaluated += 1;
            let expr = self.expression();
            self.unevaluated -= 1;
            let expr = expr?;
            let ty = expr.ty.clone();
            parts.push(DeclPart::Expr(Rc::new(expr)));
            ty
        };
        self.expect(")", "after the operand of 'typeof'")?;
        Ok(ty)
    }

    /// Something outside of functions.
    pub(crate) fn external(&mut self, out: &mut Vec<External>) -> Parse<()> {
        let start = self.at;
        if self.accept(";") {
            out.push(External::Raw(self.span_from(start)));
            return Ok(());
        }
        if self.is_any(&["asm", "__asm__", "__asm"]) {
            self.next();
            while self.is_any(&["volatile", "__volatile__"]) {
                self.next();
            }
            if self.is("(") {
                self.skip_balanced()?;
            }
            self.expect(";", "after 'asm'")?;
            out.push(External::Raw(self.span_from(start)));
            return Ok(());
        }
        if self.token().kind != TokenKind::Word && !self.is("*") && !self.is("(") {
            let found = self.token().text.clone();
            let at = self.here();
            return self.fail(at, format!("expected a declaration before '{found}'"));
        }
        match self.declaration(Context::File)? {
            Read::Declaration(declaration) => out.push(External::Declaration(declaration)),
            Read::Function(function) => out.push(External::Function(function)),
        }
        Ok(())
    }

    /// A declaration, or outside of functions (and in GNU's dialect inside) a function.
    pub(crate) fn declaration(&mut self, context: Context) -> Parse<Read> {
        let start = self.at;
        if self.is("_Static_assert") {
            self.next();
            self.expect("(", "after '_Static_assert'")?;
            let condition = self.conditional()?;
            if self.accept(",") {
                while self.token().kind == TokenKind::Text {
                    self.next();
                }
            }
            self.expect(")", "after the assertion")?;
            self.expect(";", "after '_Static_assert'")?;
            let mut declaration = self.empty_declaration(start, context);
            declaration.parts.push(DeclPart::Expr(Rc::new(condition)));
            return Ok(Read::Declaration(declaration));
        }
        let mut specifiers = self.specifiers(context)?;
        if !specifiers.any && !self.is_name() && !self.is("*") && !self.is("(") {
            let found = self.token().text.clone();
            let at = self.here();
            return self.fail(at, format!("expected a declaration before '{found}'"));
        }
        if !specifiers.has_type && self.is_name() && self.is_name_ahead(1) {
            let name = self.token().text.clone();
            let at = self.here();
            return self.fail(
                at,
                format!("unknown type name '{name}'; declare it before, or include its header"),
            );
        }
        let mut declarators: Vec<Declarator> = Vec::new();
        if !self.is(";") {
            loop {
                let mut declarator = self.declarator(specifiers.base.clone(), context)?;
                self.declarator_tail(&mut declarator, &mut specifiers)?;
                let is_first = declarators.is_empty();
                if is_first
                    && declarator.ty.is_function()
                    && !specifiers.storage.is_typedef
                    && (self.is("{")
                        || (declarator.old_parameters.is_some() && self.is_old_declaration()))
                {
                    let function =
                        self.function_definition(start, specifiers, declarator, context)?;
                    return Ok(Read::Function(Box::new(function)));
                }
                declarator.library = self.introduce(&mut declarator, &specifiers, context)?;
                declarators.push(declarator);
                if !self.accept(",") {
                    break;
                }
                while self.is_any(&["__attribute__", "__attribute"]) {
                    let mut storage = specifiers.storage;
                    self.attribute(&mut storage, &mut None)?;
                }
            }
        }
        self.expect(";", "after the declaration")?;
        let library = !declarators.is_empty() && declarators.iter().all(|d| d.library);
        let special = declarators
            .iter()
            .any(|d| d.special || d.library || d.emitted.is_some());
        Ok(Read::Declaration(Declaration {
            span: self.span_from(start),
            specifiers: specifiers.span,
            parts: specifiers.parts,
            declarators,
            storage: specifiers.storage,
            context,
            special,
            base: specifiers.base,
            library,
        }))
    }

    fn empty_declaration(&self, start: usize, context: Context) -> Declaration {
        Declaration {
            span: self.span_from(start),
            specifiers: self.span_from(start),
            parts: Vec::new(),
            declarators: Vec::new(),
            storage: Storage::default(),
            context,
            special: false,
            base: Type::int(),
            library: false,
        }
    }

    /// `asm("name")` and attributes behind a declarator.
    fn declarator_tail(
        &mut self,
        declarator: &mut Declarator,
        specifiers: &mut Specifiers,
    ) -> Parse<()> {
        loop {
            let start = self.at;
            if self.is_any(&["asm", "__asm__", "__asm"]) {
                self.next();
                if !self.is("(") {
                    let at = self.here();
                    return self.fail(at, "expected '(' after 'asm'");
                }
                self.skip_balanced()?;
            } else if self.is_any(&["__attribute__", "__attribute"]) {
                let mut library = specifiers.library.take();
                self.attribute(&mut specifiers.storage, &mut library)?;
                specifiers.library = library;
            } else {
                return Ok(());
            }
            declarator.attributes.push(self.span_from(start));
            declarator.span.end = self.at;
        }
    }

    /// Declares the name of a declarator and reads its initialiser. Says whether it is an operation
    /// of the runtime.
    fn introduce(
        &mut self,
        declarator: &mut Declarator,
        specifiers: &Specifiers,
        context: Context,
    ) -> Parse<bool> {
        let storage = specifiers.storage;
        let Some((name, token)) = declarator.name.clone() else {
            let at = self.here();
            return self.fail(at, "expected a name in this declaration");
        };
        let at = self.tokens[token].at;
        let is_spread = matches!(declarator.ty.kind, Kind::SpreadArray(..));
        declarator.special |= is_spread && !storage.is_typedef;
        let is_static = context == Context::File || storage.is_static;
        if is_spread && !storage.is_typedef && !storage.is_extern {
            if let Kind::SpreadArray(_, dimensions) = &declarator.ty.kind
                && dimensions
                    .iter()
                    .any(|d| matches!(d, crate::types::Dimension::Open))
            {
                let text = "a spread array needs the sizes of all its dimensions; write them in the brackets";
                return self.fail(at, text);
            }
            if is_static && context == Context::Block {
                declarator.emitted = Some(self.fresh(&format!("static_{name}")));
            }
            if !is_static {
                self.capture(declarator);
            }
        }
        if storage.changes_type {
            // What an attribute makes of a type, the C compiler knows.
            let kind = if storage.is_typedef {
                Kind::Named(name.clone())
            } else {
                Kind::Unknown
            };
            declarator.ty = Type::new(kind);
        }
        if storage.is_typedef {
            self.declare(&name, declarator.ty.clone(), true, NameRole::Foreign, at);
            return Ok(false);
        }
        if declarator.ty.is_void() && context != Context::Parameter && !storage.is_extern {
            let text = format!("'{name}' is declared void; a variable needs a type with a value");
            return self.fail(at, text);
        }
        if context == Context::File && specifiers.library.is_none() {
            self.check_redeclaration(&name, &declarator.ty, at);
            self.note_own(&name, &declarator.ty, at, false);
        }
        let mut role = NameRole::Object(declarator.emitted.clone().unwrap_or_else(|| name.clone()));
        let mut library = false;
        if let Some((c_name, with_place)) = &specifiers.library {
            role = NameRole::Library(c_name.clone(), *with_place);
            library = true;
        } else if declarator.ty.is_function() {
            // A second declaration of an operation of the runtime declares nothing new.
            if let Some(symbol) = self.scopes.find_in_file(&name) {
                if let NameRole::Library(..) = symbol.role {
                    return Ok(true);
                }
                // An old-style declaration tells less than the prototype before it.
                if let (Kind::Function(_, Some(_), _), Kind::Function(_, None, _)) =
                    (&symbol.ty.kind, &declarator.ty.kind)
                    && !self.own.contains(&name)
                {
                    return Ok(false);
                }
            }
            let ty = declarator.ty.clone();
            self.declare(&name, ty, false, role, at);
            return Ok(false);
        }
        let previous = self
            .scopes
            .find_here(&name)
            .filter(|s| !s.is_typedef)
            .map(|s| s.ty.clone());
        let ty = match previous {
            // `extern int a[];` after `int a[3];` tells nothing new.
            Some(previous)
                if context == Context::File && self.is_incomplete_array(&declarator.ty) =>
            {
                previous
            }
            _ => declarator.ty.clone(),
        };
        self.declare(&name, ty.clone(), false, role, at);
        if self.accept("=") {
            if is_spread {
                let text = format!(
                    "the spread array '{name}' cannot have an initializer; assign to its elements, each processor to its own"
                );
                return self.fail(at, text);
            }
            let before = std::mem::replace(
                &mut self.in_static_initializer,
                is_static || storage.is_static,
            );
            let initializer = self.initializer(&ty);
            self.in_static_initializer = before;
            let initializer = initializer?;
            if let (true, Initializer::Expr(expr)) = (ty.is_unknown(), &initializer) {
                // `__auto_type`.
                let known = crate::check::value_type(expr);
                let role =
                    NameRole::Object(declarator.emitted.clone().unwrap_or_else(|| name.clone()));
                self.declare(&name, known, false, role, at);
            }
            declarator.initializer = Some(initializer);
        }
        Ok(library)
    }

    fn is_incomplete_array(&self, ty: &Ty) -> bool {
        matches!(&ty.kind, Kind::Array(_, crate::types::Dimension::Open))
    }
}

/// What a declaration turned out to be.
pub(crate) enum Read {
    /// A declaration.
    Declaration(Declaration),
    /// A function.
    Function(Box<Function>),
}

/// Whether a word may be a name in a declarator.
pub(crate) fn may_be_name(word: &str) -> bool {
    !is_reserved(word)
}
