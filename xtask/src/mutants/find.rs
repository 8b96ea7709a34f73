//! Finds the places of a source file where a mutant can be, and says how each is written behind its
//! switch.
//!
//! A mutant is one small change of an expression, a statement that is left out, or a function that
//! returns at once. What the compiler evaluates itself (constants, patterns, types) has none, for
//! no switch can be read there. Macros have none, nor has code of tests, nor what only formats
//! text.

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ReturnType, Stmt, Type, UnOp};

/// A part of the text in place of a mutant's range.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Piece {
    Text(String),
    /// Text of the file, with the mutants that are within.
    Source(Range<usize>),
    /// Asks whether this mutant is on.
    Switch,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Mutant {
    pub(super) file: String,
    pub(super) function: String,
    pub(super) line: usize,
    /// What is changed, in one line.
    pub(super) change: String,
    /// Where it applies. Empty, if text is only added.
    pub(super) range: Range<usize>,
    pub(super) pieces: Vec<Piece>,
}

/// All mutants of a file. The error is one of syntax.
pub(super) fn find(file: &str, text: &str) -> syn::Result<Vec<Mutant>> {
    let parsed = syn::parse_file(text)?;
    let mut finder = Finder {
        file,
        text,
        functions: Vec::new(),
        mutants: Vec::new(),
    };
    finder.visit_file(&parsed);
    Ok(finder.mutants)
}

struct Finder<'a> {
    file: &'a str,
    text: &'a str,
    /// In which functions this is.
    functions: Vec<String>,
    mutants: Vec<Mutant>,
}

impl Finder<'_> {
    fn add(&mut self, span: Span, range: Range<usize>, change: String, pieces: Vec<Piece>) {
        let change = change.split_whitespace().collect::<Vec<_>>().join(" ");
        self.mutants.push(Mutant {
            file: self.file.to_owned(),
            function: self.functions.join("::"),
            line: span.start().line,
            change,
            range,
            pieces,
        });
    }

    fn source(&self, node: &impl Spanned) -> &str {
        &self.text[node.span().byte_range()]
    }

    /// Puts `pieces` in place of an expression.
    fn replace(&mut self, whole: &Expr, change: String, pieces: Vec<Piece>) {
        let range = whole.span().byte_range();
        let mut all = vec![text("(if "), Piece::Switch, text(" { ")];
        all.extend(pieces);
        all.extend([
            text(" } else { ("),
            Piece::Source(range.clone()),
            text(") })"),
        ]);
        self.add(whole.span(), range, change, all);
    }

    fn add_binary(&mut self, whole: &Expr, binary: &syn::ExprBinary) {
        let Some(other) = other_operator(&binary.op) else {
            return;
        };
        if has_let(&binary.left) || has_let(&binary.right) {
            return;
        }
        let (left, right) = (self.source(&binary.left), self.source(&binary.right));
        let change = format!("{} => {left} {other} {right}", self.source(whole));
        let (left, right) = (binary.left.span(), binary.right.span());
        let is_assignment = other.ends_with('=') && !["<=", ">=", "==", "!="].contains(&other);
        let (open, close) = if is_assignment { ("", "") } else { ("(", ")") };
        let pieces = vec![
            text(open),
            Piece::Source(left.byte_range()),
            text(&format!("{close} {other} {open}")),
            Piece::Source(right.byte_range()),
            text(close),
        ];
        self.replace(whole, change, pieces);
    }

    fn add_method(&mut self, whole: &Expr, call: &syn::ExprMethodCall) {
        const PAIRS: [(&str, &str); 5] = [
            ("min", "max"),
            ("wrapping_add", "wrapping_sub"),
            ("checked_add", "checked_sub"),
            ("saturating_add", "saturating_sub"),
            ("is_some", "is_none"),
        ];
        let method = call.method.to_string();
        let other = PAIRS.iter().find_map(|(one, other)| {
            let is_one = method == *one;
            (is_one || method == *other).then_some(if is_one { *other } else { *one })
        });
        let Some(other) = other else { return };
        let (range, name) = (whole.span().byte_range(), call.method.span().byte_range());
        let change = format!("{} => {other}", self.source(whole));
        let pieces = vec![
            text("("),
            Piece::Source(range.start..name.start),
            text(other),
            Piece::Source(name.end..range.end),
            text(")"),
        ];
        self.replace(whole, change, pieces);
    }

    fn add_integer(&mut self, whole: &Expr, integer: &syn::LitInt) {
        let Ok(value) = integer.base10_parse::<u128>() else {
            return;
        };
        let more = format!("{}{}", value + 1, integer.suffix());
        let change = format!("{} => {more}", self.source(whole));
        self.replace(whole, change, vec![text(&more)]);
    }

    /// The condition of `if` and `while`, unless a comparison or a negation has a mutant of its
    /// own.
    fn add_condition(&mut self, condition: &Expr) {
        let has_own = match condition {
            Expr::Binary(binary) => other_operator(&binary.op).is_some(),
            Expr::Unary(_) => true,
            _ => false,
        };
        if has_own || has_let(condition) {
            return;
        }
        let range = condition.span().byte_range();
        let change = format!("if {0} => if !({0})", self.source(condition));
        let pieces = vec![
            text("("),
            Piece::Switch,
            text(" != ("),
            Piece::Source(range.clone()),
            text("))"),
        ];
        self.add(condition.span(), range, change, pieces);
    }

    /// A function that returns at once.
    fn add_returns(&mut self, result: &ReturnType, body: &syn::Block) {
        if body.stmts.is_empty() {
            return;
        }
        let at = body.brace_token.span.open().byte_range().end;
        for value in returned(result) {
            let change = format!("return {value};").replace(" ;", ";");
            let pieces = vec![
                text(" if "),
                Piece::Switch,
                text(&format!(" {{ return {value}; }} ")),
            ];
            self.add(body.span(), at..at, change, pieces);
        }
    }

    fn function(
        &mut self,
        attributes: &[syn::Attribute],
        signature: &syn::Signature,
        body: &syn::Block,
    ) {
        if signature.constness.is_some() || is_of_tests(attributes) {
            return;
        }
        self.functions.push(signature.ident.to_string());
        self.add_returns(&signature.output, body);
        self.visit_block(body);
        self.functions.pop();
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_of_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        const TEXTS: [&str; 3] = ["Debug", "Display", "Error"];
        let last = item
            .trait_
            .as_ref()
            .and_then(|(_, path, _)| path.segments.last());
        let is_text = last.is_some_and(|last| TEXTS.contains(&last.ident.to_string().as_str()));
        if is_text || is_of_tests(&item.attrs) {
            return;
        }
        self.functions.push(self.source(&item.self_ty).to_owned());
        visit::visit_item_impl(self, item);
        self.functions.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.attrs, &item.sig, body);
        }
    }

    // What the compiler evaluates.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_variant(&mut self, _: &'ast syn::Variant) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(expression, Some(_)) = statement {
            let is_left_out = match expression {
                Expr::MethodCall(call) => call.attrs.is_empty(),
                Expr::Call(call) => call.attrs.is_empty(),
                Expr::Assign(assign) => assign.attrs.is_empty(),
                Expr::Binary(binary) => binary.attrs.is_empty(),
                _ => false,
            };
            if is_left_out {
                let range = statement.span().byte_range();
                let change = format!("leave out {}", self.source(statement));
                let pieces = vec![
                    text("if !"),
                    Piece::Switch,
                    text(" { "),
                    Piece::Source(range.clone()),
                    text(" }"),
                ];
                self.add(statement.span(), range, change, pieces);
            }
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::Binary(binary) => self.add_binary(expression, binary),
            Expr::MethodCall(call) => self.add_method(expression, call),
            Expr::Unary(unary) => {
                if matches!(unary.op, UnOp::Not(_)) {
                    let change = format!("{} => without !", self.source(expression));
                    let inner = unary.expr.span().byte_range();
                    let pieces = vec![text("("), Piece::Source(inner), text(")")];
                    self.replace(expression, change, pieces);
                }
            }
            Expr::Lit(literal) => {
                if let syn::Lit::Int(integer) = &literal.lit {
                    self.add_integer(expression, integer);
                }
            }
            Expr::If(conditional) => self.add_condition(&conditional.cond),
            Expr::While(conditional) => self.add_condition(&conditional.cond),
            _ => {}
        }
        visit::visit_expr(self, expression);
    }
}

