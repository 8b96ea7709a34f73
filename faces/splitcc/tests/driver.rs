//! The command: options, separate compilation, messages, exit statuses (Split-C 3).

mod running;

use running::{Directory, Program, run, splitcc};
use std::path::Path;
use std::process::{Command, Output};

impl Directory {
    fn splitcc(&self, arguments: &[&str]) -> Output {
        splitcc()
            .current_dir(&self.0)
            .args(arguments)
            .output()
            .unwrap()
    }

    fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }
}

fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const HELLO: &str = "#include <stdio.h>\n#include <split-c/split-c.h>\nsplitc_main()\n{\n    on_one printf(\"hello\\n\");\n}\n";

/// As programs of the time are built: a header with inline functions and variables that several
/// files include.
const HEADER: &str = "
#ifndef GRID_H
#define GRID_H
#include <stdio.h>
#include <split-c/split-c.h>
#define _INLINE extern inline
FILE *outfile;
int watch, level;
double timer[16];
_INLINE void note(char *text) { if (outfile) fprintf(outfile, \"%s\\n\", text); }
_INLINE int row(int rows, int columns, int p) { return p / columns; }
_INLINE void must(void *spread p) { if (p == NULL) note(\"no memory\"); }
void fill(int v, int w, int q, int r, int X[v][w]::[q][r], int);
int total(int v, int w, int q, int r, int X[v][w]::[q][r]);
extern int Shared[PROCS]::[4];
#endif
";
const MAIN: &str = "
#include \"grid.h\"
int Shared[PROCS]::[4];
splitc_main(int argc, char *argv[])
{
    int v, w, q, r;
    int (*spread X)[q][r];
    v = 1, w = PROCS, q = 3, r = 2;
    outfile = stdout;
    X = all_spread_malloc(v * w, q * r * sizeof(int));
    must(X);
    fill(v, w, q, r, X, 5);
    barrier();
    if (row(v, w, MYPROC) == 0 && total(v, w, q, r, X) != 5 * 6 * PROCS) note(\"wrong total\");
    if (Shared[(MYPROC + 1) % PROCS][3] != 9) note(\"wrong element\");
    on_one note(\"done\");
    barrier();
    all_spread_free(X);
}
";
const OTHER: &str = "
#include \"grid.h\"
void fill(int v, int w, int q, int r, int X[v][w]::[q][r], int value)
{
    int i, j, (*loc)[r];
    loc = tolocal(X[MYPROC / w][MYPROC % w]);
    for (i = 0; i < q; i++)
        for (j = 0; j < r; j++) loc[i][j] = value;
    Shared[MYPROC][3] = 9;
    note(\"\" + 0 * level);
}
int total(v, w, q, r, X)
    int v, w, q, r, X[v][w]::[q][r];
{
    int i, j, k, s = 0;
    for (k = 0; k < v * w; k++)
        for (i = 0; i < q; i++)
            for (j = 0; j < r; j++) s += X[k / w][k % w][i][j];
    return s;
}
";

#[test]
fn files_are_compiled_by_themselves_and_linked() {
    let directory = Directory::new("separate");
    directory.write("grid.h", HEADER);
    directory.write("main.sc", MAIN);
    directory.write("other.c", &OTHER.replace("note(\"\" + 0 * level);", ""));
    for optimisation in ["-O0", "-O2"] {
        for file in ["main.sc", "other.c"] {
            let output = directory.splitcc(&[optimisation, "-g", "-w", "-I", ".", "-c", file]);
            assert!(output.status.success(), "{}", messages(&output));
        }
        assert!(directory.has("main.o") && directory.has("other.o"));
        let objects = [directory.0.join("main.o"), directory.0.join("other.o")];
        let program = Program::compile(&[&objects[0], &objects[1]], &[]).unwrap();
        for procs in [1, 2, 3] {
            let outcome = run(&program, procs, &[]);
            assert!(outcome.success && outcome.output == "done\n", "{outcome:?}");
        }
    }
}

#[test]
fn options_say_where_to_stop() {
    let directory = Directory::new("stop");
    directory.write("hello.sc", HELLO);
    for (arguments, file) in [
        (&["-S", "hello.sc"][..], "hello.s"),
        (&["-c", "hello.sc"], "hello.o"),
        (&["-c", "hello.sc", "-o", "other.o"], "other.o"),
        (&["-E", "hello.sc", "-o", "hello.i"], "hello.i"),
        (&["-emit-c", "hello.sc", "-ohello.c"], "hello.c"),
        (&["hello.sc"], "a.out"),
        (
            &["hello.sc", "-save-temps", "-o", "hello"],
            "hello.splitc.i",
        ),
    ] {
        let output = directory.splitcc(arguments);
        assert!(
            output.status.success() && directory.has(file),
            "{arguments:?}: {}",
            messages(&output)
        );
    }
    let output = directory.splitcc(&["-E", "hello.sc"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("splitc_main"));
    let output = directory.splitcc(&["-v", "-c", "hello.sc"]);
    assert!(messages(&output).contains("cpp-output"));
}

#[test]
fn definitions_reach_the_preprocessor() {
    let directory = Directory::new("define");
    directory.write("d.sc", "#include <split-c/split-c.h>\n#if defined(A) && B == 3 && !defined(C)\nsplitc_main() { }\n#endif\n");
    let good = directory.splitcc(&["-DA", "-D", "B=3", "-DC", "-UC", "d.sc"]);
    assert!(good.status.success(), "{}", messages(&good));
    let bad = directory.splitcc(&["-DA", "d.sc"]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(
        messages(&bad).contains("no file defines splitc_main"),
        "{}",
        messages(&bad)
    );
}

#[test]
fn errors_are_shown_as_a_c_compiler_shows_them() {
    let directory = Directory::new("errors");
    directory.write(
        "e.sc",
        "int x;\nint f()\n{\n\tint *global p = &y;\n    return p->a;\n}\n",
    );
    let output = directory.splitcc(&["-c", "e.sc"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!directory.has("e.o"));
    let text = messages(&output);
    assert!(text.contains("e.sc:4:19: error: 'y' undeclared"), "{text}");
    assert!(
        text.contains("    4 | \tint *global p = &y;\n      | \t                 ^\n"),
        "{text}"
    );
}

#[test]
fn errors_of_c_are_on_the_users_lines() {
    let directory = Directory::new("c-errors");
    directory.write(
        "e.sc",
        "#include <split-c/split-c.h>\nint X[PROCS]::[3];\nstruct s { int a; } s;\nint f(int a, int b);\nint g()\n{\n    X[1][2] = f(1,\n        X[0][1]);\n    return f(2);\n}\n",
    );
    let output = directory.splitcc(&["-c", "e.sc"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        messages(&output).contains("e.sc:9:"),
        "{}",
        messages(&output)
    );
}

/// The linker's, too, without an option for debuggers.
#[test]
fn a_name_that_nobody_defines_is_shown_on_the_users_line() {
    let directory = Directory::new("undefined");
    let source = "#include <split-c/split-c.h>\nextern int missing(int);\nsplitc_main()\n{\n    missing(3);\n}\n";
    directory.write("undefined.sc", source);
    let output = directory.splitcc(&["undefined.sc"]);
    assert!(!output.status.success());
    let messages = messages(&output);
    assert!(
        messages.contains("undefined.sc:5: undefined reference to `missing'"),
        "{messages}"
    );
}

#[test]
fn what_is_wrong_with_the_command_is_said() {
    let directory = Directory::new("command");
    directory.write("hello.sc", HELLO);
    for (arguments, message) in [
        (&[][..], "no input files"),
        (&["-c", "missing.sc"], "missing.sc: no such file"),
        (&["hello.xyz"], "unknown kind of file"),
        (&["-Q", "hello.sc"], "unknown option '-Q'"),
        (&["hello.sc", "-o"], "'-o' needs a value"),
        (
            &["-c", "-o", "x.o", "hello.sc", "hello.sc"],
            "takes one source file",
        ),
        (&["-static", "hello.sc"], "is not possible"),
    ] {
        let output = directory.splitcc(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(
            messages(&output).contains(message),
            "{arguments:?}: {}",
            messages(&output)
        );
    }
    let output = splitcc()
        .current_dir(&directory.0)
        .env("CC", "no-such-compiler")
        .args(["-c", "hello.sc"])
        .output()
        .unwrap();
    assert!(
        messages(&output).contains("cannot run the C compiler 'no-such-compiler'"),
        "{}",
        messages(&output)
    );
    let output = splitcc()
        .env("SPLITC_HOME", "/nowhere")
        .arg("hello.sc")
        .output()
        .unwrap();
    assert!(
        messages(&output).contains("SPLITC_HOME"),
        "{}",
        messages(&output)
    );
}

#[test]
fn debuggers_find_the_users_lines() {
    let directory = Directory::new("lines");
    directory.write(
        "l.sc",
        "#include <split-c/split-c.h>\nint X[PROCS]::;\nsplitc_main()\n{\n    int a;\n    a = X[0];\n\n    X[0] = a +\n        1;\n    a++;\n}\n",
    );
    let output = directory.splitcc(&["-g", "-S", "l.sc"]);
    assert!(output.status.success(), "{}", messages(&output));
    let assembly = std::fs::read_to_string(directory.0.join("l.s")).unwrap();
    // `.loc file line column`: the lines of splitc_main, in the file that the user wrote.
    let file = assembly
        .lines()
        .find(|line| line.contains(".file ") && line.contains("l.sc\""))
        .unwrap();
    assert!(file.contains("l.sc"));
    for line in [6, 8, 10] {
        assert!(
            assembly
                .lines()
                .any(|text| text.trim_start().starts_with(".loc ")
                    && text.split_whitespace().nth(2) == Some(&line.to_string())),
            "line {line}"
        );
    }
}

#[test]
fn all_headers_of_the_time_pass() {
    let directory = Directory::new("headers");
    let headers = [
        "stdio",
        "stdlib",
        "string",
        "strings",
        "math",
        "unistd",
        "sys/time",
        "sys/types",
        "sys/resource",
        "signal",
        "errno",
        "ctype",
        "assert",
        "stdarg",
        "limits",
        "float",
        "setjmp",
        "time",
        "malloc",
        "memory",
        "values",
        "sys/stat",
        "fcntl",
        "sys/wait",
        "sys/socket",
        "netinet/in",
        "netdb",
        "pthread",
        "complex",
        "stdint",
        "wchar",
        "locale",
        "dirent",
        "pwd",
        "termios",
        "poll",
        "sys/mman",
        "sys/ioctl",
        "sys/times",
        "sys/param",
        "search",
        "regex",
        "getopt",
        "stdatomic",
    ];
    let mut text: String = headers
        .iter()
        .map(|header| format!("#include <{header}.h>\n"))
        .collect();
    text.push_str("#include <split-c/split-c.h>\nint f(double d) { return isnan(d) + errno + isalpha(65) + (int)fmax(d, 2.0); }\n");
    directory.write("h.sc", &text);
    for options in [
        &["-O0"][..],
        &["-O2", "-D_GNU_SOURCE", "-D_FORTIFY_SOURCE=2"],
    ] {
        let mut arguments = options.to_vec();
        arguments.extend(["-c", "h.sc"]);
        let output = directory.splitcc(&arguments);
        assert!(output.status.success(), "{}", messages(&output));
    }
}

#[test]
fn temporary_files_are_removed() {
    let directory = Directory::new("temporary");
    directory.write("hello.sc", HELLO);
    let scratch = directory.0.join("tmp");
    std::fs::create_dir(&scratch).unwrap();
    for arguments in [
        &["hello.sc"][..],
        &["-c", "hello.sc"],
        &["-c", "-DX=;", "-include", "nothing.h", "hello.sc"],
    ] {
        splitcc()
            .current_dir(&directory.0)
            .env("TMPDIR", &scratch)
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(
            std::fs::read_dir(Path::new(&scratch)).unwrap().count(),
            0,
            "{arguments:?}"
        );
    }
}

#[test]
fn what_is_wrong_at_run_time_names_file_and_line() {
    let directory = Directory::new("run-time");
    let source = directory.write(
        "r.sc",
        "#include <stdlib.h>
#include <split-c/split-c.h>
int X[PROCS]::[4], Y[5][2]::;
int past(int n, int A[n]::[4]) { return A[n - 1][0] + *(&X[PROCS - 1][4] - 1); }
int splitc_main(int argc, char **argv)
{
    int i = 0, which = atoi(argv[1]), Z[which + 1]::, *global p = 0;
    Y[0][9] = past(1, X);
    switch (which) {
    case 1: return X[PROCS][0];
    case 2: Y[5][0] = 1; break;
    case 3: Z[-1]++; break;
    case 4: i := Z[which + 1]; break;
    case 5: return *p;
    case 6: *(int *global)(64l | (long)MYPROC << 48) = 1;
    }
    return i;
}
",
    );
    for optimisation in ["-O0", "-O2"] {
        let program = Program::compile(&[&source], &[optimisation, "-w"]).unwrap();
        assert!(run(&program, 2, &["0"]).success);
        for (which, line, message) in [
            (
                "1",
                10,
                "the index 1 is outside of the spread array, which has 1 elements",
            ),
            (
                "2",
                11,
                "the index 10 is outside of the spread array, which has 10 elements",
            ),
            (
                "3",
                12,
                "the index -1 is outside of the spread array, which has 4 elements",
            ),
            (
                "4",
                13,
                "the index 5 is outside of the spread array, which has 5 elements",
            ),
            ("5", 14, "null"),
            ("6", 15, "0x40"),
        ] {
            let outcome = run(&program, 1, &[which]);
            let place = format!("r.sc:{line}: ");
            assert!(!outcome.success, "{optimisation} {which}");
            assert!(
                outcome.messages.contains(&place) && outcome.messages.contains(message),
                "{optimisation} {which}: {outcome:?}"
            );
        }
    }
}

/// The page is there without a runtime or a C compiler, and the formatter, if there is one, finds
/// nothing wrong in it.
#[test]
fn the_manual_page_is_sound() {
    let output = splitcc()
        .arg("--manual")
        .env("CC", "nothing")
        .output()
        .unwrap();
    assert!(output.status.success());
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.starts_with(".TH SPLITCC 1 "), "{page}");
    let directory = Directory::new("manual");
    let file = directory.0.join("splitcc.1");
    std::fs::write(&file, &page).unwrap();
    let formatted = Command::new("groff")
        .args(["-man", "-ww", "-Tascii", "-P-cbou"])
        .arg(&file)
        .output();
    let Ok(formatted) = formatted else {
        eprintln!("SKIPPED: no groff (apt-get install groff)");
        return;
    };
    assert!(
        formatted.status.success() && formatted.stderr.is_empty(),
        "{}",
        messages(&formatted)
    );
    let text = String::from_utf8_lossy(&formatted.stdout);
    assert!(
        text.contains("-fno-split-phase") && text.contains("SPLITC_HOME"),
        "{text}"
    );
}
