//! Operators.

use super::{is_bit_field, is_null_constant, make_cast_a_place, value_type};
use crate::source::Position;
use crate::syntax::tree::{DeclPart, Expr, ExprKind, Place, TypeName};
use crate::syntax::{Parse, Parser, depth_above};
use crate::types::{Kind, Rank, Reach, Ty, Type, common, promoted};
use std::rc::Rc;

impl Parser<'_> {
    /// Arithmetic on a spread pointer needs the size of what it points to.
    fn check_step(&mut self, ty: &Ty, at: Position) {
        if let Kind::Pointer(to, Reach::Spread) = &ty.kind
            && to.is_void()
        {
            self.diagnostics.error(
                    at,
                    "arithmetic on a spread pointer to void; cast it to a spread pointer to the type of the elements",
                );
        }
    }

    /// An access needs an object with a size.
    fn check_object(&mut self, ty: &Ty, at: Position) {
        if ty.is_void() {
            self.diagnostics.error(at, "this global pointer points to void; cast it to a pointer to the type that lies there");
        } else if ty.is_function() {
            self.diagnostics.error(
                at,
                "a function cannot be called or read through a global pointer; use atomic(f, pointer, ...), or cast to a local pointer",
            );
        }
    }

    pub(crate) fn comma(&mut self, left: Expr, right: Expr) -> Parse<Expr> {
        let (ty, special) = (value_type(&right), left.special || right.special);
        let depth = depth_above([&left, &right]);
        let start = left.span.start;
        self.node(
            ExprKind::Comma(Box::new(left), Box::new(right)),
            ty,
            Place::None,
            start,
            special,
            depth,
        )
    }

    /// `condition ? then : otherwise`.
    pub(crate) fn choose(
        &mut self,
        condition: Expr,
        then: Option<Expr>,
        otherwise: Expr,
    ) -> Parse<Expr> {
        let start = condition.span.start;
        let first = then.as_ref().unwrap_or(&condition);
        let (a, b) = (value_type(first), value_type(&otherwise));
        let ty = if a.is_global_pointer() || b.is_global_pointer() {
            let is_void = |ty: &Ty| ty.pointee().is_some_and(|(to, _)| to.is_void());
            if a.is_global_pointer() && !(is_void(&a) && b.is_global_pointer()) {
                a.clone()
            } else {
                b.clone()
            }
        } else if a.is_arithmetic() && b.is_arithmetic() {
            common(&a, &b)
        } else if (matches!(a.kind, Kind::Pointer(..)) && !is_null_constant(first)) || a.is_void() {
            a.clone()
        } else if a.is_unknown() {
            Type::unknown()
        } else {
            b.clone()
        };
        let (then, otherwise) = if ty.is_global_pointer() {
            let then = then.map(|then| self.convert(then, &ty, "choose"));
            let otherwise = self.convert(otherwise, &ty, "choose");
            (then, otherwise)
        } else {
            (then, otherwise)
        };
        let special =
            condition.special || otherwise.special || then.as_ref().is_some_and(|e| e.special);
        let depth = depth_above([&condition, &otherwise].into_iter().chain(then.as_ref()));
        let kind =
            ExprKind::Conditional(Box::new(condition), then.map(Box::new), Box::new(otherwise));
        self.node(kind, ty, Place::None, start, special, depth)
    }

    /// A binary operator.
    pub(crate) fn operate(
        &mut self,
        operator: &'static str,
        left: Expr,
        right: Expr,
        at: Position,
    ) -> Parse<Expr> {
        let (a, b) = (value_type(&left), value_type(&right));
        let start = left.span.start;
        let (mut left, mut right) = (left, right);
        let any_global = a.is_global_pointer() || b.is_global_pointer();
        let is_comparison = matches!(operator, "==" | "!=" | "<" | ">" | "<=" | ">=");
        let ty = if matches!(operator, "&&" | "||") {
            Type::int()
        } else if is_comparison {
            if any_global {
                let to = if a.is_global_pointer() {
                    a.clone()
                } else {
                    b.clone()
                };
                left = self.convert(left, &to, "compare");
                right = self.convert(right, &to, "compare");
            }
            Type::int()
        } else if any_global {
            self.pointer_arithmetic(operator, &a, &b, at)?
        } else if a.is_unknown() || b.is_unknown() {
            match (a.pointee(), b.pointee()) {
                (Some(_), None) if matches!(operator, "+" | "-") => a.clone(),
                _ => Type::unknown(),
            }
        } else if a.pointee().is_some() {
            if operator == "-" && b.pointee().is_some() {
                Type::integer(Rank::Long, false)
            } else {
                a.clone()
            }
        } else if b.pointee().is_some() {
            b.clone()
        } else if matches!(operator, "<<" | ">>") {
            promoted(&a)
        } else {
            common(&a, &b)
        };
        let special = any_global || left.special || right.special;
        let depth = depth_above([&left, &right]);
        let kind = ExprKind::Binary(operator, Box::new(left), Box::new(right));
        self.node(kind, ty, Place::None, start, special, depth)
    }

    fn pointer_arithmetic(&mut self, operator: &str, a: &Ty, b: &Ty, at: Position) -> Parse<Ty> {
        let words = |parser: &Self, ty: &Ty| parser.type_words(ty);
        match operator {
            "+" if a.is_global_pointer() && b.is_global_pointer() => self.fail(
                at,
                "two global pointers cannot be added; add an integer to one of them, or subtract them for their distance",
            ),
            "+" | "-" if a.is_global_pointer() && (b.is_integer() || b.is_unknown()) => {
                self.check_step(a, at);
                Ok(a.clone())
            }
            "+" if b.is_global_pointer() && (a.is_integer() || a.is_unknown()) => {
                self.check_step(b, at);
                Ok(b.clone())
            }
            "-" if a.is_global_pointer() && b.is_global_pointer() => {
                if a.pointee().map(|p| p.1) != b.pointee().map(|p| p.1) {
                    return self.fail(
                        at,
                        "a global and a spread pointer have no distance; cast one of them to the kind of the other",
                    );
                }
                self.check_step(a, at);
                Ok(Type::integer(Rank::Long, false))
            }
            _ => {
                let text = format!(
                    "no operator '{operator}' for '{}' and '{}'; global pointers can be added to integers, subtracted and compared",
                    words(self, a),
                    words(self, b)
                );
                self.fail(at, text)
            }
        }
    }

    /// `left = right`, `left += right`, ...
    pub(crate) fn assign(
        &mut self,
        operator: &'static str,
        left: Expr,
        right: Expr,
        at: Position,
    ) -> Parse<Expr> {
        let mut left = left;
        make_cast_a_place(&mut left);
        let start = left.span.start;
        if left.place == Place::Global {
            self.check_target(&left, at)?;
        }
        let ty = Type::unqualified(&left.ty);
        let mut right = right;
        if operator.is_empty() {
            right = self.convert(right, &ty, "assign");
        } else if ty.is_global_pointer() {
            let by = value_type(&right);
            if !matches!(operator, "+" | "-") || !(by.is_integer() || by.is_unknown()) {
                let text = format!(
                    "no operator '{operator}=' for '{}' and '{}'",
                    self.type_words(&ty),
                    self.type_words(&by)
                );
                return self.fail(at, text);
            }
            self.check_step(&ty, at);
        } else if value_type(&right).is_global_pointer() {
            let text = format!(
                "no operator '{operator}=' for '{}' and a global pointer",
                self.type_words(&ty)
            );
            return self.fail(at, text);
        }
        let special =
            left.special || right.special || (ty.is_global_pointer() && !operator.is_empty());
        let depth = depth_above([&left, &right]);
        let kind = ExprKind::Assign(operator, Box::new(left), Box::new(right));
        self.node(kind, ty, Place::None, start, special, depth)
    }

    /// A global place that is written.
    fn check_target(&mut self, left: &Expr, at: Position) -> Parse<()> {
        match &left.ty.kind {
            Kind::Array(..) | Kind::SpreadArray(..) => self.fail(
                at,
                "an array cannot be assigned; assign its elements, or copy it with bulk_write(...)",
            ),
            _ => {
                if left.ty.is_const {
                    return self.fail(at, "the place on the left is const");
                }
                self.check_object(&left.ty, at);
                Ok(())
            }
        }
    }

    /// `left := right`.
    pub(crate) fn split_assign(&mut self, left: Expr, right: Expr, at: Position) -> Parse<Expr> {
        let start = left.span.start;
        if left.place == Place::None && !left.ty.is_unknown() {
            return self.fail(
                at,
                "the left side of ':=' is no place; write a variable, a field or '*pointer'",
            );
        }
        if left.place == Place::Global {
            if is_bit_field(&left) {
                return self.fail(at, "a bit-field cannot be put; assign it with '='");
            }
            self.check_target(&left, at)?;
        }
        let ty = Type::unqualified(&left.ty);
        let right = self.convert(right, &ty, "assign");
        let depth = depth_above([&left, &right]);
        let kind = ExprKind::SplitAssign(Box::new(left), Box::new(right));
        self.node(kind, ty, Place::None, start, true, depth)
    }

    /// `left :- right`.
    pub(crate) fn store(&mut self, left: Expr, right: Expr, at: Position) -> Parse<Expr> {
        let start = left.span.start;
        if left.place != Place::Global {
            return self.fail(
                at,
                "the left side of ':-' must be a global place, as '*pointer' or an element of a spread array; \
                 assign to a local place with '='",
            );
        }
        if is_bit_field(&left) {
            return self.fail(at, "a bit-field cannot be stored, as its bytes hold other fields, too; assign it with '='");
        }
        self.check_target(&left, at)?;
        let ty = Type::unqualified(&left.ty);
        let right = self.convert(right, &ty, "store");
        let depth = depth_above([&left, &right]);
        let kind = ExprKind::Store(Box::new(left), Box::new(right));
        self.node(kind, ty, Place::None, start, true, depth)
    }

    /// `++x`, `x--`, ...
    pub(crate) fn step(
        &mut self,
        operand: Expr,
        up: bool,
        after: bool,
        start: usize,
        at: Position,
    ) -> Parse<Expr> {
        let mut operand = operand;
        make_cast_a_place(&mut operand);
        let ty = Type::unqualified(&operand.ty);
        if operand.place == Place::Global {
            self.check_target(&operand, at)?;
        }
        self.check_step(&ty, at);
        let special = operand.special || ty.is_global_pointer();
        let depth = operand.depth + 1;
        self.node(
            ExprKind::Step(Box::new(operand), up, after),
            ty,
            Place::None,
            start,
            special,
            depth,
        )
    }

    pub(crate) fn unary_operator(
        &mut self,
        operator: &'static str,
        operand: Expr,
        start: usize,
    ) -> Parse<Expr> {
        let value = value_type(&operand);
        let mut place = Place::None;
        let ty = match operator {
            "!" => Type::int(),
            "__extension__" => {
                place = operand.place;
                operand.ty.clone()
            }
            "__real__" => Type::unknown(),
            _ if value.is_global_pointer() => {
                let at = self.position(operand.span);
                return self.fail(at, format!("no operator '{operator}' for a global pointer"));
            }
            _ => promoted(&value),
        };
        let (special, depth) = (operand.special, operand.depth + 1);
        self.node(
            ExprKind::Unary(operator, Box::new(operand)),
            ty,
            place,
            start,
            special,
            depth,
        )
    }

    /// `&operand`.
    pub(crate) fn address(&mut self, operand: Expr, start: usize, at: Position) -> Parse<Expr> {
        if is_bit_field(&operand) && operand.place == Place::Global {
            return self.fail(at, "a bit-field has no address; take that of the structure");
        }
        let ty = match (&operand.ty.kind, operand.place) {
            (Kind::SpreadArray(of, _), _) => Type::pointer(of.clone(), Reach::Spread),
            (Kind::Unknown, _) => Type::unknown(),
            (_, Place::Global) => Type::pointer(operand.ty.clone(), Reach::Global),
            _ => Type::pointer(operand.ty.clone(), Reach::Local),
        };
        let (special, depth) = (operand.special, operand.depth + 1);
        self.node(
            ExprKind::Address(Box::new(operand)),
            ty,
            Place::None,
            start,
            special,
            depth,
        )
    }

    /// `*operand`.
    pub(crate) fn dereference(&mut self, operand: Expr, start: usize, at: Position) -> Parse<Expr> {
        let value = value_type(&operand);
        let (ty, place) = match value.pointee() {
            Some((to, Reach::Local)) => (
                to.clone(),
                if to.is_function() {
                    Place::None
                } else {
                    Place::Local
                },
            ),
            Some((to, _)) => {
                self.check_object(to, at);
                (to.clone(), Place::Global)
            }
            None if value.is_unknown() => (Type::unknown(), Place::Local),
            None => {
                let text = format!(
                    "'*' needs a pointer, and this is '{}'",
                    self.type_words(&value)
                );
                return self.fail(at, text);
            }
        };
        let special = operand.special || place == Place::Global;
        let depth = operand.depth + 1;
        self.node(
            ExprKind::Dereference(Box::new(operand)),
            ty,
            place,
            start,
            special,
            depth,
        )
    }

    /// `base[index]`.
    pub(crate) fn index(
        &mut self,
        base: Expr,
        index: Expr,
        start: usize,
        at: Position,
    ) -> Parse<Expr> {
        let (mut base, mut index, mut swapped) = (base, index, false);
        let is_base = |expr: &Expr| value_type(expr).pointee().is_some();
        if !is_base(&base) && is_base(&index) {
            std::mem::swap(&mut base, &mut index);
            swapped = true;
        }
        let by = value_type(&index);
        if by.is_global_pointer() || by.is_floating() {
            let text = format!(
                "an index must be an integer, and this is '{}'",
                self.type_words(&by)
            );
            let at = self.position(index.span);
            return self.fail(at, text);
        }
        let value = value_type(&base);
        let (ty, place) = match (&base.ty.kind, value.pointee()) {
            (Kind::SpreadArray(of, dimensions), _) if dimensions.len() > 1 => (
                Type::new(Kind::SpreadArray(of.clone(), Rc::from(&dimensions[1..]))),
                Place::Global,
            ),
            (_, Some((to, Reach::Local))) => (to.clone(), Place::Local),
            (_, Some((to, _))) => {
                self.check_object(to, at);
                (to.clone(), Place::Global)
            }
            (Kind::Unknown, None) => (Type::unknown(), Place::Local),
            _ => match &value.kind {
                Kind::Named(_) => (Type::unknown(), Place::Local),
                _ => {
                    let text = format!(
                        "'[ ]' needs an array or a pointer, and this is '{}'",
                        self.type_words(&value)
                    );
                    return self.fail(at, text);
                }
            },
        };
        let special = base.special || index.special || place == Place::Global;
        let depth = depth_above([&base, &index]);
        self.node(
            ExprKind::Index(Box::new(base), Box::new(index), swapped),
            ty,
            place,
            start,
            special,
            depth,
        )
    }

    /// `base.field`, `base->field`.
    pub(crate) fn member_of(
        &mut self,
        base: Expr,
        field: Rc<str>,
        arrow: bool,
        start: usize,
        at: Position,
    ) -> Parse<Expr> {
        let value = value_type(&base);
        let (record, place) = if arrow {
            match value.pointee() {
                Some((to, Reach::Local)) => (to.clone(), Place::Local),
                Some((to, _)) => (to.clone(), Place::Global),
                None if value.is_unknown() => (Type::unknown(), Place::Local),
                None => {
                    let text = format!(
                        "'->' needs a pointer, and this is '{}'; write '.'",
                        self.type_words(&value)
                    );
                    return self.fail(at, text);
                }
            }
        } else {
            (base.ty.clone(), base.place)
        };
        let (ty, found) = match &record.kind {
            Kind::Record(tag) => match self.find_field(*tag, &field) {
                Some(found) => {
                    let ty = Type::qualified(&found.ty, record.is_const, record.is_volatile);
                    (ty, Some(found))
                }
                None => {
                    let is_known = self.scopes.tags[*tag].fields.is_some();
                    let text = if is_known {
                        format!(
                            "'{}' has no member named '{field}'",
                            self.type_words(&record)
                        )
                    } else {
                        format!(
                            "'{}' is not defined here, so it has no member '{field}'",
                            self.type_words(&record)
                        )
                    };
                    return self.fail(at, text);
                }
            },
            Kind::Unknown | Kind::Named(_) => (Type::unknown(), None),
            Kind::Pointer(..) if !arrow => {
                let text = format!(
                    "'.' needs a structure, and this is '{}'; write '->'",
                    self.type_words(&record)
                );
                return self.fail(at, text);
            }
            _ => {
                let text = format!(
                    "a member of something that is no structure but '{}'",
                    self.type_words(&record)
                );
                return self.fail(at, text);
            }
        };
        let special = base.special || place == Place::Global;
        let depth = base.depth + 1;
        self.node(
            ExprKind::Member(Box::new(base), field, arrow, found),
            ty,
            place,
            start,
            special,
            depth,
        )
    }

    /// `(T) operand`.
    pub(crate) fn cast_to(&mut self, name: TypeName, operand: Expr, start: usize) -> Parse<Expr> {
        let from = value_type(&operand);
        let to = Type::unqualified(&name.ty);
        let at = self.tokens[start].at;
        if to.is_global_pointer()
            && (from.is_floating() || matches!(from.kind, Kind::Record(_) | Kind::Void))
        {
            let text = format!(
                "'{}' cannot be cast to a global pointer",
                self.type_words(&from)
            );
            return self.fail(at, text);
        }
        if from.is_global_pointer() && (to.is_floating() || matches!(to.kind, Kind::Record(_))) {
            let text = format!(
                "a global pointer cannot be cast to '{}'",
                self.type_words(&to)
            );
            return self.fail(at, text);
        }
        if to.is_global_pointer()
            && !from.is_global_pointer()
            && self.in_static_initializer
            && self.unevaluated == 0
            && !is_null_constant(&operand)
            && from.pointee().is_some()
        {
            self.diagnostics.error(
                at,
                "a global address is not known before the program starts; assign it in splitc_main",
            );
        }
        let has_special_part = name.parts.iter().any(|part| match part {
            DeclPart::Expr(expr) => expr.special,
            DeclPart::Declaration(declaration) => declaration.special,
            DeclPart::TagName(..) => true,
        });
        let special = operand.special
            || name.special
            || has_special_part
            || to.is_global_pointer()
            || from.is_global_pointer();
        let depth = operand.depth + 1;
        self.node(
            ExprKind::Cast(name, Box::new(operand)),
            to,
            Place::None,
            start,
            special,
            depth,
        )
    }
}
