use crate::{Settings, translate};

const HEADER: &str = "typedef unsigned long splitc_global; int f(int);\n";

/// The C of a function, with or without accesses under way together.
fn c_of(body: &str, split_phase: bool) -> String {
    let source = format!(
        "{HEADER}int *global g; int other[9];\nint test(int *global p, int *global q, double *spread s, int n)\n{{\n{body}\n}}\n"
    );
    let translation = translate(
        &source,
        Settings {
            split_phase,
            warnings: true,
        },
    );
    translation
        .c_text
        .unwrap_or_else(|| panic!("{body}: {}", translation.messages))
}

fn is_together(body: &str) -> bool {
    assert!(!c_of(body, false).contains("splitc_begin"), "{body}");
    c_of(body, true).contains("splitc_begin")
}

#[test]
fn reads_of_one_assignment_are_begun_together() {
    for body in [
        "int x; x = *p + *q;",
        "int x; x = p[n] * q[n + 1] - p[0];",
        "double d; d = s[n - 1] + s[n + 1];",
        "int x = 0; x += *p - *q;",
        "*p = q[0] + q[1];",
        "int x; x = p[*q] + q[1];",
    ] {
        assert!(is_together(body), "{body}");
    }
}

#[test]
fn what_orders_them_keeps_them_apart() {
    for body in [
        "int x; x = *p;",
        "int x; x = *p + f(1) + *q;",
        "int x; x = *p && *q;",
        "int x; x = n ? *p : *q;",
        "int x; x = *p++ + *q;",
        "int x, y; x = (y = *p) + *q;",
        "int x; x = *(volatile int *global)p + *(volatile int *global)q;",
        "int x; x = (*p, *q);",
        "int x; x = p[*q];",
        "int x; x := *p;",
    ] {
        assert!(!is_together(body), "{body}");
    }
}

#[test]
fn loops_that_nobody_can_tell_are_taken() {
    for body in [
        "int a[9], i; for (i = 0; i < 9; i++) a[i] = p[i];",
        "int a[9], i; for (i = 0; i < n; i += 2) { a[i / 2] = p[i]; }",
        "double a[9]; int i; for (i = 0; i < n && i < 9; i++) a[i] = s[i];",
        "int a[9], i, k; for (i = 0, k = 3; i < 9; i++, k--) a[i] = p[k];",
        "int a[9], i; for (i = 0; i < 9; i++) p[i] = a[i];",
        "int i; for (i = 0; i < 9; i++) p[i + 1] = i * n;",
    ] {
        assert!(is_together(body), "{body}");
    }
}

#[test]
fn loops_that_somebody_could_tell_are_left() {
    for body in [
        "int a[9], *e = a, i; for (i = 0; i < 9; i++) a[i] = p[i];",
        "int a[9], i; for (i = 0; i < 9; i++) a[i] = p[a[i]];",
        "int a[9], i; g = &a[0]; for (i = 0; i < 9; i++) a[i] = p[i];",
        "int i; for (i = 0; i < 9; i++) other[i] = p[i];",
        "static int a[9]; int i; for (i = 0; i < 9; i++) a[i] = p[i];",
        "int a[9], i; for (i = 0; i < f(i); i++) a[i] = p[i];",
        "int a[9], i; for (i = 0; i < *q; i++) a[i] = p[i];",
        "int a[9], i; for (i = 0; i < 9; i++) a[i] = *p++;",
        "double a[9]; int i; for (i = 0; i < 9; i++) a[i] = p[i];",
        "int a[9], i; for (i = 0; i < 9; i++) { a[i] = p[i]; f(i); }",
        "int i; for (i = 0; i < 9; i++, p++) p[i] = i;",
        "int i; for (i = 0; i < 9; i++) s[i] = i;",
        "int i; for (i = 0; i < 9; i++) p[i] = q[i];",
        "int i; for (i = 0; i < 9;) p[i] = i++;",
    ] {
        assert!(!is_together(body), "{body}");
    }
}
