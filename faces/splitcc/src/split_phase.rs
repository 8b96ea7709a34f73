//! Which blocking accesses may be under way at the same time (Split-C 2.2, 3).
//!
//! Three forms are taken; everything else stays as it is written.
//!
//! * **Reads of one assignment.** C leaves the order of operands open, so all reads of a statement
//!   `x = *p + q->f;` may be begun before the first is needed. Not those behind `?`, `&&` and `||`,
//!   nor any in a statement with a call or another side effect. A read whose address needs another
//!   read waits for that one.
//! * **A loop that reads into an array**: `for (...) a[i] = p[i];`. The array is a variable of the
//!   function that nothing else can point to, so nobody sees its elements before the end of the
//!   loop; the head of the loop and the address use neither the array nor a global place.
//! * **A loop that writes through one global pointer**: `for (...) p[i] = a[i];`. All elements are
//!   on one processor, and the values are from this one.
//!
//! Each form ends with one wait for all of it, before the next statement. Accesses of volatile
//! objects and functions that ask for atomic procedures without waiting are left alone.

use crate::check::{bare, is_bit_field, value_type};
use crate::syntax::tree::{
    DeclPart, Declaration, Expr, ExprKind, Initializer, NameRole, Part, Place, Stmt, StmtKind,
};
use crate::types::{Kind, Reach, Ty};
use std::collections::HashMap;
use std::rc::Rc;

/// The most reads of one statement that are begun together.
pub const READS_MAX: usize = 32;

/// What is known of the variables of a function.
#[derive(Debug, Default)]
pub struct Variables {
    /// Arrays that are declared once, in a block, and not static.
    arrays: HashMap<Rc<str>, u32>,
    /// Names that something may point to.
    escaped: HashMap<Rc<str>, ()>,
}

impl Variables {
    /// Looks through the body of a function.
    pub fn of(body: &Stmt) -> Self {
        let mut variables = Self::default();
        variables.statement(body);
        variables
    }

    /// Whether `name` is an array of the function that nothing can point to.
    fn is_private_array(&self, name: &str) -> bool {
        self.arrays.get(name) == Some(&1) && !self.escaped.contains_key(name)
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Declaration(declaration) => self.declaration(declaration),
            StmtKind::Function(function) => {
                // What a function inside this one does with its variables is not followed.
                self.statement(&function.body);
                let names: Vec<_> = self.arrays.keys().cloned().collect();
                self.escaped
                    .extend(names.into_iter().map(|name| (name, ())));
            }
            _ => each_part(statement, &mut |part| match part {
                StatementPart::Expr(expr) => self.expression(expr),
                StatementPart::Stmt(inner) => self.statement(inner),
            }),
        }
    }

    fn declaration(&mut self, declaration: &Declaration) {
        for declarator in &declaration.declarators {
            if let (Some((name, _)), Kind::Array(..)) = (&declarator.name, &declarator.ty.kind) {
                let is_plain = !declaration.storage.is_static && !declaration.storage.is_extern;
                *self.arrays.entry(name.clone()).or_default() += if is_plain { 1 } else { 2 };
            } else if let Some((name, _)) = &declarator.name {
                *self.arrays.entry(name.clone()).or_default() += 2;
            }
            for part in &declarator.parts {
                if let DeclPart::Expr(expr) = part {
                    self.expression(expr);
                }
            }
            if let Some(initializer) = &declarator.initializer {
                self.initializer(initializer);
            }
        }
    }

    fn initializer(&mut self, initializer: &Initializer) {
        match initializer {
            Initializer::Expr(expr) => self.expression(expr),
            Initializer::List(_, items) => items.iter().for_each(|item| self.initializer(item)),
        }
    }

    fn expression(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(name, _) => {
                self.escaped.insert(name.clone(), ());
            }
            ExprKind::Index(base, index, _) => {
                // `a[i]` uses the array without telling its address, unless the element is an array
                // itself.
                let is_element = !matches!(expr.ty.kind, Kind::Array(..));
                if !(is_element && matches!(bare(base).kind, ExprKind::Name(..))) {
                    self.expression(base);
                }
                self.expression(index);
            }
            ExprKind::Address(operand) => self.address(operand),
            ExprKind::Statement(block) => self.statement(block),
            _ => each_operand(expr, &mut |operand| self.expression(operand)),
        }
    }

    /// `&operand`: whatever it lies in can be pointed to.
    fn address(&mut self, operand: &Expr) {
        match &operand.kind {
            ExprKind::Index(base, index, _) => {
                self.address(base);
                self.expression(index);
            }
            ExprKind::Member(base, ..) | ExprKind::Parentheses(base) => self.address(base),
            _ => self.expression(operand),
        }
    }
}

