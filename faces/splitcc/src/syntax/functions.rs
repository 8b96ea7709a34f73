//! Definitions of functions, with prototypes or as K&R wrote them.

use super::declarations::{Read, Specifiers};
use super::tree::{
    Context, DeclPart, Declaration, Declarator, Function, NameRole, Span, Stmt, StmtKind,
};
use super::{FunctionState, Parse, Parser};
use crate::types::{Kind, Rank, Reach, Type};
use std::rc::Rc;

/// The parameter of a K&R definition that stands for all arguments that follow (`varargs.h`).
pub(crate) const VARIABLE_ARGUMENTS: &str = "__builtin_va_alist";

impl Parser<'_> {
    /// A function: specifiers and declarator have been read.
    pub(super) fn function_definition(
        &mut self,
        start: usize,
        specifiers: Specifiers,
        mut declarator: Declarator,
        context: Context,
    ) -> Parse<Function> {
        let Some((name, token)) = declarator.name.clone() else {
            let at = self.here();
            return self.fail(at, "a function needs a name");
        };
        let at = self.tokens[token].at;
        self.enter()?;
        let mut storage = specifiers.storage;
        let is_foreign = self.files.is_system(at.file);
        let result = match &declarator.ty.kind {
            Kind::Function(result, ..) => result.clone(),
            _ => Type::int(),
        };
        if storage.is_extern && storage.is_inline && !storage.is_gnu_inline && !is_foreign {
            // GNU's old meaning: for inlining only. Made static, so that it also works without
            // optimisation.
            self.extern_inline.insert(name.clone());
            storage.is_static = true;
        }
        if !is_foreign {
            self.defined.insert(name.clone());
        }
        self.name_parameters(&mut declarator);
        if context == Context::File {
            self.check_redeclaration(&name, &declarator.ty, at);
            self.note_own(&name, &declarator.ty, at, true);
        }
        let role = NameRole::Object(name.clone());
        self.declare(&name, declarator.ty.clone(), false, role, at);
        self.scopes.open();
        let before = self.function.replace(FunctionState {
            result,
            returns_value: false,
            has_atomic: false,
        });
        let mut captures = Vec::new();
        let mut old_declarations = Vec::new();
        if let Some(old) = declarator.old_parameters.clone() {
            for parameter in &old {
                self.declare(
                    parameter,
                    Type::int(),
                    false,
                    NameRole::Object(parameter.clone()),
                    at,
                );
            }
            while !self.is("{") {
                if !self.is_declaration_start(0) {
                    let found = self.token().text.clone();
                    let at = self.here();
                    return self.fail(at, format!("expected the function's body before '{found}'"));
                }
                if let Read::Declaration(declaration) = self.declaration_of_old_parameters()? {
                    for d in &declaration.declarators {
                        captures.extend(d.captures.iter().cloned());
                    }
                    old_declarations.push(declaration);
                }
            }
            self.remember_old_parameters(&name, &declarator, &old, &old_declarations);
        } else {
            let parts: Vec<_> = declarator
                .parts
                .iter()
                .filter_map(|part| match part {
                    DeclPart::Declaration(d) if d.context == Context::Parameter => Some(d),
                    _ => None,
                })
                .flat_map(|d| &d.declarators)
                .map(|d| (d.name.clone(), d.ty.clone(), d.captures.clone()))
                .collect();
            for (parameter, ty, dimensions) in parts {
                captures.extend(dimensions);
                if let Some((parameter, token)) = parameter {
                    let at = self.tokens[token].at;
                    self.declare(
                        &parameter,
                        ty,
                        false,
                        NameRole::Object(parameter.clone()),
                        at,
                    );
                }
            }
        }
        let function_text = ["__func__", "__FUNCTION__", "__PRETTY_FUNCTION__"];
        for word in function_text {
            let ty = Type::new(Kind::Array(
                Type::integer(Rank::Char, false),
                crate::types::Dimension::Open,
            ));
            self.declare(&word.into(), ty, false, NameRole::Foreign, at);
        }
        let body = self.function_body()?;
        let state = std::mem::replace(&mut self.function, before);
        self.scopes.close();
        self.leave();
        let (returns_value, has_atomic) =
            state.map_or((false, false), |s| (s.returns_value, s.has_atomic));
        declarator.captures.clear();
        let special = declarator.special;
        let span = Span {
            start,
            end: body.span.start,
        };
        let declaration = Declaration {
            span,
            specifiers: specifiers.span,
            parts: specifiers.parts,
            declarators: vec![declarator],
            storage,
            context,
            special,
            base: specifiers.base,
            library: false,
        };
        Ok(Function {
            declaration,
            old_declarations,
            body,
            captures,
            returns_value,
            has_atomic,
        })
    }

    /// The parameters of a definition have names: `int *global` declares one that is called
    /// `global`.
    fn name_parameters(&mut self, declarator: &mut Declarator) {
        let mut types = Vec::new();
        for part in &mut declarator.parts {
            let DeclPart::Declaration(parameter) = part else {
                continue;
            };
            for inner in &mut parameter.declarators {
                if let (None, Some(token), Kind::Pointer(to, _)) =
                    (&inner.name, inner.reach_word, &inner.ty.kind)
                {
                    inner.name = Some((self.tokens[token].text.clone(), token));
                    inner.ty = Type::pointer(to.clone(), Reach::Local);
                    inner.special = false;
                    parameter.special = false;
                }
                types.push(inner.ty.clone());
            }
        }
        if let Kind::Function(result, Some(parameters), variadic) = &declarator.ty.kind
            && parameters.len() == types.len()
        {
            declarator.ty = Type::new(Kind::Function(
                result.clone(),
                Some(types.into()),
                *variadic,
            ));
        }
    }

    /// The types of K&R parameters convert arguments of later calls, as a prototype's would.
    fn remember_old_parameters(
        &mut self,
        name: &Rc<str>,
        declarator: &Declarator,
        names: &[Rc<str>],
        declarations: &[Declaration],
    ) {
        let Kind::Function(result, None, _) = &declarator.ty.kind else {
            return;
        };
        let Some(symbol) = self.scopes.find_in_file(name).cloned() else {
            return;
        };
        let declared: Vec<_> = declarations.iter().flat_map(|d| &d.declarators).collect();
        let fixed = match names.split_last() {
            Some((last, fixed)) if &**last == VARIABLE_ARGUMENTS => fixed,
            _ => names,
        };
        if fixed.is_empty() && !names.is_empty() {
            return;
        }
        let types: Vec<_> = fixed
            .iter()
            .map(|wanted| {
                let found = declared
                    .iter()
                    .find(|d| d.name.as_ref().is_some_and(|(name, _)| name == wanted));
                found.map_or_else(Type::int, |d| d.ty.clone())
            })
            .collect();
        let ty = Type::new(Kind::Function(result.clone(), Some(types.into()), true));
        self.scopes
            .declare_in_file(name.clone(), crate::scope::Symbol { ty, ..symbol });
    }

    fn function_body(&mut self) -> Parse<Stmt> {
        let start = self.at;
        self.expect("{", "to begin the function's body")?;
        let statements = self.block_items()?;
        self.expect("}", "at the end of the function")?;
        Ok(Stmt {
            kind: StmtKind::Block(statements),
            span: self.span_from(start),
        })
    }

    fn declaration_of_old_parameters(&mut self) -> Parse<Read> {
        let start = self.at;
        let specifiers = self.specifiers(Context::Parameter)?;
        let mut declarators = Vec::new();
        while !self.is(";") {
            let mut declarator = self.declarator(specifiers.base.clone(), Context::Parameter)?;
            self.adjust_parameter(&mut declarator);
            if let Some((name, token)) = declarator.name.clone() {
                let at = self.tokens[token].at;
                self.declare(
                    &name,
                    declarator.ty.clone(),
                    false,
                    NameRole::Object(name.clone()),
                    at,
                );
            }
            declarators.push(declarator);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(";", "after the parameter's declaration")?;
        let special = declarators.iter().any(|d| d.special);
        Ok(Read::Declaration(Declaration {
            span: self.span_from(start),
            specifiers: specifiers.span,
            parts: specifiers.parts,
            declarators,
            storage: specifiers.storage,
            context: Context::Parameter,
            special,
            base: specifiers.base,
            library: false,
        }))
    }

    /// Whether the declaration of a K&R parameter begins here.
    pub(super) fn is_old_declaration(&self) -> bool {
        self.is_declaration_start(0)
    }
}
