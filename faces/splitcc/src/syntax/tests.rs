use super::tree::{External, Place, StmtKind};
use super::*;
use crate::types::{Kind, Reach};

/// Reads a file and gives the tree, or the first error.
fn read(text: &str) -> Result<Unit, String> {
    let mut files = Files::default();
    let mut diagnostics = Diagnostics::default();
    let tokens = crate::lex::tokens(text, &mut files, &mut diagnostics);
    let unit = Parser::new(&tokens, &files, &mut diagnostics).unit();
    match diagnostics.list().first() {
        Some(first) => Err(first.message.clone()),
        None => Ok(unit),
    }
}

fn type_of(declaration: &str, name: &str) -> Ty {
    let unit = read(declaration).unwrap();
    unit.scopes.find_in_file(name).unwrap().ty.clone()
}

#[test]
fn declarators_are_read_from_the_inside_out() {
    let Kind::Array(of, _) = &type_of("int *global p[3];", "p").kind else {
        panic!()
    };
    assert!(of.is_global_pointer());
    let Kind::Pointer(to, Reach::Spread) = &type_of("int (*spread p)[3][4];", "p").kind else {
        panic!()
    };
    assert!(matches!(to.kind, Kind::Array(..)));
    let Kind::Pointer(to, Reach::Local) = &type_of("int *global *p;", "p").kind else {
        panic!()
    };
    assert!(to.is_global_pointer());
    let Kind::Pointer(to, Reach::Local) =
        &type_of("int *global (*f)(int *spread, char);", "f").kind
    else {
        panic!()
    };
    let Kind::Function(result, Some(parameters), false) = &to.kind else {
        panic!()
    };
    assert!(result.is_global_pointer() && parameters.len() == 2);
}

#[test]
fn spread_arrays_have_two_sides() {
    let Kind::SpreadArray(of, left) = &type_of("int x[2][3]::[4];", "x").kind else {
        panic!()
    };
    assert_eq!(left.len(), 2);
    assert!(matches!(of.kind, Kind::Array(..)));
    let Kind::SpreadArray(of, left) = &type_of("double x[2]::;", "x").kind else {
        panic!()
    };
    assert!(left.len() == 1 && of.is_floating());
}

#[test]
fn reach_words_are_names_elsewhere() {
    assert!(type_of("int *global;", "global").pointee().is_some());
    assert!(type_of("int spread;", "spread").is_integer());
    assert!(type_of("int *global global;", "global").is_global_pointer());
}

#[test]
fn places_are_found() {
    let unit =
        read("struct s { int a[3]; } *global g; int f(void) { g->a[2]; return 0; }").unwrap();
    let External::Function(function) = &unit.externals[1] else {
        panic!()
    };
    let StmtKind::Block(statements) = &function.body.kind else {
        panic!()
    };
    let StmtKind::Expr(expr) = &statements[0].kind else {
        panic!()
    };
    assert!(expr.place == Place::Global && expr.ty.is_integer() && expr.special);
}

#[test]
fn old_c_is_read() {
    for text in [
        "main() { }",
        "f(a, b) int a; char *b; { return a; }",
        "static x, *y;",
        "int f() { register i; for (i = 0; i < 3; i++); return i; }",
        "int (*signal())();",
        "char *names[] = { \"a\", \"b\", };",
        "struct { int a : 3, : 2, b : 1; } s;",
        "typedef int t; t f(t t) { return t; }",
        "int f(x) { return g(x); }",
        "extern int printf(); int f() { printf(\"%d\", 1); }",
        "enum { A, B = 3, C }; int x[B];",
        "void f() { goto l; l: ; }",
        "int f(int a) { switch (a) { case 1: case 2 ... 4: return 1; default: ; } return 0; }",
    ] {
        if let Err(error) = read(text) {
            panic!("{text}: {error}");
        }
    }
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [
        ("(", ")"),
        ("{", "}"),
        ("[", "]"),
        ("-", ""),
        ("*", ""),
        ("!(", ")"),
        ("a?", ":1"),
    ] {
        let text = format!(
            "int a; int f() {{ a = {}1{}; }}",
            open.repeat(100_000),
            close.repeat(100_000)
        );
        assert!(read(&text).is_err(), "{open}");
    }
    assert!(
        read(&format!(
            "int {}x{};",
            "(".repeat(50_000),
            ")".repeat(50_000)
        ))
        .is_err()
    );
    assert!(
        read(&format!(
            "int f() {{ return 1{}; }}",
            " + 1".repeat(200_000)
        ))
        .is_err()
    );
    assert!(read(&format!("int f() {{ return 1{}; }}", " + 1".repeat(5_000))).is_ok());
}

#[test]
fn types_of_arithmetic() {
    let result = |text: &str| {
        let unit = read(&format!(
            "char c; unsigned u; long l; float f; double d; int *p; int g() {{ {text}; }}"
        ))
        .unwrap();
        let External::Function(function) = unit.externals.last().unwrap() else {
            panic!()
        };
        let StmtKind::Block(statements) = &function.body.kind else {
            panic!()
        };
        let StmtKind::Expr(expr) = &statements[0].kind else {
            panic!()
        };
        format!("{:?}", expr.ty.kind)
    };
    assert!(result("c + c").contains("Int"));
    assert!(result("c + u").contains("unsigned: true"));
    assert!(result("u + l").contains("Long"));
    assert!(result("f * c").contains("float"));
    assert!(result("f + d").contains("double"));
    assert!(result("p + 1").contains("Pointer"));
    assert!(result("p - p").contains("Long"));
    assert!(result("c < d").contains("Int"));
}
