//! Type-length-value items: the framing of parameters and error causes (RFC 9260 §3.2.1).
//!
//! Owns reading and writing of all lists of such items, with the padding between them. Accepts any type: `param` and
//! `cause` interpret the values.

use std::fmt;
use std::slice;

use crate::bytes::{pad, padded, u16_at};
use crate::error::{Fault, TlvError, TooLong};

/// Bytes of the header of a parameter or a cause: type and length.
pub(crate) const TLV_HEADER_LEN: usize = 4;

/// One item with its framing, not yet interpreted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Tlv<'a> {
    /// The type field.
    pub kind: u16,
    /// The value, without header and padding.
    pub value: &'a [u8],
    /// Header and value, without padding.
    pub whole: &'a [u8],
}

impl<'a> Tlv<'a> {
    /// Splits the first item off `bytes`, and returns the item and its length with padding. That length may exceed
    /// `bytes`: the padding of the last item is often missing.
    pub(crate) fn split(bytes: &'a [u8]) -> Result<(Tlv<'a>, usize), (u16, Fault)> {
        let Some((head, _)) = bytes.split_first_chunk::<TLV_HEADER_LEN>() else {
            return Err((0, Fault::HeaderCut { available: bytes.len() }));
        };
        let (kind, len) = (u16_at::<0, _>(head), u16_at::<2, _>(head));
        let Some(whole) = bytes.get(..usize::from(len)) else {
            return Err((kind, Fault::Cut { len, available: bytes.len() }));
        };
        let Some(value) = whole.get(TLV_HEADER_LEN..) else {
            return Err((kind, Fault::LengthBelowHeader { len }));
        };
        Ok((Tlv { kind, value, whole }, padded(whole.len())))
    }

    /// Returns the value as exactly `N` bytes.
    pub(crate) fn exactly<const N: usize>(&self, expected: &'static str) -> Result<&'a [u8; N], Fault> {
        self.value.try_into().map_err(|_| self.wrong_length(expected))
    }

    /// Returns the first `N` bytes of the value, and the rest.
    pub(crate) fn at_least<const N: usize>(
        &self,
        expected: &'static str,
    ) -> Result<(&'a [u8; N], &'a [u8]), Fault> {
        self.value.split_first_chunk().ok_or_else(|| self.wrong_length(expected))
    }

    /// Checks that the item has only a header.
    pub(crate) fn nothing(&self) -> Result<(), Fault> {
        self.exactly::<0>("4").map(|_| ())
    }

    /// Checks that `bytes` consists of items of `size` bytes, and returns it.
    pub(crate) fn whole_items(
        &self,
        bytes: &'a [u8],
        size: usize,
        expected: &'static str,
    ) -> Result<&'a [u8], Fault> {
        if bytes.len().is_multiple_of(size) { Ok(bytes) } else { Err(self.wrong_length(expected)) }
    }

    fn wrong_length(&self, expected: &'static str) -> Fault {
        Fault::Length { len: self.whole.len(), expected }
    }
}

/// Appends one item without its padding: the header, then the bytes that `value` appends.
pub(crate) fn put_tlv(out: &mut Vec<u8>, kind: u16, value: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let [high, low] = kind.to_be_bytes();
    out.extend_from_slice(&[high, low, 0, 0]);
    value(out);
    set_length(out, start);
}

/// Writes the number of bytes since `start` into the length field at `start` + 2. The caller has checked that it fits.
pub(crate) fn set_length(out: &mut [u8], start: usize) {
    let len = (out.len() - start) as u16;
    if let Some(field) = out.get_mut(start + 2..start + 4) {
        field.copy_from_slice(&len.to_be_bytes());
    }
}

/// Item of a [`Tlvs`] list: a parameter or an error cause.
pub trait TlvItem<'a>: Copy + PartialEq + fmt::Debug {
    /// The item's type number.
    type Kind: Copy + PartialEq + fmt::Debug + From<u16>;

    /// Interprets one item.
    fn from_tlv(tlv: Tlv<'a>) -> Result<Self, Fault>;

    /// Returns the length field of the item: header and value, without padding.
    fn wire_len(&self) -> usize;

    /// Appends header and value, without padding.
    #[doc(hidden)]
    fn put(&self, out: &mut Vec<u8>);
}

