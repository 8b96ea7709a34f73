//! String literals that go on over the end of a line, as compilers of the 1990s took them.
//!
//! The preprocessor of today refuses them. The driver asks for this only when a file could not be
//! read as it is: it ends each line within a literal by `\n\`, so that the literal means the same
//! and all lines keep their numbers.

/// The source with its literals closed line by line; `None` if there is no literal to close.
pub fn continued(source: &str) -> Option<String> {
    let mut out = String::with_capacity(source.len() + 64);
    let mut changed = false;
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        match c {
            '/' if chars.peek() == Some(&'*') => {
                let mut before = ' ';
                for inner in chars.by_ref() {
                    out.push(inner);
                    if before == '*' && inner == '/' {
                        break;
                    }
                    // The star that opens the comment does not close it.
                    before = if before == ' ' && inner == '*' && out.ends_with("/*") {
                        ' '
                    } else {
                        inner
                    };
                }
            }
            '/' if chars.peek() == Some(&'/') => {
                for inner in chars.by_ref() {
                    out.push(inner);
                    if inner == '\n' {
                        break;
                    }
                }
            }
            '\'' => {
                // A character constant ends on its line.
                while let Some(inner) = chars.next() {
                    out.push(inner);
                    match inner {
                        '\\' => out.extend(chars.next()),
                        '\'' | '\n' => break,
                        _ => {}
                    }
                }
            }
            '"' => {
                while let Some(inner) = chars.next() {
                    match inner {
                        '\n' => {
                            out.push_str("\\n\\\n");
                            changed = true;
                            continue;
                        }
                        '\\' => {
                            out.push(inner);
                            out.extend(chars.next());
                            continue;
                        }
                        _ => out.push(inner),
                    }
                    if inner == '"' {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::continued;

    #[test]
    fn literals_are_closed_line_by_line() {
        assert_eq!(
            continued("f(\"a\nb\");\nx;").as_deref(),
            Some("f(\"a\\n\\\nb\");\nx;")
        );
        assert_eq!(
            continued("f(\"a\\\nb\\\"\n\");").as_deref(),
            Some("f(\"a\\\nb\\\"\\n\\\n\");")
        );
    }

    #[test]
    fn everything_else_stays() {
        for source in [
            "f(\"a\"); /* it's \" not\n open */ g('\"'); // \"\nh(\"\\\"\");",
            "int a; /**/ char c = '\\''; /* **/ char *s = \"x\";",
            "",
        ] {
            assert_eq!(continued(source), None, "{source}");
        }
    }
}