/// A part of a statement.
enum StatementPart<'e> {
    Expr(&'e Expr),
    Stmt(&'e Stmt),
}

fn each_part<'e>(statement: &'e Stmt, visit: &mut dyn FnMut(StatementPart<'e>)) {
    use StatementPart::{Expr, Stmt};
    match &statement.kind {
        StmtKind::Expr(expr) => visit(Expr(expr)),
        StmtKind::Block(statements) => statements.iter().for_each(|inner| visit(Stmt(inner))),
        StmtKind::If(condition, then, otherwise) => {
            visit(Expr(condition));
            visit(Stmt(then));
            otherwise.iter().for_each(|inner| visit(Stmt(inner)));
        }
        StmtKind::While(expr, body) | StmtKind::Switch(expr, body) | StmtKind::Do(body, expr) => {
            visit(Expr(expr));
            visit(Stmt(body));
        }
        StmtKind::For(first, condition, step, body) => {
            first.iter().for_each(|inner| visit(Stmt(inner)));
            condition
                .iter()
                .chain(step)
                .for_each(|expr| visit(Expr(expr)));
            visit(Stmt(body));
        }
        StmtKind::Return(value) | StmtKind::Jump(value) => {
            value.iter().for_each(|expr| visit(Expr(expr)))
        }
        StmtKind::Labelled(values, body) => {
            values.iter().for_each(|expr| visit(Expr(expr)));
            visit(Stmt(body));
        }
        StmtKind::Assembly(operands) => operands.iter().for_each(|expr| visit(Expr(expr))),
        StmtKind::Declaration(_) | StmtKind::Function(_) | StmtKind::Empty => {}
    }
}

fn each_operand<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match &expr.kind {
        ExprKind::Name(..) | ExprKind::Constant(_) | ExprKind::Text | ExprKind::SizeOfType(..) => {}
        ExprKind::Parentheses(a)
        | ExprKind::Dereference(a)
        | ExprKind::Address(a)
        | ExprKind::Unary(_, a)
        | ExprKind::Step(a, ..)
        | ExprKind::Convert(a)
        | ExprKind::SizeOf(_, a)
        | ExprKind::Cast(_, a)
        | ExprKind::Member(a, ..) => visit(a),
        ExprKind::Index(a, b, _)
        | ExprKind::Binary(_, a, b)
        | ExprKind::Assign(_, a, b)
        | ExprKind::SplitAssign(a, b)
        | ExprKind::Store(a, b)
        | ExprKind::Comma(a, b) => {
            visit(a);
            visit(b);
        }
        ExprKind::Conditional(a, b, c) => {
            visit(a);
            b.iter().for_each(|b| visit(b));
            visit(c);
        }
        ExprKind::Call(a, list) => {
            visit(a);
            list.iter().for_each(visit);
        }
        ExprKind::Compound(_, initializer) => each_initializer(initializer, visit),
        ExprKind::Statement(_) => {}
        ExprKind::Other(parts) => parts.iter().for_each(|part| {
            if let Part::Expr(expr) = part {
                visit(expr);
            }
        }),
    }
}

fn each_initializer<'e>(initializer: &'e Initializer, visit: &mut dyn FnMut(&'e Expr)) {
    match initializer {
        Initializer::Expr(expr) => visit(expr),
        Initializer::List(_, items) => items.iter().for_each(|item| each_initializer(item, visit)),
    }
}

