//! Structures, unions and enumerations.

use super::tree::{Context, DeclPart, Declaration, NameRole, Span};
use super::{Parse, Parser};
use crate::lex::TokenKind;
use crate::scope::Symbol;
use crate::types::{Field, Kind, Ty, Type};
use std::rc::Rc;

/// Where the name of a tag that has none would stand, and the name made up for it.
pub(crate) type UnnamedTag = Option<(usize, Rc<str>)>;

impl Parser<'_> {
    /// `struct tag { ... }` and the like. The second part of the result: where a name would stand,
    /// and which.
    pub(crate) fn tagged(&mut self, parts: &mut Vec<DeclPart>) -> Parse<(Ty, UnnamedTag)> {
        let word: &'static str = match &*self.next().text {
            "struct" => "struct",
            "union" => "union",
            _ => "enum",
        };
        while self.is_any(&["__attribute__", "__attribute"]) {
            self.next();
            self.skip_balanced()?;
        }
        let mut name = None;
        if self.token().kind == TokenKind::Word && !super::is_reserved(&self.token().text) {
            name = Some(self.next().text.clone());
        }
        let has_body = self.is("{");
        let mut unnamed = None;
        let tag = match name {
            Some(name) => {
                let known = self.scopes.find_tag(&name, has_body || self.is(";"));
                let known =
                    known.filter(|&tag| !has_body || self.scopes.tags[tag].fields.is_none());
                match known {
                    Some(tag) => tag,
                    None => self.scopes.declare_tag(name, word),
                }
            }
            None if has_body => {
                let name = self.fresh("tag");
                unnamed = Some((self.at - 1, name.clone()));
                self.scopes.declare_tag(name, word)
            }
            None => {
                let found = self.token().text.clone();
                let at = self.here();
                return self.fail(
                    at,
                    format!("expected a name or '{{' after '{word}' before '{found}'"),
                );
            }
        };
        if has_body {
            self.enter()?;
            if word == "enum" {
                self.enumerators(tag, parts)?
            } else {
                self.fields(tag, parts)?
            }
            self.leave();
        }
        while self.is_any(&["__attribute__", "__attribute"]) {
            self.next();
            self.skip_balanced()?;
        }
        let kind = if word == "enum" {
            Kind::Enumeration(tag)
        } else {
            Kind::Record(tag)
        };
        Ok((Type::new(kind), unnamed))
    }

    fn enumerators(&mut self, tag: usize, parts: &mut Vec<DeclPart>) -> Parse<()> {
        self.expect("{", "before the enumerators")?;
        let ty = Type::new(Kind::Enumeration(tag));
        while !self.is("}") {
            if !self.is_name() {
                let found = self.token().text.clone();
                let at = self.here();
                return self.fail(at, format!("expected an enumerator before '{found}'"));
            }
            let at = self.here();
            let name = self.next().text.clone();
            while self.is_any(&["__attribute__", "__attribute"]) {
                self.next();
                self.skip_balanced()?;
            }
            if self.accept("=") {
                let value = self.conditional()?;
                parts.push(DeclPart::Expr(Rc::new(value)));
            }
            let symbol = Symbol {
                ty: Type::int(),
                is_typedef: false,
                role: NameRole::Object(name.clone()),
                is_enumerator: true,
                is_foreign: self.files.is_system(at.file),
            };
            self.scopes.declare(name, symbol);
            if !self.accept(",") {
                break;
            }
        }
        self.expect("}", "after the enumerators")?;
        let _ = ty;
        self.scopes.tags[tag].fields = Some(Rc::from([]));
        Ok(())
    }

    fn fields(&mut self, tag: usize, parts: &mut Vec<DeclPart>) -> Parse<()> {
        self.expect("{", "before the fields")?;
        let mut fields = Vec::new();
        while !self.is("}") {
            if self.accept(";") {
                continue;
            }
            if self.token().kind == TokenKind::End {
                let at = self.here();
                return self.fail(at, "the structure is never closed; a '}' is missing");
            }
            parts.push(DeclPart::Declaration(self.member(&mut fields)?));
        }
        self.expect("}", "after the fields")?;
        self.scopes.tags[tag].fields = Some(fields.into());
        Ok(())
    }

    fn member(&mut self, fields: &mut Vec<Field>) -> Parse<Declaration> {
        let start = self.at;
        if self.is("_Static_assert") {
            self.next();
            self.skip_balanced()?;
        }
        let specifiers = self.specifiers(Context::Member)?;
        if !specifiers.has_type && self.at > start && self.is(";") {
            // Only an assertion.
        } else if !specifiers.any
            || (!specifiers.has_type && self.is_name() && self.is_name_ahead(1))
        {
            let found = self.token().text.clone();
            let at = self.here();
            return self.fail(
                at,
                format!("expected a field before '{found}'; its type is unknown"),
            );
        }
        let mut declarators = Vec::new();
        if self.is(";") && specifiers.has_type {
            let is_open =
                specifiers.unnamed_tag.is_some() && matches!(specifiers.base.kind, Kind::Record(_));
            if is_open {
                fields.push(Field {
                    name: None,
                    ty: specifiers.base.clone(),
                    is_bit_field: false,
                });
            }
        }
        while !self.is(";") {
            let declarator_start = self.at;
            let mut declarator = if self.is(":") {
                let mut declarator = self.declarator(specifiers.base.clone(), Context::Member)?;
                declarator.span = Span {
                    start: declarator_start,
                    end: declarator_start,
                };
                declarator
            } else {
                self.declarator(specifiers.base.clone(), Context::Member)?
            };
            if self.accept(":") {
                let width = Rc::new(self.conditional()?);
                declarator.width = Some(width.clone());
                declarator.parts.push(DeclPart::Expr(width));
            }
            while self.is_any(&["__attribute__", "__attribute"]) {
                let attribute = self.at;
                self.next();
                self.skip_balanced()?;
                declarator.attributes.push(self.span_from(attribute));
            }
            if let Some((name, _)) = &declarator.name {
                fields.push(Field {
                    name: Some(name.clone()),
                    ty: declarator.ty.clone(),
                    is_bit_field: declarator.width.is_some(),
                });
            }
            declarators.push(declarator);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(";", "after the field")?;
        let special = declarators.iter().any(|d| d.special);
        Ok(Declaration {
            span: self.span_from(start),
            specifiers: specifiers.span,
            parts: specifiers.parts,
            declarators,
            storage: specifiers.storage,
            context: Context::Member,
            special,
            base: specifiers.base,
            library: false,
        })
    }

    /// Finds a field, also in unnamed structures inside.
    pub(crate) fn find_field(&self, tag: usize, name: &str) -> Option<Field> {
        let fields = self.scopes.tags[tag].fields.as_ref()?;
        for field in fields.iter() {
            match &field.name {
                Some(found) if &**found == name => return Some(field.clone()),
                None => {
                    if let Kind::Record(inner) = field.ty.kind
                        && let Some(found) = self.find_field(inner, name)
                    {
                        return Some(found);
                    }
                }
                Some(_) => {}
            }
        }
        None
    }
}
