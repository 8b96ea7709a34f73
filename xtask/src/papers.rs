//! `docs/papers/*.md`: every row of each paper's inventory is there once, every file, item and test
//! that it names exists, and docs/papers.md says how many rows there are of each class. Of other
//! texts: every test that they name exists.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};

use crate::source::{code_of, has_function, has_test, words};

/// Kinds of rows that describe what is to be built.
const BUILT: [&str; 5] = ["mechanism", "field", "rule", "operation", "parameter"];
/// Begins the last cell of a row that departs from the paper on purpose.
const DEPARTURE: &str = "departure:";
/// Begins the last cell of a row of which no test can show anything.
const UNTESTED: &str = "no test:";
/// Begins the last of three cells of a row that later work will answer, which it names.
const NOT_YET: &str = "not yet:";
/// Words that a reason has at least.
const REASON_WORDS: usize = 3;
/// Rows of one paper that may cite one test: more would hardly make it fail one by one.
const CITED_MAX: usize = 21;

/// A paper: its name for readers, the file of its rows, and the list of those that must be there.
#[derive(Debug)]
pub(crate) struct Paper {
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    pub(crate) list: &'static str,
}

/// What the table of a paper says and what is wrong with it.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) problems: Vec<String>,
    pub(crate) rows: usize,
    /// Rows that cite a test and do not depart from the paper.
    pub(crate) shown: usize,
    pub(crate) departures: usize,
    pub(crate) untested: usize,
    /// Rows by the work that will answer them.
    pub(crate) not_yet: BTreeMap<String, usize>,
    /// Lines of other texts that cite a test.
    pub(crate) cited: usize,
}

impl Report {
    /// The row about a paper in docs/papers.md.
    pub(crate) fn summary(&self, paper: &Paper) -> String {
        let not_yet: usize = self.not_yet.values().sum();
        format!(
            "| [{}]({}) | {} | {} | {} | {} | {not_yet} |",
            paper.name,
            paper.file.trim_start_matches("docs/"),
            self.rows,
            self.shown,
            self.departures,
            self.untested
        )
    }
}

/// Reads the required identifiers and their kinds.
pub(crate) fn required(list: &str) -> Result<BTreeMap<&str, &str>> {
    let mut required = BTreeMap::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let (id, kind) = line
            .split_once(' ')
            .with_context(|| format!("no kind in {line:?}"))?;
        ensure!(required.insert(id, kind).is_none(), "{id} is listed twice");
    }
    Ok(required)
}

/// The cells of a row about an identifier.
fn row_of(line: &str) -> Option<Vec<&str>> {
    let cells: Vec<&str> = line
        .strip_prefix('|')?
        .trim()
        .trim_end_matches('|')
        .split('|')
        .map(str::trim)
        .collect();
    let (letter, number) = cells.first()?.split_once('-')?;
    let is_id =
        letter.len() == 1 && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_id.then_some(cells)
}

/// Checks the table of a paper. `read` gives the text of a file of the repository.
pub(crate) fn check(
    table: &str,
    required: &BTreeMap<&str, &str>,
    read: &dyn Fn(&str) -> Option<String>,
) -> Report {
    let mut report = Report::default();
    let mut lines_of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut cited: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, line) in table.lines().enumerate() {
        let number = index + 1;
        let Some(cells) = row_of(line) else { continue };
        let id = cells[0];
        let mut problems = Vec::new();
        report.rows += 1;
        lines_of.entry(id).or_default().push(number);
        if cells.get(1).is_none_or(|said| said.is_empty()) {
            problems.push("it does not say what the paper says".to_owned());
        }
        match cells[1..] {
            [_, shown] if shown.starts_with(NOT_YET) => {
                let work = shown[NOT_YET.len()..].trim();
                if work.is_empty() {
                    problems.push("it does not say which work will answer it".to_owned());
                }
                *report.not_yet.entry(work.to_owned()).or_default() += 1;
            }
            [_, place, shown] => {
                check_place(place, read, &mut problems);
                let tests = check_tests(shown, read, &mut problems);
                check_shown(shown, tests, required.get(id).copied(), &mut problems);
                if shown.starts_with(DEPARTURE) {
                    report.departures += 1;
                } else if shown.starts_with(UNTESTED) {
                    report.untested += 1;
                } else {
                    report.shown += 1;
                }
                let tests: BTreeSet<&str> = quoted(shown)
                    .filter(|text| text.contains(".rs::"))
                    .collect();
                for test in tests {
                    *cited.entry(test).or_default() += 1;
                }
            }
            _ => problems.push(format!(
                "a row has 4 cells, or 3 of which the last says \"{NOT_YET} work\"; this has {}",
                cells.len()
            )),
        }
        let named = problems
            .into_iter()
            .map(|problem| format!("line {number}: {id}: {problem}"));
        report.problems.extend(named);
    }
    for (&id, &kind) in required {
        match lines_of.get(id).map_or(&[][..], Vec::as_slice) {
            [] => report.problems.push(format!("{id} ({kind}) has no row")),
            [_] => {}
            several => report
                .problems
                .push(format!("{id} has several rows, in lines {several:?}")),
        }
    }
    for (id, lines) in &lines_of {
        if !required.contains_key(id) {
            report
                .problems
                .push(format!("line {}: {id} is not a required row", lines[0]));
        }
    }
    for (test, rows) in cited {
        if rows > CITED_MAX {
            report.problems.push(format!(
                "{test} is cited by {rows} rows: cite tests that fail for each, {CITED_MAX} rows of one test at most"
            ));
        }
    }
    report
}