/// A list of parameters or error causes: bytes of a received packet, or values to be written. Two lists are equal if
/// their items are.
#[derive(Copy, Clone)]
pub enum Tlvs<'a, T> {
    /// Bytes as received.
    Wire(&'a [u8]),
    /// Values to be written.
    Values(&'a [T]),
}

impl<'a, T: TlvItem<'a>> Tlvs<'a, T> {
    /// Returns the items in wire order. An item with a damaged value gives an error, and the next item follows. The
    /// iteration ends after an error that leaves the position of the next item unknown ([`Fault::ends_reading`]).
    #[inline]
    pub fn iter(&self) -> TlvIter<'a, T> {
        match *self {
            Tlvs::Wire(rest) => TlvIter::Wire { rest, offset: 0 },
            Tlvs::Values(values) => TlvIter::Values(values.iter()),
        }
    }

    /// Returns whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Tlvs::Wire(bytes) => bytes.is_empty(),
            Tlvs::Values(values) => values.is_empty(),
        }
    }

    /// Returns the bytes of the list, including padding between items, excluding padding after the last one (RFC 9260 §3.2).
    pub fn wire_len(&self) -> usize {
        match self {
            Tlvs::Wire(bytes) => bytes.len(),
            Tlvs::Values([]) => 0,
            Tlvs::Values([before @ .., last]) => {
                before.iter().map(|item| padded(item.wire_len())).sum::<usize>() + last.wire_len()
            }
        }
    }

    /// Appends the items, with padding between them but not after the last one.
    ///
    /// # Errors
    /// If the list is longer than 65535 bytes; then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        TooLong::check(self.wire_len())?;
        self.put(out);
        Ok(())
    }

    /// Appends these items to the items in `out`, with padding between all of them but not after the last one.
    ///
    /// # Errors
    /// If these items are longer than 65535 bytes; then nothing is written.
    pub fn append(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        TooLong::check(self.wire_len())?;
        if !self.is_empty() {
            pad(out, 0);
            self.put(out);
        }
        Ok(())
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Tlvs::Wire(bytes) => out.extend_from_slice(bytes),
            Tlvs::Values(values) => {
                let start = out.len();
                for item in *values {
                    pad(out, start);
                    item.put(out);
                }
            }
        }
    }
}

impl<T> Default for Tlvs<'_, T> {
    fn default() -> Self {
        Tlvs::Values(&[])
    }
}

impl<'a, T: TlvItem<'a>> PartialEq for Tlvs<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: TlvItem<'a>> fmt::Debug for Tlvs<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for item in self.iter() {
            match item {
                Ok(item) => list.entry(&item),
                Err(error) => list.entry(&error),
            };
        }
        list.finish()
    }
}

impl<'a, T: TlvItem<'a>> IntoIterator for Tlvs<'a, T> {
    type Item = Result<T, TlvError<T::Kind>>;
    type IntoIter = TlvIter<'a, T>;

    fn into_iter(self) -> TlvIter<'a, T> {
        self.iter()
    }
}

/// Iterator over the items of a [`Tlvs`] list.
#[derive(Clone, Debug)]
pub enum TlvIter<'a, T> {
    /// Reading received bytes.
    Wire {
        /// Bytes that have not been read.
        rest: &'a [u8],
        /// Bytes read.
        offset: usize,
    },
    /// Reading values.
    Values(slice::Iter<'a, T>),
}

