//! The shape of the tree (DESIGN: no arrow upward, no circle): which crate uses which, and which
//! files of a crate use each other in a circle.
//!
//! A crate uses only crates below it, and nothing outside `lab` uses `lab`; what only tests use is
//! free. Circles of files that are there today are listed in `xtask/data/circles.txt`; the list may
//! only become shorter. And where a package lists its programs of tests, each file of tests is in
//! one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use syn::visit::{self, Visit};

const CIRCLES: &str = "xtask/data/circles.txt";

/// From the bottom to the top; a crate uses those of lines above its own. Folders of one line do
/// not use each other.
const ORDER: [&[&str]; 15] = [
    &["crates/engine", "crates/testbed"],
    &["crates/ring"],
    &["crates/link"],
    &["crates/host"],
    &["crates/hamlyn"],
    &["crates/tokio", "layers/job"],
    &["layers/splitc", "layers/am", "layers/udm"],
    &["layers/locks", "layers/crl"],
    &["faces/boundary"],
    &[
        "faces/c",
        "faces/python",
        "faces/splitc",
        "faces/am",
        "faces/udm",
    ],
    &["faces/splitcc", "faces/cli"],
    &["examples", "xtask"],
    &["lab/programs"],
    &["lab/sim", "lab/counted", "lab/fuzz"],
    &["lab/command", "lab/compare"],
];

pub(crate) fn check(root: &Path) -> Result<bool> {
    let mut problems = Vec::new();
    let mut files = 0;
    let mut circles = BTreeSet::new();
    for folder in ORDER.iter().copied().flatten() {
        let manifest = std::fs::read_to_string(root.join(folder).join("Cargo.toml"))
            .with_context(|| format!("{folder}/Cargo.toml"))?;
        problems.extend(upward(folder, &manifest)?);
        problems.extend(tests_of_no_program(
            folder,
            &manifest,
            &tests_in(&root.join(folder))?,
        )?);
        let mut modules = BTreeMap::new();
        collect(
            &root.join(folder).join("src"),
            &mut Vec::new(),
            &mut modules,
        )?;
        files += modules.len();
        let named: BTreeMap<Vec<String>, String> = modules
            .iter()
            .map(|(module, file)| (module.clone(), format!("{folder}/{}", file.0)))
            .collect();
        for circle in circles_of(&uses_of(&modules)?) {
            let members: Vec<&str> = circle.iter().map(|module| named[module].as_str()).collect();
            circles.insert(members.join(" "));
        }
    }
    let text = std::fs::read_to_string(root.join(CIRCLES)).context(CIRCLES)?;
    let known: BTreeSet<String> = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    problems.extend(new_circles(&circles, &known));
    for problem in &problems {
        eprintln!("{problem}");
    }
    println!(
        "{} crates, {files} files: {} circles of files, all known",
        ORDER.iter().map(|line| line.len()).sum::<usize>(),
        circles.len()
    );
    Ok(problems.is_empty())
}

