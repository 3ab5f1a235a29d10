//! One line of text for a packet, for traces, the command line and failing tests.

use crate::chunk::Chunk;

/// One line.
pub fn dissect(_packet: &[u8]) -> String {
    String::new()
}
/// One chunk.
pub fn dissect_chunk(_chunk: &Chunk<'_>) -> String {
    String::new()
}