impl<'a, T: TlvItem<'a>> Iterator for TlvIter<'a, T> {
    type Item = Result<T, TlvError<T::Kind>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            TlvIter::Values(values) => values.next().map(|item| Ok(*item)),
            TlvIter::Wire { rest: [], .. } => None,
            TlvIter::Wire { rest, offset } => {
                let at = *offset;
                let error = |kind: u16, fault| TlvError { kind: T::Kind::from(kind), offset: at, fault };
                match Tlv::split(rest) {
                    Ok((tlv, taken)) => {
                        *rest = rest.get(taken..).unwrap_or_default();
                        *offset += taken;
                        Some(T::from_tlv(tlv).map_err(|fault| error(tlv.kind, fault)))
                    }
                    Err((kind, fault)) => {
                        *rest = &[];
                        Some(Err(error(kind, fault)))
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::{Cause, Causes};
    use crate::cause_code::CauseCode;
    use crate::chunk::ChunkKind;
    use crate::error::{CauseError, ParamError};
    use crate::param::{Param, ParamKind, Params, UnrecognisedParam};
    use crate::serial::StreamId;
    use crate::unrecognised::UnrecognisedAction;

    #[test]
    fn the_top_bits_of_an_unknown_type_say_what_to_do() {
        let action = |stop, report| UnrecognisedAction { stop, report };
        for (bits, expected) in [
            (0u8, action(true, false)),
            (1, action(true, true)),
            (2, action(false, false)),
            (3, action(false, true)),
        ] {
            assert_eq!(ChunkKind(bits << 6 | 0x3F).unrecognised_action(), expected);
            assert_eq!(ParamKind(u16::from(bits) << 14 | 0x3FFF).unrecognised_action(), expected);
        }
    }

    #[test]
    fn a_damaged_value_is_an_error_and_the_next_item_follows() {
        let params = Params::Wire(&[0x80, 0, 0, 5, 1, 0xFF, 0xFF, 0xFF, 0xC0, 0, 0, 4]);
        let fault = Fault::Length { len: 5, expected: "4" };
        let items: Vec<_> = params.iter().collect();
        let error = ParamError { kind: ParamKind::ECN_CAPABLE, offset: 0, fault };
        assert_eq!(items, [Err(error), Ok(Param::ForwardTsnSupported)]);
        assert_eq!(error.to_string(), "ECN Capable parameter at offset 0: length 5, expected 4");
    }

    #[test]
    fn a_damaged_frame_ends_the_list() {
        for (tail, kind, fault) in [
            (&[0, 7, 0, 3, 0, 0, 0, 0][..], 7, Fault::LengthBelowHeader { len: 3 }),
            (&[0, 7, 0, 9, 1, 2, 3, 4], 7, Fault::Cut { len: 9, available: 8 }),
            (&[0, 7, 0], 0, Fault::HeaderCut { available: 3 }),
        ] {
            let bytes = [&[0xC0, 0, 0, 4][..], tail].concat();
            let items: Vec<_> = Params::Wire(&bytes).iter().collect();
            let error = ParamError { kind: ParamKind(kind), offset: 4, fault };
            assert_eq!(items, [Ok(Param::ForwardTsnSupported), Err(error)]);
        }
    }

    #[test]
    fn values_are_padded_in_between_and_not_at_the_end() {
        let causes = Causes::Values(&[
            Cause::UserAbort(b"a"),
            Cause::InvalidStream(StreamId(1)),
            Cause::UserAbort(b"b"),
        ]);
        let mut out = vec![0xEE; 3];
        causes.write(&mut out).expect("short");
        let expected = [0, 12, 0, 5, b'a', 0, 0, 0, 0, 1, 0, 8, 0, 1, 0, 0, 0, 12, 0, 5, b'b'];
        assert_eq!(out[3..], expected);
        assert_eq!(causes.wire_len(), expected.len());
        assert_eq!(Causes::Wire(&expected), causes);
    }

    #[test]
    fn a_list_grows_by_items_with_padding_between_them_only() {
        let mut out = Vec::new();
        for causes in [
            Causes::Values(&[]),
            Causes::Values(&[Cause::UserAbort(b"a")]),
            Causes::Wire(&[]),
            Causes::Wire(&[0, 12, 0, 5, b'b']),
        ] {
            causes.append(&mut out).expect("short");
        }
        assert_eq!(out, [0, 12, 0, 5, b'a', 0, 0, 0, 0, 12, 0, 5, b'b']);
    }

    #[test]
    fn a_cookie_is_baked_in_its_place() {
        let mut out = vec![0xC0, 0, 0, 5, 1];
        Param::append_cookie(&mut out, |out| out.extend_from_slice(b"abc")).expect("short");
        assert_eq!(out, [0xC0, 0, 0, 5, 1, 0, 0, 0, 0, 7, 0, 7, b'a', b'b', b'c']);
        let before = out.clone();
        let long = Param::append_cookie(&mut out, |out| out.resize(out.len() + 65_532, 0));
        assert_eq!((long, out), (Err(TooLong { len: 65_536 }), before));
    }

    #[test]
    fn a_list_too_long_for_a_length_field_is_not_written() {
        let half = vec![0; 40_000];
        let params = [Param::Padding(&half), Param::Padding(&half)];
        let mut out = Vec::new();
        assert_eq!(Params::Values(&params).write(&mut out), Err(TooLong { len: 80_008 }));
        assert_eq!(Param::Padding(&[0; 65_532]).write(&mut out), Err(TooLong { len: 65_536 }));
        assert!(out.is_empty());
    }

    #[test]
    fn an_unknown_type_keeps_its_bytes() {
        let whole = &[0x3F, 0xFF, 0, 6, 1, 2];
        let unknown = Param::Unrecognised(UnrecognisedParam { kind: ParamKind(0x3FFF), whole });
        assert_eq!(Params::Wire(whole), Params::Values(&[unknown]));
        let mut out = Vec::new();
        unknown.write(&mut out).expect("short");
        assert_eq!(out, whole);
    }

    #[test]
    fn counts_and_nested_addresses_must_fill_their_item() {
        let causes = Causes::Wire(&[0, 2, 0, 10, 0, 0, 0, 2, 0, 7]);
        let fault = Fault::Count { len: 10, counted: 12 };
        assert_eq!(
            causes.iter().next(),
            Some(Err(CauseError { kind: CauseCode::MISSING_PARAMETERS, offset: 0, fault }))
        );
        for nested in [&[0, 5, 0, 7, 1, 2, 3, 0][..], &[0, 7, 0, 8, 1, 2, 3, 4], &[0, 5, 0, 8, 1, 2, 3, 4, 0]]
        {
            let len = 8 + nested.len() as u8;
            let bytes = [&[0xC0, 1, 0, len, 0, 0, 0, 1], nested].concat();
            let error = ParamError { kind: ParamKind::ADD_ADDRESS, offset: 0, fault: Fault::Address };
            assert_eq!(Params::Wire(&bytes).iter().next(), Some(Err(error)));
        }
    }
}
