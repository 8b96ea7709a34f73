//! Types as C writes them.

use super::Emitter;
use crate::types::{Dimension, Kind, Rank, Reach, Ty, Type};

impl Emitter<'_> {
    /// The name of a type, as in a cast or `sizeof`.
    pub(crate) fn type_text(&mut self, ty: &Ty) -> String {
        self.declared(ty, String::new())
    }

    /// The declaration of something of the type `ty`: `inner` is its name.
    pub(crate) fn declared(&mut self, ty: &Ty, inner: String) -> String {
        let mut qualifiers = String::new();
        if ty.is_const {
            qualifiers.push_str("const ");
        }
        if ty.is_volatile {
            qualifiers.push_str("volatile ");
        }
        match &ty.kind {
            Kind::Pointer(_, Reach::Global | Reach::Spread) | Kind::SpreadArray(..) => {
                format!("{qualifiers}splitc_global {inner}")
            }
            Kind::Pointer(to, Reach::Local) => {
                let inner = format!("*{qualifiers}{inner}");
                let binds = matches!(to.kind, Kind::Array(..) | Kind::Function(..));
                let inner = if binds { format!("({inner})") } else { inner };
                self.declared(to, inner)
            }
            Kind::Array(of, dimension) => {
                let dimension = self.dimension_text(dimension);
                let inner = format!("{inner}[{dimension}]");
                self.declared(of, inner)
            }
            Kind::Function(result, parameters, variadic) => {
                let mut text = String::new();
                let before = std::mem::replace(&mut self.open_dimensions_as_star, true);
                if let Some(parameters) = parameters {
                    for parameter in parameters.iter() {
                        if !text.is_empty() {
                            text.push_str(", ");
                        }
                        text.push_str(&self.declared(parameter, String::new()));
                    }
                    if parameters.is_empty() {
                        text.push_str("void");
                    } else if *variadic {
                        text.push_str(", ...");
                    }
                }
                self.open_dimensions_as_star = before;
                self.declared(result, format!("{inner}({text})"))
            }
            _ => format!("{qualifiers}{} {inner}", self.base_text(ty)),
        }
    }

    fn base_text(&mut self, ty: &Ty) -> String {
        match &ty.kind {
            Kind::Void => "void".into(),
            Kind::Bool => "_Bool".into(),
            Kind::Integer {
                rank,
                unsigned,
                explicit,
            } => {
                let sign = match (unsigned, explicit) {
                    (true, _) => "unsigned ",
                    (false, true) => "signed ",
                    (false, false) => "",
                };
                let word = match rank {
                    Rank::Char => "char",
                    Rank::Short => "short",
                    Rank::Int => "int",
                    Rank::Long => "long",
                    Rank::LongLong => "long long",
                    Rank::Int128 => "__int128",
                };
                format!("{sign}{word}")
            }
            Kind::Floating(word, _) => (*word).into(),
            Kind::Enumeration(tag) | Kind::Record(tag) => {
                let tag = &self.scopes.tags[*tag];
                format!("{} {}", tag.word, tag.name)
            }
            Kind::Named(name) => name.to_string(),
            _ => "int".into(),
        }
    }

    pub(crate) fn dimension_text(&mut self, dimension: &Dimension) -> String {
        match dimension {
            Dimension::Open => String::new(),
            Dimension::Captured(name) => name.to_string(),
            Dimension::Expression(expr) => {
                let is_constant = matches!(expr.kind, crate::syntax::tree::ExprKind::Constant(_));
                if self.open_dimensions_as_star && !is_constant {
                    return "*".into();
                }
                self.text_of(|emitter| emitter.value(expr))
            }
        }
    }

    /// The size of what a pointer points to; `void` and functions count 1, as GNU's dialect has it.
    pub(crate) fn size_text(&mut self, to: &Ty) -> String {
        if to.is_void() || to.is_function() || to.is_unknown() {
            return "1ul".into();
        }
        let text = self.type_text(&Type::unqualified(to));
        format!("sizeof({text})")
    }
}
