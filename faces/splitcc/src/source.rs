//! Source positions and diagnostics.
//!
//! A position names a file and a line as the preprocessor's line markers give them, and a column of
//! the preprocessed text. Diagnostics have the form of a C compiler's:
//! `file:line:column: error: message`, the source line and a caret. At most [`ERROR_LIMIT`] errors
//! are kept; the front end stops after that.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

/// The front end stops after so many errors.
pub const ERROR_LIMIT: usize = 50;

/// A place in a source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The number of the file, for [`Files::name`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// The files that line markers named.
#[derive(Default, Debug)]
pub struct Files {
    names: Vec<Rc<str>>,
    system: Vec<bool>,
    index: HashMap<(Rc<str>, bool), u32>,
}

impl Files {
    /// The number of the file `name`; a file counts as another if it is (not) a system header.
    pub fn number(&mut self, name: &str, system: bool) -> u32 {
        let name: Rc<str> = name.into();
        if let Some(&number) = self.index.get(&(name.clone(), system)) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.clone());
        self.system.push(system);
        self.index.insert((name, system), number);
        number
    }

    /// The name of file `number`.
    pub fn name(&self, number: u32) -> &str {
        self.names
            .get(number as usize)
            .map_or("<input>", |name| name)
    }

    /// Whether the preprocessor called it a system header.
    pub fn is_system(&self, number: u32) -> bool {
        self.system.get(number as usize).copied().unwrap_or(false)
    }
}

/// How serious a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The program is not compiled.
    Error,
    /// The program is compiled.
    Warning,
}

/// One message about a place.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// How serious it is.
    pub severity: Severity,
    /// Where.
    pub position: Position,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Collects diagnostics.
#[derive(Default, Debug)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
}

impl Diagnostics {
    /// Adds an error. A second error at the same place is not kept.
    pub fn error(&mut self, position: Position, message: impl Into<String>) {
        let same_place = self
            .list
            .iter()
            .any(|d| d.severity == Severity::Error && d.position == position);
        if same_place || self.errors >= ERROR_LIMIT {
            return;
        }
        self.errors += 1;
        self.list.push(Diagnostic {
            severity: Severity::Error,
            position,
            message: message.into(),
        });
    }

    /// Adds a warning.
    pub fn warning(&mut self, position: Position, message: impl Into<String>) {
        if self.list.len() < 10 * ERROR_LIMIT {
            self.list.push(Diagnostic {
                severity: Severity::Warning,
                position,
                message: message.into(),
            });
        }
    }

    /// How many errors there are.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Whether no more errors are taken.
    pub fn is_full(&self) -> bool {
        self.errors >= ERROR_LIMIT
    }

    /// All diagnostics, in the order in which they were found.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// The text of all diagnostics. `with_warnings` is false under `-w`.
    pub fn render(&self, files: &Files, with_warnings: bool) -> String {
        let mut text = String::new();
        let mut cache: HashMap<u32, Option<Vec<String>>> = HashMap::new();
        for diagnostic in &self.list {
            let word = match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning if with_warnings => "warning",
                Severity::Warning => continue,
            };
            let Position { file, line, column } = diagnostic.position;
            let name = files.name(file);
            let _ = writeln!(
                text,
                "{name}:{line}:{column}: {word}: {}",
                diagnostic.message
            );
            let lines = cache.entry(file).or_insert_with(|| {
                let bytes = std::fs::read(name).ok()?;
                Some(
                    String::from_utf8_lossy(&bytes)
                        .lines()
                        .map(str::to_owned)
                        .collect(),
                )
            });
            if let Some(source) = lines
                .as_ref()
                .and_then(|lines| lines.get((line as usize).wrapping_sub(1)))
            {
                let _ = writeln!(text, "{line:5} | {source}");
                let before: String = source
                    .chars()
                    .take((column as usize).saturating_sub(1))
                    .map(|c| if c == '\t' { '\t' } else { ' ' })
                    .collect();
                let _ = writeln!(text, "      | {before}^");
            }
        }
        if self.is_full() {
            text.push_str("splitcc: too many errors; the rest of the file was not read\n");
        }
        text
    }
}