/// Circles that are not in the list, and entries of the list that are no circle any more.
fn new_circles(circles: &BTreeSet<String>, known: &BTreeSet<String>) -> Vec<String> {
    let files = |circle: &str| {
        circle
            .split(' ')
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    let mut problems = Vec::new();
    for circle in circles.difference(known) {
        // A part of a known circle is progress, but the list must say so.
        let is_part = known
            .iter()
            .any(|known| files(circle).is_subset(&files(known)));
        problems.push(if is_part {
            format!("{CIRCLES}: a known circle is smaller now; replace its line by: {circle}")
        } else {
            format!("these files use each other in a circle that is not known: {circle}")
        });
    }
    for circle in known.difference(circles) {
        problems.push(format!(
            "{CIRCLES}: is no circle any more; remove: {circle}"
        ));
    }
    problems
}

fn rank(folder: &str) -> Option<usize> {
    ORDER.iter().position(|line| line.contains(&folder))
}

/// The name of a package of ours, as other crates call it.
fn folder_of(package: &str) -> Option<&'static str> {
    let known = [
        ("hamlyn-engine", "crates/engine"),
        ("hamlyn-ring", "crates/ring"),
        ("hamlyn-link", "crates/link"),
        ("hamlyn-host", "crates/host"),
        ("hamlyn", "crates/hamlyn"),
        ("hamlyn-tokio", "crates/tokio"),
        ("hamlyn-testbed", "crates/testbed"),
        ("hamlyn-job", "layers/job"),
        ("hamlyn-splitc", "layers/splitc"),
        ("hamlyn-am", "layers/am"),
        ("hamlyn-locks", "layers/locks"),
        ("hamlyn-crl", "layers/crl"),
        ("hamlyn-udm", "layers/udm"),
        ("hamlyn-c", "faces/c"),
        ("hamlyn-cli", "faces/cli"),
        ("hamlyn-splitcc", "faces/splitcc"),
        ("hamlyn-splitc-c", "faces/splitc"),
        ("hamlyn-boundary", "faces/boundary"),
        ("hamlyn-am-c", "faces/am"),
        ("hamlyn-udm-c", "faces/udm"),
        ("hamlyn-sim", "lab/sim"),
        ("hamlyn-counted", "lab/counted"),
        ("hamlyn-programs", "lab/programs"),
        ("hamlyn-lab", "lab/command"),
    ];
    known
        .iter()
        .find(|(name, _)| *name == package)
        .map(|(_, folder)| *folder)
}

/// Dependencies of a crate that do not lie below it.
fn upward(folder: &str, manifest: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = toml::from_str(manifest)?;
    let own = rank(folder).context("a folder of the order")?;
    let Some(dependencies) = manifest.get("dependencies").and_then(|it| it.as_table()) else {
        return Ok(Vec::new());
    };
    Ok(dependencies
        .keys()
        .filter_map(|package| Some((package, folder_of(package)?)))
        .filter(|(_, below)| rank(below).is_none_or(|below| below >= own))
        .map(|(package, below)| {
            format!("{folder} uses {package} ({below}), which does not lie below it")
        })
        .collect())
}

/// The files in a package's folder of tests: their names without the ending, and their texts.
fn tests_in(package: &Path) -> Result<Vec<(String, String)>> {
    let folder = package.join("tests");
    let mut files = Vec::new();
    for entry in folder.read_dir().into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "rs") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            files.push((name.into_owned(), std::fs::read_to_string(&path)?));
        }
    }
    files.sort();
    Ok(files)
}

/// Tests that would not be run, in a package that lists its programs of tests: each file is a
/// program, or a module of one.
fn tests_of_no_program(
    folder: &str,
    manifest: &str,
    files: &[(String, String)],
) -> Result<Vec<String>> {
    let manifest: toml::Table = toml::from_str(manifest)?;
    let package = manifest.get("package").context("a package")?;
    if package.get("autotests").and_then(toml::Value::as_bool) != Some(false) {
        return Ok(Vec::new());
    }
    let listed = manifest.get("test").and_then(toml::Value::as_array);
    let named: BTreeSet<&str> = listed
        .into_iter()
        .flatten()
        .filter_map(|program| program.get("name")?.as_str())
        .collect();
    let (programs, others): (Vec<_>, Vec<_>) = files
        .iter()
        .partition(|(name, _)| named.contains(name.as_str()));
    Ok(others
        .iter()
        .filter(|(name, _)| {
            let module = format!("\nmod {name};");
            !programs.iter().any(|(_, text)| text.contains(&module))
        })
        .map(|(name, _)| format!("{folder}/tests/{name}.rs is in no program of tests: name it"))
        .collect())
}

/// The path of a module within its crate, and its file and text.
type Modules = BTreeMap<Vec<String>, (String, String)>;

