//! Rules of types: each operator of C and Split-C makes its node here (Split-C 2.2).
//!
//! The rules find global accesses and refuse what has no meaning with global addresses. What is
//! wrong in plain C is left to the C compiler. Where a type is unknown, everything is allowed.

pub(crate) mod calls;
mod operators;

use crate::syntax::tree::{Expr, ExprKind, Initializer, Place};
use crate::syntax::{DEPTH_LIMIT, Parse, Parser};
use crate::types::{Kind, Reach, Ty, Type};

/// The type of an expression as a value: arrays and functions become pointers.
pub fn value_type(expr: &Expr) -> Ty {
    match &expr.ty.kind {
        Kind::Array(of, _) => {
            let reach = if expr.place == Place::Global {
                Reach::Global
            } else {
                Reach::Local
            };
            Type::pointer(of.clone(), reach)
        }
        Kind::SpreadArray(of, _) => Type::pointer(of.clone(), Reach::Spread),
        Kind::Function(..) => Type::pointer(expr.ty.clone(), Reach::Local),
        _ => Type::unqualified(&expr.ty),
    }
}

/// Whether an initialiser has a part that must be written anew.
pub fn initializer_is_special(initializer: &Initializer) -> bool {
    match initializer {
        Initializer::Expr(expr) => expr.special,
        Initializer::List(_, items) => items.iter().any(initializer_is_special),
    }
}

/// How deep the trees of an initialiser are.
pub fn initializer_depth(initializer: &Initializer) -> u32 {
    match initializer {
        Initializer::Expr(expr) => expr.depth,
        Initializer::List(_, items) => items.iter().map(initializer_depth).max().unwrap_or(0) + 1,
    }
}

/// The expression without parentheses around it.
pub fn bare(expr: &Expr) -> &Expr {
    let mut expr = expr;
    while let ExprKind::Parentheses(inner) = &expr.kind {
        expr = inner;
    }
    expr
}

/// Makes a place of `(T *) p`, as old compilers did: `((char *) p)++`, `(int *) p = q`. Both are
/// local pointers.
pub fn make_cast_a_place(expr: &mut Expr) {
    match &mut expr.kind {
        ExprKind::Parentheses(inner) => {
            make_cast_a_place(inner);
            expr.place = inner.place;
            expr.special |= inner.special;
        }
        ExprKind::Cast(name, operand) => {
            let is_local = |ty: &Ty| matches!(ty.pointee(), Some((_, Reach::Local)));
            if operand.place == Place::Local && is_local(&name.ty) && is_local(&operand.ty) {
                expr.place = Place::Local;
                expr.special = true;
            }
        }
        _ => {}
    }
}

/// Whether this is a null pointer constant: `0`, `(void *) 0`.
pub fn is_null_constant(expr: &Expr) -> bool {
    match &bare(expr).kind {
        ExprKind::Constant(zero) => *zero && expr.ty.is_integer(),
        ExprKind::Cast(name, operand) => {
            let is_plain = match &name.ty.kind {
                Kind::Pointer(to, _) => to.is_void(),
                _ => name.ty.is_integer(),
            };
            is_plain && is_null_constant(operand)
        }
        _ => false,
    }
}

/// Whether the expression is a bit-field.
pub fn is_bit_field(expr: &Expr) -> bool {
    matches!(&bare(expr).kind, ExprKind::Member(_, _, _, Some(field)) if field.is_bit_field)
}

