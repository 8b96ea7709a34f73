//! What the fuzz targets do with their bytes. One harness serves the fuzzer and
//! the ordinary tests that replay the committed corpus.

pub mod engine_receive;
pub mod handshake;
