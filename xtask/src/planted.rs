//! Planted bugs: edits of the product that only a copy of the tree has. They show that the tests
//! can fail.
//!
//! A bug is data in `lab/planted/*.toml`: its name, its level, its effect and its edits. An edit
//! names a file, a text that occurs in this file exactly once, and the text that replaces it. Where
//! the new text says `planted!(name)`, the copy asks a switch, so one build has all bugs and runs
//! with one of them at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The module of the switch, in the copy.
pub(crate) const MODULE: &str = "crates/engine/src/mutation.rs";
/// Declares that module.
const ROOT: &str = "crates/engine/src/lib.rs";
const LEVELS: [(&str, &str); 6] = [
    ("engine", "Engine"),
    ("library", "Library"),
    ("machine", "Machine"),
    ("ring", "Ring"),
    ("transport", "Transport"),
    ("world", "World"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    bug: Vec<Bug>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bug {
    name: String,
    /// What finds it.
    level: String,
    effect: String,
    /// None if an edit of another bug holds this one as well.
    #[serde(default)]
    edit: Vec<Edit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: String,
    /// White space does not count.
    find: String,
    put: String,
}

/// An edit and where it applies.
struct Change<'a> {
    place: Range<usize>,
    put: String,
    bug: &'a str,
}

/// What the copy has instead of the files of the tree.
#[derive(Default)]
pub(crate) struct Planted {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) bugs: usize,
    pub(crate) edits: usize,
}

pub(crate) fn parse(name: &str, text: &str) -> Result<Vec<Bug>> {
    let file: File = toml::from_str(text).with_context(|| format!("reading {name}"))?;
    Ok(file.bug)
}

/// Applies all edits; or says what is wrong with each that does not apply. `module` is the switch
/// without the list of bugs.
pub(crate) fn plant(
    bugs: &[Bug],
    module: &str,
    in_tree: &dyn Fn(&str) -> Option<String>,
) -> Result<Planted, Vec<String>> {
    let mut problems = check_bugs(bugs);
    let mut consulted = BTreeSet::new();
    let mut changes: BTreeMap<&str, Vec<Change<'_>>> = BTreeMap::new();
    let mut edits = 0;
    for bug in bugs {
        for edit in &bug.edit {
            edits += 1;
            let Some(text) = in_tree(&edit.file) else {
                problems.push(format!("{}: no file {}", bug.name, edit.file));
                continue;
            };
            match expand(edit, bugs) {
                Ok((put, names)) => {
                    consulted.extend(names);
                    match find(&text, &edit.find).as_slice() {
                        [place] => changes.entry(&edit.file).or_default().push(Change { place: place.clone(), put, bug: &bug.name }),
                        places => problems.push(format!(
                            "{}: its text must occur once in {}, and occurs {} times: {}\n  \
                             mend `find` (and `put`) in lab/planted/*.toml so that the bug is the same in the code of now",
                            bug.name,
                            edit.file,
                            places.len(),
                            edit.find.trim()
                        )),
                    }
                }
                Err(unknown) => problems.push(format!("{}: no bug {unknown}", bug.name)),
            }
        }
    }
    for bug in bugs {
        if !consulted.contains(bug.name.as_str()) {
            problems.push(format!("{}: no edit asks for it", bug.name));
        }
    }
    let mut planted = Planted {
        bugs: bugs.len(),
        edits,
        ..Planted::default()
    };
    for (file, mut changes) in changes {
        changes.sort_by_key(|change| change.place.start);
        for two in changes.windows(2) {
            if two[0].place.end > two[1].place.start {
                let (one, other) = (two[0].bug, two[1].bug);
                problems.push(format!("{one} and {other}: their edits of {file} overlap"));
            }
        }
        if problems.is_empty() {
            let mut text = in_tree(file).unwrap_or_default();
            for change in changes.iter().rev() {
                text.replace_range(change.place.clone(), &change.put);
            }
            planted.files.insert(file.to_owned(), text);
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let root = planted.files.remove(ROOT).or_else(|| in_tree(ROOT));
    let root = root.unwrap_or_default() + "\n#[allow(missing_docs)]\npub mod mutation;\n";
    planted.files.insert(ROOT.to_owned(), root);
    planted
        .files
        .insert(MODULE.to_owned(), with_list(module, bugs));
    Ok(planted)
}

/// What is wrong with the bugs themselves.
fn check_bugs(bugs: &[Bug]) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, bug) in bugs.iter().enumerate() {
        if bugs[..at].iter().any(|other| other.name == bug.name) {
            problems.push(format!("{}: two bugs have this name", bug.name));
        }
        if bugs[..at].iter().any(|other| other.effect == bug.effect) {
            problems.push(format!("{}: another bug has this effect", bug.name));
        }
        if level(bug).is_none() {
            problems.push(format!("{}: no level {}", bug.name, bug.level));
        }
    }
    problems
}

fn level(bug: &Bug) -> Option<&'static str> {
    let found = LEVELS.iter().find(|(name, _)| *name == bug.level)?;
    Some(found.1)
}

/// The new text with the switch in place of each `planted!(name)`; and those names. The error is a
/// name of no bug.
fn expand<'a>(edit: &'a Edit, bugs: &[Bug]) -> Result<(String, Vec<&'a str>), &'a str> {
    const OPEN: &str = "planted!(";
    let module = if edit.file.starts_with("crates/engine/src/") {
        "crate::mutation"
    } else {
        "hamlyn_engine::mutation"
    };
    let mut text = String::new();
    let mut names = Vec::new();
    let mut rest = edit.put.trim();
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (name, after) = after.split_once(')').unwrap_or((after, ""));
        if !bugs.iter().any(|bug| bug.name == name) {
            return Err(name);
        }
        names.push(name);
        let variant = variant(name);
        text += &format!("{before}{module}::is_on({module}::Mutation::{variant})");
        rest = after;
    }
    Ok((text + rest, names))
}

