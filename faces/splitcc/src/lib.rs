//! The Split-C compiler: reads Split-C, writes C (decision 0038; Split-C 2.2, 3).
//!
//! It refuses what is wrong in Split-C, with place and remedy. What is wrong in plain C it leaves
//! to the C compiler, which sees the user's lines. It keeps no state between runs and never
//! computes sizes or offsets: the C compiler does.
//!
//! # How a file goes through
//!
//! 1. [`driver`] runs `cc -E` with `split-c/compiler.h` included first; [`old_strings`] helps with
//!    literals over several lines.
//! 2. [`lex`] cuts the text into tokens with positions ([`source`]).
//! 3. [`syntax`] reads them into a tree. It keeps the names ([`scope`]), and gives each expression
//!    its type ([`types`]) by
//!    the rules of [`check`]. A node knows its tokens, whether it denotes a place behind a global address, and whether it
//!    or a part of it must be written anew.
//! 4. [`split_phase`] finds, with optimisation, accesses that may be under way at the same time.
//! 5. [`emit`] copies what is plain C token by token, on its line and column, and writes the rest
//!    anew: accesses become
//!    inline functions of the runtime, global types become `splitc_global`.
//! 6. [`driver`] runs `cc` on the result, and links.
//!
//! # What becomes of the language
//!
//! | Split-C | C |
//! |---|---|
//! | `T *global p`, `T *spread p`, `T X[n]::[m]` | `splitc_global` |
//! | `*p` read | `({ T v; splitc_read(&v, p, sizeof v, place); v; })` |
//! | `p->f[i]` | the address is `splitc_step(p + offsetof(T, f), i, sizeof(E))` |
//! | `X[i][j]` | the address is `splitc_spread_add(X, i * d1 + j, sizeof(E))` |
//! | `:=` | `splitc_get`, `splitc_put` |
//! | `:-` | `splitc_store` |
//! | a local `T X[n]::[m]` | `splitc_all_spread_malloc`, freed by a cleanup attribute |
//! | a static one | one word, allocated before `splitc_main` in the order of constructors |
//! | `atomic(f, p, a)` | a structure of arguments and a function that unpacks them |
//! | `malloc` and others | `splitc_malloc`: memory that other processors may read |
//! | operations of `split-c.h` | what its attributes say, with the place of the call |
//!
//! `extern inline` has its old meaning, "for inlining only": such functions are made static, so
//! that they work without optimisation. `register` is not written, because split-phase operations
//! take addresses.

#![forbid(unsafe_code)]

pub mod check;
pub mod driver;
pub mod emit;
pub mod lex;
pub mod manual;
pub mod old_strings;
pub mod scope;
pub mod source;
pub mod split_phase;
pub mod syntax;
pub mod types;

use source::{Diagnostics, Files};

/// What the front end makes of one preprocessed file.
#[derive(Debug)]
pub struct Translation {
    /// The C text, if there were no errors.
    pub c_text: Option<String>,
    /// Errors and warnings, as they are shown.
    pub messages: String,
    /// How many errors there were.
    pub errors: usize,
}

/// Settings of the front end.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Let reads be under way at the same time, and group writes.
    pub split_phase: bool,
    /// Show warnings.
    pub warnings: bool,
}

/// The stack of the thread that reads and writes: nesting is bounded, and this holds the bound many
/// times.
const STACK_BYTES: usize = 1 << 30;

/// Translates preprocessed Split-C into C.
pub fn translate(source: &str, settings: Settings) -> Translation {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("splitcc".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || translate_here(source, settings));
        let result = match thread {
            Ok(thread) => thread.join().ok(),
            Err(error) => {
                return Translation {
                    c_text: None,
                    messages: format!(
                        "splitcc: cannot start a thread: {error}; is the limit of memory (ulimit -v) too low?\n"
                    ),
                    errors: 1,
                };
            }
        };
        result.unwrap_or_else(|| Translation {
            c_text: None,
            messages:
                "splitcc: error: the compiler failed on this file; please report it with the file\n"
                    .into(),
            errors: 1,
        })
    })
}

fn translate_here(source: &str, settings: Settings) -> Translation {
    let mut files = Files::default();
    let mut diagnostics = Diagnostics::default();
    let tokens = lex::tokens(source, &mut files, &mut diagnostics);
    let unit = syntax::Parser::new(&tokens, &files, &mut diagnostics).unit();
    let mut c_text = None;
    if diagnostics.errors() == 0 {
        let emitter = emit::Emitter::new(
            &tokens,
            &files,
            &mut diagnostics,
            &unit,
            settings.split_phase,
        );
        let text = emitter.unit(&unit);
        c_text = (diagnostics.errors() == 0).then_some(text);
    }
    Translation {
        c_text,
        messages: diagnostics.render(&files, settings.warnings),
        errors: diagnostics.errors(),
    }
}
