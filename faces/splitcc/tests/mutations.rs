//! Mutated sources never make the front end panic or hang.

use splitcc::{Settings, translate};
use std::path::Path;

/// A small generator with a fixed start: a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    "::",
    ":=",
    ":-",
    "*global ",
    "*spread ",
    "*",
    "&",
    "?",
    "struct ",
    "typedef ",
    "int ",
    "0",
    "\"",
    "'",
    "sizeof ",
    "atomic(",
    "tolocal(",
    "return ",
    "if (",
    "else ",
    "for (",
    "->",
    ".",
    "...",
    "goto x;",
    "case 1:",
    "extern ",
    "static ",
    "__attribute__((",
    "({",
    "})",
    "x",
    "\\",
    "/*",
    "#",
    "\u{e9}",
    "enum {",
    "union {",
    "void ",
];

fn mutate(source: &str, random: &mut Random) -> String {
    let mut text: Vec<char> = source.chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(text.len());
        match random.below(5) {
            0 => {
                let end = (at + 1 + random.below(12)).min(text.len());
                text.drain(at..end);
            }
            1 => {
                let piece = PIECES[random.below(PIECES.len())];
                text.splice(at..at, piece.chars());
            }
            2 => {
                let end = (at + random.below(40)).min(text.len());
                let copy: Vec<char> = text[at..end].to_vec();
                let to = random.below(text.len());
                text.splice(to..to, copy);
            }
            3 => text.truncate(at),
            _ => {
                let to = random.below(text.len());
                if at < text.len() && to < text.len() {
                    text.swap(at, to);
                }
            }
        }
        if text.is_empty() {
            break;
        }
    }
    text.into_iter().collect()
}

/// The programs without what the preprocessor would do: declarations that stand for the headers.
const HEADER: &str = "extern void barrier(void) __attribute__((__splitc_calls__(splitc_barrier)));
extern void sync(void) __attribute__((__splitc_calls__(splitc_sync)));
extern void *spread all_spread_malloc(long, unsigned long) __attribute__((__splitc_calls__(splitc_all_spread_malloc)));
extern void bulk_get(void *, const void *global, unsigned long) __attribute__((__splitc_calls__(splitc_get)));
extern int printf(const char *, ...), MYPROC, PROCS, NEXT, LAST; extern void *malloc(unsigned long);
";

#[test]
fn no_mutation_makes_the_front_end_fail() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut sources: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    sources.sort();
    // Another start, for longer runs by hand.
    let seed = std::env::var("SPLITCC_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let mut random = Random(seed.unwrap_or(0x2545_f491_4f6c_dd1d));
    let mut translated = 0;
    for path in sources
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "sc"))
    {
        let text = std::fs::read_to_string(path).unwrap();
        let body: String = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect();
        let body = body
            .replace("DONE();", "return 0;")
            .replace("on_one", "if (!MYPROC)")
            .replace("NULL", "0");
        let whole = format!("{HEADER}{body}");
        for _ in 0..60 {
            let mutated = mutate(&whole, &mut random);
            let split_phase = random.below(2) == 0;
            let translation = translate(
                &mutated,
                Settings {
                    split_phase,
                    warnings: true,
                },
            );
            assert!(
                !translation.messages.contains("the compiler failed"),
                "{}:\n{mutated}",
                path.display()
            );
            assert_eq!(
                translation.c_text.is_some(),
                translation.errors == 0,
                "{}:\n{mutated}",
                path.display()
            );
            translated += usize::from(translation.c_text.is_some());
        }
    }
    // If all were refused, the emitter would not have been tested.
    assert!(
        translated > 300,
        "only {translated} mutations were translated"
    );
}
