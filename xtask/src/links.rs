//! `check-links`: what the documents of the repository link to exists: files, and headings of other
//! documents. Each page of `docs` is in the book's summary, and so is each document that a page of
//! the book links to.
//!
//! Refused: links that leave the repository, and links to directories, which a book has not.
//! Addresses of the web are not looked up: a check that needs a network fails for reasons that are
//! not ours.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// What `make book` puts beside the pages: nothing of it is in the repository.
const GENERATED: [&str; 2] = ["docs/reference/rust/", "docs/reference/c/"];
/// Its links are the pages of the book.
pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

/// A document: where its links lead, and the anchors of its headings.
#[derive(Debug, Default)]
pub(crate) struct Document {
    links: Vec<Link>,
    anchors: BTreeSet<String>,
}

#[derive(Debug)]
struct Link {
    /// From the root of the repository; or why there is none.
    to: Result<String, String>,
    anchor: Option<String>,
    as_written: String,
}

impl Document {
    /// The files that it links to.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &str> {
        let paths = self.links.iter().filter_map(|link| link.to.as_deref().ok());
        paths.filter(|path| !is_generated(path))
    }
}

fn is_generated(path: &str) -> bool {
    GENERATED.iter().any(|made| path.starts_with(made))
}

/// Reads the document at that path.
pub(crate) fn read(path: &str, text: &str) -> Document {
    let mut document = Document::default();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                document.links.extend(link(path, &dest_url));
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor_of(&heading.take().unwrap_or_default());
                let mut unique = anchor.clone();
                let mut number = 0;
                while !document.anchors.insert(unique.clone()) {
                    number += 1;
                    unique = format!("{anchor}-{number}");
                }
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            _ => {}
        }
    }
    document
}

/// What a heading is found by, in books and on web sites of repositories.
fn anchor_of(heading: &str) -> String {
    heading
        .trim()
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        })
        .flat_map(char::to_lowercase)
        .collect()
}

/// Where a link of the document at `path` leads; nothing if that is not in the repository.
fn link(path: &str, written: &str) -> Option<Link> {
    if ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| written.starts_with(scheme))
    {
        return None;
    }
    let (file, anchor) = match written.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor.to_owned())),
        None => (written, None),
    };
    let to = if file.is_empty() {
        Ok(path.to_owned())
    } else {
        resolve(path, file)
    };
    Some(Link {
        to,
        anchor,
        as_written: written.to_owned(),
    })
}

fn resolve(path: &str, file: &str) -> Result<String, String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts
                    .pop()
                    .ok_or("it leads out of the repository".to_owned())?;
            }
            name => parts.push(name),
        }
    }
    Ok(parts.join("/"))
}

/// What is at a path of the repository.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    File,
    Directory,
    Nothing,
}

/// What is wrong with the links of all documents, and with the summary.
pub(crate) fn check(
    documents: &BTreeMap<String, Document>,
    found: &dyn Fn(&str) -> Found,
) -> Vec<String> {
    let mut problems = Vec::new();
    let pages: BTreeSet<&str> = documents
        .get(SUMMARY)
        .into_iter()
        .flat_map(Document::targets)
        .collect();
    if pages.is_empty() {
        problems.push(format!("{SUMMARY}: it names no page"));
    }
    for (path, document) in documents {
        let is_page = pages.contains(path.as_str());
        if path.starts_with("docs/") && path != SUMMARY && !is_page {
            problems.push(format!("{path}: {SUMMARY} does not name this page"));
        }
        for link in &document.links {
            let mut wrong =
                |what: &str| problems.push(format!("{path}: `{}`: {what}", link.as_written));
            let to = match &link.to {
                Ok(to) if is_generated(to) => continue,
                Ok(to) => to,
                Err(why) => {
                    wrong(why);
                    continue;
                }
            };
            match found(to) {
                Found::Nothing => wrong("there is no such file"),
                Found::Directory => {
                    wrong("a book has no directories: name a file, such as its README.md")
                }
                Found::File => {
                    if is_page && to.ends_with(".md") && !pages.contains(to.as_str()) {
                        wrong(&format!(
                            "{SUMMARY} does not name that page, so the book lacks it"
                        ));
                    }
                    if let Some(anchor) = &link.anchor
                        && let Some(target) = documents.get(to)
                        && !target.anchors.contains(anchor)
                    {
                        wrong("no heading there has this anchor");
                    }
                }
            }
        }
    }
    problems
}

