//! What programs depend on once they are compiled: a listing of what the header declares, with the
//! numbers that a C compiler gives it, and what of it must not change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Each thing, `field hamlyn_error.text` say, and what is to be known of it, `at 4, 508 bytes`.
pub(crate) type Listing = BTreeMap<String, String>;

/// What a header declares.
#[derive(Default)]
pub(crate) struct Declared {
    pub(crate) functions: BTreeMap<String, String>,
    opaque: Vec<String>,
    inline: Vec<String>,
    constants: Vec<String>,
    enums: Vec<(String, Vec<String>)>,
    structs: Vec<(String, Vec<String>)>,
}

/// Reads a header as the generator writes it. Whatever it does not know ends the test.
pub(crate) fn declared(header: &str) -> Declared {
    let mut all = Declared::default();
    let mut code = String::new();
    let mut is_for_cpp = false;
    for line in without_comments(header).lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["#ifdef", "__cplusplus"] => is_for_cpp = true,
            ["#endif", ..] => is_for_cpp = false,
            ["#define", name, _, ..] if !name.contains('(') => all.constants.push(name.to_owned()),
            [first, ..] if first.starts_with('#') => {}
            _ if is_for_cpp => {}
            _ => {
                code += line;
                code.push('\n');
            }
        }
    }
    for statement in statements(&code) {
        all.take(&statement);
    }
    all
}

impl Declared {
    fn take(&mut self, statement: &str) {
        let body = || {
            let (_, rest) = statement.split_once('{').unwrap();
            let (body, name) = rest.rsplit_once('}').unwrap();
            (body.to_owned(), name.trim().to_owned())
        };
        if statement.starts_with("static inline ") {
            let before = statement.split('(').next().unwrap();
            self.inline.push(last_word(before).to_owned());
        } else if statement.starts_with("typedef enum {") {
            let (values, name) = body();
            let names = values.split(',').map(|value| first_word(value).to_owned());
            let names = names.filter(|name| !name.is_empty());
            self.enums.push((name, names.collect()));
        } else if statement.starts_with("typedef struct {")
            || statement.starts_with("struct ") && statement.contains('{')
        {
            let (fields, name) = body();
            // Its name is before its fields, if it is not after them.
            let tag = statement.strip_prefix("struct ").map(first_word);
            let name = tag.map_or(name, str::to_owned);
            let fields = fields.split(';').filter(|field| !field.trim().is_empty());
            let named = fields.map(|field| last_word(field.split('[').next().unwrap()).to_owned());
            self.structs.push((name, named.collect()));
        } else if let Some(name) = statement.strip_prefix("typedef struct ") {
            self.opaque.push(last_word(name).to_owned());
        } else if let Some((before, parameters)) = statement.split_once('(') {
            let name = last_word(before);
            let returned = before.strip_suffix(name).unwrap().trim();
            let parameters = parameters.trim().strip_suffix(')').unwrap();
            let types: Vec<String> = parameters.split(',').map(parameter_type).collect();
            let signature = format!("{returned} ({})", types.join(", "));
            self.functions.insert(name.to_owned(), signature);
        } else {
            panic!("the listing does not know what this declares: {statement}");
        }
    }
}

fn without_comments(header: &str) -> String {
    let mut code = String::new();
    let mut rest = header;
    while let Some((before, comment)) = rest.split_once("/*") {
        code += before;
        rest = comment.split_once("*/").unwrap().1;
    }
    code += rest;
    let lines = code.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// Each with single blanks, and without its semicolon.
fn statements(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut statement, mut depth) = (String::new(), 0);
    for letter in code.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        let ends_body = letter == '}' && depth == 0 && statement.starts_with("static inline");
        if letter == ';' && depth == 0 || ends_body {
            found.push(std::mem::take(&mut statement).trim().to_owned());
        } else if !letter.is_whitespace() {
            statement.push(letter);
        } else if !statement.is_empty() && !statement.ends_with(' ') {
            statement.push(' ');
        }
    }
    found.retain(|statement| !statement.is_empty());
    found
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn last_word(text: &str) -> &str {
    let text = text.trim_end();
    &text[text.trim_end_matches(is_of_word).len()..]
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    text.split(|letter| !is_of_word(letter)).next().unwrap()
}

/// Names of parameters are nothing that programs depend on.
fn parameter_type(parameter: &str) -> String {
    let parameter = parameter.trim();
    let before = parameter.strip_suffix(last_word(parameter)).unwrap();
    if before.is_empty() { parameter } else { before }
        .trim()
        .to_owned()
}

