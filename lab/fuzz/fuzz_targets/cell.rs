#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = hamlyn_fuzz::cell::run(bytes);
});