/// Whether an access of this place is one whole object that may be begun early.
fn is_object(expr: &Expr) -> bool {
    let is_value = !matches!(
        expr.ty.kind,
        Kind::Array(..) | Kind::SpreadArray(..) | Kind::Void | Kind::Function(..) | Kind::Unknown
    );
    expr.place == Place::Global && is_value && !expr.ty.is_volatile && !is_bit_field(expr)
}

/// Whether evaluating the expression does nothing but give a value; `&&`, `||` and `?:` evaluate
/// parts only sometimes.
fn is_pure(expr: &Expr) -> bool {
    let mut pure = match &expr.kind {
        ExprKind::Name(_, role) => matches!(role, NameRole::Object(_)),
        ExprKind::Constant(_)
        | ExprKind::Text
        | ExprKind::Parentheses(_)
        | ExprKind::Index(..)
        | ExprKind::Member(..)
        | ExprKind::Dereference(_)
        | ExprKind::Address(_)
        | ExprKind::Convert(_)
        | ExprKind::Cast(..)
        | ExprKind::SizeOfType(..) => true,
        ExprKind::Unary(operator, _) => matches!(*operator, "-" | "+" | "~" | "!"),
        ExprKind::Binary(operator, ..) => !matches!(*operator, "&&" | "||"),
        ExprKind::SizeOf(..) => return true,
        _ => false,
    };
    if pure {
        each_operand(expr, &mut |operand| pure = pure && is_pure(operand));
    }
    pure
}

/// Whether a global place is read in the expression, taken as a value.
fn reads(expr: &Expr) -> bool {
    if expr.place == Place::Global
        && !matches!(expr.ty.kind, Kind::Array(..) | Kind::SpreadArray(..))
    {
        return true;
    }
    address_reads(expr)
}

/// Whether finding the place needs a read.
fn address_reads(expr: &Expr) -> bool {
    let mut found = false;
    match &expr.kind {
        ExprKind::SizeOf(..) => {}
        ExprKind::Parentheses(inner) if expr.place == Place::Global => found = address_reads(inner),
        ExprKind::Member(base, _, false, _) if expr.place == Place::Global => {
            found = address_reads(base)
        }
        ExprKind::Index(base, index, _) if base.place == Place::Global => {
            found = address_reads(base) || reads(index)
        }
        ExprKind::Address(inner) => found = address_reads(inner),
        _ => each_operand(expr, &mut |operand| found = found || reads(operand)),
    }
    found
}

/// Collects the reads of a pure expression that need no other read.
fn collect<'e>(expr: &'e Expr, list: &mut Vec<&'e Expr>) {
    if is_object(expr) && !address_reads(expr) {
        list.push(expr);
        return;
    }
    collect_address(expr, list);
}

fn collect_address<'e>(expr: &'e Expr, list: &mut Vec<&'e Expr>) {
    match &expr.kind {
        ExprKind::SizeOf(..) => {}
        ExprKind::Parentheses(inner) if expr.place == Place::Global => collect_address(inner, list),
        ExprKind::Member(base, _, false, _) if expr.place == Place::Global => {
            collect_address(base, list)
        }
        ExprKind::Index(base, index, _) if base.place == Place::Global => {
            collect_address(base, list);
            collect(index, list);
        }
        ExprKind::Address(inner) => collect_address(inner, list),
        _ => each_operand(expr, &mut |operand| collect(operand, list)),
    }
}

/// The reads of an assignment that may be begun together: two or more.
pub fn reads_together(expr: &Expr) -> Option<Vec<&Expr>> {
    let ExprKind::Assign(_, left, right) = &bare(expr).kind else {
        return None;
    };
    if !is_pure(left) || !is_pure(right) {
        return None;
    }
    let mut list = Vec::new();
    collect(right, &mut list);
    collect_address(left, &mut list);
    (2..=READS_MAX).contains(&list.len()).then_some(list)
}

