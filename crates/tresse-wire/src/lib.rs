//! SCTP packets: bytes to chunks and back, without state.
