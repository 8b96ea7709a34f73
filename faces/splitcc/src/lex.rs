//! The lexer: preprocessed text to tokens.
//!
//! Line markers (`# 12 "file.c" 2`) set the position of what follows. Pragmas are kept as text
//! before the token that follows them. The tokens of Split-C that C does not have (`:=`, `:-`,
//! `::`) are left as two tokens that touch: `a ? b :-1` is good C, so only the parser can tell them
//! apart (Split-C 2.2).

use crate::source::{Diagnostics, Files, Position};
use std::rc::Rc;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Identifier or keyword.
    Word,
    /// Integer or floating constant.
    Number,
    /// Character constant.
    Character,
    /// One string literal.
    Text,
    /// Operator or punctuation.
    Mark,
    /// The end of the file.
    End,
}

/// One token.
#[derive(Clone, Debug)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its spelling.
    pub text: Rc<str>,
    /// Where it is.
    pub at: Position,
    /// Whether it follows the token before without a gap.
    pub touches: bool,
    /// Pragmas that stand before it, each with its own line.
    pub pragmas: Option<Rc<str>>,
}

/// The longest first: the lexer takes the first that fits.
const MARKS: [&str; 46] = [
    "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##", "{", "}", "(", ")", "[", "]", ";", ":", ",",
    ".", "?", "=", "+", "-", "*", "/", "%", "<", ">", "!", "~", "&", "|",
];

/// Cuts `source` into tokens. The last one is [`TokenKind::End`].
pub fn tokens(source: &str, files: &mut Files, diagnostics: &mut Diagnostics) -> Vec<Token> {
    let mut lexer = Lexer {
        bytes: source.as_bytes(),
        source,
        offset: 0,
        at: Position {
            file: files.number("<input>", false),
            line: 1,
            column: 1,
        },
        line_start: 0,
        out: Vec::new(),
        pragmas: String::new(),
        last_end: usize::MAX,
        words: std::collections::HashMap::new(),
    };
    lexer.run(files, diagnostics);
    lexer.out
}