/// `key-skipped` is `KeySkipped`.
fn variant(name: &str) -> String {
    let mut variant = String::new();
    for word in name.split('-') {
        let (first, rest) = word.split_at(word.len().min(1));
        variant += &first.to_uppercase();
        variant += rest;
    }
    variant
}

fn with_list(module: &str, bugs: &[Bug]) -> String {
    let mut text = format!("{module}\nmutations! {{\n");
    for bug in bugs {
        let (level, variant) = (level(bug).unwrap_or_default(), variant(&bug.name));
        text += &format!("    {level} {variant} {:?} {:?};\n", bug.name, bug.effect);
    }
    text + "}\n"
}

/// Where the wanted text occurs; white space does not count, so an edit survives another
/// indentation.
fn find(text: &str, wanted: &str) -> Vec<Range<usize>> {
    let solid: Vec<(usize, char)> = text
        .char_indices()
        .filter(|(_, char)| !char.is_whitespace())
        .collect();
    let wanted: Vec<char> = wanted
        .chars()
        .filter(|char| !char.is_whitespace())
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    solid
        .windows(wanted.len())
        .filter(|window| window.iter().map(|(_, char)| char).eq(&wanted))
        .map(|window| {
            let (last, char) = window[window.len() - 1];
            window[0].0..last + char.len_utf8()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/link/src/a.rs";
    const TEXT: &str = "fn f() {\n    if a != b {\n        g(a);\n    }\n}\n";

    /// Plants one bug; what it should be, or what is wrong.
    fn plant_one(find: &str, put: &str) -> Result<String, Vec<String>> {
        let list = format!(
            "[[bug]]\nname = \"key-skipped\"\nlevel = \"engine\"\neffect = \"It is skipped.\"\n\
             [[bug.edit]]\nfile = \"{FILE}\"\nfind = '''{find}'''\nput = '''{put}'''\n"
        );
        plant_all(&list).map(|planted| planted.files[FILE].clone())
    }

    fn plant_all(list: &str) -> Result<Planted, Vec<String>> {
        let bugs = parse("list", list).expect("a list of bugs");
        let in_tree = |name: &str| match name {
            FILE => Some(TEXT.to_owned()),
            ROOT => Some("mod a;\n".to_owned()),
            _ => None,
        };
        plant(&bugs, "// the switch", &in_tree)
    }

    #[test]
    fn an_edit_that_applies_is_applied_and_asks_the_switch() {
        let planted = plant_one("a != b", "a != b && !planted!(key-skipped)").unwrap();
        let asks = "hamlyn_engine::mutation::is_on(hamlyn_engine::mutation::Mutation::KeySkipped)";
        assert!(planted.contains(&format!("if a != b && !{asks} {{")));
    }

    #[test]
    fn white_space_does_not_count() {
        let planted = plant_one("\nif a!=b {\ng(a);\n", "if planted!(key-skipped) { h();").unwrap();
        assert!(planted.starts_with("fn f() {\n    if hamlyn_engine"));
        assert!(planted.ends_with("{ h();\n    }\n}\n"));
    }

    #[test]
    fn a_text_that_is_gone_or_not_alone_is_a_problem() {
        for (find, times) in [
            ("a == b", "occurs 0 times"),
            ("a", "occurs 2 times"),
            ("", "0"),
        ] {
            let problems = plant_one(find, "planted!(key-skipped)").unwrap_err();
            assert!(problems[0].contains(times), "{find}: {problems:?}");
        }
    }

    #[test]
    fn a_bug_that_nothing_asks_for_is_a_problem() {
        assert_eq!(plant_one("a != b", "a == b").unwrap_err().len(), 1);
        let problems = plant_one("a != b", "planted!(other)").unwrap_err();
        assert!(problems[0].contains("no bug other"), "{problems:?}");
    }

    #[test]
    fn bugs_must_differ_have_a_level_and_keep_apart() {
        let bug = |name: &str, level: &str, effect: &str, find: &str| {
            format!(
                "[[bug]]\nname = \"{name}\"\nlevel = \"{level}\"\neffect = \"{effect}\"\n\
                 edit = [{{ file = \"{FILE}\", find = \"{find}\", put = \"planted!({name})\" }}]\n"
            )
        };
        let one = bug("one", "engine", "This.", "a != b");
        let with = |other: &str| plant_all(&format!("{one}{other}"));
        let planted = with(&bug("two", "world", "That.", "g(a)")).unwrap_or_default();
        assert_eq!((planted.bugs, planted.edits), (2, 2));
        assert!(planted.files[MODULE].contains("    World Two \"two\" \"That.\";\n"));
        assert!(planted.files[ROOT].ends_with("pub mod mutation;\n"));
        for (other, problem) in [
            (bug("one", "engine", "That.", "g(a)"), "two bugs"),
            (bug("two", "engine", "This.", "g(a)"), "this effect"),
            (bug("two", "nobody", "That.", "g(a)"), "no level"),
            (bug("two", "engine", "That.", "b {"), "overlap"),
        ] {
            let problems = with(&other).err().unwrap_or_default();
            assert!(
                problems.iter().any(|found| found.contains(problem)),
                "{problem}: {problems:?}"
            );
        }
    }
}
