//! Expressions as values.

use super::{Child, Emitter};
use crate::check::{bare, calls::role_of, is_null_constant, value_type};
use crate::syntax::tree::{Expr, ExprKind, Initializer, NameRole, Part, Place, TypeName};
use crate::types::{Kind, Reach, Ty, Type};

impl Emitter<'_> {
    /// Writes the value of an expression.
    pub(crate) fn value(&mut self, expr: &Expr) {
        if !expr.special {
            self.copy(expr.span);
            return;
        }
        if expr.place == Place::Global {
            match &expr.ty.kind {
                Kind::Array(..) | Kind::SpreadArray(..) => self.address_of(expr),
                _ => self.read(expr),
            }
            return;
        }
        match &expr.kind {
            ExprKind::Name(name, role) => match role {
                NameRole::Object(text) => self.push_word(text),
                NameRole::CallPlace => {
                    let place = self.place(expr.span.start);
                    self.push_word(&place);
                }
                _ => self.push_word(name),
            },
            ExprKind::Parentheses(inner) => {
                self.push_text(" (");
                self.value(inner);
                self.push_text(")");
            }
            ExprKind::Call(callee, arguments) => match role_of(callee) {
                NameRole::Library(..) | NameRole::Builtin(_) => {
                    self.flat += 1;
                    self.special_call(expr, callee, arguments, true);
                    self.flat -= 1;
                }
                _ => {
                    let mut children: Vec<_> = arguments.iter().map(Child::Expr).collect();
                    children.push(Child::Expr(callee));
                    self.generic(expr.span, children);
                }
            },
            ExprKind::Address(inner) if inner.place == Place::Global => {
                self.flat += 1;
                self.address_of(inner);
                self.flat -= 1;
            }
            ExprKind::Member(base, ..) if base.place == Place::None && base.special => {
                self.generic_parts(expr)
            }
            ExprKind::Step(..) => self.flat(|e| e.step_value(expr)),
            ExprKind::Binary(..) => self.binary(expr),
            ExprKind::Assign(..) => self.assignment(expr, true),
            ExprKind::SplitAssign(..) | ExprKind::Store(..) => {
                self.flat(|e| e.split_phase(expr, true))
            }
            ExprKind::Cast(name, operand) => self.cast(expr, name, operand),
            ExprKind::Convert(inner) => self.convert(inner, &expr.ty),
            ExprKind::SizeOf(word, operand) => {
                let text = if operand.special {
                    self.size_of(operand)
                } else {
                    None
                };
                match text {
                    Some(text) => {
                        let text = format!(" {word}({text})");
                        self.push_text(&text);
                    }
                    None => self.generic_parts(expr),
                }
            }
            ExprKind::SizeOfType(word, name) => match &name.ty.kind {
                Kind::SpreadArray(..) => {
                    let text = self.spread_bytes(&name.ty);
                    self.push_word(&text);
                }
                _ => {
                    let text = self.type_text(&name.ty);
                    let text = format!(" {word}({text})");
                    self.push_text(&text);
                }
            },
            _ => self.generic_parts(expr),
        }
    }

    pub(crate) fn flat(&mut self, write: impl FnOnce(&mut Self)) {
        self.flat += 1;
        write(self);
        self.flat -= 1;
    }

    pub(crate) fn push_word(&mut self, text: &str) {
        self.push_text(" ");
        self.push_text(text);
    }

    /// The tokens of a node, with its parts written each for itself.
    fn generic_parts(&mut self, expr: &Expr) {
        let children = parts_of(expr);
        self.generic(expr.span, children);
    }

    /// What `sizeof` is asked about, if it must be named by its type.
    fn size_of(&mut self, operand: &Expr) -> Option<String> {
        if matches!(operand.ty.kind, Kind::SpreadArray(..)) {
            let bytes = self.spread_bytes(&operand.ty);
            // `sizeof(char[n])` is n.
            return Some(format!("char[{bytes}]"));
        }
        if operand.ty.is_unknown() {
            return None;
        }
        Some(self.type_text(&operand.ty))
    }

    /// All bytes of a spread array.
    fn spread_bytes(&mut self, ty: &Ty) -> String {
        let Kind::SpreadArray(of, dimensions) = &ty.kind else {
            return "0".into();
        };
        let count = self.count_text(dimensions);
        let size = self.size_text(of);
        format!("({count} * {size})")
    }

    /// The product of dimensions.
    pub(crate) fn count_text(&mut self, dimensions: &[crate::types::Dimension]) -> String {
        let mut text = String::from("(");
        for (index, dimension) in dimensions.iter().enumerate() {
            if index > 0 {
                text.push_str(" * ");
            }
            let dimension = self.dimension_text(dimension);
            text.push_str(&format!("(long)({dimension})"));
        }
        text.push(')');
        text
    }

    /// Writes a conversion to a global type.
    fn convert(&mut self, inner: &Expr, to: &Ty) {
        self.flat += 1;
        let from = value_type(inner);
        if is_null_constant(inner) {
            self.push_text(" 0ul");
        } else if from.pointee().is_some() && to.is_global_pointer()
            || matches!(to.kind, Kind::SpreadArray(..))
        {
            self.push_text(" splitc_mine(");
            self.value(inner);
            self.push_text(")");
        } else {
            self.push_text(" (splitc_global)(");
            self.value(inner);
            self.push_text(")");
        }
        self.flat -= 1;
    }

    fn cast(&mut self, expr: &Expr, name: &TypeName, operand: &Expr) {
        if expr.place == Place::Local {
            let pointer =
                self.declared(&Type::pointer(expr.ty.clone(), Reach::Local), String::new());
            let operand = self.text_of(|e| e.value(operand));
            self.push_text(&format!(" (*({pointer})&({operand}))"));
            return;
        }
        let from = value_type(operand);
        let to = &expr.ty;
        self.flat += 1;
        match (&to.kind, from.is_global_pointer()) {
            _ if to.is_global_pointer() && !from.is_global_pointer() => {
                if is_null_constant(operand) {
                    self.push_text(" 0ul");
                } else if from.pointee().is_some() {
                    self.push_text(" splitc_mine(");
                    self.value(operand);
                    self.push_text(")");
                } else {
                    self.push_text(" (splitc_global)(");
                    self.value(operand);
                    self.push_text(")");
                }
            }
            (Kind::Pointer(_, Reach::Local), true) => {
                let text = self.type_text(to);
                self.push_text(&format!(" (({text})splitc_to_local("));
                self.value(operand);
                self.push_text("))");
            }
            (Kind::Void, _) => {
                self.flat -= 1;
                self.push_text(" (void)(");
                self.discarded(operand);
                self.push_text(")");
                return;
            }
            _ => {
                let text = if name.special || to.is_global_pointer() {
                    self.type_text(to)
                } else {
                    self.text_of(|e| e.type_name(name))
                };
                self.push_text(&format!(" ({text})("));
                self.value(operand);
                self.push_text(")");
            }
        }
        self.flat -= 1;
    }

    /// Writes a type name, as in `va_arg`.
    pub(crate) fn type_name(&mut self, name: &TypeName) {
        if name.special {
            let text = self.type_text(&name.ty);
            self.push_word(&text);
        } else {
            let children = name.parts.iter().map(Child::Part).collect();
            self.generic(name.span, children);
        }
    }

    /// `pointer + count`, or with `-`.
    pub(crate) fn stepped(&mut self, pointer: &str, sign: &str, count: &str, ty: &Ty) -> String {
        let Some((to, reach)) = ty.pointee().map(|(to, reach)| (to.clone(), reach)) else {
            return pointer.into();
        };
        let size = self.size_text(&to);
        let function = if reach == Reach::Spread {
            "splitc_spread_add"
        } else {
            "splitc_step"
        };
        format!("{function}({pointer}, {sign}(long)({count}), {size})")
    }

    fn binary(&mut self, expr: &Expr) {
        let ExprKind::Binary(operator, left, right) = &expr.kind else {
            return;
        };
        let (a, b) = (value_type(left), value_type(right));
        let arithmetic = matches!(*operator, "+" | "-");
        let ordering = matches!(*operator, "<" | ">" | "<=" | ">=");
        if !(a.is_global_pointer() || b.is_global_pointer()) || !(arithmetic || ordering) {
            self.generic_parts(expr);
            return;
        }
        let l = self.text_of(|e| e.value(left));
        let r = self.text_of(|e| e.value(right));
        let text = if arithmetic && a.is_global_pointer() && b.is_global_pointer() {
            let size = a
                .pointee()
                .map(|(to, _)| to.clone())
                .map_or("1ul".into(), |to| self.size_text(&to));
            match a.pointee() {
                Some((_, Reach::Spread)) => format!(" splitc_spread_difference({l}, {r}, {size})"),
                _ => format!(" splitc_distance({l}, {r}, {size})"),
            }
        } else if arithmetic {
            let (pointer, count, ty) = if a.is_global_pointer() {
                (l, r, &a)
            } else {
                (r, l, &b)
            };
            let sign = if *operator == "-" { "-" } else { "" };
            format!(" {}", self.stepped(&pointer, sign, &count, ty))
        } else {
            match (a.pointee(), b.pointee()) {
                (Some((to, Reach::Spread)), Some((_, Reach::Spread))) => {
                    let size = self.size_text(&to.clone());
                    format!(" (splitc_spread_difference({l}, {r}, {size}) {operator} 0)")
                }
                _ => format!(" (({l}) {operator} ({r}))"),
            }
        };
        self.push_text(&text);
    }

    /// An expression whose value is not used.
    pub(crate) fn discarded(&mut self, expr: &Expr) {
        if !expr.special {
            self.copy(expr.span);
            return;
        }
        match &expr.kind {
            ExprKind::Parentheses(inner) => {
                self.push_text(" (");
                self.discarded(inner);
                self.push_text(")");
            }
            ExprKind::Assign(..) => self.assignment(expr, false),
            ExprKind::SplitAssign(..) | ExprKind::Store(..) => {
                self.flat(|e| e.split_phase(expr, false))
            }
            ExprKind::Step(operand, up, _) => {
                let (operand, up) = (&**operand, *up);
                if operand.place == Place::Global || operand.ty.is_global_pointer() {
                    self.flat(|e| e.step_of(operand, up, false, false, expr));
                } else {
                    self.value(expr);
                }
            }
            ExprKind::Comma(left, right) => {
                self.discarded(left);
                self.push_text(",");
                self.discarded(right);
            }
            ExprKind::Call(callee, arguments)
                if matches!(
                    role_of(callee),
                    NameRole::Builtin(_) | NameRole::Library(..)
                ) =>
            {
                self.flat += 1;
                self.special_call(expr, callee, arguments, false);
                self.flat -= 1;
            }
            _ => self.value(expr),
        }
    }

    fn step_value(&mut self, expr: &Expr) {
        let ExprKind::Step(operand, up, after) = &expr.kind else {
            return;
        };
        if operand.place == Place::Global || operand.ty.is_global_pointer() {
            self.step_of(operand, *up, *after, true, expr);
        } else {
            self.generic_parts(expr);
        }
    }
}

