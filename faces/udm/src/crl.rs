//! The functions of `crl.h`.

use std::cell::Cell;
use std::ffi::{c_char, c_double, c_int, c_uint, c_void};
use std::process::exit;
use std::rc::Rc;
use std::time::Duration;

use hamlyn::Wait;
use hamlyn_boundary::{bytes, bytes_mut, error_text, options_or, protect, text, with_error_text};
use hamlyn_crl::{Crl, CrlOptions, RegionHandle as _, RegionId, Regions as _, UdmCourier};

use crate::boundary::put;
use crate::group::{CGroup, Description, Hosts};
use crate::library::{close_if_unused, current, current_or_new};
use crate::progress::wait_in;
use crate::regions::Regions;
use crate::setup::wait_or;
use crate::status::{Code, Failure};

/// `crl_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct COptions {
    group: CGroup,
    name: *const c_char,
    patience_ms: i64,
    cached_regions: usize,
    open_ms: i64,
}

impl COptions {
    const DEFAULT: Self = Self {
        group: CGroup::OF_JOB,
        name: std::ptr::null(),
        patience_ms: 0,
        cached_regions: 0,
        open_ms: 0,
    };
}

/// `crl_no_rid`.
const NO_REGION: u64 = u64::MAX;

type OnError = unsafe extern "C" fn(c_int, *const c_char);

thread_local! {
    static LAST: Cell<c_int> = const { Cell::new(0) };
    static ON_ERROR: Cell<Option<OnError>> = const { Cell::new(None) };
}

/// Carries out a function that needs no node. Tells the program's function of its error.
fn call_any(act: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let code = protect(act);
    LAST.set(code);
    if code != 0
        && let Some(function) = ON_ERROR.get()
    {
        // SAFETY: the program gave it as a function of this type.
        with_error_text(|text| unsafe { function(code, text) });
        // That of a call that it made is not this one's.
        LAST.set(code);
    }
    code
}

const NOT_OPEN: Failure = Failure::new(Code::NotOpen, "call crl_init first");
const SHARED: Failure = Failure::new(
    Code::InUse,
    "the group is open for upcalls (UDM_THREAD): let CRL have a group of its own, with interfaces of its own",
);

fn node() -> Result<Rc<Regions>, Failure> {
    let library = current().map_err(|failure| match failure.code {
        Code::NotOpen => NOT_OPEN,
        _ => failure,
    })?;
    library.crl.borrow().clone().ok_or(NOT_OPEN)
}

/// Carries out a function that needs a node.
fn call(act: impl FnOnce(&Regions) -> Result<(), Failure>) -> c_int {
    call_any(|| act(&*node()?))
}

/// The same of one that gives a value: `otherwise` if it fails.
fn value<T>(otherwise: T, act: impl FnOnce(&Regions) -> Result<T, Failure>) -> T {
    let mut result = otherwise;
    call(|node| {
        result = act(node)?;
        Ok(())
    });
    result
}

fn open(options: &COptions) -> Result<(), Failure> {
    let library = current_or_new()?;
    if library.crl.borrow().is_some() {
        return Ok(());
    }
    let name = match options.name.is_null() {
        true => "crl",
        false => text(options.name)?,
    };
    let mut own = CrlOptions::default();
    own.patience = match options.patience_ms {
        ..=0 => None,
        patience => Some(Duration::from_millis(patience as u64)),
    };
    if options.cached_regions > 0 {
        own.cached_regions_max = options.cached_regions;
    }
    let description = Description::new(&options.group)?;
    let wait = wait_or(options.open_ms, description.start);
    let group = library.group(description, false)?;
    let crl = match &group.hosts {
        Hosts::Own(group) => Crl::open(UdmCourier::open(group, name, wait)?, own)?,
        Hosts::Shared(_) => return Err(SHARED),
    };
    *library.crl.borrow_mut() = Some(Rc::new(Regions::new(crl, group)));
    Ok(())
}

/// `crl_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_crl_open(options: *const COptions) -> c_int {
    call_any(|| {
        let opened = open(options_or(options, &COptions::DEFAULT));
        if opened.is_err() {
            close_if_unused();
        }
        opened
    })
}

fn close() -> Result<(), Failure> {
    let library = current()?;
    drop(library.crl.take());
    drop(library);
    close_if_unused();
    Ok(())
}

/// Closes the node after the flush; `met` is the outcome of what came before.
fn finish(node: &Regions, met: Result<(), Failure>, wait: Wait) -> Result<(), Failure> {
    let flushed = node.crl.finish_alone(wait);
    close()?;
    met?;
    match flushed? {
        true => Ok(()),
        false => Err(Failure::new(
            Code::TimedOut,
            "CRL is closed, and not all messages were handed over in time: others may miss them",
        )),
    }
}

