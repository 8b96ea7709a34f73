//! Declarations: those with global types are written anew, one by one (Split-C 2.2).

use super::expressions::initializer_children;
use super::{Child, Emitter};
use crate::split_phase::Variables;
use crate::syntax::functions::VARIABLE_ARGUMENTS;
use crate::syntax::tree::{
    Context, DeclPart, Declaration, Declarator, Function, Initializer, Span,
};
use crate::types::{Kind, Ty, Type};
use std::fmt::Write as _;
use std::rc::Rc;

impl Emitter<'_> {
    /// Writes a declaration.
    pub(crate) fn declaration(&mut self, declaration: &Declaration) {
        if declaration.library {
            return;
        }
        let has_label = declaration
            .declarators
            .iter()
            .any(|d| !d.attributes.is_empty());
        let keep = std::mem::replace(&mut self.keep_register, has_label);
        let specifiers = &self.tokens[declaration.specifiers.start..declaration.specifiers.end];
        let only_storage = specifiers
            .iter()
            .all(|t| matches!(&*t.text, "register" | "const" | "volatile" | "static"));
        let int = std::mem::replace(&mut self.register_is_int, only_storage && !has_label);
        let made_static = declaration.context == Context::File
            && declaration.declarators.iter().any(|d| {
                d.ty.is_function()
                    && d.name
                        .as_ref()
                        .is_some_and(|(name, _)| self.extern_inline.contains(name))
            });
        if made_static {
            self.extern_is_static = declaration.storage.is_extern;
            if !declaration.storage.is_extern && !declaration.storage.is_static {
                self.push_word("static");
            }
        }
        if declaration.special {
            self.special_declaration(declaration);
        } else {
            let children = declaration_children(declaration);
            self.generic(declaration.span, children);
        }
        self.extern_is_static = false;
        self.keep_register = keep;
        self.register_is_int = int;
    }

    /// The words of the specifiers that are no type: `static`, `extern`, attributes.
    fn storage_text(&mut self, declaration: &Declaration) -> String {
        let mut text = String::new();
        let span = declaration.specifiers;
        let mut index = span.start;
        let mut braces = 0;
        while index < span.end {
            let token = &self.tokens[index];
            match &*token.text {
                "{" => braces += 1,
                "}" => braces -= 1,
                word @ ("typedef" | "extern" | "static" | "inline" | "__inline" | "__inline__"
                | "_Thread_local" | "__thread" | "_Noreturn" | "__extension__")
                    if braces == 0 =>
                {
                    let word = if word == "extern" && self.extern_is_static {
                        "static"
                    } else {
                        word
                    };
                    text.push_str(word);
                    text.push(' ');
                }
                _ => {}
            }
            index += 1;
        }
        text
    }

    fn special_declaration(&mut self, declaration: &Declaration) {
        let storage = self.storage_text(declaration);
        let has_body = self.tokens[declaration.specifiers.start..declaration.specifiers.end]
            .iter()
            .any(|token| &*token.text == "{");
        if has_body {
            self.specifiers_alone(declaration);
        }
        for (number, declarator) in declaration.declarators.iter().enumerate() {
            if declarator.library {
                continue;
            }
            let start = if number == 0 {
                declaration.span.start
            } else {
                declarator.span.start
            };
            self.token_line(start);
            self.flat += 1;
            self.special_declarator(declaration, declarator, &storage);
            self.flat -= 1;
        }
    }

    fn ends_with_semicolon(&self, declaration: &Declaration) -> bool {
        declaration.span.end > declaration.span.start
            && &*self.tokens[declaration.span.end - 1].text == ";"
    }

    /// `struct s { ... };` of a declaration whose declarators are written by themselves.
    fn specifiers_alone(&mut self, declaration: &Declaration) {
        let span = declaration.specifiers;
        let mut start = span.start;
        while start < span.end
            && matches!(
                &*self.tokens[start].text,
                "typedef" | "extern" | "static" | "register" | "const" | "volatile"
            )
        {
            start += 1;
        }
        let children = declaration.parts.iter().map(Child::Part).collect();
        self.generic(
            Span {
                start,
                end: span.end,
            },
            children,
        );
        self.push_text(";");
    }

    fn special_declarator(
        &mut self,
        declaration: &Declaration,
        declarator: &Declarator,
        storage: &str,
    ) {
        let name = declarator
            .name
            .as_ref()
            .map_or_else(String::new, |(name, _)| name.to_string());
        let end = if self.ends_with_semicolon(declaration) {
            ";"
        } else {
            ""
        };
        if declaration.storage.is_typedef {
            if !matches!(declarator.ty.kind, Kind::SpreadArray(..)) {
                let text = self.declared(&declarator.ty, name);
                self.push_text(&format!(" {storage}{text};"));
            }
            return;
        }
        if let Kind::SpreadArray(of, dimensions) = &declarator.ty.kind
            && declaration.context != Context::Parameter
            && !declaration.storage.is_extern
        {
            let (of, dimensions) = (of.clone(), dimensions.clone());
            self.spread_array(declaration, declarator, &of, &dimensions, storage);
            return;
        }
        let text = if declarator.ty.is_function() {
            self.function_declarator(declarator, &name)
        } else {
            self.declared(&declarator.ty, name)
        };
        self.push_text(&format!(" {storage}{text}"));
        if let Some(width) = &declarator.width {
            self.push_text(" :");
            self.value(width);
        }
        for attribute in &declarator.attributes {
            self.copy(*attribute);
        }
        if let Some(initializer) = &declarator.initializer {
            self.push_text(" =");
            self.initializer(initializer);
        }
        self.push_text(end);
    }

    fn initializer(&mut self, initializer: &Initializer) {
        match initializer {
            Initializer::Expr(expr) => self.value(expr),
            Initializer::List(span, _) => {
                let mut children = Vec::new();
                initializer_children(initializer, &mut children);
                self.generic(*span, children);
            }
        }
    }

    /// A function with its parameters as they were written: they may have names.
    fn function_declarator(&mut self, declarator: &Declarator, name: &str) -> String {
        let Kind::Function(result, parameters, variadic) = &declarator.ty.kind else {
            return String::new();
        };
        let mut texts = Vec::new();
        if let Some(old) = &declarator.old_parameters {
            texts.extend(old.iter().map(|name| name.to_string()));
        } else {
            for part in &declarator.parts {
                if let DeclPart::Declaration(parameter) = part {
                    texts.push(self.text_of(|e| e.declaration(parameter)));
                }
            }
            if texts.is_empty() && parameters.is_some() {
                texts.push("void".into());
            }
            if *variadic && parameters.is_some() {
                texts.push("...".into());
            }
        }
        let result: Ty = result.clone();
        self.declared(&result, format!("{name}({})", texts.join(", ")))
    }

    /// A spread array: on the stack of names it is one global address.
    fn spread_array(
        &mut self,
        declaration: &Declaration,
        declarator: &Declarator,
        of: &Ty,
        dimensions: &[crate::types::Dimension],
        storage: &str,
    ) {
        let Some((name, token)) = &declarator.name else {
            return;
        };
        let place = self.place(*token);
        let is_static = declaration.context == Context::File || declaration.storage.is_static;
        if !is_static {
            for (captured, expr) in &declarator.captures {
                let value = self.text_of(|e| e.value(expr));
                self.push_text(&format!(" const unsigned long {captured} __attribute__((unused)) = (unsigned long)({value});"));
            }
            let count = self.count_text(dimensions);
            let size = self.size_text(of);
            self.push_text(&format!(
                " splitc_global {name} __attribute__((cleanup(splitc_leave_spread_array))) = \
                 splitc_all_spread_malloc({count}, {size}, {place});"
            ));
            return;
        }
        let count = self.count_text(dimensions);
        let size = self.size_text(of);
        let number = self.number();
        let variable = declarator.emitted.as_ref().unwrap_or(name).clone();
        // Started in the order of registration, which is the same on all processors.
        let start = format!(
            "static void splitc_start_{number}(void) {{ if (!{variable}) {variable} = splitc_all_spread_malloc({count}, {size}, {place}); }}\n\
             __attribute__((constructor)) static void splitc_register_{number}(void) {{ splitc_at_start(splitc_start_{number}); }}\n"
        );
        if declaration.context == Context::File {
            self.push_text(&format!(" {storage}splitc_global {name};"));
            self.behind.push_str(&start);
        } else {
            let _ = writeln!(self.hoisted, "static splitc_global {variable};");
            self.hoisted.push_str(&start);
        }
    }

    /// Writes a function. The head of a function with variable arguments of before there were
    /// prototypes (`varargs.h`). C compilers know such only with a prototype, to which calls of the
    /// time do not fit: so the function has a second name, without a prototype.
    fn variable_arguments_begin(&mut self, function: &Function, name: &str, fixed: &[Rc<str>]) {
        let declared = || {
            function
                .old_declarations
                .iter()
                .flat_map(|d| &d.declarators)
        };
        let mut parameters = Vec::new();
        for parameter in fixed {
            let found =
                declared().find(|d| d.name.as_ref().is_some_and(|(name, _)| name == parameter));
            let ty = found.map_or_else(Type::int, |d| d.ty.clone());
            let text = match &ty.kind {
                // As the caller passes it.
                Kind::Floating("float", _) => format!("double {parameter}"),
                _ => self.declared(&ty, parameter.to_string()),
            };
            parameters.push(text);
        }
        if parameters.is_empty() {
            parameters.push("struct splitc_no_parameter splitc_first".into());
        }
        let result = self.variable_arguments_result(function);
        let storage = self.storage_text(&function.declaration);
        let outside = self.declared(&result, format!("{name}()"));
        let head = format!("splitc_va_{name}({}, ...)", parameters.join(", "));
        let inside = self.declared(&result, head);
        self.token_line(function.declaration.span.start);
        self.push_text(&format!(
            " {storage}{outside}; static __attribute__((noipa)) {inside}"
        ));
    }

    fn variable_arguments_end(&mut self, function: &Function, name: &str) {
        let result = self.variable_arguments_result(function);
        let storage = self.storage_text(&function.declaration);
        let outside = self.declared(&result, format!("{name}()"));
        self.push_text(&format!(
            " {storage}{outside} __attribute__((alias(\"splitc_va_{name}\")));"
        ));
    }

    fn variable_arguments_result(&self, function: &Function) -> Ty {
        match function.declaration.declarators.first().map(|d| &d.ty.kind) {
            Some(Kind::Function(result, ..)) => result.clone(),
            _ => Type::int(),
        }
    }

    pub(crate) fn function(&mut self, function: &Function) {
        let declaration = &function.declaration;
        let Some(declarator) = declaration.declarators.first() else {
            return;
        };
        let name = declarator
            .name
            .as_ref()
            .map_or_else(String::new, |(name, _)| name.to_string());
        let is_outermost = !self.in_function;
        self.in_function = true;
        let before = std::mem::replace(&mut self.reads_after_atomic, function.has_atomic);
        if self.extern_inline.contains(name.as_str()) {
            self.extern_is_static = declaration.storage.is_extern;
            if !declaration.storage.is_extern && !declaration.storage.is_static {
                self.push_word("static");
            }
        }
        let variable_arguments = variable_arguments(declarator);
        if let Some(fixed) = variable_arguments {
            self.variable_arguments_begin(function, &name, fixed);
        } else if declaration.special
            && declarator.special
            && !only_parameters_are_special(declarator)
        {
            let storage = self.storage_text(declaration);
            let text = self.function_declarator(declarator, &name);
            self.token_line(declaration.span.start);
            self.push_text(&format!(" {storage}{text}"));
        } else {
            let children = declaration_children(declaration);
            let end = function
                .old_declarations
                .first()
                .map_or(declaration.span.end, |first| first.span.start);
            self.generic(
                Span {
                    start: declaration.span.start,
                    end,
                },
                children,
            );
        }
        self.extern_is_static = false;
        if variable_arguments.is_none() {
            for old in &function.old_declarations {
                self.declaration(old);
            }
        }
        let returns_nothing =
            matches!(&declarator.ty.kind, Kind::Function(result, ..) if result.is_void());
        let is_main = is_outermost && name == "splitc_main";
        if is_outermost {
            self.spread_parameters = spread_parameters(function);
        }
        let mut captures = String::new();
        for (captured, expr) in &function.captures {
            let value = self.text_of(|e| e.value(expr));
            let _ = write!(
                captures,
                " const unsigned long {captured} __attribute__((unused)) = (unsigned long)({value});"
            );
        }
        if is_outermost && self.split_phase {
            self.variables = Variables::of(&function.body);
        }
        let last = if is_main && !returns_nothing {
            " return 0; "
        } else {
            ""
        };
        self.body(&function.body, &captures, last);
        if is_outermost {
            self.in_function = false;
        }
        if variable_arguments.is_some() {
            self.variable_arguments_end(function, &name);
        }
        self.reads_after_atomic = before;
        if is_main {
            // The result of a main function that never returns one is an accident.
            let text = if returns_nothing || !function.returns_value {
                "((void (*)(int, char **, char **))program)(argc, argv, environ); return 0;"
            } else {
                "return ((int (*)(int, char **, char **))program)(argc, argv, environ);"
            };
            let _ = writeln!(
                self.behind,
                "int splitc_program(int argc, char **argv) {{ extern char **environ; void *program = (void *)splitc_main; {text} }}"
            );
        }
    }
}