/// A loop of accesses that may be under way together.
#[derive(Debug)]
pub enum Loop<'e> {
    /// Reads into elements of an array: the element, and the global place.
    Reads(&'e Expr, &'e Expr),
    /// Writes through one global pointer: the global place, and the value.
    Writes(&'e Expr, &'e Expr),
}

/// The only statement of a body.
fn only(statement: &Stmt) -> &Stmt {
    match &statement.kind {
        StmtKind::Block(statements) if statements.len() == 1 => only(&statements[0]),
        _ => statement,
    }
}

/// Whether the value of the expression may change: it names a variable.
pub fn has_variables(expr: &Expr) -> bool {
    let mut found = matches!(&expr.kind, ExprKind::Name(..) if expr.place != Place::None)
        || matches!(expr.kind, ExprKind::Call(..) | ExprKind::Statement(_));
    each_operand(expr, &mut |operand| found = found || has_variables(operand));
    found
}

/// Whether `name` occurs in the expression.
fn mentions(expr: &Expr, name: &str) -> bool {
    if let ExprKind::Name(found, _) = &expr.kind {
        return **found == *name;
    }
    let mut found = matches!(expr.kind, ExprKind::Statement(_));
    each_operand(expr, &mut |operand| {
        found = found || mentions(operand, name)
    });
    found
}

/// The condition and the step of a loop: no calls, no global places, and changes of variables only.
fn is_quiet(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Step(operand, ..) => matches!(bare(operand).kind, ExprKind::Name(..)),
        ExprKind::Assign(_, left, right) => {
            matches!(bare(left).kind, ExprKind::Name(..)) && is_pure(right) && !reads(right)
        }
        ExprKind::Comma(left, right) => is_quiet(left) && is_quiet(right),
        ExprKind::Parentheses(inner) => is_quiet(inner),
        ExprKind::Binary("&&" | "||", left, right) => is_quiet(left) && is_quiet(right),
        _ => is_pure(expr) && !reads(expr),
    }
}

/// Whether a `for` statement is a loop of such accesses.
pub fn loop_together<'e>(
    condition: Option<&'e Expr>,
    step: Option<&'e Expr>,
    body: &'e Stmt,
    variables: &Variables,
) -> Option<Loop<'e>> {
    let head: Vec<_> = condition.into_iter().chain(step).collect();
    if step.is_none() || !head.iter().all(|expr| is_quiet(expr)) {
        return None;
    }
    let StmtKind::Expr(expr) = &only(body).kind else {
        return None;
    };
    let ExprKind::Assign("", left, right) = &bare(expr).kind else {
        return None;
    };
    if !is_pure(left) || !is_pure(right) {
        return None;
    }
    let ExprKind::Index(base, index, false) = &bare(left).kind else {
        return None;
    };
    let ExprKind::Name(name, NameRole::Object(_)) = &bare(base).kind else {
        return None;
    };
    if reads(index) {
        return None;
    }
    match left.place {
        Place::Local => {
            let source = bare(right);
            let is_safe = variables.is_private_array(name)
                && is_object(source)
                && !address_reads(source)
                && same_bytes(&left.ty, &source.ty)
                && !mentions(source, name)
                && !mentions(index, name)
                && !head.iter().any(|expr| mentions(expr, name));
            is_safe.then_some(Loop::Reads(left, source))
        }
        Place::Global => {
            let through = value_type(base);
            let is_safe = matches!(through.kind, Kind::Pointer(_, Reach::Global))
                && is_object(left)
                && !reads(right)
                && !head.iter().any(|expr| mentions(expr, name));
            is_safe.then_some(Loop::Writes(left, right))
        }
        Place::None => None,
    }
}

/// Whether the bytes of one are a value of the other.
fn same_bytes(left: &Ty, right: &Ty) -> bool {
    !left.is_unknown()
        && !right.is_unknown()
        && !left.is_volatile
        && crate::types::same(left, right)
}

#[cfg(test)]
#[path = "split_phase_tests.rs"]
mod tests;
