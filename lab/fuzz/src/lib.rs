//! What the fuzz targets do with their bytes. One harness serves the fuzzer and
//! the ordinary tests that replay the committed corpus.

pub mod cell;
pub mod engine_receive;
pub mod handshake;
pub mod member;
pub mod seed;
pub mod ticket;
pub mod udp_handshake;
pub mod packet_protection;
