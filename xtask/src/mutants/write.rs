//! Writes mutants into the text of a file, each behind its switch. They may lie within each other.

use std::cmp::Reverse;
use std::ops::Range;

use super::find::{Mutant, Piece};

/// A file with its mutants, and where each of them lies in the new text; one may lie there more
/// than once.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) places: Vec<(usize, Range<usize>)>,
}

/// `mutants` are those of this file with their numbers; `switch` is the function that tells whether
/// one is on.
pub(super) fn write(source: &str, mutants: &[(usize, &Mutant)], switch: &str) -> Written {
    let mut sorted: Vec<(usize, &Mutant)> = mutants.to_vec();
    // What is outside comes before what is inside; what is only added before what begins there.
    sorted.sort_by_key(|(number, mutant)| {
        let range = &mutant.range;
        (range.start, !range.is_empty(), Reverse(range.end), *number)
    });
    let mut written = Written {
        text: String::new(),
        places: Vec::new(),
    };
    written.add(source, 0..source.len(), &sorted, switch);
    written
}

impl Written {
    fn add(
        &mut self,
        source: &str,
        range: Range<usize>,
        mutants: &[(usize, &Mutant)],
        switch: &str,
    ) {
        let mut at = range.start;
        for (place, (number, mutant)) in mutants.iter().enumerate() {
            let inside = &mutant.range;
            if inside.start < at || inside.end > range.end {
                continue;
            }
            self.text += &source[at..inside.start];
            let from = self.text.len();
            for piece in &mutant.pieces {
                match piece {
                    Piece::Text(text) => self.text += text,
                    Piece::Switch => self.text += &format!("{switch}({number})"),
                    Piece::Source(part) => {
                        self.add(source, part.clone(), &mutants[place + 1..], switch);
                    }
                }
            }
            self.places.push((*number, from..self.text.len()));
            at = inside.end;
        }
        self.text += &source[at..range.end];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::find::find;

    /// The body of a function with all its mutants but those that return at once.
    fn written(body: &str) -> Vec<String> {
        let source = format!("fn f() {{{body}}}");
        let mutants = find("a.rs", &source).expect("it parses");
        let wanted = mutants.iter().filter(|mutant| !mutant.range.is_empty());
        wanted
            .map(|mutant| {
                let text = write(&source, &[(7, mutant)], "on").text;
                text["fn f() {".len()..text.len() - 1].to_owned()
            })
            .collect()
    }

    #[test]
    fn an_operator_is_replaced_behind_a_switch() {
        assert_eq!(
            written("a < b"),
            ["(if on(7) { (a) <= (b) } else { (a < b) })"]
        );
        assert_eq!(
            written("a && b"),
            ["(if on(7) { (a) || (b) } else { (a && b) })"]
        );
        assert_eq!(
            written("a += b;"),
            [
                "if !on(7) { a += b; }",
                "(if on(7) { a -= b } else { (a += b) });"
            ]
        );
        assert_eq!(written("!a"), ["(if on(7) { (a) } else { (!a) })"]);
        assert_eq!(
            written("x.min(y)"),
            ["(if on(7) { (x.max(y)) } else { (x.min(y)) })"]
        );
    }

    #[test]
    fn constants_conditions_and_statements_have_mutants() {
        assert_eq!(written("0x0Fu8"), ["(if on(7) { 16u8 } else { (0x0Fu8) })"]);
        assert_eq!(written("if a {}"), ["if (on(7) != (a)) {}"]);
        assert_eq!(written("g();"), ["if !on(7) { g(); }"]);
    }

    #[test]
    fn mutants_lie_within_each_other() {
        let source = "fn f() -> bool { a + 1 < b }";
        let mutants = find("a.rs", source).expect("it parses");
        // Two that return at once; the comparison, the sum and the constant.
        assert_eq!(mutants.len(), 5);
        let numbered: Vec<_> = mutants.iter().enumerate().collect();
        let written = write(source, &numbered, "on");
        assert!(
            written
                .text
                .starts_with("fn f() -> bool { if on(0) { return true; }")
        );
        syn::parse_file(&written.text).expect("what is written parses");
        for number in 0..5 {
            let places = written.places.iter().filter(|(of, _)| *of == number);
            let times = places.count();
            assert_eq!(times, [1, 1, 1, 2, 4][number], "mutant {number}");
            assert!(written.text.contains(&format!("on({number})")));
        }
    }

    #[test]
    fn what_the_compiler_evaluates_and_what_tests_have_no_mutants() {
        for source in [
            "const A: u32 = 1 + 2;",
            "const fn f() -> u32 { 1 + 2 }",
            "fn f(_: [u8; 1 + 2]) {}",
            "#[cfg(test)] mod tests { fn f() -> bool { 1 < 2 } }",
            "#[test] fn f() { g(); }",
            "impl Debug for A { fn fmt(&self) -> bool { 1 < 2 } }",
        ] {
            assert_eq!(find("a.rs", source).expect("it parses"), [], "{source}");
        }
        assert_eq!(written("match x { 1..=2 => a, _ => b }"), [""; 0]);
        assert_eq!(written("if let Some(a) = b && c {}"), [""; 0]);
        assert_eq!(written("[a; 4]"), [""; 0]);
    }

    #[test]
    fn functions_return_at_once_what_their_type_has() {
        let of = |result: &str| -> Vec<String> {
            let source = format!("fn f() {result} {{ g() }}");
            let mutants = find("a.rs", &source).expect("it parses");
            mutants.into_iter().map(|mutant| mutant.change).collect()
        };
        assert_eq!(of(""), ["return;"]);
        assert_eq!(of("-> bool"), ["return true;", "return false;"]);
        assert_eq!(of("-> Option<u8>"), ["return None;"]);
        assert_eq!(of("-> Result<(), Error>"), ["return Ok(());"]);
        assert_eq!(of("-> Result<u8, Error>"), [""; 0]);
        assert_eq!(of("-> &str"), [""; 0]);
    }
}
