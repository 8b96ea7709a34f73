//! Names, constants, parentheses, and what looks like a call but is none.

use super::expressions::has_parts;
use super::tree::{Builtin, Expr, ExprKind, NameRole, Part, Place, Stmt, StmtKind};
use super::{Parse, Parser};
use crate::lex::TokenKind;
use crate::types::{Dimension, Kind, Rank, Reach, Ty, Type};
use std::rc::Rc;

/// Allocation of memory goes to the heap that processors share.
const ALLOCATION: [(&str, &str); 10] = [
    ("malloc", "splitc_malloc"),
    ("calloc", "splitc_calloc"),
    ("realloc", "splitc_realloc"),
    ("free", "splitc_free"),
    ("cfree", "splitc_free"),
    ("memalign", "splitc_memalign"),
    ("valloc", "splitc_valloc"),
    ("posix_memalign", "splitc_posix_memalign"),
    ("strdup", "splitc_strdup"),
    ("strndup", "splitc_strndup"),
];

/// Functions of the C library that programs call without a declaration, and whose results are no
/// int.
const IMPLICIT: [(&str, &str); 26] = [
    ("getenv", "char *"),
    ("fopen", "char *"),
    ("fdopen", "char *"),
    ("freopen", "char *"),
    ("popen", "char *"),
    ("tmpfile", "char *"),
    ("fgets", "char *"),
    ("gets", "char *"),
    ("strtok", "char *"),
    ("strerror", "char *"),
    ("ctime", "char *"),
    ("asctime", "char *"),
    ("localtime", "char *"),
    ("gmtime", "char *"),
    ("getcwd", "char *"),
    ("getwd", "char *"),
    ("sbrk", "char *"),
    ("bsearch", "char *"),
    ("opendir", "char *"),
    ("readdir", "char *"),
    ("getpwnam", "char *"),
    ("atof", "double "),
    ("strtod", "double "),
    ("drand48", "double "),
    ("atol", "long "),
    ("random", "long "),
];