/// The summary for a copy of the repository that has it in its root.
pub(crate) fn summary_of_root(summary: &str) -> Result<String, String> {
    let mut text = String::new();
    for line in summary.lines() {
        let link = line.split_once("](").and_then(|(before, rest)| {
            let (path, after) = rest.split_once(')')?;
            Some((before, path, after))
        });
        match link {
            Some((before, path, after)) => {
                let path = resolve(SUMMARY, path)?;
                text += &format!("{before}]({path}){after}\n");
            }
            None => text += &format!("{line}\n"),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let documents = files
            .iter()
            .filter(|(path, _)| path.ends_with(".md"))
            .map(|(path, text)| ((*path).to_owned(), read(path, text)))
            .collect();
        let found = |at: &str| {
            if files.iter().any(|(path, _)| *path == at) {
                Found::File
            } else if files
                .iter()
                .any(|(path, _)| path.starts_with(&format!("{at}/")))
            {
                Found::Directory
            } else {
                Found::Nothing
            }
        };
        check(&documents, &found)
    }

    const SOUND: [(&str, &str); 5] = [
        (SUMMARY, "# Summary\n\n- [a](a.md)\n- [all](../README.md)\n"),
        (
            "docs/a.md",
            "# A page: of `x`\n\n## Twice\n\n## Twice\n\n[r](../README.md#top) ![p](images/p.svg) [self](#twice-1)\n",
        ),
        (
            "README.md",
            "# Top\n\n[a](docs/a.md#a-page-of-x), <https://nowhere.invalid/x>, [o](docs/reference/rust/index.html)\n",
        ),
        ("docs/images/p.svg", ""),
        ("other.md", "[here](src/x.rs)"),
    ];

    #[test]
    fn sound_links_are_sound() {
        let mut files = SOUND.to_vec();
        files.push(("src/x.rs", ""));
        assert_eq!(problems(&files), [""; 0]);
    }

    fn is_found(path: &str, from: &str, to: &str, complaint: &str) {
        let texts: Vec<(&str, String)> = SOUND
            .iter()
            .chain(&[("src/x.rs", "")])
            .map(|(at, text)| {
                let text = if *at == path {
                    text.replace(from, to)
                } else {
                    (*text).to_owned()
                };
                (*at, text)
            })
            .collect();
        let files: Vec<(&str, &str)> = texts
            .iter()
            .map(|(path, text)| (*path, text.as_str()))
            .collect();
        let problems = problems(&files);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(complaint), "{problems:?}");
    }

    #[test]
    fn what_is_wrong_is_found() {
        is_found("docs/a.md", "images/p.svg", "images/q.svg", "no such file");
        is_found("docs/a.md", "#top", "#bottom", "no heading");
        is_found("docs/a.md", "#twice-1", "#twice-2", "no heading");
        is_found("docs/a.md", "images/p.svg", "images", "no directories");
        is_found(
            "docs/a.md",
            "images/p.svg",
            "../../p.svg",
            "out of the repository",
        );
        is_found(
            "docs/a.md",
            "images/p.svg",
            "../other.md",
            "the book lacks it",
        );
        is_found("README.md", "docs/a.md#", "docs/b.md#", "no such file");
        is_found("other.md", "x.rs", "y.rs", "no such file");
    }

    #[test]
    fn a_page_that_the_summary_lacks_is_found() {
        let mut files = SOUND.to_vec();
        files.push(("src/x.rs", ""));
        files.push(("docs/new.md", "# New\n"));
        assert_eq!(
            problems(&files),
            ["docs/new.md: docs/SUMMARY.md does not name this page"]
        );
    }

    #[test]
    fn the_summary_moves_to_the_root() {
        let text =
            "# Summary\n\n[Hamlyn](../README.md)\n\n- [a](a.md)\n  - [b](decisions/b.md)\ntext\n";
        let moved = "# Summary\n\n[Hamlyn](README.md)\n\n- [a](docs/a.md)\n  - [b](docs/decisions/b.md)\ntext\n";
        assert_eq!(summary_of_root(text).as_deref(), Ok(moved));
    }
}
