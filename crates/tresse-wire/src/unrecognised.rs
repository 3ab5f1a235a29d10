//! Action that the two highest bits of an unrecognised type of chunk or parameter require.

/// Action for a chunk or parameter of a type that the receiver does not recognise (RFC 9260 §3.2, §3.2.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct UnrecognisedAction {
    /// True if the receiver skips this item and all that follow it: in the packet for a chunk, in the chunk for a
    /// parameter. Otherwise it skips only this item.
    pub stop: bool,
    /// True if the receiver reports the item to the peer: with ERROR and cause 6 for a chunk; with an Unrecognised
    /// Parameter or cause 8 for a parameter.
    pub report: bool,
}

impl UnrecognisedAction {
    /// Returns the action for the two highest bits of a type.
    pub(crate) const fn of_top_bits(bits: u8) -> Self {
        Self { stop: bits & 0b10 == 0, report: bits & 0b01 != 0 }
    }
}