/// The files of a crate, tests left out.
fn collect(directory: &Path, module: &mut Vec<String>, modules: &mut Modules) -> Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(directory)
        .with_context(|| directory.display().to_string())?
        .collect::<std::io::Result<_>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if stem == "tests" || stem.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            module.push(stem);
            collect(&path, module, modules)?;
            module.pop();
        } else if path.extension().is_some_and(|it| it == "rs") {
            let mut own = module.clone();
            if !["lib", "main", "mod"].contains(&stem.as_str()) {
                own.push(stem.clone());
            } else if stem == "main" {
                own.push("main.rs".to_owned());
            }
            let file = std::iter::once("src".to_owned())
                .chain(module.iter().cloned())
                .chain([format!("{stem}.rs")])
                .collect::<Vec<_>>()
                .join("/");
            modules.insert(own, (file, std::fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// Which modules of the same crate each module uses.
type Uses = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

fn uses_of(modules: &Modules) -> Result<Uses> {
    let mut all = BTreeMap::new();
    for (module, (file, text)) in modules {
        let parsed = syn::parse_file(text).with_context(|| format!("parsing {file}"))?;
        let mut paths = Paths::default();
        paths.visit_file(&parsed);
        let used = paths
            .found
            .iter()
            .filter_map(|path| resolve(module, path, modules))
            .filter(|used| used != module)
            .collect();
        all.insert(module.clone(), used);
    }
    Ok(all)
}

/// The module to which a path leads that is written in that module; none if that is of another
/// crate.
fn resolve(module: &[String], path: &[String], modules: &Modules) -> Option<Vec<String>> {
    let (mut at, mut rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.to_vec(), &path[1..]),
        "super" => (module.to_vec(), path),
        first => {
            let mut child = module.to_vec();
            child.push(first.to_owned());
            if !modules.contains_key(&child) {
                return None;
            }
            (module.to_vec(), path)
        }
    };
    while rest.first().is_some_and(|word| word == "super") {
        at.pop()?;
        rest = &rest[1..];
    }
    for word in rest {
        let mut child = at.clone();
        child.push(word.clone());
        if !modules.contains_key(&child) {
            break;
        }
        at = child;
    }
    modules.contains_key(&at).then_some(at)
}

#[derive(Default)]
struct Paths {
    found: BTreeSet<Vec<String>>,
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|word| word == "test")
    })
}

fn add_tree(tree: &syn::UseTree, before: &mut Vec<String>, found: &mut BTreeSet<Vec<String>>) {
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            add_tree(&path.tree, before, found);
            before.pop();
        }
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                add_tree(tree, before, found);
            }
        }
        syn::UseTree::Name(name) => {
            let mut path = before.clone();
            path.push(name.ident.to_string());
            found.insert(path);
        }
        syn::UseTree::Rename(name) => {
            let mut path = before.clone();
            path.push(name.ident.to_string());
            found.insert(path);
        }
        syn::UseTree::Glob(_) => {
            found.insert(before.clone());
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // What a module shows of its children is no use of them.
        if !is_for_tests(&item.attrs) && matches!(item.vis, syn::Visibility::Inherited) {
            add_tree(&item.tree, &mut Vec::new(), &mut self.found);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let words = path.segments.iter().map(|it| it.ident.to_string());
            self.found.insert(words.collect());
        }
        visit::visit_path(self, path);
    }
}