struct Lexer<'a> {
    bytes: &'a [u8],
    source: &'a str,
    offset: usize,
    at: Position,
    line_start: usize,
    out: Vec<Token>,
    pragmas: String,
    last_end: usize,
    words: std::collections::HashMap<&'a str, Rc<str>>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.offset + ahead).copied().unwrap_or(0)
    }

    fn here(&self) -> Position {
        Position {
            column: (self.offset - self.line_start) as u32 + 1,
            ..self.at
        }
    }

    fn newline(&mut self) {
        self.offset += 1;
        self.at.line = self.at.line.saturating_add(1);
        self.line_start = self.offset;
    }

    fn run(&mut self, files: &mut Files, diagnostics: &mut Diagnostics) {
        while self.offset < self.bytes.len() {
            let byte = self.peek(0);
            match byte {
                b'\n' => self.newline(),
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.offset += 1,
                b'\\' if self.peek(1) == b'\n' => {
                    self.offset += 1;
                    self.newline();
                }
                b'#' if self.source[self.line_start..self.offset].trim().is_empty() => {
                    self.directive(files)
                }
                b'/' if self.peek(1) == b'*' => self.comment(diagnostics),
                b'/' if self.peek(1) == b'/' => {
                    while self.offset < self.bytes.len() && self.peek(0) != b'\n' {
                        self.offset += 1;
                    }
                }
                _ => self.token(diagnostics),
            }
        }
        let at = self.here();
        let pragmas = self.take_pragmas();
        self.out.push(Token {
            kind: TokenKind::End,
            text: "end of file".into(),
            at,
            touches: false,
            pragmas,
        });
    }

    fn take_pragmas(&mut self) -> Option<Rc<str>> {
        (!self.pragmas.is_empty()).then(|| std::mem::take(&mut self.pragmas).into())
    }

    fn comment(&mut self, diagnostics: &mut Diagnostics) {
        let start = self.here();
        self.offset += 2;
        while self.offset < self.bytes.len() {
            if self.peek(0) == b'*' && self.peek(1) == b'/' {
                self.offset += 2;
                return;
            }
            if self.peek(0) == b'\n' {
                self.newline()
            } else {
                self.offset += 1
            }
        }
        diagnostics.error(start, "unterminated comment; end it with '*/'");
    }

    /// A line that begins with `#`: a line marker or a pragma.
    fn directive(&mut self, files: &mut Files) {
        let end = self.bytes[self.offset..]
            .iter()
            .position(|&b| b == b'\n')
            .map_or(self.bytes.len(), |n| self.offset + n);
        let line = &self.source[self.offset..end];
        let body = line[1..].trim_start();
        let body = body.strip_prefix("line").map_or(body, str::trim_start);
        let digits: String = body.chars().take_while(char::is_ascii_digit).collect();
        self.offset = end;
        if digits.is_empty() {
            if body.starts_with("pragma") {
                self.pragmas.push_str(line.trim_end());
                self.pragmas.push('\n');
            }
            return;
        }
        let number: u32 = digits.parse().unwrap_or(1);
        let rest = body[digits.len()..].trim();
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut chars = quoted.char_indices();
            let mut flags = "";
            while let Some((index, c)) = chars.next() {
                match c {
                    '"' => {
                        flags = &quoted[index + 1..];
                        break;
                    }
                    '\\' => name.extend(chars.next().map(|(_, c)| c)),
                    _ => name.push(c),
                }
            }
            let system = flags.split_whitespace().any(|flag| flag == "3");
            self.at.file = files.number(&name, system);
        }
        // The newline at the end of this line counts one up.
        self.at.line = number.saturating_sub(1);
        if self.offset < self.bytes.len() {
            self.newline();
        }
    }

    fn token(&mut self, diagnostics: &mut Diagnostics) {
        let start = self.offset;
        let at = self.here();
        let byte = self.peek(0);
        let kind = match byte {
            b'L' | b'u' | b'U' if self.string_prefix() > 0 => {
                self.offset += self.string_prefix();
                self.quoted(diagnostics, at)
            }
            b'"' | b'\'' => self.quoted(diagnostics, at),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => {
                while matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | 0x80..)
                {
                    self.offset += 1;
                }
                TokenKind::Word
            }
            _ => {
                let rest = &self.bytes[start..];
                if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(mark.as_bytes())) {
                    self.offset += mark.len();
                } else if byte == b'^' || byte == b'#' {
                    self.offset += 1;
                } else {
                    self.offset += 1;
                    let shown = if byte.is_ascii_graphic() {
                        (byte as char).to_string()
                    } else {
                        format!("\\{byte:o}")
                    };
                    diagnostics.error(at, format!("stray '{shown}' in program; remove it"));
                    return;
                }
                TokenKind::Mark
            }
        };
        let spelling = &self.source[start..self.offset];
        let text = self
            .words
            .entry(spelling)
            .or_insert_with(|| spelling.into())
            .clone();
        let touches = self.last_end == start;
        self.last_end = self.offset;
        let pragmas = self.take_pragmas();
        self.out.push(Token {
            kind,
            text,
            at,
            touches,
            pragmas,
        });
    }

    /// The length of `L`, `u`, `U` or `u8` if a quote follows.
    fn string_prefix(&self) -> usize {
        match (self.peek(0), self.peek(1), self.peek(2)) {
            (_, b'"' | b'\'', _) => 1,
            (b'u', b'8', b'"') => 2,
            _ => 0,
        }
    }

    fn quoted(&mut self, diagnostics: &mut Diagnostics, at: Position) -> TokenKind {
        let quote = self.peek(0);
        self.offset += 1;
        loop {
            match self.peek(0) {
                b'\\' if self.offset + 1 < self.bytes.len() => {
                    if self.peek(1) == b'\n' {
                        self.offset += 1;
                        self.newline();
                    } else {
                        self.offset += 1;
                        self.offset += self.source[self.offset..]
                            .chars()
                            .next()
                            .map_or(1, char::len_utf8);
                    }
                }
                b'\n' | 0 if self.peek(0) == b'\n' || self.offset >= self.bytes.len() => {
                    diagnostics.error(
                        at,
                        format!("missing terminating {} character", quote as char),
                    );
                    break;
                }
                byte => {
                    self.offset += 1;
                    if byte == quote {
                        break;
                    }
                }
            }
        }
        self.offset = self.offset.min(self.bytes.len());
        if quote == b'"' {
            TokenKind::Text
        } else {
            TokenKind::Character
        }
    }

    fn number(&mut self) -> TokenKind {
        while self.offset < self.bytes.len() {
            let byte = self.peek(0);
            let exponent =
                matches!(byte, b'e' | b'E' | b'p' | b'P') && matches!(self.peek(1), b'+' | b'-');
            // `0xE+1` is one number for the preprocessor, too.
            if exponent {
                self.offset += 2;
            } else if byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_' {
                self.offset += 1;
            } else {
                break;
            }
        }
        TokenKind::Number
    }
}

#[cfg(test)]
#[path = "lex_tests.rs"]
mod tests;
