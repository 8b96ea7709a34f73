//! Calls: of functions, of the library, and of what the front end carries out itself (Split-C 2.2,
//! 4.2.1).

use super::{bare, value_type};
use crate::source::Position;
use crate::syntax::tree::{Builtin, Expr, ExprKind, NameRole, Place};
use crate::syntax::{Parse, Parser, depth_above};
use crate::types::{Kind, Reach, Ty, Type};

impl Parser<'_> {
    /// `callee(arguments)`.
    pub(crate) fn call(
        &mut self,
        callee: Expr,
        arguments: Vec<Expr>,
        start: usize,
        at: Position,
    ) -> Parse<Expr> {
        if let ExprKind::Name(_, NameRole::Builtin(builtin)) = &callee.kind {
            let builtin = *builtin;
            return self.builtin_call(builtin, callee, arguments, start, at);
        }
        let value = value_type(&callee);
        let signature = match value.pointee() {
            Some((to, Reach::Local)) => match &to.kind {
                Kind::Function(result, parameters, variadic) => {
                    Some((result.clone(), parameters.clone(), *variadic))
                }
                Kind::Unknown => None,
                _ => {
                    let text = format!("'{}' is not a function", self.type_words(&callee.ty));
                    return self.fail(at, text);
                }
            },
            Some(_) => {
                return self.fail(
                    at,
                    "a function cannot be called through a global pointer; use atomic(f, pointer, ...), or cast to a local pointer",
                );
            }
            None if value.is_unknown() => None,
            None => {
                let text = format!("'{}' is not a function", self.type_words(&callee.ty));
                return self.fail(at, text);
            }
        };
        let (result, parameters, variadic) = signature.unwrap_or((Type::unknown(), None, true));
        let mut converted = Vec::with_capacity(arguments.len());
        if let (NameRole::Library(..), Some(parameters)) = (role_of(&callee), &parameters)
            && arguments.len() != parameters.len()
            && !variadic
        {
            let name = name_of(&callee);
            let text = format!(
                "'{name}' takes {} arguments, and here are {}",
                parameters.len(),
                arguments.len()
            );
            return self.fail(at, text);
        }
        for (index, argument) in arguments.into_iter().enumerate() {
            let argument = match parameters.as_ref().and_then(|p| p.get(index)) {
                Some(to) => self.convert(argument, &to.clone(), "pass"),
                None => argument,
            };
            converted.push(argument);
        }
        let special = callee.special || converted.iter().any(|argument| argument.special);
        let depth = depth_above(converted.iter().chain([&callee]));
        self.node(
            ExprKind::Call(Box::new(callee), converted),
            result,
            Place::None,
            start,
            special,
            depth,
        )
    }

    fn builtin_call(
        &mut self,
        builtin: Builtin,
        callee: Expr,
        mut arguments: Vec<Expr>,
        start: usize,
        at: Position,
    ) -> Parse<Expr> {
        let wanted = match builtin {
            Builtin::ToLocal | Builtin::ToProc => 1,
            Builtin::ToGlobal => 2,
            Builtin::Atomic => 2,
        };
        let name = name_of(&callee);
        if arguments.len() != wanted && !(builtin == Builtin::Atomic && arguments.len() > wanted) {
            let text = match builtin {
                Builtin::Atomic => format!(
                    "'{name}' needs a function and a global pointer: {name}(f, pointer, arguments...)"
                ),
                _ => format!(
                    "'{name}' takes {wanted} arguments, and here are {}",
                    arguments.len()
                ),
            };
            return self.fail(at, text);
        }
        let pointer = wanted - 1;
        let value = value_type(&arguments[pointer]);
        let pointee = value.pointee().map(|(to, reach)| (to.clone(), reach));
        // Programs of the nineties do that, and their compilers warned.
        let is_number = builtin == Builtin::ToLocal && value.is_integer();
        if is_number {
            let at = self.position(arguments[pointer].span);
            let text = format!(
                "'{name}' needs a pointer, and this is '{}'; it is taken for an address of this processor",
                self.type_words(&value)
            );
            self.diagnostics.warning(at, text);
        }
        if pointee.is_none() && !value.is_unknown() && !is_number {
            let text = format!(
                "'{name}' needs a pointer, and this is '{}'; take its address with '&'",
                self.type_words(&value)
            );
            let at = self.position(arguments[pointer].span);
            return self.fail(at, text);
        }
        let (to, reach) = match pointee {
            None if is_number => (Type::new(Kind::Void), Reach::Local),
            other => other.unwrap_or((Type::unknown(), Reach::Global)),
        };
        let ty = match builtin {
            Builtin::ToLocal => Type::pointer(to, Reach::Local),
            Builtin::ToGlobal => Type::pointer(to, Reach::Global),
            Builtin::ToProc => {
                if reach == Reach::Local {
                    let at = self.position(arguments[0].span);
                    return self.fail(at, "'toproc' needs a global pointer; a local address is on this processor, MYPROC");
                }
                Type::int()
            }
            Builtin::Atomic => {
                if reach == Reach::Local {
                    let global = Type::pointer(to, Reach::Global);
                    let argument = arguments.remove(1);
                    let argument = self.convert(argument, &global, "pass");
                    arguments.insert(1, argument);
                }
                self.atomic_result(&name, &mut arguments)?
            }
        };
        let depth = depth_above(&arguments);
        self.node(
            ExprKind::Call(Box::new(callee), arguments),
            ty,
            Place::None,
            start,
            true,
            depth,
        )
    }

    /// Checks the function of `atomic(f, gp, ...)`, converts the arguments, and tells the type of
    /// the result.
    fn atomic_result(&mut self, name: &str, arguments: &mut Vec<Expr>) -> Parse<Ty> {
        let at = self.position(arguments[0].span);
        let value = value_type(&arguments[0]);
        let Some((Kind::Function(result, parameters, _), Reach::Local)) =
            value.pointee().map(|(to, r)| (to.kind.clone(), r))
        else {
            if value.is_unknown() {
                return Ok(Type::unknown());
            }
            let text = format!(
                "'{name}' needs a function first, and this is '{}'",
                self.type_words(&value)
            );
            return self.fail(at, text);
        };
        if let Some(parameters) = &parameters {
            if parameters.len() + 1 != arguments.len() {
                let text = format!(
                    "the function of '{name}' takes {} arguments, and here are {}: the pointer comes first, the others follow",
                    parameters.len(),
                    arguments.len() - 1
                );
                return self.fail(at, text);
            }
            if let Some(first) = parameters.first()
                && first.pointee().is_none()
                && !first.is_unknown()
            {
                return self.fail(at, "the function of an atomic procedure takes a pointer first: the address on its processor");
            }
            let rest: Vec<_> = arguments.drain(2..).collect();
            for (argument, to) in rest.into_iter().zip(parameters.iter().skip(1)) {
                let argument = self.convert(argument, &to.clone(), "pass");
                arguments.push(argument);
            }
        }
        Ok(match name {
            "atomic_i" if result.is_unknown() => Type::int(),
            "atomic_d" if result.is_unknown() => Type::double(),
            _ => result,
        })
    }

    /// Notes what an expression statement asks for without waiting.
    pub(crate) fn note_statement(&mut self, expr: &Expr) {
        if let ExprKind::Call(callee, _) = &bare(expr).kind
            && matches!(role_of(callee), NameRole::Builtin(Builtin::Atomic))
            && let Some(function) = self.function.as_mut()
        {
            function.has_atomic = true;
        }
    }
}

/// What a callee's name stands for.
pub(crate) fn role_of(callee: &Expr) -> NameRole {
    match &bare(callee).kind {
        ExprKind::Name(_, role) => role.clone(),
        _ => NameRole::Foreign,
    }
}

fn name_of(callee: &Expr) -> String {
    match &bare(callee).kind {
        ExprKind::Name(name, _) => name.to_string(),
        _ => "the function".into(),
    }
}