/// Checks that a text says of each paper how many rows there are of each class.
pub(crate) fn check_summary(text: &str, summaries: &[String]) -> Vec<String> {
    let is_missing = |line: &&String| !text.lines().any(|said| said == line.as_str());
    let missing = summaries.iter().filter(is_missing);
    missing
        .map(|line| format!("it must have the line {line}"))
        .collect()
}

/// Checks that all tests exist that a text cites (`file::function`), in any text.
pub(crate) fn check_citations(text: &str, read: &dyn Fn(&str) -> Option<String>) -> Report {
    let mut report = Report::default();
    for (index, line) in text.lines().enumerate() {
        let mut problems = Vec::new();
        if check_tests(line, read, &mut problems) > 0 {
            report.cited += 1;
        }
        // A file that is named for itself is no citation.
        problems.retain(|problem| !problem.contains("names no test"));
        let named = problems
            .into_iter()
            .map(|problem| format!("line {}: {problem}", index + 1));
        report.problems.extend(named);
    }
    if report.cited == 0 {
        report.problems.push("it cites no test".to_owned());
    }
    report
}

/// What stands in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn is_path(text: &str) -> bool {
    !text.contains("::") && (text.contains('/') || text.ends_with(".md")) && !text.contains(' ')
}

/// Files that are named, and after each file the items in it.
fn check_place(cell: &str, read: &dyn Fn(&str) -> Option<String>, problems: &mut Vec<String>) {
    if cell.is_empty() {
        problems.push("it does not say where it lives".to_owned());
    }
    let mut file: Option<(&str, Option<String>)> = None;
    for text in quoted(cell) {
        if is_path(text) {
            let code = read(text).map(|source| code_of(&source));
            if code.is_none() {
                problems.push(format!("there is no file {text}"));
            }
            file = Some((text, code));
            continue;
        }
        let Some((path, code)) = &file else {
            problems.push(format!("`{text}` is in no file that is named before it"));
            continue;
        };
        let Some(code) = code else { continue };
        for part in text.split("::") {
            if words(code, part).next().is_none() {
                problems.push(format!("{path} has no `{part}`"));
            }
        }
    }
}

/// Number of tests that are named and exist.
fn check_tests(
    cell: &str,
    read: &dyn Fn(&str) -> Option<String>,
    problems: &mut Vec<String>,
) -> usize {
    let mut tests = 0;
    for text in quoted(cell) {
        let Some((path, name)) = text.rsplit_once("::") else {
            if is_path(text) {
                problems.push(format!("`{text}` names no test (file::function)"));
            }
            continue;
        };
        if !path.ends_with(".rs") {
            continue;
        }
        match read(path) {
            None => problems.push(format!("there is no file {path}")),
            Some(source) if is_test(path, &code_of(&source), name, read) => tests += 1,
            Some(_) => problems.push(format!("{path} has no test `fn {name}`")),
        }
    }
    tests
}

/// A function is a test if it says so itself; or, as tests that run in several worlds
/// are, if `table.rs` beside it lists it as `module::name`.
fn is_test(path: &str, code: &str, name: &str, read: &dyn Fn(&str) -> Option<String>) -> bool {
    if has_test(code, name) {
        return true;
    }
    let Some((directory, file)) = path.rsplit_once('/') else {
        return false;
    };
    let listed = format!("{}::{name}", file.trim_end_matches(".rs"));
    has_function(code, name)
        && read(&format!("{directory}/table.rs"))
            .is_some_and(|root| words(&code_of(&root), &listed).next().is_some())
}

