#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hamlyn_fuzz::engine_receive::run(bytes);
});
