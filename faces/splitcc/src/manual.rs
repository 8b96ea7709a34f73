//! What `splitcc --help` and the manual page say: one description for both, so that neither can
//! fall behind.

use std::fmt::Write as _;

/// An option, or several that belong together: what is typed, with the value in capitals, and what
/// it does.
type Described = (&'static str, &'static str);

const NAME: &str = "splitcc";
const PURPOSE: &str = "the Split-C compiler";
const USAGE: &str = "[OPTIONS] FILES.sc|.c|.o|.a";

const OPTIONS: [Described; 20] = [
    ("-c", "compile, do not link"),
    ("-S", "compile to assembler"),
    ("-E", "preprocess only"),
    (
        "-emit-c",
        "write the C text (to -o FILE or the standard output) and stop",
    ),
    ("-o FILE", "write to FILE"),
    (
        "-O0 ... -O3",
        "optimise; from -O1 on, reads and writes that may overlap do",
    ),
    (
        "-fno-split-phase",
        "every read waits for itself, also with -O1 and more",
    ),
    ("-g", "debug information"),
    (
        "-I -D -U -include -isystem -iquote -idirafter",
        "for the preprocessor",
    ),
    (
        "-M -MM -MD -MMD -MP -MF -MT -MQ",
        "dependencies, as the preprocessor writes them",
    ),
    (
        "-L -l -T -u -Wl,... -Xlinker -s -rdynamic",
        "for the linker",
    ),
    ("-pthread -pg -pipe", "as a C compiler has them"),
    ("-w", "no warnings"),
    ("-Wall, -W...", "more warnings"),
    (
        "-f... -m... -g...",
        "for the C compiler, which knows what they mean",
    ),
    (
        "-std=... -ansi -traditional -pedantic",
        "accepted; the dialect is GNU's C17, which has what was before",
    ),
    ("-v", "show the commands"),
    ("-save-temps", "keep what lies between"),
    ("--help, --version", "say this, or the version, and stop"),
    (
        "--manual",
        "write the manual page to the standard output, for man, and stop",
    ),
];

const ENVIRONMENT: [Described; 3] = [
    (
        "CC",
        "the C compiler, with arguments if there are any (default: cc)",
    ),
    (
        "SPLITC_HOME",
        "where include/ and lib/ lie (default: beside the compiler)",
    ),
    ("TMPDIR", "where temporary files are made, and removed"),
];

const DESCRIPTION: [&str; 3] = [
    "Split-C is C with a global address space: a program reads and writes the memory of its other processes as it does its own, and says which accesses may overlap. splitcc preprocesses files of Split-C and C, translates them to C, has the C compiler compile that, and links the program with the runtime.",
    "Sources end in .sc or .c, preprocessed ones in .i, objects in .o, libraries in .a or .so. A program begins in splitc_main. Messages name the lines of the source, and so does a debugger.",
    "A program is linked at a fixed address with the runtime as a library, so -static, -pie and -shared are refused. An option that is neither described here nor one of -f, -m, -W and -g is refused, too.",
];

const EXAMPLES: [Described; 2] = [
    ("splitcc -O2 -o sum sum.sc", "compile and link a program"),
    (
        "hamlyn run -n 4 ./sum",
        "run it as four processes of this host",
    ),
];

/// What `--help` prints.
pub fn help() -> String {
    let mut text = format!("{NAME}: {PURPOSE}\n\nusage: {NAME} {USAGE}\n");
    for described in [&OPTIONS[..], &ENVIRONMENT] {
        text.push('\n');
        for (what, meaning) in described {
            match what.len() {
                ..=20 => {
                    let _ = writeln!(text, "  {what:<20}  {meaning}");
                }
                _ => {
                    let _ = writeln!(text, "  {what}\n  {:<20}  {meaning}", "");
                }
            }
        }
    }
    text
}

/// The manual page, for `man`.
pub fn page() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(".TH SPLITCC 1 \"\" \"{NAME} {version}\" \"User Commands\"\n");
    let section = |page: &mut String, title: &str| {
        let _ = writeln!(page, ".SH {title}");
    };
    section(&mut page, "NAME");
    let _ = writeln!(page, "{NAME} \\- {}", escaped(PURPOSE));
    section(&mut page, "SYNOPSIS");
    let _ = writeln!(page, "\\fB{NAME}\\fR {}", escaped(USAGE));
    section(&mut page, "DESCRIPTION");
    for (index, paragraph) in DESCRIPTION.iter().enumerate() {
        if index > 0 {
            page.push_str(".PP\n");
        }
        let _ = writeln!(page, "{}", escaped(paragraph));
    }
    let lists = [
        ("OPTIONS", &OPTIONS[..]),
        ("ENVIRONMENT", &ENVIRONMENT),
        ("EXAMPLES", &EXAMPLES),
    ];
    for (title, described) in lists {
        section(&mut page, title);
        for (what, meaning) in described {
            let _ = writeln!(page, ".TP\n\\fB{}\\fR\n{}", escaped(what), escaped(meaning));
        }
    }
    section(&mut page, "EXIT STATUS");
    page.push_str("0 if all was done; 1 after an error, which is on standard error.\n");
    section(&mut page, "SEE ALSO");
    page.push_str("\\fBhamlyn\\-run\\fR(1), \\fBcc\\fR(1)\n");
    page
}

/// Text of which the formatter takes nothing for an instruction: backslashes, hyphens that are
/// typed, and dots and quotes at the beginning of a line.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_and_page_have_each_option() {
        let (help, page) = (help(), page());
        for (what, meaning) in OPTIONS.iter().chain(&ENVIRONMENT) {
            assert!(help.contains(what) && help.contains(meaning), "{what}");
            assert!(page.contains(&escaped(what)) && page.contains(&escaped(meaning)));
        }
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }

    #[test]
    fn nothing_in_a_text_is_an_instruction() {
        assert_eq!(escaped(".so /etc/passwd"), "\\&.so /etc/passwd");
        assert_eq!(escaped("'a\\-b"), "\\&'a\\e\\-b");
        for line in page().lines() {
            let macros = [".TH ", ".SH ", ".TP", ".PP"];
            let is_macro = macros.iter().any(|begin| line.starts_with(begin));
            assert!(is_macro || !line.starts_with(['.', '\'']), "{line}");
        }
    }
}