/// What Split-C calls `name`, if it is an operation whose types depend on its arguments.
fn builtin(name: &str) -> Option<Builtin> {
    Some(match name {
        "tolocal" => Builtin::ToLocal,
        "toglobal" => Builtin::ToGlobal,
        "toproc" => Builtin::ToProc,
        "atomic" | "atomic_i" | "atomic_d" | "atomic_f" | "atomic_l" | "atomic_v" | "atomic_ui"
        | "atomic_ul" => Builtin::Atomic,
        _ => return None,
    })
}

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parse<Expr> {
        let start = self.at;
        let token = self.token();
        let at = token.at;
        match token.kind {
            TokenKind::Number => {
                self.next();
                let ty = number_type(&token.text);
                Ok(self.leaf(ExprKind::Constant(is_zero(&token.text)), ty, start))
            }
            TokenKind::Character => {
                self.next();
                Ok(self.leaf(ExprKind::Constant(false), Type::int(), start))
            }
            TokenKind::Text => {
                let mut wide = false;
                while self.token().kind == TokenKind::Text {
                    wide |= matches!(self.token().text.as_bytes().first(), Some(b'L' | b'U'));
                    self.next();
                }
                let element = if wide {
                    Type::int()
                } else {
                    Type::integer(Rank::Char, false)
                };
                let ty = Type::new(Kind::Array(element, Dimension::Open));
                let mut expr = self.leaf(ExprKind::Text, ty, start);
                expr.place = Place::Local;
                Ok(expr)
            }
            TokenKind::Mark if &*token.text == "(" => {
                self.next();
                self.enter()?;
                let conditions = std::mem::take(&mut self.open_conditions);
                let result = if self.is("{") {
                    self.statement_expression(start)?
                } else {
                    let inner = self.expression()?;
                    let (ty, place, special, depth) = (
                        inner.ty.clone(),
                        inner.place,
                        inner.special,
                        inner.depth + 1,
                    );
                    self.expect(")", "to close the parenthesis")?;
                    let kind = ExprKind::Parentheses(Box::new(inner));
                    Expr {
                        kind,
                        ty,
                        place,
                        span: self.span_from(start),
                        special,
                        depth,
                    }
                };
                self.open_conditions = conditions;
                self.leave();
                Ok(result)
            }
            TokenKind::Word => self.word(start),
            _ => {
                let found = token.text.clone();
                self.fail(at, format!("expected an expression before '{found}'"))
            }
        }
    }

    fn statement_expression(&mut self, start: usize) -> Parse<Expr> {
        let block_start = self.at;
        self.next();
        self.scopes.open();
        let statements = self.block_items()?;
        self.scopes.close();
        self.expect("}", "at the end of the block")?;
        let ty = match statements.last().map(|statement| &statement.kind) {
            Some(StmtKind::Expr(expr)) => crate::check::value_type(expr),
            _ => Type::new(Kind::Void),
        };
        let block = Stmt {
            kind: StmtKind::Block(statements),
            span: self.span_from(block_start),
        };
        self.expect(")", "after the block")?;
        // The block may hold anything; writing its parts one by one is always right.
        let kind = ExprKind::Statement(Box::new(block));
        Ok(Expr {
            kind,
            ty,
            place: Place::None,
            span: self.span_from(start),
            special: true,
            depth: 2,
        })
    }

    fn word(&mut self, start: usize) -> Parse<Expr> {
        let token = self.token();
        let at = token.at;
        match &*token.text {
            "__builtin_va_arg" => {
                self.next();
                self.expect("(", "after '__builtin_va_arg'")?;
                let list = self.assignment()?;
                self.expect(",", "after the list")?;
                let name = self.type_name()?;
                self.expect(")", "after the type")?;
                let ty = name.ty.clone();
                let special = list.special || name.special;
                let mut expr = self.leaf(
                    ExprKind::Other(vec![Part::Expr(list), Part::Type(name)]),
                    ty,
                    start,
                );
                expr.special = special;
                Ok(expr)
            }
            "__builtin_offsetof" | "__builtin_types_compatible_p" => {
                let ty = if token.text.ends_with("_p") {
                    Type::int()
                } else {
                    Type::integer(Rank::Long, true)
                };
                self.next();
                self.expect("(", "after the name")?;
                let mut parts = vec![Part::Type(self.type_name()?)];
                self.expect(",", "after the type")?;
                if self.is_type_start(0) && ty.is_integer() && !self.is_name_of_field() {
                    parts.push(Part::Type(self.type_name()?));
                } else {
                    while !self.is(")") {
                        if self.accept("[") {
                            parts.push(Part::Expr(self.expression()?));
                        } else if self.token().kind == TokenKind::End {
                            return self.fail(at, "the parenthesis is never closed");
                        } else {
                            self.next();
                        }
                    }
                }
                self.expect(")", "after the arguments")?;
                let special = parts
                    .iter()
                    .any(|part| matches!(part, Part::Type(t) if t.special || has_parts(&t.parts)));
                let mut expr = self.leaf(ExprKind::Other(parts), ty, start);
                expr.special = special;
                Ok(expr)
            }
            "_Generic" => {
                self.next();
                self.expect("(", "after '_Generic'")?;
                let mut parts = vec![Part::Expr(self.assignment()?)];
                while self.accept(",") {
                    if !self.accept("default") {
                        parts.push(Part::Type(self.type_name()?));
                    }
                    self.expect(":", "after the type")?;
                    parts.push(Part::Expr(self.assignment()?));
                }
                self.expect(")", "after the associations")?;
                let special = parts.iter().any(|part| match part {
                    Part::Expr(expr) => expr.special,
                    Part::Type(name) => name.special,
                });
                let mut expr = self.leaf(ExprKind::Other(parts), Type::unknown(), start);
                expr.special = special;
                Ok(expr)
            }
            _ if self.is_name() => self.name(start),
            word => {
                let text = format!("expected an expression before '{word}'");
                self.fail(at, text)
            }
        }
    }

    /// In `offsetof (T, field)`, a field may have the name of a type.
    fn is_name_of_field(&self) -> bool {
        self.is_name() && matches!(&*self.ahead(1).text, ")" | "." | "[") && {
            let before = &self.tokens[..self.at];
            before
                .iter()
                .rev()
                .take(64)
                .any(|t| &*t.text == "__builtin_offsetof")
        }
    }

    fn name(&mut self, start: usize) -> Parse<Expr> {
        let token = self.next();
        let name = token.text.clone();
        let at = token.at;
        if &*name == "__splitc_place__" {
            let mut expr = self.leaf(
                ExprKind::Name(name, NameRole::CallPlace),
                Type::unknown(),
                start,
            );
            expr.special = true;
            return Ok(expr);
        }
        let is_call = self.is("(");
        let found = self
            .scopes
            .find(&name)
            .filter(|symbol| !symbol.is_typedef)
            .cloned();
        if found.is_none()
            && is_call
            && let Some(builtin) = builtin(&name)
        {
            let kind = ExprKind::Name(name, NameRole::Builtin(builtin));
            let mut expr = self.leaf(kind, Type::unknown(), start);
            expr.special = true;
            return Ok(expr);
        }
        let symbol = match found {
            Some(symbol) => symbol,
            None if name.starts_with("__builtin_")
                || name.starts_with("__sync_")
                || name.starts_with("__atomic_") =>
            {
                return Ok(self.leaf(
                    ExprKind::Name(name, NameRole::Foreign),
                    Type::unknown(),
                    start,
                ));
            }
            None if is_call => {
                // An implicit declaration: a function with any parameters that returns int. On
                // machines whose pointers were as long as int, programs got away with it for
                // functions of the C library that return others.
                let result = match IMPLICIT.iter().find(|(known, _)| *known == &*name) {
                    Some((_, text)) => {
                        self.implicit.push(format!("extern {text}{name}();\n"));
                        match *text {
                            "double " => Type::double(),
                            "long " => Type::integer(Rank::Long, false),
                            _ => Type::pointer(Type::integer(Rank::Char, false), Reach::Local),
                        }
                    }
                    None => Type::int(),
                };
                let ty = Type::new(Kind::Function(result, None, true));
                let symbol = crate::scope::Symbol {
                    ty,
                    is_typedef: false,
                    role: NameRole::Object(name.clone()),
                    is_enumerator: false,
                    is_foreign: false,
                };
                self.scopes.declare_in_file(name.clone(), symbol.clone());
                symbol
            }
            None => {
                let hint = match &*name {
                    "MYPROC" | "PROCS" | "PROCSLOG" => "; include <split-c/split-c.h>",
                    _ => " (first use in this function)",
                };
                return self.fail(at, format!("'{name}' undeclared{hint}"));
            }
        };
        let is_function = symbol.ty.is_function();
        let mut role = symbol.role.clone();
        if is_function
            && !self.defined.contains(&name)
            && matches!(role, NameRole::Object(_))
            && let Some((_, shared)) = ALLOCATION.iter().find(|(known, _)| *known == &*name)
        {
            role = NameRole::Object(Rc::from(*shared));
        }
        if let (NameRole::Library(..), false) = (&role, is_call) {
            let text = format!(
                "'{name}' is an operation of Split-C; call it, or call it in a function of your own and pass that"
            );
            return self.fail(at, text);
        }
        let special = match &role {
            NameRole::Object(text) => **text != *name,
            NameRole::Foreign => false,
            _ => true,
        };
        let place = if is_function || symbol.is_enumerator {
            Place::None
        } else if matches!(symbol.ty.kind, Kind::SpreadArray(..)) {
            Place::Global
        } else {
            Place::Local
        };
        let mut expr = self.leaf(ExprKind::Name(name, role), symbol.ty, start);
        expr.place = place;
        expr.special = special || place == Place::Global;
        Ok(expr)
    }
}