/// The parameters that are spread arrays.
fn spread_parameters(function: &Function) -> std::collections::HashSet<std::rc::Rc<str>> {
    let prototype = function
        .declaration
        .declarators
        .iter()
        .flat_map(|d| &d.parts);
    let prototype = prototype.filter_map(|part| match part {
        DeclPart::Declaration(parameter) => Some(parameter),
        _ => None,
    });
    prototype
        .chain(&function.old_declarations)
        .flat_map(|declaration| &declaration.declarators)
        .filter(|d| matches!(d.ty.kind, Kind::SpreadArray(..)))
        .filter_map(|d| d.name.as_ref().map(|(name, _)| name.clone()))
        .collect()
}

/// The parameters before the variable arguments, if the function has such in the way of
/// `varargs.h`.
fn variable_arguments(declarator: &Declarator) -> Option<&[Rc<str>]> {
    let (last, fixed) = declarator.old_parameters.as_ref()?.split_last()?;
    (&**last == VARIABLE_ARGUMENTS).then_some(fixed)
}

/// Whether a function's result and name are plain C, so that its tokens can be copied around the
/// parameters.
fn only_parameters_are_special(declarator: &Declarator) -> bool {
    match &declarator.ty.kind {
        Kind::Function(result, ..) => !result.reaches_others(),
        _ => false,
    }
}

/// The parts of a declaration.
pub(crate) fn declaration_children(declaration: &Declaration) -> Vec<Child<'_>> {
    let mut children: Vec<_> = declaration.parts.iter().map(Child::Part).collect();
    for declarator in &declaration.declarators {
        children.extend(declarator.parts.iter().map(Child::Part));
        if let Some(initializer) = &declarator.initializer {
            initializer_children(initializer, &mut children);
        }
    }
    children
}
