use super::*;

fn lex(text: &str) -> (Vec<Token>, Files, Diagnostics) {
    let mut files = Files::default();
    let mut diagnostics = Diagnostics::default();
    let tokens = tokens(text, &mut files, &mut diagnostics);
    (tokens, files, diagnostics)
}

fn texts(text: &str) -> Vec<String> {
    let (tokens, _, diagnostics) = lex(text);
    assert_eq!(diagnostics.errors(), 0, "{text}");
    tokens[..tokens.len() - 1]
        .iter()
        .map(|token| token.text.to_string())
        .collect()
}

#[test]
fn longest_marks_come_first() {
    assert_eq!(
        texts("a+++b>>=c->d...e"),
        ["a", "++", "+", "b", ">>=", "c", "->", "d", "...", "e"]
    );
}

#[test]
fn colons_touch_what_follows() {
    let (tokens, ..) = lex("a := b :- c : = d");
    assert_eq!(&*tokens[1].text, ":");
    assert!(tokens[2].touches && &*tokens[2].text == "=");
    assert!(tokens[5].touches && &*tokens[5].text == "-");
    assert!(!tokens[8].touches);
}

#[test]
fn numbers_and_strings() {
    assert_eq!(
        texts("1.5e+3f 0x1F .5 1e5 'a' '\\'' \"a\\\"b\" L\"x\""),
        [
            "1.5e+3f",
            "0x1F",
            ".5",
            "1e5",
            "'a'",
            "'\\''",
            "\"a\\\"b\"",
            "L\"x\""
        ]
    );
}

#[test]
fn line_markers_set_the_position() {
    let (tokens, files, _) = lex("# 10 \"one.c\"\nint x;\n# 3 \"/usr/h.h\" 1 3 4\n y\n");
    assert_eq!(
        (
            files.name(tokens[0].at.file),
            tokens[0].at.line,
            tokens[0].at.column
        ),
        ("one.c", 10, 1)
    );
    let y = &tokens[3];
    assert_eq!(
        (files.name(y.at.file), y.at.line, y.at.column),
        ("/usr/h.h", 3, 2)
    );
    assert!(files.is_system(y.at.file));
}

#[test]
fn pragmas_are_kept() {
    let (tokens, ..) = lex("#pragma pack(1)\nint x;");
    assert_eq!(tokens[0].pragmas.as_deref(), Some("#pragma pack(1)\n"));
}

#[test]
fn what_does_not_end_is_an_error() {
    for text in ["\"abc\nint", "/* abc", "'a", "int @ x"] {
        assert!(lex(text).2.errors() > 0, "{text}");
    }
}

#[test]
fn comments_are_skipped() {
    assert_eq!(texts("a /* b\n c */ d // e\n f"), ["a", "d", "f"]);
}