fn is_zero(text: &str) -> bool {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let digits = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
        .unwrap_or(digits);
    !digits.is_empty() && digits.bytes().all(|digit| digit == b'0')
}

fn number_type(text: &str) -> Ty {
    let lower = text.to_ascii_lowercase();
    let is_hexadecimal = lower.starts_with("0x");
    let is_floating = if is_hexadecimal {
        lower.contains(['p', '.'])
    } else {
        lower.contains(['.', 'e'])
    };
    if is_floating {
        return match lower.as_bytes().last() {
            Some(b'f') if !is_hexadecimal || lower.contains('p') => {
                Type::new(Kind::Floating("float", 1))
            }
            Some(b'l') => Type::new(Kind::Floating("long double", 3)),
            Some(b'i' | b'j') => Type::unknown(),
            _ => Type::double(),
        };
    }
    let digits = lower.trim_end_matches(['u', 'l']);
    let suffix = &lower[digits.len()..];
    let mut unsigned = suffix.contains('u');
    let radix_value = if is_hexadecimal {
        u128::from_str_radix(&digits[2..], 16)
    } else if let Some(binary) = digits.strip_prefix("0b") {
        u128::from_str_radix(binary, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        u128::from_str_radix(&digits[1..], 8)
    } else {
        digits.parse()
    };
    let value = radix_value.unwrap_or(0);
    let mut rank = match suffix.matches('l').count() {
        0 => Rank::Int,
        1 => Rank::Long,
        _ => Rank::LongLong,
    };
    let is_decimal = !digits.starts_with('0');
    if rank == Rank::Int && value > u128::from(i32::MAX as u32) {
        if !is_decimal && value <= u128::from(u32::MAX) {
            unsigned = true
        } else if !(unsigned && value <= u128::from(u32::MAX)) {
            rank = Rank::Long
        }
    }
    if rank == Rank::Long && value > i64::MAX as u128 {
        unsigned = true;
    }
    Type::integer(rank, unsigned)
}
