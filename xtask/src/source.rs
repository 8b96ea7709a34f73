//! Just enough of Rust's grammar to tell code from what is only text.

/// The source with comments and the contents of literals blanked. Lines and
/// columns stay where they are.
pub(crate) fn code_of(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block(&chars, at),
            '"' => end_of_string(&chars, at),
            'r' if !continues_word(&chars, at) => end_of_raw(&chars, at),
            '\'' => end_of_char(&chars, at),
            _ => at,
        };
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            for &char in &chars[at..end] {
                code.push(if char == '\n' { '\n' } else { ' ' });
            }
            at = end;
        }
    }
    code
}

/// Whether the word at `at` began before; `b` and `c` may stand before a raw string.
fn continues_word(chars: &[char], at: usize) -> bool {
    let Some(&before) = at.checked_sub(1).and_then(|at| chars.get(at)) else {
        return false;
    };
    let prefix = matches!(before, 'b' | 'c') && !continues_word(chars, at - 1);
    is_word(before) && !prefix
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    let rest = &chars[at..];
    at + rest
        .iter()
        .position(|&char| char == '\n')
        .unwrap_or(rest.len())
}

/// Block comments nest.
fn end_of_block(chars: &[char], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn end_of_string(chars: &[char], at: usize) -> usize {
    let mut at = at + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `at` itself if no raw string begins there.
fn end_of_raw(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..]
        .iter()
        .take_while(|&&char| char == '#')
        .count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return at;
    }
    let mut close = open + 1;
    while close < chars.len() {
        let after = &chars[close + 1..];
        if chars[close] == '"' && after.iter().take_while(|&&char| char == '#').count() >= hashes {
            return close + 1 + hashes;
        }
        close += 1;
    }
    chars.len()
}

/// `at` itself if a lifetime begins there and no character.
fn end_of_char(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => {
            let from = at + 3;
            let rest = chars.get(from..).unwrap_or_default();
            rest.iter()
                .position(|&char| char == '\'')
                .map_or(at, |close| from + close + 1)
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

pub(crate) fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Where `word` stands as a word of its own.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
}

/// Whether code (see [`code_of`]) has a function of that name which is a test.
pub(crate) fn has_test(code: &str, name: &str) -> bool {
    words(code, name).any(|at| {
        let before = code[..at].trim_end();
        let Some(before) = before.strip_suffix("fn") else {
            return false;
        };
        if before.ends_with(is_word) {
            return false;
        }
        // Attributes stand between the end of what came before and the function.
        let item = before.rfind(['{', '}', ';']).map_or(0, |end| end + 1);
        before[item..].contains("#[test]")
    })
}

/// Whether code has a function of that name.
pub(crate) fn has_function(code: &str, name: &str) -> bool {
    words(code, name).any(|at| {
        let before = code[..at].trim_end();
        before
            .strip_suffix("fn")
            .is_some_and(|before| !before.ends_with(is_word))
    })
}

/// Line number of a place in a text.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let source = "let a = \"std::\"; // fs\n/* net /* thread */ Instant */ let b = 'x';\n\
                      let c: &'static str = r#\"a \" fs\"#; let d = br\"net\"; let e = '\\'';\nfs()";
        let code = code_of(source);
        for word in ["std", "net", "thread", "Instant", "x"] {
            assert_eq!(words(&code, word).count(), 0, "{word} in {code:?}");
        }
        let found: Vec<_> = words(&code, "fs").map(|at| line_of(&code, at)).collect();
        assert_eq!(found, [4]);
        assert!(code.contains("'static str"));
        assert_eq!(code.lines().count(), source.lines().count());
    }

    #[test]
    fn a_test_is_a_function_with_the_attribute() {
        let code = code_of(
            "fn helper() {}\n/// doc; with { signs }\n#[test]\n#[ignore]\nfn shown() { helper() }\n\
             // #[test] fn commented() {}\nfn later() {}",
        );
        assert!(has_test(&code, "shown"));
        for name in ["helper", "commented", "later", "show", "absent"] {
            assert!(!has_test(&code, name), "{name}");
        }
    }
}
