//! Declarators: pointers of three kinds, arrays, spread arrays, functions (Split-C 2.2).

use super::declarations::may_be_name;
use super::tree::{
    Context, DeclPart, Declaration, Declarator, Expr, ExprKind, Span, Storage, TypeName,
};
use super::{Parse, Parser};
use crate::lex::TokenKind;
use crate::types::{Dimension, Kind, Reach, Ty, Type};
use std::rc::Rc;

impl Parser<'_> {
    /// A declarator of something built on `base`.
    pub(crate) fn declarator(&mut self, base: Ty, context: Context) -> Parse<Declarator> {
        let start = self.at;
        let mut declarator = Declarator {
            name: None,
            ty: base.clone(),
            span: Span { start, end: start },
            parts: Vec::new(),
            attributes: Vec::new(),
            old_parameters: None,
            initializer: None,
            width: None,
            emitted: None,
            special: false,
            library: false,
            reach_word: None,
            captures: Vec::new(),
        };
        let ty = self.declarator_type(base, &mut declarator, context)?;
        declarator.ty = ty;
        declarator.span = self.span_from(start);
        declarator.parts.sort_by_key(part_start);
        Ok(declarator)
    }

    fn declarator_type(&mut self, base: Ty, out: &mut Declarator, context: Context) -> Parse<Ty> {
        let mut ty = base;
        while self.accept("*") {
            let mut reach = Reach::Local;
            let (mut is_const, mut is_volatile) = (false, false);
            loop {
                match &*self.token().text {
                    "const" | "__const" | "__const__" => is_const = true,
                    "volatile" | "__volatile__" | "__volatile" => is_volatile = true,
                    "restrict" | "__restrict" | "__restrict__" | "_Atomic" => {}
                    "__attribute__" | "__attribute" => {
                        self.attribute(&mut Storage::default(), &mut None)?;
                        continue;
                    }
                    word @ ("global" | "spread") if self.is_reach_word(context) => {
                        let new = if word == "global" {
                            Reach::Global
                        } else {
                            Reach::Spread
                        };
                        if reach != Reach::Local && reach != new {
                            let at = self.here();
                            self.diagnostics.error(
                                at,
                                "a pointer is either global or spread; write one of the two words",
                            );
                        }
                        reach = new;
                        if context == Context::Parameter
                            && matches!(&*self.ahead(1).text, "," | ")")
                        {
                            out.reach_word = Some(self.at);
                        }
                        out.special = true;
                    }
                    _ => break,
                }
                self.next();
            }
            ty = Type::qualified(&Type::pointer(ty, reach), is_const, is_volatile);
        }
        while self.is_any(&["__attribute__", "__attribute"]) {
            self.attribute(&mut Storage::default(), &mut None)?;
        }
        if self.is("(") && self.is_nested_declarator() {
            self.enter()?;
            let inside = self.at + 1;
            self.skip_balanced()?;
            let ty = self.declarator_suffix(ty, out, context)?;
            let end = self.at;
            self.at = inside;
            let ty = self.declarator_type(ty, out, context)?;
            self.expect(")", "in the declarator")?;
            self.at = end;
            self.leave();
            return Ok(ty);
        }
        if self.token().kind == TokenKind::Word
            && may_be_name(&self.token().text)
            && !self.is_type_only(context)
        {
            out.name = Some((self.token().text.clone(), self.at));
            self.next();
        }
        self.declarator_suffix(ty, out, context)
    }

    /// In a parameter list, a name of a type is one: `f(int, size_t)`. Elsewhere it is declared
    /// anew.
    fn is_type_only(&self, context: Context) -> bool {
        context == Context::Parameter
            && self.is_typedef_name(0)
            && !matches!(&*self.ahead(1).text, "," | ")" | "[" | ";")
    }

    /// Whether `global` or `spread` here is the qualifier, and not a name.
    fn is_reach_word(&self, context: Context) -> bool {
        let next = self.ahead(1);
        match next.kind {
            TokenKind::Word => true,
            TokenKind::Mark => match &*next.text {
                "*" => true,
                "," | ")" | "[" => context == Context::Parameter,
                "(" => self.is_ahead(2, "*") || context == Context::Parameter,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the parenthesis here holds a declarator and not parameters.
    fn is_nested_declarator(&self) -> bool {
        let next = self.ahead(1);
        match next.kind {
            TokenKind::Mark => matches!(&*next.text, "*" | "(" | "["),
            TokenKind::Word => {
                matches!(&*next.text, "__attribute__" | "__attribute")
                    || (may_be_name(&next.text) && !self.is_declaration_start(1))
            }
            _ => false,
        }
    }

    fn dimensions(&mut self, out: &mut Declarator) -> Parse<Vec<Dimension>> {
        let mut dimensions = Vec::new();
        while self.accept("[") {
            while self.is_any(&[
                "static",
                "const",
                "volatile",
                "restrict",
                "__restrict",
                "__restrict__",
            ]) {
                self.next();
            }
            if self.is("]") || (self.is("*") && self.is_ahead(1, "]")) {
                self.accept("*");
                dimensions.push(Dimension::Open);
            } else {
                let conditions = std::mem::take(&mut self.open_conditions);
                let expr = Rc::new(self.assignment()?);
                self.open_conditions = conditions;
                out.parts.push(DeclPart::Expr(expr.clone()));
                dimensions.push(Dimension::Expression(expr));
            }
            self.expect("]", "after the dimension")?;
        }
        Ok(dimensions)
    }

    /// What stands behind the name: dimensions, `::` and dimensions, or parameters.
    fn declarator_suffix(&mut self, base: Ty, out: &mut Declarator, context: Context) -> Parse<Ty> {
        if self.is("(") {
            return self.parameters(base, out);
        }
        let at = self.here();
        let left = self.dimensions(out)?;
        if !self.is_pair(":", ":") {
            if self.is("(") && !left.is_empty() {
                return self.fail(
                    at,
                    "an array of functions; declare an array of pointers to functions",
                );
            }
            return Ok(left
                .into_iter()
                .rev()
                .fold(base, |of, dimension| Type::new(Kind::Array(of, dimension))));
        }
        let colons = self.here();
        self.next();
        self.next();
        let right = self.dimensions(out)?;
        out.special = true;
        if left.is_empty() {
            return self.fail(
                colons,
                "'::' needs a dimension on its left, the one that is spread over the processors: write 'name[PROCS]::'",
            );
        }
        if left.iter().any(|d| matches!(d, Dimension::Open)) && context != Context::Parameter {
            let skipped_first = left.iter().skip(1).any(|d| matches!(d, Dimension::Open));
            if skipped_first || context != Context::File {
                return self.fail(at, "a spread array needs the sizes of all its dimensions; write them in the brackets");
            }
        }
        if base.is_void() || base.is_function() {
            return self.fail(
                at,
                "a spread array of void or of functions; give its elements a type with a size",
            );
        }
        if context == Context::Member {
            return self.fail(
                at,
                "a structure cannot hold a spread array; hold a spread pointer to it",
            );
        }
        let element = right
            .into_iter()
            .rev()
            .fold(base, |of, dimension| Type::new(Kind::Array(of, dimension)));
        Ok(Type::new(Kind::SpreadArray(element, left.into())))
    }

    /// `(parameters)` of a function with the result `base`.
    fn parameters(&mut self, base: Ty, out: &mut Declarator) -> Parse<Ty> {
        self.expect("(", "before the parameters")?;
        // Parameters of what is nested around are not those of the name.
        out.old_parameters = None;
        if self.accept(")") {
            out.old_parameters = Some(Vec::new());
            return Ok(Type::new(Kind::Function(base, None, true)));
        }
        if self.is("void") && self.is_ahead(1, ")") {
            self.next();
            self.next();
            return Ok(Type::new(Kind::Function(base, Some(Rc::from([])), false)));
        }
        if self.is_name()
            && !self.is_declaration_start(0)
            && matches!(&*self.ahead(1).text, "," | ")")
        {
            let mut names = Vec::new();
            loop {
                if !self.is_name() {
                    let found = self.token().text.clone();
                    let at = self.here();
                    return self.fail(
                        at,
                        format!("expected the name of a parameter before '{found}'"),
                    );
                }
                names.push(self.next().text.clone());
                if !self.accept(",") {
                    break;
                }
            }
            self.expect(")", "after the parameters")?;
            out.old_parameters = Some(names);
            return Ok(Type::new(Kind::Function(base, None, true)));
        }
        self.enter()?;
        self.scopes.open();
        let depth = self.scopes.depth();
        let mut types = Vec::new();
        let mut variadic = false;
        loop {
            if self.accept("...") {
                variadic = true;
                break;
            }
            let start = self.at;
            let specifiers = self.specifiers(Context::Parameter)?;
            if !specifiers.any {
                let found = self.token().text.clone();
                let at = self.here();
                if self.is_name() {
                    return self.fail(
                        at,
                        format!(
                            "unknown type name '{found}'; declare it before, or include its header"
                        ),
                    );
                }
                return self.fail(at, format!("expected a parameter before '{found}'"));
            }
            let mut declarator = self.declarator(specifiers.base.clone(), Context::Parameter)?;
            while self.is_any(&["__attribute__", "__attribute", "__asm__"]) {
                let attribute = self.at;
                self.next();
                if self.is("(") {
                    self.skip_balanced()?;
                }
                declarator.attributes.push(self.span_from(attribute));
            }
            self.adjust_parameter(&mut declarator);
            if let Some((name, token)) = declarator.name.clone() {
                let at = self.tokens[token].at;
                let role = super::tree::NameRole::Object(name.clone());
                self.declare(&name, declarator.ty.clone(), false, role, at);
            }
            types.push(declarator.ty.clone());
            let special = declarator.special;
            out.parts.push(DeclPart::Declaration(Declaration {
                span: self.span_from(start),
                specifiers: specifiers.span,
                parts: specifiers.parts,
                declarators: vec![declarator],
                storage: specifiers.storage,
                context: Context::Parameter,
                special,
                base: specifiers.base,
                library: false,
            }));
            if !self.accept(",") {
                break;
            }
        }
        self.scopes.close_to(depth - 1);
        self.leave();
        self.expect(")", "after the parameters")?;
        Ok(Type::new(Kind::Function(
            base,
            Some(types.into()),
            variadic,
        )))
    }

    /// Arrays and functions become pointers; dimensions of spread arrays are evaluated on entry.
    pub(crate) fn adjust_parameter(&mut self, declarator: &mut Declarator) {
        match &declarator.ty.kind {
            Kind::Array(of, _) => declarator.ty = Type::pointer(of.clone(), Reach::Local),
            Kind::Function(..) => {
                declarator.ty = Type::pointer(declarator.ty.clone(), Reach::Local)
            }
            Kind::SpreadArray(..) => {
                declarator.special = true;
                self.capture(declarator);
            }
            _ => {}
        }
    }

    /// Replaces the dimensions of a spread array by variables that hold their values.
    pub(crate) fn capture(&mut self, declarator: &mut Declarator) {
        let Kind::SpreadArray(of, dimensions) = &declarator.ty.kind else {
            return;
        };
        let (of, dimensions) = (of.clone(), dimensions.clone());
        let dimensions: Vec<_> = dimensions
            .iter()
            .map(|d| self.captured(d, &mut declarator.captures))
            .collect();
        let of = self.captured_array(&of, &mut declarator.captures);
        declarator.ty = Type::new(Kind::SpreadArray(of, dimensions.into()));
    }

    fn captured_array(&mut self, ty: &Ty, captures: &mut Vec<(Rc<str>, Rc<Expr>)>) -> Ty {
        match &ty.kind {
            Kind::Array(of, dimension) => {
                let dimension = self.captured(dimension, captures);
                let of = self.captured_array(of, captures);
                Type::new(Kind::Array(of, dimension))
            }
            _ => ty.clone(),
        }
    }

    fn captured(
        &mut self,
        dimension: &Dimension,
        captures: &mut Vec<(Rc<str>, Rc<Expr>)>,
    ) -> Dimension {
        match dimension {
            Dimension::Expression(expr) if !matches!(expr.kind, ExprKind::Constant(_)) => {
                let name = self.fresh("dimension");
                captures.push((name.clone(), expr.clone()));
                Dimension::Captured(name)
            }
            other => other.clone(),
        }
    }

    /// A type name, as in a cast.
    pub(crate) fn type_name(&mut self) -> Parse<TypeName> {
        let start = self.at;
        let specifiers = self.specifiers(Context::Parameter)?;
        if !specifiers.has_type {
            let found = self.token().text.clone();
            let at = self.here();
            return self.fail(at, format!("expected a type before '{found}'"));
        }
        let declarator = self.declarator(specifiers.base, Context::Parameter)?;
        if let Some((name, token)) = &declarator.name {
            let at = self.tokens[*token].at;
            let text = format!("'{name}' does not belong in a type name");
            return self.fail(at, text);
        }
        let mut parts = specifiers.parts;
        parts.extend(declarator.parts);
        Ok(TypeName {
            ty: declarator.ty,
            span: self.span_from(start),
            special: declarator.special,
            parts,
        })
    }
}

/// The token at which a part begins.
pub(crate) fn part_start(part: &DeclPart) -> usize {
    match part {
        DeclPart::Declaration(declaration) => declaration.span.start,
        DeclPart::Expr(expr) => expr.span.start,
        DeclPart::TagName(token, _) => *token,
    }
}