impl Parser<'_> {
    /// Makes a node and bounds the depth of the tree.
    pub(crate) fn node(
        &mut self,
        kind: ExprKind,
        ty: Ty,
        place: Place,
        start: usize,
        special: bool,
        depth: u32,
    ) -> Parse<Expr> {
        if depth > DEPTH_LIMIT {
            let at = self.tokens[start.min(self.tokens.len() - 1)].at;
            return self.fail(
                at,
                format!("an expression of more than {DEPTH_LIMIT} steps; take it apart"),
            );
        }
        Ok(Expr {
            kind,
            ty,
            place,
            span: self.span_from(start),
            special,
            depth,
        })
    }

    /// Converts `expr` to `to`, as an assignment does. `what` is said in errors: "assign", "pass",
    /// "return", "initialize".
    pub(crate) fn convert(&mut self, expr: Expr, to: &Ty, what: &str) -> Expr {
        let from = value_type(&expr);
        let at = self.position(expr.span);
        let to_global = to.is_global_pointer() || matches!(to.kind, Kind::SpreadArray(..));
        if from.is_unknown() || to.is_unknown() || (to_global && from.is_global_pointer()) {
            return expr;
        }
        if to_global {
            let is_pointer = matches!(from.kind, Kind::Pointer(_, Reach::Local));
            if !is_null_constant(&expr) {
                if self.in_static_initializer && self.unevaluated == 0 {
                    self.diagnostics.error(
                        at,
                        "a global address is not known before the program starts; assign it in splitc_main",
                    );
                } else if from.is_integer() {
                    self.diagnostics.warning(
                        at,
                        format!("{what}ing an integer where a global pointer is expected"),
                    );
                } else if !is_pointer {
                    self.diagnostics.error(
                        at,
                        format!("cannot {what} this as a global pointer; it needs a pointer, or toglobal(processor, address)"),
                    );
                }
            }
            let (span, depth) = (expr.span, expr.depth + 1);
            return Expr {
                kind: ExprKind::Convert(Box::new(expr)),
                ty: to.clone(),
                place: Place::None,
                span,
                special: true,
                depth,
            };
        }
        if from.is_global_pointer() {
            match &to.kind {
                Kind::Pointer(..) => {
                    self.diagnostics.error(
                        at,
                        format!(
                            "cannot {what} a global pointer as a local one; cast it to the local type, or use tolocal(...), \
                             for the address on its processor, or read what it points to"
                        ),
                    );
                }
                Kind::Bool => {}
                Kind::Integer { .. } | Kind::Enumeration(_) => {
                    self.diagnostics.warning(
                        at,
                        format!("{what}ing a global pointer where an integer is expected"),
                    );
                }
                Kind::Floating(..) | Kind::Record(_) => {
                    self.diagnostics.error(
                        at,
                        format!("cannot {what} a global pointer as this type; is a '*' missing to read what it points to?"),
                    );
                }
                _ => {}
            }
        }
        expr
    }

    /// The name of a type in messages.
    pub(crate) fn type_words(&self, ty: &Ty) -> String {
        match &ty.kind {
            Kind::Void => "void".into(),
            Kind::Bool => "_Bool".into(),
            Kind::Integer { rank, unsigned, .. } => {
                let word = match rank {
                    crate::types::Rank::Char => "char",
                    crate::types::Rank::Short => "short",
                    crate::types::Rank::Int => "int",
                    crate::types::Rank::Long => "long",
                    crate::types::Rank::LongLong => "long long",
                    crate::types::Rank::Int128 => "__int128",
                };
                if *unsigned {
                    format!("unsigned {word}")
                } else {
                    word.into()
                }
            }
            Kind::Floating(word, _) => (*word).into(),
            Kind::Enumeration(tag) | Kind::Record(tag) => {
                let tag = &self.scopes.tags[*tag];
                if tag.name.starts_with("splitc_tag_") {
                    format!("{} without a name", tag.word)
                } else {
                    format!("{} {}", tag.word, tag.name)
                }
            }
            Kind::Pointer(to, reach) => {
                let word = match reach {
                    Reach::Local => "*",
                    Reach::Global => "*global",
                    Reach::Spread => "*spread",
                };
                format!("{} {word}", self.type_words(to))
            }
            Kind::Array(of, _) => format!("array of {}", self.type_words(of)),
            Kind::SpreadArray(of, _) => format!("spread array of {}", self.type_words(of)),
            Kind::Function(..) => "function".into(),
            Kind::Named(name) => name.to_string(),
            Kind::Unknown => "unknown type".into(),
        }
    }
}
