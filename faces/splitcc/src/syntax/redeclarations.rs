//! Declarations of one name that do not agree in how far a pointer reaches or in the shape of a
//! spread array (Split-C 2.2). The C compiler sees one type for all of these; everything else it
//! reports by itself.
//!
//! And names of the program that headers of today declare, too: a program of 1993 has a `getline`,
//! a `round` or a `log2` of its own. Then the header's declaration is left out.

use super::Parser;
use super::tree::{ExprKind, NameRole};
use crate::source::Position;
use crate::types::{Dimension, Kind, Rank, Ty, same};
use std::rc::Rc;

impl Parser<'_> {
    /// Notes a name in the file's scope that is a function of a system header, and that the program
    /// has for itself.
    pub(super) fn note_own(&mut self, name: &Rc<str>, ty: &Ty, at: Position, is_definition: bool) {
        if self.files.is_system(at.file) || self.own.contains(name) {
            return;
        }
        let Some(before) = self.scopes.find_in_file(name) else {
            return;
        };
        let is_of_header =
            before.is_foreign && !before.is_typedef && matches!(before.role, NameRole::Object(_));
        if is_of_header && before.ty.is_function() && (is_definition || !tells_less(ty, &before.ty))
        {
            self.own.insert(name.clone());
        }
    }

    /// Reports a declaration in the file's scope that contradicts one before.
    pub(super) fn check_redeclaration(&mut self, name: &str, ty: &Ty, at: Position) {
        let Some(before) = self.scopes.find_in_file(name) else {
            return;
        };
        let is_ours = before.ty.reaches_others() || ty.reaches_others();
        if before.is_typedef || before.is_foreign || !is_ours {
            return;
        }
        let before = before.ty.clone();
        if !same(&before, ty) {
            let (old, new) = (kind_of(&before), kind_of(ty));
            let text = match old == new {
                true => format!(
                    "conflicting types for '{name}', which was declared as {old} of another type before"
                ),
                false => format!(
                    "conflicting types for '{name}', which was declared as {old} before, and is {new} here"
                ),
            };
            self.diagnostics.error(at, text);
        } else if !self.same_sizes(&before, ty) {
            let text = format!(
                "conflicting sizes for the array '{name}', which was declared with others before"
            );
            self.diagnostics.error(at, text);
        }
    }

    /// Whether sizes that are plain numbers are the same ones.
    fn same_sizes(&self, left: &Ty, right: &Ty) -> bool {
        match (&left.kind, &right.kind) {
            (Kind::SpreadArray(a, d), Kind::SpreadArray(b, e)) => {
                let all = d.iter().zip(e.iter());
                all.into_iter().all(|(d, e)| self.same_size(d, e)) && self.same_sizes(a, b)
            }
            (Kind::Array(a, d), Kind::Array(b, e)) => self.same_size(d, e) && self.same_sizes(a, b),
            (Kind::Pointer(a, _), Kind::Pointer(b, _)) => self.same_sizes(a, b),
            _ => true,
        }
    }

    fn same_size(&self, left: &Dimension, right: &Dimension) -> bool {
        let number = |dimension: &Dimension| match dimension {
            Dimension::Expression(expr)
                if matches!(expr.kind, ExprKind::Constant(_))
                    && expr.span.end == expr.span.start + 1 =>
            {
                Some(self.tokens[expr.span.start].text.clone())
            }
            _ => None,
        };
        match (number(left), number(right)) {
            (Some(left), Some(right)) => left == right,
            _ => true,
        }
    }
}

/// Whether a declaration without parameters may stand beside that prototype (C17 6.7.6.3).
fn tells_less(declaration: &Ty, prototype: &Ty) -> bool {
    let (Kind::Function(declared, None, _), Kind::Function(result, Some(parameters), false)) =
        (&declaration.kind, &prototype.kind)
    else {
        return false;
    };
    // Pointers to anything are one type in front of the compiler only.
    let is_void = |ty: &Ty| ty.pointee().is_some_and(|(to, _)| to.is_void());
    same(declared, result)
        && is_void(declared) == is_void(result)
        && parameters.iter().all(|ty| !is_promoted(ty))
}

/// Whether an argument without a prototype is passed as another type.
fn is_promoted(ty: &Ty) -> bool {
    match &ty.kind {
        Kind::Bool | Kind::Floating("float", _) => true,
        Kind::Integer { rank, .. } => *rank < Rank::Int,
        _ => false,
    }
}

fn kind_of(ty: &Ty) -> &'static str {
    match &ty.kind {
        Kind::SpreadArray(..) => "a spread array",
        Kind::Function(..) => "a function",
        Kind::Array(..) => "an array",
        Kind::Pointer(..) if ty.is_spread_pointer() => "a spread pointer",
        Kind::Pointer(..) if ty.is_global_pointer() => "a global pointer",
        Kind::Pointer(..) => "a local pointer",
        _ => "something else",
    }
}
