//! Calls of the runtime, and atomic procedures (Split-C 2.2, 4.2.1).

use super::Emitter;
use super::expressions::temporary;
use crate::check::{calls::role_of, value_type};
use crate::syntax::tree::{Builtin, Expr, NameRole};
use crate::types::{Kind, Reach, Ty, Type, promoted};
use std::fmt::Write as _;

impl Emitter<'_> {
    /// Writes a call of an operation of Split-C.
    pub(crate) fn special_call(
        &mut self,
        expr: &Expr,
        callee: &Expr,
        arguments: &[Expr],
        wanted: bool,
    ) {
        match role_of(callee) {
            NameRole::Library(name, with_place) => {
                let mut texts: Vec<_> = arguments
                    .iter()
                    .map(|a| self.text_of(|e| e.value(a)))
                    .collect();
                if with_place {
                    texts.push(self.place(expr.span.start));
                }
                let text = format!(" {name}({})", texts.join(","));
                self.push_text(&text);
            }
            NameRole::Builtin(Builtin::ToLocal) => {
                let ty = self.type_text(&expr.ty);
                let value = self.text_of(|e| e.value(&arguments[0]));
                let text = if value_type(&arguments[0]).is_integer() {
                    format!(" (({ty})(unsigned long)({value}))")
                } else if value_type(&arguments[0])
                    .pointee()
                    .is_some_and(|(_, reach)| reach == Reach::Local)
                {
                    format!(" (({ty})({value}))")
                } else {
                    format!(" (({ty})splitc_to_local({value}))")
                };
                self.push_text(&text);
            }
            NameRole::Builtin(Builtin::ToGlobal) => {
                let proc = self.text_of(|e| e.value(&arguments[0]));
                let value = self.text_of(|e| e.value(&arguments[1]));
                let text = if value_type(&arguments[1]).is_global_pointer() {
                    format!(" splitc_to_global({proc}, splitc_to_local({value}))")
                } else {
                    format!(" splitc_to_global({proc}, {value})")
                };
                self.push_text(&text);
            }
            NameRole::Builtin(Builtin::ToProc) => {
                let value = self.text_of(|e| e.value(&arguments[0]));
                self.push_text(&format!(" splitc_to_proc({value})"));
            }
            NameRole::Builtin(Builtin::Atomic) => self.atomic(expr, arguments, wanted),
            _ => self.value(expr),
        }
    }

    /// `atomic(f, pointer, a, b)`: a structure for the arguments, a function that unpacks them at
    /// the owner, and the request.
    fn atomic(&mut self, expr: &Expr, arguments: &[Expr], wanted: bool) {
        let number = self.number();
        let place = self.place(expr.span.start);
        let function_type = value_type(&arguments[0]);
        let signature = function_type.pointee().map(|(to, _)| to.clone());
        let (result, parameters) = match signature.as_ref().map(|ty| &ty.kind) {
            Some(Kind::Function(result, parameters, _)) => (result.clone(), parameters.clone()),
            _ => (Type::int(), None),
        };
        let name = match role_of(&arguments[0]) {
            NameRole::Object(name) if arguments[0].ty.is_function() => Some(name),
            _ => None,
        };
        let mut fields = String::new();
        let mut values = Vec::new();
        let mut passed = Vec::new();
        if name.is_none() {
            let declared = self.declared(&function_type, "function".into());
            let _ = write!(fields, "{declared}; ");
            values.push(self.text_of(|e| e.value(&arguments[0])));
        }
        let where_type = parameters.as_ref().and_then(|p| p.first().cloned());
        passed.push(self.where_text(where_type.as_ref(), &value_type(&arguments[1])));
        for (index, argument) in arguments.iter().enumerate().skip(2) {
            let ty = match parameters.as_ref().and_then(|p| p.get(index - 1)) {
                Some(ty) => temporary(ty),
                // Without a prototype: as C passes it.
                None => match value_type(argument) {
                    ty if ty.is_floating() => match &ty.kind {
                        Kind::Floating("float", _) => Type::double(),
                        _ => ty,
                    },
                    ty if ty.is_unknown() => Type::int(),
                    ty => promoted(&ty),
                },
            };
            let declared = self.declared(&ty, format!("a{index}"));
            let _ = write!(fields, "{declared}; ");
            values.push(self.text_of(|e| e.value(argument)));
            passed.push(format!("packed->a{index}"));
        }
        let has_result = !result.is_void();
        let mut handler = String::new();
        let is_packed = !values.is_empty();
        if is_packed {
            let _ = writeln!(handler, "struct splitc_arguments_{number} {{ {fields}}};");
        }
        let _ = write!(
            handler,
            "static void splitc_handler_{number}(void *where, const void *arguments, void *result) {{ "
        );
        if is_packed {
            let _ = write!(
                handler,
                "const struct splitc_arguments_{number} *packed = arguments; "
            );
        }
        let called = name.map_or("packed->function".to_owned(), |name| name.to_string());
        let passed = passed.join(", ");
        let result_type = self.type_text(&temporary(&result));
        if has_result {
            let pointer = self.declared(
                &Type::pointer(temporary(&result), Reach::Local),
                String::new(),
            );
            let _ = writeln!(
                handler,
                "{result_type} value = {called}({passed}); if (result) *({pointer})result = value; (void)arguments; (void)where; }}"
            );
        } else {
            let _ = writeln!(
                handler,
                "{called}({passed}); (void)arguments; (void)result; (void)where; }}"
            );
        }
        self.hoisted.push_str(&handler);
        let pointer = self.text_of(|e| e.value(&arguments[1]));
        let mut text = String::from(" ({ ");
        let (packed, bytes) = if is_packed {
            let _ = write!(
                text,
                "struct splitc_arguments_{number} splitc_p = {{ {} }}; ",
                values.join(", ")
            );
            ("&splitc_p", "sizeof splitc_p")
        } else {
            ("(void *)0", "0")
        };
        if has_result && wanted {
            let declared = self.declared(&temporary(&result), "splitc_r".into());
            let _ = write!(
                text,
                "{declared}; splitc_atomic({pointer}, splitc_handler_{number}, {packed}, {bytes}, (void *)&splitc_r, \
                 sizeof splitc_r, {place}); splitc_r; }})"
            );
        } else {
            let _ = write!(
                text,
                "splitc_atomic({pointer}, splitc_handler_{number}, {packed}, {bytes}, (void *)0, 0, {place}); }})"
            );
        }
        self.push_text(&text);
    }

    /// The address on the owner as the function takes it.
    fn where_text(&mut self, parameter: Option<&Ty>, pointer: &Ty) -> String {
        match parameter {
            Some(ty) if ty.is_global_pointer() => "splitc_mine(where)".into(),
            Some(ty) => {
                let text = self.type_text(&temporary(ty));
                format!("({text})where")
            }
            None => {
                let to = pointer
                    .pointee()
                    .map_or_else(|| Type::new(Kind::Void), |(to, _)| to.clone());
                let text = self.type_text(&Type::pointer(to, Reach::Local));
                format!("({text})where")
            }
        }
    }
}
