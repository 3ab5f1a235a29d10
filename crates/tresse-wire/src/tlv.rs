//! Type-length-value items: how parameters and error causes are framed, walked and written (RFC 9260 §3.2.1).
//!
//! Owns the one walker and the one writer, padding between items included, and the action that the top two bits of an
//! unrecognised type ask for. Refuses to know any particular type.

use std::fmt;
use std::slice;

use crate::bytes::{pad, padded, u16_at};
use crate::error::{Fault, TlvError, TooLong};

/// Header of a parameter or a cause: type and length.
pub(crate) const TLV_HEADER_LEN: usize = 4;

/// What to do about a chunk or parameter type one does not know (RFC 9260 §3.2, §3.2.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct UnrecognisedAction {
    /// Leave this item and all that follow in its packet (a chunk) or its chunk (a parameter); otherwise skip only it.
    pub stop: bool,
    /// Tell the peer: ERROR with cause 6 for a chunk; an Unrecognised Parameter or cause 8 for a parameter.
    pub report: bool,
}

impl UnrecognisedAction {
    /// The action from the two highest bits of a type.
    pub(crate) const fn of_top_bits(bits: u8) -> Self {
        Self { stop: bits & 0b10 == 0, report: bits & 0b01 != 0 }
    }
}

/// One framed item, not yet interpreted.
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
    /// Splits the first item off `bytes`; also gives how many bytes it takes with its padding, as far as those are there.
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
        Ok((Tlv { kind, value, whole }, padded(whole.len()).min(bytes.len())))
    }

    /// The value as exactly `N` bytes.
    pub(crate) fn exactly<const N: usize>(&self, expected: &'static str) -> Result<&'a [u8; N], Fault> {
        self.value.try_into().map_err(|_| self.wrong_length(expected))
    }

    /// The value as `N` bytes and what follows them.
    pub(crate) fn at_least<const N: usize>(
        &self,
        expected: &'static str,
    ) -> Result<(&'a [u8; N], &'a [u8]), Fault> {
        self.value.split_first_chunk().ok_or_else(|| self.wrong_length(expected))
    }

    /// The value of an item that is a header only.
    pub(crate) fn nothing(&self) -> Result<(), Fault> {
        self.exactly::<0>("4").map(|_| ())
    }

    /// `bytes` as a list of items of `size` bytes.
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

/// Appends one item without its padding: header, then whatever `value` appends.
pub(crate) fn put_tlv(out: &mut Vec<u8>, kind: u16, value: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    value(out);
    set_length(out, start);
}

/// Writes the length of everything since `start` into the field two bytes after it. Callers have checked that it fits.
pub(crate) fn set_length(out: &mut [u8], start: usize) {
    let len = (out.len() - start) as u16;
    if let Some(field) = out.get_mut(start + 2..start + 4) {
        field.copy_from_slice(&len.to_be_bytes());
    }
}

/// A kind of item that can stand in a [`Tlvs`] list: a parameter or an error cause.
pub trait TlvItem<'a>: Copy + PartialEq + fmt::Debug {
    /// The item's type number.
    type Kind: Copy + PartialEq + fmt::Debug + From<u16>;

    /// Interprets one framed item.
    fn from_tlv(tlv: Tlv<'a>) -> Result<Self, Fault>;

    /// Length field of the item: header and value, without padding.
    fn wire_len(&self) -> usize;

    /// Appends header and value, without padding.
    #[doc(hidden)]
    fn put(&self, out: &mut Vec<u8>);
}

/// A list of parameters or error causes: raw bytes from a packet, or values to be written. Equal when the items are.
#[derive(Copy, Clone)]
pub enum Tlvs<'a, T> {
    /// Bytes as received.
    Wire(&'a [u8]),
    /// Values to be written.
    Values(&'a [T]),
}

impl<'a, T: TlvItem<'a>> Tlvs<'a, T> {
    /// The items in wire order. One with a damaged value is an error and the next one follows; after an error that hides
    /// where the next one starts ([`Fault::ends_reading`]) the iteration ends.
    #[inline]
    pub fn iter(&self) -> TlvIter<'a, T> {
        match *self {
            Tlvs::Wire(rest) => TlvIter::Wire { rest, offset: 0 },
            Tlvs::Values(values) => TlvIter::Values(values.iter()),
        }
    }

    /// Whether there is nothing in the list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Tlvs::Wire(bytes) => bytes.is_empty(),
            Tlvs::Values(values) => values.is_empty(),
        }
    }

    /// Bytes of the list: padding between items counts, after the last it does not (RFC 9260 §3.2).
    pub fn wire_len(&self) -> usize {
        match self {
            Tlvs::Wire(bytes) => bytes.len(),
            Tlvs::Values([]) => 0,
            Tlvs::Values([before @ .., last]) => {
                before.iter().map(|item| padded(item.wire_len())).sum::<usize>() + last.wire_len()
            }
        }
    }

    /// Appends the items, padded in between but not after the last.
    ///
    /// # Errors
    /// If the list is longer than a length field can say.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        TooLong::check(self.wire_len())?;
        self.put(out);
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
        /// What has not been read.
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
