//! Errors on their way to C: a code, and the text of the last one.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An argument that cannot be, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadArgument(pub Cow<'static, str>);

impl BadArgument {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

/// The error of a face's functions.
pub trait Failure: From<BadArgument> {
    /// The code of a fault of the library.
    const FAULT: c_int;

    /// Its code, and its text with the remedy.
    fn into_parts(self) -> (c_int, Cow<'static, str>);
}

const FAULT: &str = "the library has a fault; please report it with what is on standard error";

/// Carries out a function of a header: 0, or the code of its error. A panic is one.
#[inline]
pub fn protect<F: Failure>(act: impl FnOnce() -> Result<(), F>) -> c_int {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => tell(failure.into_parts()),
        Err(_) => tell((F::FAULT, FAULT.into())),
    }
}

/// A text, and the form of it that C was shown last.
type Last = (Cow<'static, str>, Option<CString>);

thread_local! {
    static LAST: RefCell<Last> = const { RefCell::new((Cow::Borrowed(""), None)) };
    static IS_INTERRUPT: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function of the program from the handler of a signal: its calls of the library make and
/// keep no text of an error meanwhile, as that allocates and frees.
pub fn in_interrupt(act: impl FnOnce()) {
    let before = IS_INTERRUPT.replace(true);
    act();
    IS_INTERRUPT.set(before);
}

/// True in a function that [`in_interrupt`] calls.
pub fn is_interrupt() -> bool {
    IS_INTERRUPT.get()
}

/// Keeps the text of an error of this thread, and gives its code.
#[cold]
fn tell((code, text): (c_int, Cow<'static, str>)) -> c_int {
    if is_interrupt() {
        // The program may be in the middle of the one that is kept.
        return code;
    }
    // No text is kept while the thread ends.
    let _ = LAST.try_with(|last| last.borrow_mut().0 = text);
    code
}

/// Shows the text of the last error of this thread to a function of the program, which may make
/// calls: the text stays as it is meanwhile, and is that of the last error again afterwards.
pub fn with_error_text(act: impl FnOnce(*const c_char)) {
    let last = LAST.try_with(|last| last.borrow().0.clone());
    let last = last.unwrap_or_default();
    act(c_text(&last).as_ptr());
    let _ = LAST.try_with(|of_thread| of_thread.borrow_mut().0 = last);
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// The text of the last error of this thread, with the remedy: good until the next call of this.
pub fn error_text() -> *const c_char {
    let text = LAST.try_with(|last| {
        let (text, shown) = &mut *last.borrow_mut();
        shown.insert(c_text(text)).as_ptr()
    });
    text.unwrap_or(c"".as_ptr())
}