fn check_shown(cell: &str, tests: usize, kind: Option<&str>, problems: &mut Vec<String>) {
    let reason = [DEPARTURE, UNTESTED]
        .iter()
        .find_map(|prefix| cell.strip_prefix(prefix));
    match reason {
        Some(reason) if reason.split_whitespace().count() < REASON_WORDS => {
            problems.push("it gives no reason".to_owned());
        }
        Some(_) => {}
        None if tests == 0 => {
            let built = kind.is_some_and(|kind| BUILT.contains(&kind));
            let what = if built {
                "is to be built, but"
            } else {
                "has neither a reason nor"
            };
            problems.push(format!(
                "it {what} a test: name one, or say \"{DEPARTURE} why\" or \"{UNTESTED} why\""
            ));
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# comment\nH-001 rule\nH-002 claim\n";
    const GOOD: &str = "# Title\n\n| id | paper | where | shown by |\n|---|---|---|---|\n\
        | H-001 | a rule | `crates/a/src/lib.rs` `Thing::act` | `crates/a/tests/t.rs::it_holds` |\n\
        | H-002 | a claim | `docs/x.md` | no test: nothing can be shown |\n";

    fn tree(path: &str) -> Option<String> {
        let text = match path {
            "crates/a/src/lib.rs" => "struct Thing; impl Thing { fn act() {} } // absent",
            "crates/a/tests/t.rs" => "fn helper() {}\n#[test]\nfn it_holds() {}",
            "docs/x.md" => "words",
            "crates/a/tests/all/table.rs" => "mod w; run! { w::in_all_worlds } // w::in_none",
            "crates/a/tests/all/w.rs" => "fn in_all_worlds<W>(w: &W) {} fn in_none<W>(w: &W) {}",
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn problems_of(table: &str) -> Vec<String> {
        check(table, &required(LIST).unwrap(), &tree).problems
    }

    /// Makes one change to the good table; a problem must name `word`.
    fn fails(from: &str, to: &str, word: &str) {
        assert!(GOOD.contains(from), "{from}");
        let problems = problems_of(&GOOD.replace(from, to));
        let named = problems.iter().any(|problem| problem.contains(word));
        assert!(named, "{from} -> {to}: {problems:?}");
    }

    #[test]
    fn a_true_table_passes() {
        let report = check(GOOD, &required(LIST).unwrap(), &tree);
        assert_eq!(report.problems, Vec::<String>::new());
        assert_eq!((report.rows, report.shown), (2, 1));
        assert_eq!((report.departures, report.untested), (0, 1));
        assert!(report.not_yet.is_empty());
    }

    #[test]
    fn missing_double_and_unknown_rows_are_named() {
        fails("| H-002 |", "| x |", "H-002 (claim) has no row");
        let double =
            format!("{GOOD}| H-002 | again | `docs/x.md` | no test: said once already |\n");
        assert_eq!(problems_of(&double).len(), 1);
        assert!(problems_of(&double)[0].contains("several rows"));
        let unknown = format!("{GOOD}| H-009 | more | `docs/x.md` | no test: not on the list |\n");
        assert!(problems_of(&unknown)[0].contains("H-009 is not a required row"));
    }

    #[test]
    fn missing_files_items_and_tests_are_named() {
        fails(
            "crates/a/src/lib.rs",
            "crates/b/src/lib.rs",
            "no file crates/b/src/lib.rs",
        );
        fails("docs/x.md", "docs/y.md", "no file docs/y.md");
        fails("Thing::act", "Thing::wait", "no `wait`");
        fails("Thing::act", "absent", "no `absent`");
        fails(
            "t.rs::it_holds",
            "u.rs::it_holds",
            "no file crates/a/tests/u.rs",
        );
        fails("it_holds", "it_hold", "no test `fn it_hold`");
        fails("it_holds", "helper", "no test `fn helper`");
        fails("t.rs::it_holds", "t.rs", "names no test");
    }

    #[test]
    fn a_test_may_be_listed_in_the_file_that_runs_it() {
        let cite = |test: &str| problems_of(&GOOD.replace("t.rs::it_holds", test));
        assert_eq!(cite("all/w.rs::in_all_worlds"), Vec::<String>::new());
        for not_run in ["all/w.rs::in_none", "all/w.rs::worlds", "all/table.rs::run"] {
            assert!(!cite(not_run).is_empty(), "{not_run}");
        }
    }

    #[test]
    fn a_row_without_test_or_reason_fails() {
        fails(
            "`crates/a/tests/t.rs::it_holds`",
            "seen",
            "is to be built, but",
        );
        fails("no test: nothing can be shown", "", "neither a reason nor");
        fails("no test: nothing can be shown", "departure:", "no reason");
        fails("| a claim ", "| ", "what the paper says");
        fails("| a claim ", "", "4 cells");
        fails("`docs/x.md`", "", "where it lives");
    }

    #[test]
    fn rows_of_each_paper_are_checked() {
        let list = "V-001 rule\n";
        let row = "| V-001 | a rule | `docs/x.md` | `crates/a/tests/t.rs::it_holds` |\n";
        let check_row = |table: &str| check(table, &required(list).unwrap(), &tree).problems;
        assert_eq!(check_row(row), Vec::<String>::new());
        assert!(!check_row(&row.replace("it_holds", "it_hold")).is_empty());
        assert_eq!(check_row("no row"), ["V-001 (rule) has no row"]);
    }

    #[test]
    fn a_text_cites_tests_that_exist() {
        let problems = |text: &str| check_citations(text, &tree).problems;
        let good = "Shown by `crates/a/tests/t.rs::it_holds`, see `docs/x.md`.";
        assert_eq!(problems(good), Vec::<String>::new());
        assert_eq!(check_citations(good, &tree).cited, 1);
        for (from, to) in [
            ("it_holds", "it_hold"),
            ("it_holds", "helper"),
            ("t.rs", "u.rs"),
        ] {
            assert!(!problems(&good.replace(from, to)).is_empty(), "{to}");
        }
        assert_eq!(problems("nothing"), ["it cites no test"]);
    }

    #[test]
    fn rows_that_wait_name_the_work_and_are_counted() {
        let waits = GOOD.replace(
            "| `docs/x.md` | no test: nothing can be shown |",
            "| not yet: later |",
        );
        let report = check(&waits, &required(LIST).unwrap(), &tree);
        assert_eq!(report.problems, Vec::<String>::new());
        assert_eq!(report.not_yet, BTreeMap::from([("later".to_owned(), 1)]));
        assert_eq!(
            (
                report.rows,
                report.shown,
                report.departures,
                report.untested
            ),
            (2, 1, 0, 0)
        );
        let unnamed = problems_of(&waits.replace(" later", ""));
        assert!(unnamed[0].contains("which work"), "{unnamed:?}");
        assert!(!problems_of(&waits.replace("not yet:", "perhaps")).is_empty());
    }

    #[test]
    fn a_test_that_many_rows_cite_is_named() {
        let table = |rows: usize| -> (String, String) {
            let row = |number: usize| {
                format!(
                    "| H-{number:03} | a rule | `docs/x.md` | `crates/a/tests/t.rs::it_holds` |\n"
                )
            };
            let entry = |number: usize| format!("H-{number:03} rule\n");
            ((0..rows).map(row).collect(), (0..rows).map(entry).collect())
        };
        for (rows, problems) in [(CITED_MAX, 0), (CITED_MAX + 1, 1)] {
            let (table, list) = table(rows);
            let report = check(&table, &required(&list).unwrap(), &tree);
            assert_eq!(report.problems.len(), problems, "{:?}", report.problems);
        }
    }

    #[test]
    fn the_counts_of_a_paper_are_said() {
        let paper = Paper {
            name: "A paper",
            file: "docs/papers/a.md",
            list: LIST,
        };
        let summary = check(GOOD, &required(LIST).unwrap(), &tree).summary(&paper);
        assert_eq!(summary, "| [A paper](papers/a.md) | 2 | 1 | 0 | 1 | 0 |");
        let text = format!("words\n{summary}\nmore");
        assert_eq!(
            check_summary(&text, std::slice::from_ref(&summary)),
            Vec::<String>::new()
        );
        assert_eq!(
            check_summary(&text.replace("| 2 |", "| 3 |"), &[summary]).len(),
            1
        );
    }

    #[test]
    fn the_lists_of_rows_are_sound() {
        let sizes = crate::PAPERS.map(|paper| required(paper.list).unwrap().len());
        assert_eq!(sizes, [412, 313, 283, 368]);
        assert!(required("H-001 rule\nH-001 rule").is_err());
        assert!(required("H-001").is_err());
    }
}
