//! Statements.

use super::expressions::temporary;
use super::{Child, Emitter};
use crate::split_phase::{self, Loop};
use crate::syntax::tree::{Expr, Span, Stmt, StmtKind};
use std::fmt::Write as _;

impl Emitter<'_> {
    /// Writes a statement.
    pub(crate) fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Expr(expr) => {
                self.token_line(statement.span.start);
                if self.may_split() && expr.special && self.reads_together(expr) {
                    return;
                }
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
                if self.may_split() && self.loop_together(statement) {
                    return;
                }
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

    /// Whether accesses of this function may be under way together.
    fn may_split(&self) -> bool {
        self.split_phase && !self.reads_after_atomic
    }

    /// An assignment whose reads are begun together. Says whether it is one.
    fn reads_together(&mut self, expr: &Expr) -> bool {
        let Some(reads) = split_phase::reads_together(expr) else {
            return false;
        };
        let number = self.number();
        let mut text = format!(" {{ int splitc_open_{number} = 0;");
        let mut names = Vec::new();
        for (index, read) in reads.iter().enumerate() {
            let name = format!("splitc_early_{number}_{index}");
            let declared = self.declared(&temporary(&read.ty), name.clone());
            let address = self.access_text(read);
            let place = self.place(read.span.start);
            let _ = write!(
                text,
                " {declared}; splitc_open_{number} |= splitc_begin_read((void *)&{name}, {address}, sizeof {name}, {place});"
            );
            names.push((std::ptr::from_ref(*read), name));
        }
        let place = self.place(expr.span.start);
        let _ = write!(text, " if (splitc_open_{number}) splitc_sync({place});");
        self.push_text(&text);
        self.begun.extend(names.iter().cloned());
        self.flat(|e| e.discarded(expr));
        for (read, _) in &names {
            self.begun.remove(read);
        }
        self.push_text("; }");
        true
    }

    /// A loop of accesses that are under way together. Says whether it is one.
    fn loop_together(&mut self, statement: &Stmt) -> bool {
        let StmtKind::For(first, condition, step, body) = &statement.kind else {
            return false;
        };
        let found =
            split_phase::loop_together(condition.as_ref(), step.as_ref(), body, &self.variables);
        let (Some(found), Some(step)) = (found, step) else {
            return false;
        };
        let number = self.number();
        self.token_line(statement.span.start);
        self.push_text(&format!(" {{ int splitc_open_{number} = 0;"));
        let mut children: Vec<_> = first.as_deref().map(Child::Stmt).into_iter().collect();
        children.extend(condition.as_ref().map(Child::Expr));
        self.generic(
            Span {
                start: statement.span.start,
                end: step.span.start,
            },
            children,
        );
        self.discarded(step);
        self.copy(Span {
            start: step.span.end,
            end: body.span.start,
        });
        self.token_line(body.span.start);
        let access = match found {
            Loop::Reads(element, source) => {
                let target = self.text_of(|e| e.value(element));
                let address = self.access_text(source);
                let place = self.place(source.span.start);
                format!(
                    "splitc_begin_read((void *)&({target}), {address}, sizeof({target}), {place});"
                )
            }
            Loop::Writes(target, value) => {
                let value = self.text_of(|e| e.value(value));
                let declared = self.declared(&temporary(&target.ty), "splitc_v".into());
                let address = self.access_text(target);
                let place = self.place(target.span.start);
                format!(
                    "({{ {declared} = {value}; splitc_begin_write({address}, (void *)&splitc_v, sizeof splitc_v, {place}); }});"
                )
            }
        };
        let place = self.place(statement.span.start);
        self.push_text(&format!(
            " splitc_open_{number} |= {access} if (splitc_open_{number}) splitc_sync({place}); }}"
        ));
        true
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
