//! The test vectors of `docs/protocol.md`, read from the file itself.
//!
//! A vector is a fenced block that is marked `vector` and a kind. On each line stands a field, a
//! colon and a value; a line that begins with blanks goes on with the value above. Bytes are
//! hexadecimal digits, in pairs; numbers are decimal, or hexadecimal after `0x`.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

/// A vector.
pub(crate) struct Vector {
    /// What it is of.
    pub(crate) kind: String,
    /// The line of the file that it begins in, from 1.
    pub(crate) line: usize,
    fields: Vec<(String, String)>,
}

/// All vectors of these kinds, in the order of the file. Fails if one of the kinds has none.
pub(crate) fn read(kinds: &[&str]) -> Vec<Vector> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    let text = fs::read_to_string(path).expect("docs/protocol.md is readable");
    let mut vectors = Vec::new();
    let mut current: Option<Vector> = None;
    for (index, line) in text.lines().enumerate() {
        let marked = line.strip_prefix("```vector ");
        match (&mut current, marked) {
            (None, Some(kind)) => {
                current = Some(Vector {
                    kind: kind.trim().to_owned(),
                    line: index + 1,
                    fields: Vec::new(),
                });
            }
            (None, None) => {}
            (Some(_), _) if line == "```" => vectors.extend(current.take()),
            (Some(vector), _) => vector.add(line),
        }
    }
    assert!(current.is_none(), "the last vector has no end");
    for kind in kinds {
        assert!(vectors.iter().any(|v| v.kind == *kind), "no vector {kind}");
    }
    vectors.retain(|vector| kinds.contains(&vector.kind.as_str()));
    vectors
}

/// Bytes as they are written in the file.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(" ")
}

/// Bytes from the file.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    assert!(digits.len().is_multiple_of(2), "odd digits: {text}");
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits"))
        .collect()
}

/// A number from the file.
pub(crate) fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .unwrap_or_else(|_| panic!("no number: {text}"))
}

impl Vector {
    fn add(&mut self, line: &str) {
        if line.starts_with(' ') {
            let (_, value) = self.fields.last_mut().expect("a field before");
            value.push(' ');
            value.push_str(line.trim());
            return;
        }
        let (name, value) = line
            .split_once(':')
            .unwrap_or_else(|| panic!("no field: {line}"));
        self.fields
            .push((name.trim().to_owned(), value.trim().to_owned()));
    }

    /// The values of a field, which may be there several times, or not at all.
    pub(crate) fn all(&self, field: &str) -> Vec<&str> {
        let named = self.fields.iter().filter(|(name, _)| name == field);
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// The value of a field that is there once.
    pub(crate) fn text(&self, field: &str) -> &str {
        match self.all(field)[..] {
            [value] => value,
            _ => panic!("line {}: not one field {field}", self.line),
        }
    }

    /// The bytes of a field.
    pub(crate) fn bytes(&self, field: &str) -> Vec<u8> {
        bytes(self.text(field))
    }

    /// The number of a field.
    pub(crate) fn number(&self, field: &str) -> u64 {
        number(self.text(field))
    }
}

/// What the file says and what is the case, compared; told all at once at the end.
#[derive(Default)]
pub(crate) struct Verdicts {
    checks: usize,
    wrong: Vec<String>,
}

impl Verdicts {
    /// Compares bytes.
    pub(crate) fn bytes(&mut self, vector: &Vector, field: &str, is: &[u8]) {
        let said = vector.bytes(field);
        let is_right = said == is;
        self.say(vector, field, is_right, &hexadecimal(is));
    }

    /// Compares anything else.
    pub(crate) fn same<T: PartialEq + Debug>(
        &mut self,
        vector: &Vector,
        field: &str,
        said: &T,
        is: &T,
    ) {
        self.say(vector, field, said == is, &format!("{is:?}, not {said:?}"));
    }

    fn say(&mut self, vector: &Vector, field: &str, is_right: bool, is: &str) {
        self.checks += 1;
        if !is_right {
            let Vector { kind, line, .. } = vector;
            self.wrong
                .push(format!("line {line}: {kind}: {field}: it is {is}"));
        }
    }

    /// Fails if anything is wrong, or less was compared than that.
    pub(crate) fn end(self, checks_least: usize) {
        assert!(
            self.wrong.is_empty(),
            "docs/protocol.md:\n{}",
            self.wrong.join("\n")
        );
        assert!(
            self.checks >= checks_least,
            "only {} comparisons",
            self.checks
        );
    }
}