/// The parts of a node that lie within its tokens.
pub(crate) fn parts_of(expr: &Expr) -> Vec<Child<'_>> {
    match &expr.kind {
        ExprKind::Name(..) | ExprKind::Constant(_) | ExprKind::Text => Vec::new(),
        ExprKind::Parentheses(a)
        | ExprKind::Dereference(a)
        | ExprKind::Address(a)
        | ExprKind::Unary(_, a)
        | ExprKind::Step(a, ..)
        | ExprKind::Convert(a)
        | ExprKind::SizeOf(_, a)
        | ExprKind::Member(a, ..) => vec![Child::Expr(a)],
        ExprKind::Index(a, b, _)
        | ExprKind::Binary(_, a, b)
        | ExprKind::Assign(_, a, b)
        | ExprKind::SplitAssign(a, b)
        | ExprKind::Store(a, b)
        | ExprKind::Comma(a, b) => vec![Child::Expr(a), Child::Expr(b)],
        ExprKind::Conditional(a, b, c) => {
            let mut children = vec![Child::Expr(a), Child::Expr(c)];
            children.extend(b.as_deref().map(Child::Expr));
            children
        }
        ExprKind::Call(a, list) => {
            let mut children: Vec<_> = list.iter().map(Child::Expr).collect();
            children.push(Child::Expr(a));
            children
        }
        ExprKind::Cast(name, a) => vec![Child::Type(name), Child::Expr(a)],
        ExprKind::SizeOfType(_, name) => vec![Child::Type(name)],
        ExprKind::Compound(name, initializer) => {
            let mut children = vec![Child::Type(name)];
            initializer_children(initializer, &mut children);
            children
        }
        ExprKind::Statement(block) => vec![Child::Stmt(block)],
        ExprKind::Other(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Expr(expr) => Child::Expr(expr),
                Part::Type(name) => Child::Type(name),
            })
            .collect(),
    }
}

/// The expressions of an initialiser.
pub(crate) fn initializer_children<'e>(
    initializer: &'e Initializer,
    children: &mut Vec<Child<'e>>,
) {
    match initializer {
        Initializer::Expr(expr) => children.push(Child::Expr(expr)),
        Initializer::List(_, items) => {
            for item in items {
                initializer_children(item, children);
            }
        }
    }
}

/// Whether an lvalue may be written twice: a name.
pub(crate) fn is_simple(expr: &Expr) -> bool {
    matches!(bare(expr).kind, ExprKind::Name(..))
}

/// A type for a temporary: without qualifiers.
pub(crate) fn temporary(ty: &Ty) -> Ty {
    Type::unqualified(ty)
}
