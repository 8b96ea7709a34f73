//! `check-links` and `book`: the documents of the repository, and the source of a book made of
//! them.
//!
//! The book's source is a copy: its pages, and what they link to, in the places that they have in
//! the repository, so that all links hold. mdBook makes the book from it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::links::{self, Document, Found, SUMMARY};
use crate::{collect, read};

/// Where the copy is made; `make book` knows it, too.
const SOURCE: &str = "target/book-source";

/// All documents that git knows or would know.
fn documents(root: &Path) -> Result<BTreeMap<String, Document>> {
    let mut files = Vec::new();
    let mut is_document = |path: &Path| path.extension().is_some_and(|extension| extension == "md");
    collect(root, &mut is_document, &mut files)?;
    let mut documents = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap_or(&file);
        let path = path.display().to_string();
        let document = links::read(&path, &read(root, &path)?);
        documents.insert(path, document);
    }
    Ok(documents)
}

fn found(root: &Path, path: &str) -> Found {
    match std::fs::metadata(root.join(path)) {
        Ok(it) if it.is_dir() => Found::Directory,
        Ok(_) => Found::File,
        Err(_) => Found::Nothing,
    }
}

/// Whether all links of all documents lead somewhere.
pub(crate) fn check_links(root: &Path) -> Result<bool> {
    let documents = documents(root)?;
    let problems = links::check(&documents, &|path| found(root, path));
    for problem in &problems {
        eprintln!("{problem}");
    }
    let links: usize = documents.values().map(|it| it.targets().count()).sum();
    if problems.is_empty() {
        println!(
            "{} documents: all of their {links} links hold",
            documents.len()
        );
    }
    Ok(problems.is_empty())
}

/// Makes the source of the book anew.
pub(crate) fn write(root: &Path) -> Result<bool> {
    if !check_links(root)? {
        return Ok(false);
    }
    let documents = documents(root)?;
    let summary = documents.get(SUMMARY).context("no summary")?;
    let pages: BTreeSet<&str> = summary.targets().collect();
    let mut files = pages.clone();
    for page in &pages {
        let page = documents.get(*page).context("a page is a document")?;
        files.extend(page.targets());
    }
    let to = root.join(SOURCE);
    if to.exists() {
        std::fs::remove_dir_all(&to)?;
    }
    for file in &files {
        ensure!(*file != "SUMMARY.md", "a file has the name of mdBook's own");
        copy(&root.join(file), &to.join("src").join(file))?;
    }
    let text = links::summary_of_root(&read(root, SUMMARY)?).map_err(anyhow::Error::msg)?;
    std::fs::write(to.join("src/SUMMARY.md"), text)?;
    copy(&root.join("docs/book.toml"), &to.join("book.toml"))?;
    println!(
        "{SOURCE}: {} pages, {} other files",
        pages.len(),
        files.len() - pages.len()
    );
    Ok(true)
}

fn copy(from: &Path, to: &PathBuf) -> Result<()> {
    let directory = to.parent().context("a file lies in a directory")?;
    std::fs::create_dir_all(directory)?;
    std::fs::copy(from, to).with_context(|| format!("{}: it cannot be copied", from.display()))?;
    Ok(())
}
