//! Expressions. Each node gets its type when it is made (`check`).

use super::tree::{Expr, ExprKind, Place};
use super::{Parse, Parser};
use crate::lex::TokenKind;
use crate::types::{Kind, Rank, Ty, Type};

const ASSIGNMENTS: [(&str, &str); 11] = [
    ("=", ""),
    ("+=", "+"),
    ("-=", "-"),
    ("*=", "*"),
    ("/=", "/"),
    ("%=", "%"),
    ("&=", "&"),
    ("|=", "|"),
    ("^=", "^"),
    ("<<=", "<<"),
    (">>=", ">>"),
];

/// Binary operators with their precedence.
const BINARY: [(&str, u8); 18] = [
    ("||", 1),
    ("&&", 2),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("==", 6),
    ("!=", 6),
    ("<", 7),
    (">", 7),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

impl Parser<'_> {
    /// `a, b`.
    pub(crate) fn expression(&mut self) -> Parse<Expr> {
        let mut left = self.assignment()?;
        while self.accept(",") {
            let right = self.assignment()?;
            left = self.comma(left, right)?;
        }
        Ok(left)
    }

    /// Whether `:=` or `:-` stands `count` tokens ahead, and not a colon of C.
    pub(crate) fn is_split_phase_ahead(&self, count: usize) -> bool {
        let second = self.ahead(count + 1);
        self.is_ahead(count, ":")
            && second.kind == TokenKind::Mark
            && second.touches
            && matches!(&*second.text, "=" | "-")
    }

    pub(crate) fn assignment(&mut self) -> Parse<Expr> {
        self.enter()?;
        let left = self.conditional()?;
        let result =
            if let Some((mark, operator)) = ASSIGNMENTS.iter().find(|(mark, _)| self.is(mark)) {
                let at = self.here();
                let _ = mark;
                self.next();
                let right = self.assignment()?;
                self.assign(operator, left, right, at)?
            } else if self.open_conditions == 0 && self.is_split_phase_ahead(0) {
                let at = self.here();
                self.next();
                let is_store = self.is("-");
                self.next();
                let right = self.assignment()?;
                if is_store {
                    self.store(left, right, at)?
                } else {
                    self.split_assign(left, right, at)?
                }
            } else {
                left
            };
        self.leave();
        Ok(result)
    }

    pub(crate) fn conditional(&mut self) -> Parse<Expr> {
        let condition = self.binary(1)?;
        if !self.is("?") {
            return Ok(condition);
        }
        self.enter()?;
        self.next();
        let then = if self.is(":") {
            None
        } else {
            self.open_conditions += 1;
            let then = self.expression()?;
            self.open_conditions -= 1;
            Some(then)
        };
        self.expect(":", "in '? :'")?;
        let otherwise = self.conditional()?;
        self.leave();
        self.choose(condition, then, otherwise)
    }

    fn binary(&mut self, least: u8) -> Parse<Expr> {
        let mut left = self.cast()?;
        loop {
            let token = self.token();
            if token.kind != TokenKind::Mark {
                return Ok(left);
            }
            let Some(&(operator, precedence)) =
                BINARY.iter().find(|(mark, _)| *mark == &*token.text)
            else {
                return Ok(left);
            };
            if precedence < least {
                return Ok(left);
            }
            let at = self.here();
            self.next();
            let right = self.binary(precedence + 1)?;
            left = self.operate(operator, left, right, at)?;
        }
    }

    fn cast(&mut self) -> Parse<Expr> {
        if !(self.is("(") && self.is_type_start(1)) {
            return self.unary();
        }
        self.enter()?;
        let start = self.at;
        self.next();
        let name = self.type_name()?;
        self.expect(")", "after the type")?;
        let result = if self.is("{") {
            let ty = name.ty.clone();
            let initializer = self.initializer(&ty)?;
            let special = name.special || super::super::check::initializer_is_special(&initializer);
            let depth = super::super::check::initializer_depth(&initializer) + 1;
            let span = self.span_from(start);
            let kind = ExprKind::Compound(name, Box::new(initializer));
            let expr = Expr {
                kind,
                ty,
                place: Place::Local,
                span,
                special,
                depth,
            };
            self.postfix(expr)?
        } else {
            let operand = self.cast()?;
            self.cast_to(name, operand, start)?
        };
        self.leave();
        Ok(result)
    }

    fn unary(&mut self) -> Parse<Expr> {
        let start = self.at;
        let token = self.token();
        let at = token.at;
        match (token.kind, &*token.text) {
            (TokenKind::Mark, mark @ ("++" | "--")) => {
                let up = mark == "++";
                self.next();
                self.enter()?;
                let operand = self.unary()?;
                self.leave();
                self.step(operand, up, false, start, at)
            }
            (TokenKind::Mark, mark @ ("&" | "*" | "+" | "-" | "~" | "!")) => {
                let operator = ["&", "*", "+", "-", "~", "!"]
                    .into_iter()
                    .find(|m| *m == mark)
                    .unwrap_or("+");
                self.next();
                self.enter()?;
                let operand = self.cast()?;
                self.leave();
                match operator {
                    "&" => self.address(operand, start, at),
                    "*" => self.dereference(operand, start, at),
                    _ => self.unary_operator(operator, operand, start),
                }
            }
            (TokenKind::Mark, "&&") => {
                self.next();
                self.next();
                Ok(self.leaf(
                    ExprKind::Other(Vec::new()),
                    Type::pointer(Type::new(Kind::Void), crate::types::Reach::Local),
                    start,
                ))
            }
            (TokenKind::Word, word @ ("sizeof" | "_Alignof" | "__alignof__" | "__alignof")) => {
                let word = if word == "sizeof" {
                    "sizeof"
                } else {
                    "__alignof__"
                };
                self.next();
                self.enter()?;
                let result = if self.is("(") && self.is_type_start(1) {
                    self.next();
                    let name = self.type_name()?;
                    self.expect(")", "after the type")?;
                    if self.is("{") {
                        let ty = name.ty.clone();
                        self.unevaluated += 1;
                        let initializer = self.initializer(&ty);
                        self.unevaluated -= 1;
                        initializer?;
                    }
                    let special =
                        name.special || name.ty.is_global_pointer() || has_parts(&name.parts);
                    let kind = ExprKind::SizeOfType(word, name);
                    let mut expr = self.leaf(kind, Type::integer(Rank::Long, true), start);
                    expr.special = special;
                    expr
                } else {
                    self.unevaluated += 1;
                    let operand = self.unary();
                    self.unevaluated -= 1;
                    let operand = operand?;
                    let (special, depth) = (operand.special, operand.depth + 1);
                    let kind = ExprKind::SizeOf(word, Box::new(operand));
                    let mut expr = self.leaf(kind, Type::integer(Rank::Long, true), start);
                    expr.special = special;
                    expr.depth = depth;
                    expr
                };
                self.leave();
                Ok(result)
            }
            (TokenKind::Word, "__extension__") => {
                self.next();
                self.enter()?;
                let operand = self.cast()?;
                self.leave();
                self.unary_operator("__extension__", operand, start)
            }
            (TokenKind::Word, "__real__" | "__imag__" | "__real" | "__imag") => {
                self.next();
                self.enter()?;
                let operand = self.cast()?;
                self.leave();
                let mut expr = self.unary_operator("__real__", operand, start)?;
                expr.ty = Type::unknown();
                Ok(expr)
            }
            _ => {
                let primary = self.primary()?;
                self.postfix(primary)
            }
        }
    }

    fn postfix(&mut self, mut expr: Expr) -> Parse<Expr> {
        let start = expr.span.start;
        loop {
            let token = self.token();
            if token.kind != TokenKind::Mark {
                return Ok(expr);
            }
            let at = token.at;
            match &*token.text {
                "[" => {
                    self.next();
                    self.enter()?;
                    let conditions = std::mem::take(&mut self.open_conditions);
                    let index = self.expression()?;
                    self.open_conditions = conditions;
                    self.leave();
                    self.expect("]", "after the index")?;
                    expr = self.index(expr, index, start, at)?;
                }
                "(" => {
                    self.next();
                    self.enter()?;
                    let conditions = std::mem::take(&mut self.open_conditions);
                    let mut arguments = Vec::new();
                    while !self.is(")") {
                        arguments.push(self.assignment()?);
                        if !self.accept(",") {
                            break;
                        }
                    }
                    self.open_conditions = conditions;
                    self.leave();
                    self.expect(")", "after the arguments")?;
                    expr = self.call(expr, arguments, start, at)?;
                }
                mark @ ("." | "->") => {
                    let arrow = mark == "->";
                    self.next();
                    if self.token().kind != TokenKind::Word {
                        let found = self.token().text.clone();
                        let at = self.here();
                        return self
                            .fail(at, format!("expected the name of a field before '{found}'"));
                    }
                    let field_at = self.here();
                    let field = self.next().text.clone();
                    expr = self.member_of(expr, field, arrow, start, field_at)?;
                }
                mark @ ("++" | "--") => {
                    let up = mark == "++";
                    self.next();
                    expr = self.step(expr, up, true, start, at)?;
                }
                _ => return Ok(expr),
            }
        }
    }

    /// A node without parts.
    pub(crate) fn leaf(&self, kind: ExprKind, ty: Ty, start: usize) -> Expr {
        Expr {
            kind,
            ty,
            place: Place::None,
            span: self.span_from(start),
            special: false,
            depth: 1,
        }
    }
}

/// Whether a part of a type name must be written anew.
pub(super) fn has_parts(parts: &[super::tree::DeclPart]) -> bool {
    parts.iter().any(|part| match part {
        super::tree::DeclPart::Expr(expr) => expr.special,
        super::tree::DeclPart::Declaration(declaration) => declaration.special,
        super::tree::DeclPart::TagName(..) => false,
    })
}
