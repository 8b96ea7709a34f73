//! Statements.

use super::declarations::Read;
use super::tree::{Context, Expr, Span, Stmt, StmtKind};
use super::{Broken, Parse, Parser};
use crate::lex::TokenKind;
use crate::types::Type;

impl Parser<'_> {
    /// What stands between braces. After an error it goes on behind the statement.
    pub(crate) fn block_items(&mut self) -> Parse<Vec<Stmt>> {
        let mut statements = Vec::new();
        while !self.is("}") {
            if self.token().kind == TokenKind::End {
                let at = self.here();
                return self.fail(at, "the file ends within a block; a '}' is missing");
            }
            let start = self.at;
            let depth = self.scopes.depth();
            let nesting = self.nesting;
            match self.statement() {
                Ok(statement) => statements.push(statement),
                Err(Broken) => {
                    if self.diagnostics.is_full() {
                        return Err(Broken);
                    }
                    self.scopes.close_to(depth);
                    self.nesting = nesting;
                    self.open_conditions = 0;
                    self.unevaluated = 0;
                    self.in_static_initializer = false;
                    self.skip_statement(start);
                }
            }
        }
        Ok(statements)
    }

    /// After an error: to behind the next `;`, or to the brace that closes the block, whichever
    /// comes first.
    fn skip_statement(&mut self, start: usize) {
        let mut depth = 0i32;
        for token in &self.tokens[start..self.at] {
            if token.kind == TokenKind::Mark {
                match &*token.text {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    _ => {}
                }
            }
        }
        loop {
            let token = self.token();
            match (token.kind, &*token.text) {
                (TokenKind::End, _) => return,
                (TokenKind::Mark, "{") => depth += 1,
                (TokenKind::Mark, "}") if depth <= 0 => return,
                (TokenKind::Mark, "}") => {
                    depth -= 1;
                    if depth == 0 {
                        self.next();
                        return;
                    }
                }
                (TokenKind::Mark, ";") if depth <= 0 => {
                    self.next();
                    return;
                }
                _ => {}
            }
            self.next();
        }
    }

    /// One statement or declaration.
    pub(crate) fn statement(&mut self) -> Parse<Stmt> {
        self.enter()?;
        let start = self.at;
        let kind = self.statement_kind(start)?;
        self.leave();
        Ok(Stmt {
            kind,
            span: self.span_from(start),
        })
    }

    fn boxed(&mut self) -> Parse<Box<Stmt>> {
        Ok(Box::new(self.statement()?))
    }

    fn condition(&mut self, word: &str) -> Parse<Expr> {
        self.expect("(", &format!("after '{word}'"))?;
        let expr = self.expression()?;
        self.expect(")", "after the condition")?;
        Ok(expr)
    }

    fn statement_kind(&mut self, start: usize) -> Parse<StmtKind> {
        let token = self.token();
        if token.kind == TokenKind::Mark {
            match &*token.text {
                "{" => {
                    self.next();
                    self.scopes.open();
                    let statements = self.block_items()?;
                    self.scopes.close();
                    self.expect("}", "at the end of the block")?;
                    return Ok(StmtKind::Block(statements));
                }
                ";" => {
                    self.next();
                    return Ok(StmtKind::Empty);
                }
                _ => return self.expression_statement(),
            }
        }
        if token.kind != TokenKind::Word {
            return self.expression_statement();
        }
        if self.is_name()
            && self.is_ahead(1, ":")
            && (!self.is_split_phase_ahead(1) || self.scopes.find(&token.text).is_none())
        {
            self.next();
            self.next();
            while self.is_any(&["__attribute__", "__attribute"]) {
                self.next();
                self.skip_balanced()?;
            }
            return self.labelled(Vec::new());
        }
        match &*token.text {
            "if" => {
                self.next();
                let condition = self.condition("if")?;
                let then = self.boxed()?;
                let otherwise = if self.accept("else") {
                    Some(self.boxed()?)
                } else {
                    None
                };
                Ok(StmtKind::If(condition, then, otherwise))
            }
            "while" => {
                self.next();
                let condition = self.condition("while")?;
                Ok(StmtKind::While(condition, self.boxed()?))
            }
            "do" => {
                self.next();
                let body = self.boxed()?;
                self.expect("while", "after the body of 'do'")?;
                let condition = self.condition("while")?;
                self.expect(";", "after 'do ... while (...)'")?;
                Ok(StmtKind::Do(body, condition))
            }
            "for" => self.for_statement(),
            "switch" => {
                self.next();
                let value = self.condition("switch")?;
                Ok(StmtKind::Switch(value, self.boxed()?))
            }
            "case" => {
                self.next();
                let mut values = vec![self.conditional()?];
                if self.accept("...") {
                    values.push(self.conditional()?);
                }
                self.expect(":", "after 'case'")?;
                self.labelled(values)
            }
            "default" => {
                self.next();
                self.expect(":", "after 'default'")?;
                self.labelled(Vec::new())
            }
            "return" => {
                let at = self.here();
                self.next();
                if self.accept(";") {
                    return Ok(StmtKind::Return(None));
                }
                let expr = self.expression()?;
                self.expect(";", "after 'return'")?;
                let result = self.function.as_mut().map(|function| {
                    function.returns_value = true;
                    function.result.clone()
                });
                let Some(result) = result else {
                    return self.fail(at, "'return' outside of a function");
                };
                Ok(StmtKind::Return(Some(
                    self.convert(expr, &result, "return"),
                )))
            }
            "break" | "continue" => {
                self.next();
                self.expect(";", "after 'break' or 'continue'")?;
                Ok(StmtKind::Jump(None))
            }
            "goto" => {
                self.next();
                let target = if self.accept("*") {
                    Some(self.expression()?)
                } else if self.is_name() {
                    self.next();
                    None
                } else {
                    let found = self.token().text.clone();
                    let at = self.here();
                    return self.fail(at, format!("expected a label before '{found}'"));
                };
                self.expect(";", "after 'goto'")?;
                Ok(StmtKind::Jump(target))
            }
            "else" => {
                let at = self.here();
                self.fail(at, "'else' without an 'if' before it")
            }
            "asm" | "__asm__" | "__asm" => self.assembly(),
            "__label__" => {
                while !self.is(";") && self.token().kind != TokenKind::End {
                    self.next();
                }
                self.expect(";", "after '__label__'")?;
                Ok(StmtKind::Empty)
            }
            _ if self.is_block_declaration() => {
                let read = self.declaration(Context::Block)?;
                let _ = start;
                Ok(match read {
                    Read::Declaration(declaration) => StmtKind::Declaration(declaration),
                    Read::Function(function) => StmtKind::Function(function),
                })
            }
            _ => self.expression_statement(),
        }
    }

    /// In a block, a name of a type begins a declaration unless it is used as something else.
    fn is_block_declaration(&self) -> bool {
        if !self.is_declaration_start(0) {
            return false;
        }
        if &*self.token().text == "__extension__" {
            return self.is_declaration_start(1);
        }
        true
    }

    fn labelled(&mut self, values: Vec<Expr>) -> Parse<StmtKind> {
        // A label at the end of a block labels nothing.
        if self.is("}") {
            let span = Span {
                start: self.at,
                end: self.at,
            };
            return Ok(StmtKind::Labelled(
                values,
                Box::new(Stmt {
                    kind: StmtKind::Empty,
                    span,
                }),
            ));
        }
        Ok(StmtKind::Labelled(values, self.boxed()?))
    }

    fn for_statement(&mut self) -> Parse<StmtKind> {
        self.next();
        self.expect("(", "after 'for'")?;
        self.scopes.open();
        let first_start = self.at;
        let first = if self.accept(";") {
            None
        } else if self.is_block_declaration() {
            match self.declaration(Context::Block)? {
                Read::Declaration(declaration) => {
                    let span = declaration.span;
                    Some(Box::new(Stmt {
                        kind: StmtKind::Declaration(declaration),
                        span,
                    }))
                }
                Read::Function(_) => {
                    let at = self.tokens[first_start].at;
                    return self.fail(at, "a function cannot be defined in the head of a 'for'");
                }
            }
        } else {
            let expr = self.expression()?;
            self.expect(";", "after the first part of 'for'")?;
            Some(Box::new(Stmt {
                kind: StmtKind::Expr(expr),
                span: self.span_from(first_start),
            }))
        };
        let condition = if self.is(";") {
            None
        } else {
            Some(self.expression()?)
        };
        self.expect(";", "after the condition of 'for'")?;
        let step = if self.is(")") {
            None
        } else {
            Some(self.expression()?)
        };
        self.expect(")", "after the head of 'for'")?;
        let body = self.boxed()?;
        self.scopes.close();
        Ok(StmtKind::For(first, condition, step, body))
    }

    fn expression_statement(&mut self) -> Parse<StmtKind> {
        let expr = self.expression()?;
        self.expect(";", "after the expression")?;
        self.note_statement(&expr);
        Ok(StmtKind::Expr(expr))
    }

    /// `asm`: its operands are expressions, everything else is copied.
    fn assembly(&mut self) -> Parse<StmtKind> {
        self.next();
        while self.is_any(&["volatile", "__volatile__", "__volatile", "goto", "inline"]) {
            self.next();
        }
        self.expect("(", "after 'asm'")?;
        let mut operands = Vec::new();
        while !self.is(")") {
            if self.token().kind == TokenKind::End {
                let at = self.here();
                return self.fail(at, "the file ends within 'asm'");
            }
            if self.accept("(") {
                let mut operand = self.expression()?;
                operand.ty = if operand.special {
                    operand.ty
                } else {
                    Type::unknown()
                };
                operands.push(operand);
                self.expect(")", "after the operand")?;
            } else {
                self.next();
            }
        }
        self.expect(")", "after 'asm'")?;
        self.expect(";", "after 'asm'")?;
        Ok(StmtKind::Assembly(operands))
    }
}
