//! Statements.

use super::{Child, Emitter};
use crate::syntax::tree::{Expr, Span, Stmt, StmtKind};

impl Emitter<'_> {
    /// Writes a statement.
    pub(crate) fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Expr(expr) => {
                self.token_line(statement.span.start);
                self.discarded(expr);
                self.copy(Span {
                    start: expr.span.end,
                    end: statement.span.end,
                });
            }
            StmtKind::Declaration(declaration) => self.declaration(declaration),
            StmtKind::Function(function) => self.function(function),
            StmtKind::Block(statements) => {
                let children = statements.iter().map(Child::Stmt).collect();
                self.generic(statement.span, children);
            }
            StmtKind::For(first, condition, step, body) => {
                let mut children: Vec<_> = Vec::new();
                children.extend(first.as_deref().map(Child::Stmt));
                children.extend(condition.as_ref().map(Child::Expr));
                children.push(Child::Stmt(body));
                match step {
                    Some(step) => {
                        // The step's value is not used.
                        let before = Span {
                            start: statement.span.start,
                            end: step.span.start,
                        };
                        self.generic(before, children);
                        self.discarded(step);
                        let after = Span {
                            start: step.span.end,
                            end: statement.span.end,
                        };
                        self.generic(after, vec![Child::Stmt(body)]);
                    }
                    None => self.generic(statement.span, children),
                }
            }
            _ => {
                let children = children_of(statement);
                self.generic(statement.span, children);
            }
        }
    }

    /// The body of a function, with text after its first and before its last brace.
    pub(crate) fn body(&mut self, body: &Stmt, first: &str, last: &str) {
        let StmtKind::Block(statements) = &body.kind else {
            return;
        };
        self.token(body.span.start);
        self.push_text(first);
        let inner = Span {
            start: body.span.start + 1,
            end: body.span.end.saturating_sub(1),
        };
        self.generic(inner, statements.iter().map(Child::Stmt).collect());
        self.push_text(last);
        self.copy(Span {
            start: body.span.end.saturating_sub(1),
            end: body.span.end,
        });
    }
}

/// The parts of a statement.
fn children_of(statement: &Stmt) -> Vec<Child<'_>> {
    match &statement.kind {
        StmtKind::If(condition, then, otherwise) => {
            let mut children = vec![Child::Expr(condition), Child::Stmt(then)];
            children.extend(otherwise.as_deref().map(Child::Stmt));
            children
        }
        StmtKind::While(condition, body)
        | StmtKind::Switch(condition, body)
        | StmtKind::Do(body, condition) => {
            vec![Child::Expr(condition), Child::Stmt(body)]
        }
        StmtKind::Return(value) | StmtKind::Jump(value) => {
            value.as_ref().map(Child::Expr).into_iter().collect()
        }
        StmtKind::Labelled(values, body) => {
            let mut children: Vec<_> = values
                .iter()
                .map(|value: &Expr| Child::Expr(value))
                .collect();
            children.push(Child::Stmt(body));
            children
        }
        StmtKind::Assembly(operands) => operands.iter().map(Child::Expr).collect(),
        _ => Vec::new(),
    }
}
