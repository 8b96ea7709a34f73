//! Names and the scopes they are declared in.

use crate::syntax::tree::NameRole;
use crate::types::{Tag, TagNumber, Ty};
use std::collections::HashMap;
use std::rc::Rc;

/// What a name was declared as.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its type.
    pub ty: Ty,
    /// Whether it names a type.
    pub is_typedef: bool,
    /// What to write for it.
    pub role: NameRole,
    /// Whether it is an enumerator.
    pub is_enumerator: bool,
    /// Whether the name was declared in a system header or a header of ours.
    pub is_foreign: bool,
}

/// All names in force.
#[derive(Debug, Default)]
pub struct Scopes {
    names: Vec<HashMap<Rc<str>, Symbol>>,
    tag_names: Vec<HashMap<Rc<str>, TagNumber>>,
    /// Structures, unions and enumerations by number.
    pub tags: Vec<Tag>,
}

impl Scopes {
    /// The file's scope.
    pub fn new() -> Self {
        Self {
            names: vec![HashMap::new()],
            tag_names: vec![HashMap::new()],
            tags: Vec::new(),
        }
    }

    /// Opens a scope.
    pub fn open(&mut self) {
        self.names.push(HashMap::new());
        self.tag_names.push(HashMap::new());
    }

    /// Closes the innermost scope. The file's scope stays.
    pub fn close(&mut self) {
        if self.names.len() > 1 {
            self.names.pop();
            self.tag_names.pop();
        }
    }

    /// How many scopes are open.
    pub fn depth(&self) -> usize {
        self.names.len()
    }

    /// Closes scopes down to `depth`, after an error.
    pub fn close_to(&mut self, depth: usize) {
        while self.names.len() > depth.max(1) {
            self.close();
        }
    }

    /// Looks a name up, from the inside out.
    pub fn find(&self, name: &str) -> Option<&Symbol> {
        self.names.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Looks a name up in the innermost scope only.
    pub fn find_here(&self, name: &str) -> Option<&Symbol> {
        self.names.last().and_then(|scope| scope.get(name))
    }

    /// Looks a name up in the file's scope.
    pub fn find_in_file(&self, name: &str) -> Option<&Symbol> {
        self.names.first().and_then(|scope| scope.get(name))
    }

    /// Declares a name in the innermost scope.
    pub fn declare(&mut self, name: Rc<str>, symbol: Symbol) {
        if let Some(scope) = self.names.last_mut() {
            scope.insert(name, symbol);
        }
    }

    /// Declares a name in the file's scope.
    pub fn declare_in_file(&mut self, name: Rc<str>, symbol: Symbol) {
        if let Some(scope) = self.names.first_mut() {
            scope.insert(name, symbol);
        }
    }

    /// The tag `name`, from the inside out, or in the innermost scope only.
    pub fn find_tag(&self, name: &str, here_only: bool) -> Option<TagNumber> {
        if here_only {
            return self
                .tag_names
                .last()
                .and_then(|scope| scope.get(name))
                .copied();
        }
        self.tag_names
            .iter()
            .rev()
            .find_map(|scope| scope.get(name))
            .copied()
    }

    /// Makes a new tag in the innermost scope.
    pub fn declare_tag(&mut self, name: Rc<str>, word: &'static str) -> TagNumber {
        let number = self.tags.len();
        self.tags.push(Tag {
            word,
            name: name.clone(),
            fields: None,
            at_file_scope: self.names.len() == 1,
        });
        if let Some(scope) = self.tag_names.last_mut() {
            scope.insert(name, number);
        }
        number
    }
}