/// The listing of a header: what it declares, and the numbers that a C compiler gives it.
/// `version_of` says with which version a function is exported.
pub(crate) fn listed(
    header: &Path,
    scratch: &Path,
    version_of: impl Fn(&str) -> String,
) -> Listing {
    let all = declared(&std::fs::read_to_string(header).unwrap());
    let mut listing = Listing::new();
    for (name, signature) in &all.functions {
        let version = version_of(name);
        listing.insert(
            format!("function {name}"),
            format!("{version}, {signature}"),
        );
    }
    for name in &all.opaque {
        listing.insert(format!("handle {name}"), "opaque".to_owned());
    }
    for name in &all.inline {
        listing.insert(format!("inline {name}"), "in the header".to_owned());
    }
    // The compiler knows the rest.
    let mut program = format!(
        "#include \"{}\"\n#include <stdio.h>\nint main(void) {{\n",
        header.display()
    );
    let mut prints = |thing: &str, form: &str, values: &str| {
        writeln!(program, "printf(\"{thing}\\t{form}\\n\", {values});").unwrap();
    };
    let values = |named: &(String, Vec<String>)| named.1.clone();
    for name in all
        .constants
        .iter()
        .cloned()
        .chain(all.enums.iter().flat_map(values))
    {
        prints(
            &format!("constant {name}"),
            "%lld",
            &format!("(long long){name}"),
        );
    }
    for (name, _) in &all.enums {
        prints(
            &format!("enum {name}"),
            "%zu bytes",
            &format!("sizeof({name})"),
        );
    }
    for (name, fields) in &all.structs {
        let size = format!("sizeof({name}), _Alignof({name})");
        prints(
            &format!("struct {name}"),
            "%zu bytes, at multiples of %zu",
            &size,
        );
        for field in fields {
            let place = format!("offsetof({name}, {field}), sizeof((({name} *)0)->{field})");
            prints(
                &format!("field {name}.{field}"),
                "at %zu, %zu bytes",
                &place,
            );
        }
    }
    program += "return 0;\n}\n";
    let source = scratch.with_extension("c");
    std::fs::write(&source, program).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg("-std=c11").arg(&source).arg("-o").arg(scratch);
    let output = compiler.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let printed = Command::new(scratch).output().unwrap().stdout;
    for line in String::from_utf8(printed).unwrap().lines() {
        let (thing, value) = line.split_once('\t').unwrap();
        listing.insert(thing.to_owned(), value.to_owned());
    }
    listing
}

/// What is different now in such a way that a program that was compiled before may fail.
pub(crate) fn breaks(before: &Listing, now: &Listing) -> Vec<String> {
    let mut found = Vec::new();
    for (thing, was) in before {
        match now.get(thing) {
            None => found.push(format!("{thing} is gone")),
            Some(is) if is != was && !may_grow(thing, was, is, before) => {
                found.push(format!("{thing} was {was}, is {is}"));
            }
            Some(_) => {}
        }
    }
    for thing in now.keys().filter(|thing| !before.contains_key(*thing)) {
        let of = thing
            .strip_prefix("field ")
            .and_then(|it| it.split('.').next());
        let Some(of) = of.map(|of| format!("struct {of}")) else {
            continue;
        };
        if before.contains_key(&of) && !says_its_length(&of, before) {
            found.push(format!("{thing} is new in a structure that cannot grow"));
        }
    }
    found
}

/// A structure that begins with its length, as its program was compiled, may grow at its end.
fn says_its_length(structure: &str, listing: &Listing) -> bool {
    let first = structure.replacen("struct", "field", 1) + ".struct_bytes";
    listing
        .get(&first)
        .is_some_and(|place| place.starts_with("at 0,"))
}

fn may_grow(thing: &str, was: &str, is: &str, before: &Listing) -> bool {
    let parts = |text: &str| {
        let (bytes, alignment) = text.split_once(" bytes, ")?;
        Some((bytes.parse::<u64>().ok()?, alignment.to_owned()))
    };
    says_its_length(thing, before)
        && matches!((parts(was), parts(is)), (Some(was), Some(is)) if was.0 < is.0 && was.1 == is.1)
}

pub(crate) fn text_of(soname: &str, listing: &Listing) -> String {
    let lines = listing
        .iter()
        .map(|(thing, value)| format!("{thing}: {value}\n"));
    format!("{soname}\n{}", lines.collect::<String>())
}

/// The soname and the listing of a text.
pub(crate) fn read(text: &str) -> (String, Listing) {
    let (soname, lines) = text.split_once('\n').unwrap();
    let pair = |line: &str| {
        let (thing, value) = line.split_once(": ").unwrap();
        (thing.to_owned(), value.to_owned())
    };
    (soname.to_owned(), lines.lines().map(pair).collect())
}