/// `crl_finish`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_crl_finish(milliseconds: i64) -> c_int {
    call(|node| {
        node.unmap_all()?;
        let met = node.crl.barrier().map_err(Failure::from);
        finish(node, met, wait_in(milliseconds))
    })
}

/// `crl_leave`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_crl_leave(milliseconds: i64) -> c_int {
    call(|node| {
        node.unmap_all()?;
        finish(node, Ok(()), wait_in(milliseconds))
    })
}

/// `crl_num_nodes`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_crl_num_nodes() -> c_uint {
    value(0, |node| Ok(node.crl.nodes()))
}

/// `crl_self_addr`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_crl_self_addr() -> c_uint {
    value(c_uint::MAX, |node| Ok(node.crl.me()))
}

/// `crl_last_status`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_crl_last_status() -> c_int {
    LAST.get()
}

/// `crl_error_text`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_crl_error_text() -> *const c_char {
    error_text()
}

/// `crl_strerror`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_crl_strerror(code: c_int) -> *const c_char {
    crate::status::hamlyn_udm_strerror(code)
}

/// `crl_on_error`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_crl_on_error(function: Option<OnError>) {
    ON_ERROR.set(function);
}

/// `crl_print_and_exit`: the way of the original.
///
/// # Safety
///
/// `text` is null, or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_crl_print_and_exit(code: c_int, message: *const c_char) {
    let message = text(message).unwrap_or_default();
    eprintln!("crl: {message} (status {code})");
    exit(1);
}

/// `crl_serve`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_crl_serve(milliseconds: i64) -> c_int {
    call(|node| Ok(node.crl.serve(wait_in(milliseconds)).map(drop)?))
}

/// `crl_messages_sent`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_crl_messages_sent(count: *mut u64) -> c_int {
    call(|node| put(count, node.crl.statistics().total()))
}

/// `rgn_create`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_create(bytes: c_uint) -> u64 {
    value(NO_REGION, |node| {
        Ok(node.crl.create(bytes as usize)?.to_u64())
    })
}

/// `rgn_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_destroy(region: u64) -> c_int {
    call(|node| Ok(node.crl.destroy(RegionId::from_u64(region))?))
}

/// `rgn_map`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_map(region: u64) -> *mut c_void {
    value(std::ptr::null_mut(), |node| {
        node.map(RegionId::from_u64(region))
    })
}

/// `rgn_unmap`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_unmap(region: *mut c_void) -> c_int {
    call(|node| node.unmap(region))
}

/// `rgn_rid`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_rid(region: *mut c_void) -> u64 {
    value(NO_REGION, |node| Ok(node.at(region)?.id().to_u64()))
}

/// `rgn_size`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_size(region: *mut c_void) -> c_uint {
    value(0, |node| Ok(node.bytes(region)? as c_uint))
}

/// `rgn_flush`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_flush(region: *mut c_void) -> c_int {
    call(|node| Ok(node.at(region)?.flush()?))
}

/// `rgn_start_read`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_start_read(region: *mut c_void) -> c_int {
    call(|node| node.start(region, |region| region.start_read()))
}

/// `rgn_end_read`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_end_read(region: *mut c_void) -> c_int {
    call(|node| node.end(region, |region| region.end_read()))
}

/// `rgn_start_write`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_start_write(region: *mut c_void) -> c_int {
    call(|node| node.start(region, |region| region.start_write()))
}

/// `rgn_end_write`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_end_write(region: *mut c_void) -> c_int {
    call(|node| node.end(region, |region| region.end_write()))
}

/// `rgn_barrier`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_barrier() -> c_int {
    call(|node| Ok(node.crl.barrier()?))
}

fn length_of(bytes: c_int) -> Result<usize, Failure> {
    usize::try_from(bytes).map_err(|_| Failure::bad("a broadcast has no less than 0 bytes"))
}

/// `rgn_bcast_send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_rgn_bcast_send(length: c_int, data: *const c_void) -> c_int {
    call(|node| Ok(node.crl.broadcast(bytes(data, length_of(length)?)?)?))
}

/// `rgn_bcast_recv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_rgn_bcast_recv(length: c_int, data: *mut c_void) -> c_int {
    call(|node| {
        let data = bytes_mut(data, length_of(length)?)?;
        Ok(node.crl.receive_broadcast(data)?)
    })
}

/// `rgn_reduce_dadd`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_reduce_dadd(number: c_double) -> c_double {
    value(c_double::NAN, |node| Ok(node.crl.reduce_add(number)?))
}

/// `rgn_reduce_dmin`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_reduce_dmin(number: c_double) -> c_double {
    value(c_double::NAN, |node| Ok(node.crl.reduce_min(number)?))
}

/// `rgn_reduce_dmax`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_rgn_reduce_dmax(number: c_double) -> c_double {
    value(c_double::NAN, |node| Ok(node.crl.reduce_max(number)?))
}
