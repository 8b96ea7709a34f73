//! Accesses: read, write, read-modify-write, get, put, store (Split-C 2.2).

use super::Emitter;
use super::expressions::{is_simple, temporary};
use crate::check::{bare, is_bit_field, value_type};
use crate::syntax::tree::{Expr, ExprKind, Place};
use crate::types::{Dimension, Kind, Reach, Ty, same};

impl Emitter<'_> {
    /// Writes the global address of a global place.
    pub(crate) fn address_of(&mut self, expr: &Expr) {
        let text = self.address_text(expr);
        self.push_word(&text);
    }

    /// The global address of a global place.
    pub(crate) fn address_text(&mut self, expr: &Expr) -> String {
        let expr = bare(expr);
        match &expr.kind {
            ExprKind::Dereference(pointer) => {
                self.is_access = false;
                self.parenthesised(pointer)
            }
            ExprKind::Unary("__extension__", inner) => self.address_text(inner),
            ExprKind::Index(base, index, _) => {
                if let Kind::SpreadArray(..) = &base.ty.kind {
                    return self.spread_element(expr);
                }
                // A block of a spread array is accessed if one of its elements is.
                self.is_access &=
                    base.place == Place::Global && matches!(base.ty.kind, Kind::Array(..));
                let pointer = self.text_of(|e| e.value(base));
                self.is_access = false;
                let index = self.text_of(|e| e.value(index));
                let ty = value_type(base);
                self.stepped(&pointer, "", &index, &ty)
            }
            ExprKind::Member(base, field, arrow, _) => {
                let (record, address) = if *arrow {
                    self.is_access = false;
                    let record = value_type(base).pointee().map(|(to, _)| to.clone());
                    (record, self.parenthesised(base))
                } else {
                    (Some(base.ty.clone()), self.address_text(base))
                };
                let record =
                    record.map_or_else(String::new, |record| self.type_text(&temporary(&record)));
                format!("({address} + __builtin_offsetof({record}, {field}))")
            }
            ExprKind::Name(_, crate::syntax::tree::NameRole::Object(text)) => text.to_string(),
            _ => self.parenthesised_raw(expr),
        }
    }

    fn parenthesised(&mut self, expr: &Expr) -> String {
        let text = self.text_of(|e| e.value(expr));
        format!("({text})")
    }

    fn parenthesised_raw(&mut self, expr: &Expr) -> String {
        let text = self.text_of(|e| e.copy(expr.span));
        format!("({text})")
    }

    /// The global address of a place that is read or written: an index past a spread array ends the
    /// job.
    pub(crate) fn access_text(&mut self, expr: &Expr) -> String {
        self.is_access = true;
        let text = self.address_text(expr);
        self.is_access = false;
        text
    }

    /// Whether the array was declared with all its elements, in sizes that stay. What a parameter
    /// is passed may be larger.
    fn has_known_count(&self, root: &Expr, dimensions: &[Dimension]) -> bool {
        let ExprKind::Name(name, _) = &root.kind else {
            return false;
        };
        !self.spread_parameters.contains(name)
            && dimensions.iter().all(|dimension| match dimension {
                Dimension::Open => false,
                Dimension::Captured(_) => true,
                Dimension::Expression(expr) => !crate::split_phase::has_variables(expr),
            })
    }

    /// `X[i][j]`: one step over the dimensions left of `::`.
    fn spread_element(&mut self, expr: &Expr) -> String {
        let is_access = std::mem::take(&mut self.is_access);
        let mut indices = Vec::new();
        let mut root = expr;
        while let ExprKind::Index(base, index, _) = &bare(root).kind {
            if !matches!(base.ty.kind, Kind::SpreadArray(..)) {
                break;
            }
            indices.push(&**index);
            root = base;
        }
        indices.reverse();
        let root = bare(root);
        let Kind::SpreadArray(of, dimensions) = &root.ty.kind else {
            return self.parenthesised_raw(expr);
        };
        let (of, dimensions) = (of.clone(), dimensions.clone());
        let mut linear = String::new();
        for (number, dimension) in dimensions.iter().enumerate() {
            let index = indices.get(number).copied();
            if number == 0 {
                linear = index.map_or("0".into(), |index| {
                    let text = self.text_of(|e| e.value(index));
                    format!("(long)({text})")
                });
                continue;
            }
            let size = self.dimension_text(dimension);
            linear = match index {
                Some(index) => {
                    let text = self.text_of(|e| e.value(index));
                    format!("({linear}) * (long)({size}) + (long)({text})")
                }
                None => format!("({linear}) * (long)({size})"),
            };
        }
        if is_access && self.has_known_count(root, &dimensions) {
            let count = self.count_text(&dimensions);
            let place = self.place(expr.span.start);
            linear = format!("splitc_index({linear}, {count}, {place})");
        }
        let base = self.address_text(root);
        let size = self.size_text(&of);
        format!("splitc_spread_add({base}, {linear}, {size})")
    }

    /// Writes a blocking read.
    pub(crate) fn read(&mut self, expr: &Expr) {
        if !self.in_function {
            let at = self.tokens[expr.span.start].at;
            self.diagnostics.error(
                at,
                "a global access outside of functions; assign it in splitc_main",
            );
            return;
        }
        if let Some(name) = self.begun.get(&std::ptr::from_ref(expr)) {
            let name = name.clone();
            self.push_word(&name);
            return;
        }
        let place = self.place(expr.span.start);
        let function = if self.reads_after_atomic {
            "splitc_read_after_atomic"
        } else {
            "splitc_read"
        };
        let text = if is_bit_field(expr) {
            let (record, address, field) = self.bit_field(expr);
            format!(
                " ({{ {record} splitc_v; {function}((void *)&splitc_v, {address}, sizeof splitc_v, {place}); splitc_v.{field}; }})"
            )
        } else {
            let ty = self.declared(&temporary(&expr.ty), "splitc_v".into());
            let address = self.access_text(expr);
            format!(
                " ({{ {ty}; {function}((void *)&splitc_v, {address}, sizeof splitc_v, {place}); splitc_v; }})"
            )
        };
        self.push_text(&text);
    }

    /// The structure around a bit-field: its type, its address, and the field.
    fn bit_field(&mut self, expr: &Expr) -> (String, String, String) {
        let ExprKind::Member(base, field, arrow, _) = &bare(expr).kind else {
            return (String::new(), String::new(), String::new());
        };
        let (record, address) = if *arrow {
            (
                value_type(base).pointee().map(|(to, _)| to.clone()),
                self.parenthesised(base),
            )
        } else {
            (Some(base.ty.clone()), self.access_text(base))
        };
        let record = record.map_or_else(String::new, |record| self.type_text(&temporary(&record)));
        (record, address, field.to_string())
    }

    /// `target op= value` on a bit-field, or a step of it. `change` is applied to `splitc_v.field`.
    fn change_bit_field(&mut self, target: &Expr, change: &str, result: &str, index: usize) {
        let (record, address, field) = self.bit_field(target);
        let place = self.place(index);
        // Only the bytes that the field lies in are written, so that others may change their
        // neighbours.
        let text = format!(
            " ({{ {record} splitc_m, splitc_v; unsigned long splitc_f, splitc_n; splitc_global splitc_a = {address}; \
             __builtin_memset(&splitc_m, 0, sizeof splitc_m); splitc_m.{field} = -1; \
             splitc_bytes_of_field(&splitc_m, sizeof splitc_m, &splitc_f, &splitc_n); \
             splitc_read((char *)&splitc_v + splitc_f, splitc_a + splitc_f, splitc_n, {place}); {} \
             splitc_write(splitc_a + splitc_f, (char *)&splitc_v + splitc_f, splitc_n, {place}); {result} }})",
            change.replace("FIELD", &format!("splitc_v.{field}"))
        );
        let text = text.replace("RESULT", &format!("splitc_v.{field}"));
        self.push_text(&text);
    }

    /// Writes an assignment.
    pub(crate) fn assignment(&mut self, expr: &Expr, wanted: bool) {
        let ExprKind::Assign(operator, left, right) = &expr.kind else {
            return;
        };
        let is_pointer = left.ty.is_global_pointer();
        if left.place != Place::Global {
            if !is_pointer || operator.is_empty() {
                let children = super::expressions::parts_of(expr);
                self.generic(expr.span, children);
                return;
            }
            self.flat += 1;
            let target = self.text_of(|e| e.value(left));
            let count = self.text_of(|e| e.value(right));
            let text = if is_simple(left) {
                let stepped = self.stepped(&target, operator, &count, &left.ty);
                format!(" ({target} = {stepped})")
            } else {
                let stepped = self.stepped("*splitc_p", operator, &count, &left.ty);
                format!(" ({{ splitc_global *splitc_p = &({target}); *splitc_p = {stepped}; }})")
            };
            self.push_text(&text);
            self.flat -= 1;
            return;
        }
        self.flat += 1;
        self.assignment_to_global(expr, operator, left, right, wanted);
        self.flat -= 1;
    }

    fn assignment_to_global(
        &mut self,
        expr: &Expr,
        operator: &str,
        left: &Expr,
        right: &Expr,
        wanted: bool,
    ) {
        let value = self.text_of(|e| e.value(right));
        let index = expr.span.start;
        let last = if wanted { "splitc_v;" } else { "(void)0;" };
        if is_bit_field(left) {
            let change = format!("FIELD {operator}= {value};");
            let result = if wanted { "RESULT;" } else { "(void)0;" };
            self.change_bit_field(left, &change, result, index);
            return;
        }
        let place = self.place(index);
        let address = self.access_text(left);
        let ty = temporary(&left.ty);
        let declared = self.declared(&ty, "splitc_v".into());
        let text = if operator.is_empty() {
            format!(
                " ({{ {declared} = {value}; splitc_write({address}, (void *)&splitc_v, sizeof splitc_v, {place}); {last} }})"
            )
        } else {
            let read = if self.reads_after_atomic {
                "splitc_read_after_atomic"
            } else {
                "splitc_read"
            };
            let change = if ty.is_global_pointer() {
                let stepped = self.stepped("splitc_v", operator, "splitc_b", &ty);
                format!("splitc_v = {stepped};")
            } else {
                format!("splitc_v {operator}= splitc_b;")
            };
            // The right side comes first: it may read, and what it calls may change the place.
            let by = if is_bit_field(right) {
                format!("({value}) + 0")
            } else {
                value
            };
            let by = format!("__auto_type splitc_b = {by}; ");
            format!(
                " ({{ {by}splitc_global splitc_a = {address}; {declared}; \
                 {read}((void *)&splitc_v, splitc_a, sizeof splitc_v, {place}); {change} \
                 splitc_write(splitc_a, (void *)&splitc_v, sizeof splitc_v, {place}); {last} }})"
            )
        };
        self.push_text(&text);
    }

    /// Writes a step of a global place or of a global pointer.
    pub(crate) fn step_of(
        &mut self,
        operand: &Expr,
        up: bool,
        after: bool,
        wanted: bool,
        expr: &Expr,
    ) {
        let sign = if up { "+" } else { "-" };
        let index = expr.span.start;
        if operand.place == Place::Global {
            if is_bit_field(operand) {
                let mark = if up { "++" } else { "--" };
                let (change, result) = match (wanted, after) {
                    (false, _) => (format!("FIELD{mark};"), "(void)0;"),
                    (true, true) => (
                        format!("__auto_type splitc_o = FIELD + 0; FIELD{mark};"),
                        "splitc_o;",
                    ),
                    (true, false) => (format!("FIELD{mark};"), "RESULT;"),
                };
                self.change_bit_field(operand, &change, result, index);
                return;
            }
            let place = self.place(index);
            let address = self.access_text(operand);
            let ty = temporary(&operand.ty);
            let declared = self.declared(&ty, "splitc_v".into());
            let old = self.declared(&ty, "splitc_o".into());
            let change = if ty.is_global_pointer() {
                format!("splitc_v = {};", self.stepped("splitc_v", sign, "1", &ty))
            } else {
                format!("splitc_v {sign}= 1;")
            };
            let read = if self.reads_after_atomic {
                "splitc_read_after_atomic"
            } else {
                "splitc_read"
            };
            let last = match (wanted, after) {
                (false, _) => "(void)0;",
                (true, true) => "splitc_o;",
                (true, false) => "splitc_v;",
            };
            let old = if wanted && after {
                format!("{old} = splitc_v; ")
            } else {
                String::new()
            };
            let text = format!(
                " ({{ splitc_global splitc_a = {address}; {declared}; \
                 {read}((void *)&splitc_v, splitc_a, sizeof splitc_v, {place}); {old}{change} \
                 splitc_write(splitc_a, (void *)&splitc_v, sizeof splitc_v, {place}); {last} }})"
            );
            self.push_text(&text);
            return;
        }
        let target = self.text_of(|e| e.value(operand));
        let text = if is_simple(operand) {
            let stepped = self.stepped(&target, sign, "1", &operand.ty);
            if after && wanted {
                format!(
                    " ({{ splitc_global splitc_o = {target}; {target} = {stepped}; splitc_o; }})"
                )
            } else {
                format!(" ({target} = {stepped})")
            }
        } else {
            let stepped = self.stepped("*splitc_p", sign, "1", &operand.ty);
            if after && wanted {
                format!(
                    " ({{ splitc_global *splitc_p = &({target}); splitc_global splitc_o = *splitc_p; \
                     *splitc_p = {stepped}; splitc_o; }})"
                )
            } else {
                format!(" ({{ splitc_global *splitc_p = &({target}); *splitc_p = {stepped}; }})")
            }
        };
        self.push_text(&text);
    }

    /// Writes `:=` or `:-`.
    pub(crate) fn split_phase(&mut self, expr: &Expr, wanted: bool) {
        let index = expr.span.start;
        match &expr.kind {
            ExprKind::Store(left, right) => {
                self.one_way("splitc_store", left, right, index, wanted)
            }
            ExprKind::SplitAssign(left, right) if left.place == Place::Global => {
                self.one_way("splitc_put", left, right, index, wanted);
            }
            ExprKind::SplitAssign(left, right) => {
                let target = self.text_of(|e| e.value(left));
                let is_get = right.place == Place::Global && is_object(&right.ty);
                let text = if is_get
                    && same_object(&left.ty, &right.ty)
                    && !is_bit_field(left)
                    && !is_bit_field(right)
                {
                    let address = self.access_text(right);
                    let size = self.type_text(&temporary(&right.ty));
                    let place = self.place(index);
                    let last = if wanted {
                        format!(" ({target});")
                    } else {
                        String::new()
                    };
                    format!(
                        " ({{ splitc_get((void *)&({target}), {address}, sizeof({size}), {place});{last} }})"
                    )
                } else {
                    // A conversion, or a value of this processor: there is nothing to wait for.
                    let value = self.text_of(|e| e.value(right));
                    format!(" ({target} = {value})")
                };
                self.push_text(&text);
            }
            _ => {}
        }
    }

    fn one_way(&mut self, function: &str, left: &Expr, right: &Expr, index: usize, wanted: bool) {
        let value = self.text_of(|e| e.value(right));
        let address = self.access_text(left);
        let place = self.place(index);
        let declared = self.declared(&temporary(&left.ty), "splitc_v".into());
        let last = if wanted { "splitc_v;" } else { "(void)0;" };
        self.push_text(&format!(
            " ({{ {declared} = {value}; {function}({address}, (void *)&splitc_v, sizeof splitc_v, {place}); {last} }})"
        ));
    }
}

fn is_object(ty: &Ty) -> bool {
    !matches!(
        ty.kind,
        Kind::Array(..) | Kind::SpreadArray(..) | Kind::Void | Kind::Function(..)
    )
}

/// Whether the bytes of one are a value of the other.
fn same_object(left: &Ty, right: &Ty) -> bool {
    if left.is_unknown() || right.is_unknown() {
        return false;
    }
    match (&left.kind, &right.kind) {
        (Kind::Pointer(_, a), Kind::Pointer(_, b)) => (*a == Reach::Local) == (*b == Reach::Local),
        (Kind::Integer { rank: a, .. }, Kind::Integer { rank: b, .. }) => a == b,
        _ => same(left, right),
    }
}
