//! Initialisers.

use super::tree::Initializer;
use super::{Parse, Parser};
use crate::lex::TokenKind;
use crate::types::{Kind, Ty, Type};

impl Parser<'_> {
    /// An initialiser of something of type `ty`.
    pub(crate) fn initializer(&mut self, ty: &Ty) -> Parse<Initializer> {
        if !self.is("{") {
            let expr = self.assignment()?;
            return Ok(Initializer::Expr(self.convert(expr, ty, "initialize")));
        }
        self.enter()?;
        let start = self.at;
        let conditions = std::mem::take(&mut self.open_conditions);
        self.next();
        let mut items = Vec::new();
        let mut position = 0;
        // With braces left out, what belongs where is the C compiler's business.
        let mut followed = true;
        while !self.is("}") {
            let mut item_type = Type::unknown();
            let mut named = None;
            // Designators, also GNU's old `field: value` and `[1 ... 3]`.
            if self.is_name() && self.is_ahead(1, ":") {
                named = Some(self.next().text.clone());
                self.next();
            }
            let mut nested = false;
            while self.is("[") || (self.is(".") && self.is_name_ahead(1)) {
                if self.accept("[") {
                    items.push(Initializer::Expr(self.conditional()?));
                    if self.accept("...") {
                        items.push(Initializer::Expr(self.conditional()?));
                    }
                    self.expect("]", "after the index")?;
                    nested = named.is_some();
                } else {
                    self.next();
                    nested = named.is_some();
                    named = Some(self.next().text.clone());
                }
            }
            self.accept("=");
            if followed && !nested {
                match &ty.kind {
                    Kind::Array(of, _) => item_type = of.clone(),
                    Kind::Record(tag) => {
                        if let Some(fields) = &self.scopes.tags[*tag].fields {
                            if let Some(name) = &named {
                                position = fields
                                    .iter()
                                    .position(|f| f.name.as_ref() == Some(name))
                                    .unwrap_or(usize::MAX - 1);
                            }
                            if let Some(field) = fields.get(position) {
                                item_type = field.ty.clone();
                            }
                        }
                    }
                    Kind::Unknown => {}
                    _ => item_type = ty.clone(),
                }
            }
            let is_aggregate = matches!(item_type.kind, Kind::Array(..) | Kind::Record(_));
            if is_aggregate && !self.is("{") {
                followed = matches!(item_type.kind, Kind::Array(..))
                    && self.token().kind == TokenKind::Text;
                item_type = Type::unknown();
            }
            items.push(self.initializer(&item_type)?);
            position = position.saturating_add(1);
            if !self.accept(",") {
                break;
            }
        }
        self.expect("}", "after the initializers")?;
        self.open_conditions = conditions;
        self.leave();
        Ok(Initializer::List(self.span_from(start), items))
    }
}