fn text(text: &str) -> Piece {
    Piece::Text(text.to_owned())
}

fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let is_test = || match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string() == "test",
            _ => false,
        };
        path.is_ident("test") || path.is_ident("cfg") && is_test()
    })
}

/// Whether a `let` of an `if` is in it, which must stay where it is.
fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn other_operator(operator: &BinOp) -> Option<&'static str> {
    Some(match operator {
        BinOp::Add(_) => "-",
        BinOp::Sub(_) => "+",
        BinOp::Mul(_) => "+",
        BinOp::Div(_) | BinOp::Rem(_) => "*",
        BinOp::And(_) => "||",
        BinOp::Or(_) => "&&",
        BinOp::BitXor(_) | BinOp::BitAnd(_) => "|",
        BinOp::BitOr(_) => "&",
        BinOp::Shl(_) => ">>",
        BinOp::Shr(_) => "<<",
        BinOp::Eq(_) => "!=",
        BinOp::Ne(_) => "==",
        BinOp::Lt(_) => "<=",
        BinOp::Le(_) => "<",
        BinOp::Gt(_) => ">=",
        BinOp::Ge(_) => ">",
        BinOp::AddAssign(_) => "-=",
        BinOp::SubAssign(_) => "+=",
        BinOp::BitAndAssign(_) | BinOp::BitXorAssign(_) => "|=",
        BinOp::BitOrAssign(_) => "&=",
        _ => return None,
    })
}

/// What a function of that type may return at once.
fn returned(result: &ReturnType) -> &'static [&'static str] {
    let ReturnType::Type(_, result) = result else {
        return &[""];
    };
    let Type::Path(path) = &**result else {
        return &[];
    };
    let Some(last) = path.path.segments.last() else {
        return &[];
    };
    match last.ident.to_string().as_str() {
        "bool" => &["true", "false"],
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64"
        | "isize" => &["0"],
        "Option" => &["None"],
        "Vec" | "String" => &["Default::default()"],
        "Result" => match &last.arguments {
            syn::PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
                Some(syn::GenericArgument::Type(Type::Tuple(tuple))) if tuple.elems.is_empty() => {
                    &["Ok(())"]
                }
                _ => &[],
            },
            _ => &[],
        },
        _ => &[],
    }
}
