//! Writes C.
//!
//! What has nothing to do with Split-C is written as the tokens it was read from, on the lines and
//! columns they had, with line markers; so messages of the C compiler and gdb show the user's
//! source. The rest is written anew, on one line: accesses become calls of the inline functions of
//! `split-c/compiler.h`, global types become `splitc_global`.

mod accesses;
mod calls;
mod declarations;
mod expressions;
mod names;
mod statements;

use crate::lex::{Token, TokenKind};
use crate::source::{Diagnostics, Files, Position};
use crate::split_phase::Variables;
use crate::syntax::Unit;
use crate::syntax::tree::{DeclPart, Declaration, Declarator, Expr, External, Span, Stmt};
use std::collections::HashMap;
use std::fmt::Write as _;

/// A part of a node that is otherwise copied.
pub(crate) enum Child<'e> {
    /// An expression as a value.
    Expr(&'e Expr),
    /// A statement.
    Stmt(&'e Stmt),
    /// A part of a declaration.
    Part(&'e DeclPart),
    /// A type name.
    Type(&'e crate::syntax::tree::TypeName),
}

/// Writes the C of one file.
pub struct Emitter<'a> {
    pub(crate) tokens: &'a [Token],
    pub(crate) files: &'a Files,
    pub(crate) diagnostics: &'a mut Diagnostics,
    pub(crate) scopes: &'a crate::scope::Scopes,
    pub(crate) extern_inline: &'a std::collections::HashSet<std::rc::Rc<str>>,
    pub(crate) out: String,
    /// Where the next character of `out` belongs in the source; `None` asks for a line marker.
    line: Option<Position>,
    /// The last token that was written.
    last: usize,
    /// More than 0: what is written has no lines of its own.
    pub(crate) flat: u32,
    /// What must stand before the external declaration that is being written.
    pub(crate) hoisted: String,
    /// What must stand behind it.
    pub(crate) behind: String,
    /// Where the external declaration that is being written begins.
    first_position: Option<Position>,
    places: Vec<(u32, u32)>,
    place_index: HashMap<(u32, u32), usize>,
    pub(crate) table: usize,
    pub(crate) counter: usize,
    /// `extern` is written as `static`.
    pub(crate) extern_is_static: bool,
    pub(crate) keep_register: bool,
    /// `register` is the only word of the specifiers: it stands for `int`.
    pub(crate) register_is_int: bool,
    pub(crate) in_function: bool,
    /// The function asks for atomic procedures without waiting for them: reads wait first.
    pub(crate) reads_after_atomic: bool,
    pub(crate) open_dimensions_as_star: bool,
    /// The address that is being written is that of an access.
    pub(crate) is_access: bool,
    /// Parameters of the function that are spread arrays.
    pub(crate) spread_parameters: std::collections::HashSet<std::rc::Rc<str>>,
    /// Whether accesses may be under way together.
    pub(crate) split_phase: bool,
    /// The variables of the function.
    pub(crate) variables: Variables,
    /// Reads that were begun: what holds their values.
    pub(crate) begun: HashMap<*const Expr, String>,
}

impl<'a> Emitter<'a> {
    /// An emitter for `unit`, which was read from `tokens`.
    pub fn new(
        tokens: &'a [Token],
        files: &'a Files,
        diagnostics: &'a mut Diagnostics,
        unit: &'a Unit,
        split_phase: bool,
    ) -> Self {
        Self {
            tokens,
            files,
            diagnostics,
            scopes: &unit.scopes,
            extern_inline: &unit.extern_inline,
            out: String::new(),
            line: None,
            last: usize::MAX - 1,
            flat: 0,
            hoisted: String::new(),
            behind: String::new(),
            first_position: None,
            places: Vec::new(),
            place_index: HashMap::new(),
            table: 0,
            counter: 0,
            extern_is_static: false,
            keep_register: false,
            register_is_int: false,
            in_function: false,
            reads_after_atomic: false,
            open_dimensions_as_star: false,
            is_access: false,
            spread_parameters: std::collections::HashSet::new(),
            split_phase,
            variables: Variables::default(),
            begun: HashMap::new(),
        }
    }

    /// Writes everything.
    pub fn unit(mut self, unit: &Unit) -> String {
        let mut whole = unit.implicit.clone();
        for external in &unit.externals {
            match external {
                External::Raw(span) => self.copy(*span),
                External::Declaration(declaration) => {
                    if self.is_replaced(declaration, unit) {
                        continue;
                    }
                    self.declaration(declaration);
                    if !declaration.storage.is_extern {
                        self.hide_own(declaration, unit, false);
                    }
                }
                External::Function(function) => {
                    if self.is_replaced(&function.declaration, unit) {
                        continue;
                    }
                    self.function(function);
                    self.hide_own(&function.declaration, unit, true);
                }
            }
            self.finish_external(&mut whole);
        }
        whole.push('\n');
        whole
    }

    /// Whether a header declares something by a name that the program has for itself.
    fn is_replaced(&self, declaration: &Declaration, unit: &Unit) -> bool {
        let at = self.tokens[declaration.span.start.min(self.tokens.len() - 1)].at;
        let is_own = |declarator: &Declarator| {
            let name = declarator.name.as_ref();
            name.is_some_and(|(name, _)| unit.own.contains(name))
        };
        !unit.own.is_empty()
            && self.files.is_system(at.file)
            && !declaration.declarators.is_empty()
            && declaration.declarators.iter().all(is_own)
    }

    /// What the program has under the name of a function of the C library is seen by the files of
    /// the program, and by no library.
    fn hide_own(&mut self, declaration: &Declaration, unit: &Unit, is_definition: bool) {
        if declaration.storage.is_static || declaration.storage.is_typedef {
            return;
        }
        for declarator in &declaration.declarators {
            let name = declarator
                .name
                .as_ref()
                .filter(|(name, _)| unit.own.contains(name));
            // A declaration of a function defines nothing.
            let defines = is_definition || !declarator.ty.is_function();
            if let (Some((name, _)), true) = (name, defines) {
                let _ = writeln!(self.behind, "__asm__(\".hidden {name}\");");
            }
        }
    }

    fn finish_external(&mut self, whole: &mut String) {
        if !self.places.is_empty() {
            let mut table = format!(
                "\nstatic const splitc_place splitc_places_{}[] = {{",
                self.table
            );
            for (file, line) in &self.places {
                let name = self
                    .files
                    .name(*file)
                    .replace('\\', "\\\\")
                    .replace('"', "\\\"");
                let _ = write!(table, "{{\"{name}\", {line}}}, ");
            }
            table.push_str("};\n");
            self.hoisted.insert_str(0, &table);
            self.places.clear();
            self.place_index.clear();
            self.table += 1;
        }
        if !self.hoisted.is_empty() {
            // What was hoisted has no line in the source; the marker behind it sets the line right
            // again.
            whole.push('\n');
            whole.push_str(&self.hoisted);
            if let Some(first) = self.first_position {
                let _ = write!(whole, "\n{}", self.marker(first));
            }
        }
        // The marker stands for the line breaks that bring the text to its line.
        let is_placed = !self.hoisted.is_empty() && self.first_position.is_some();
        let out = if is_placed {
            self.out.trim_start_matches('\n')
        } else {
            &self.out
        };
        whole.push_str(out);
        self.hoisted.clear();
        self.out.clear();
        if !self.behind.is_empty() {
            whole.push('\n');
            whole.push_str(&self.behind);
            self.behind.clear();
            self.line = None;
        }
        self.first_position = None;
    }
}

impl Emitter<'_> {
    fn marker(&self, at: Position) -> String {
        let name = self
            .files
            .name(at.file)
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        let flags = if self.files.is_system(at.file) {
            " 3 4"
        } else {
            ""
        };
        format!("# {} \"{name}\"{flags}\n", at.line)
    }

    /// Writes what brings the output to the line and column of a token.
    fn go_to(&mut self, at: Position) {
        let first = self.first_position.is_none();
        if first {
            self.first_position = Some(at);
        }
        match self.line {
            Some(line) if line.file == at.file && line.line == at.line => {
                // A marker in front of hoisted text repeats this line.
                if first && !self.out.is_empty() {
                    self.out.push('\n');
                }
            }
            Some(line)
                if line.file == at.file && line.line < at.line && at.line - line.line < 12 =>
            {
                for _ in line.line..at.line {
                    self.out.push('\n');
                }
                self.line = Some(Position { column: 1, ..at });
            }
            _ => {
                let marker = self.marker(at);
                self.out.push('\n');
                self.out.push_str(&marker);
                self.line = Some(Position { column: 1, ..at });
            }
        }
        let column = self.line.map_or(1, |line| line.column);
        for _ in column..at.column {
            self.out.push(' ');
        }
        if column < at.column {
            self.line = Some(at);
        }
    }

    /// Brings the output to the line of a token that is not written itself.
    pub(crate) fn token_line(&mut self, index: usize) {
        if self.flat == 0 {
            let at = self.tokens[index.min(self.tokens.len() - 1)].at;
            self.go_to(at);
        }
    }

    /// Writes one token.
    pub(crate) fn token(&mut self, index: usize) {
        let tokens = self.tokens;
        let token = &tokens[index];
        if token.kind == TokenKind::End {
            return;
        }
        let is_system = self.files.is_system(token.at.file);
        let mut text: &str = &token.text;
        if token.kind == TokenKind::Word && !is_system {
            match text {
                // Split-phase operations take addresses; and nothing is gained by the word today.
                "register" if self.register_is_int => text = "int",
                "register" if !self.keep_register => return,
                "extern" if self.extern_is_static => text = "static",
                _ => {}
            }
        }
        if self.flat == 0 {
            if let Some(pragmas) = &token.pragmas {
                self.out.push('\n');
                self.out.push_str(pragmas);
                self.line = None;
            }
            let before = self.out.len();
            self.go_to(token.at);
            if self.out.len() == before && !(token.touches && self.last + 1 == index) {
                self.push_text(" ");
            }
            self.out.push_str(text);
            if let Some(line) = &mut self.line {
                line.column += text.chars().count() as u32;
            }
        } else {
            self.out.push(' ');
            self.out.push_str(text);
            if let Some(line) = &mut self.line {
                line.column += text.chars().count() as u32 + 1;
            }
        }
        self.last = index;
    }

    /// Writes text that is not in the source.
    pub(crate) fn push_text(&mut self, text: &str) {
        self.out.push_str(text);
        if let Some(line) = &mut self.line {
            line.column += text.chars().count() as u32;
        }
    }

    /// Writes tokens as they are.
    pub(crate) fn copy(&mut self, span: Span) {
        for index in span.start..span.end {
            self.token(index);
        }
    }

    /// Writes tokens, and the children in their places.
    pub(crate) fn generic(&mut self, span: Span, mut children: Vec<Child<'_>>) {
        children.sort_by_key(|child| child_span(child).start);
        let mut index = span.start;
        for child in children {
            let inner = child_span(&child);
            if inner.start < index || inner.end > span.end {
                continue;
            }
            self.copy(Span {
                start: index,
                end: inner.start,
            });
            index = inner.end;
            match child {
                Child::Expr(expr) => self.value(expr),
                Child::Stmt(statement) => self.statement(statement),
                Child::Part(part) => self.part(part),
                Child::Type(name) => self.type_name(name),
            }
        }
        self.copy(Span {
            start: index,
            end: span.end,
        });
    }

    /// What `write` writes, as text without lines.
    pub(crate) fn text_of(&mut self, write: impl FnOnce(&mut Self)) -> String {
        let out = std::mem::take(&mut self.out);
        let (line, last, first) = (self.line, self.last, self.first_position);
        self.flat += 1;
        write(self);
        self.flat -= 1;
        (self.line, self.last, self.first_position) = (line, last, first);
        std::mem::replace(&mut self.out, out)
    }

    /// The place in the source at token `index`, as an argument of the runtime.
    pub(crate) fn place(&mut self, index: usize) -> String {
        let at = self.tokens[index.min(self.tokens.len() - 1)].at;
        let key = (at.file, at.line);
        let next = self.places.len();
        let number = *self.place_index.entry(key).or_insert(next);
        if number == next {
            self.places.push(key);
        }
        format!("&splitc_places_{}[{number}]", self.table)
    }

    pub(crate) fn part(&mut self, part: &DeclPart) {
        match part {
            DeclPart::Declaration(declaration) => self.declaration(declaration),
            DeclPart::Expr(expr) => self.value(expr),
            DeclPart::TagName(token, name) => {
                self.token(*token);
                self.push_text(" ");
                self.push_text(name);
                self.push_text(" ");
            }
        }
    }

    /// A number for a name that occurs once.
    pub(crate) fn number(&mut self) -> usize {
        self.counter += 1;
        self.counter
    }
}

fn child_span(child: &Child<'_>) -> Span {
    match child {
        Child::Expr(expr) => expr.span,
        Child::Stmt(statement) => statement.span,
        Child::Part(DeclPart::Declaration(declaration)) => declaration.span,
        Child::Part(DeclPart::Expr(expr)) => expr.span,
        Child::Part(DeclPart::TagName(token, _)) => Span {
            start: *token,
            end: token + 1,
        },
        Child::Type(name) => name.span,
    }
}