/// The sets of modules each of which leads to all others (Tarjan's, by two walks).
fn circles_of(uses: &Uses) -> Vec<BTreeSet<Vec<String>>> {
    let reached = |from: &Vec<String>| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&Vec<String>> = uses[from].iter().collect();
        while let Some(module) = open.pop() {
            if seen.insert(module.clone()) {
                open.extend(&uses[module]);
            }
        }
        seen
    };
    let all: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> = uses
        .keys()
        .map(|module| (module, reached(module)))
        .collect();
    let mut circles: BTreeSet<BTreeSet<Vec<String>>> = BTreeSet::new();
    for (module, reach) in &all {
        if reach.contains(*module) {
            let mutual = reach.iter().filter(|other| all[other].contains(*module));
            circles.insert(mutual.cloned().collect());
        }
    }
    circles.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        files
            .iter()
            .map(|(module, text)| {
                let path = module.split("::").filter(|word| !word.is_empty());
                let path: Vec<String> = path.map(str::to_owned).collect();
                (path, (format!("{module}.rs"), (*text).to_owned()))
            })
            .collect()
    }

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let found = circles_of(&uses_of(&modules(files)).unwrap());
        let name = |circle: &BTreeSet<Vec<String>>| {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            names.join(" ")
        };
        found.iter().map(name).collect()
    }

    #[test]
    fn files_that_use_each_other_are_a_circle() {
        let text = "use crate::b::B; fn f() { crate::c::g() }";
        assert_eq!(
            circles(&[("", ""), ("a", text), ("b", ""), ("c", "")]),
            [""; 0]
        );
        let back = "use super::a::{A, f};";
        assert_eq!(
            circles(&[("", ""), ("a", text), ("b", back), ("c", "")]),
            ["a b"]
        );
        // Over a third.
        let (on, back) = ("use crate::c::C;", "fn f(a: &crate::a::A) {}");
        assert_eq!(
            circles(&[("", ""), ("a", text), ("b", on), ("c", back)]),
            ["a b c"]
        );
        // A parent and its child.
        let (parent, child) = ("mod b; use b::B;", "use super::A;");
        assert_eq!(
            circles(&[("", ""), ("a", parent), ("a::b", child)]),
            ["a a::b"]
        );
        // What is shown of a child, and what tests use, is none.
        let (parent, child) = (
            "mod b; pub use b::B;",
            "#[cfg(test)] mod tests { use crate::a::A; }",
        );
        assert_eq!(
            circles(&[("", ""), ("a", parent), ("a::b", child)]),
            [""; 0]
        );
    }

    #[test]
    fn arrows_go_down_only() {
        let dependency = |name: &str| format!("[dependencies]\n{name} = {{ workspace = true }}\n");
        let problems = |folder: &str, name: &str| upward(folder, &dependency(name)).unwrap().len();
        assert_eq!(problems("crates/hamlyn", "hamlyn-host"), 0);
        assert_eq!(problems("crates/host", "hamlyn"), 1);
        assert_eq!(problems("crates/hamlyn", "hamlyn-sim"), 1);
        assert_eq!(problems("faces/cli", "hamlyn-lab"), 1);
        assert_eq!(problems("lab/command", "hamlyn-cli"), 0);
        let of_tests = "[dev-dependencies]\nhamlyn-sim = { path = \"\" }\n";
        assert_eq!(upward("crates/hamlyn", of_tests).unwrap(), [""; 0]);
    }

    #[test]
    fn a_file_of_tests_that_nobody_names_is_found() {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let files = [
            file("all", "//! All.\n\nmod slots;\n"),
            file("forgotten", "mod slots;"),
            file("loom", ""),
            file("slots", ""),
        ];
        let problems = |manifest: &str| tests_of_no_program("crates/x", manifest, &files).unwrap();
        let listed = "[package]\nautotests = false\n[[test]]\nname = \"all\"\n";
        let found = problems(&format!("{listed}[[test]]\nname = \"loom\"\n"));
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("tests/forgotten.rs"), "{found:?}");
        assert_eq!(problems(listed).len(), 2);
        // Cargo finds them by itself.
        assert_eq!(problems("[package]\n"), [""; 0]);
    }

    #[test]
    fn the_list_of_circles_only_becomes_shorter() {
        let set = |lines: &[&str]| {
            lines
                .iter()
                .map(|it| (*it).to_owned())
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(new_circles(&set(&["a b"]), &set(&["a b"])), [""; 0]);
        assert_eq!(new_circles(&set(&["a b"]), &set(&[])).len(), 1);
        assert_eq!(new_circles(&set(&[]), &set(&["a b"])).len(), 1);
        assert_eq!(new_circles(&set(&["a b"]), &set(&["a b c"])).len(), 2);
    }
}
