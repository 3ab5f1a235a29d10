//! Fragments of messages, with all fields of a DATA or I-DATA chunk except the TSN, and the choice between the two
//! kinds of chunk. `outbound` cuts a fragment, `transmission` keeps it, and `inbound` reassembles the message.

use std::sync::Arc;

use bytes::Bytes;
use tresse_wire::{
    Chunk, DATA_HEADER_LEN, Data, DataFlags, Fsn, I_DATA_HEADER_LEN, IData, Mid, NoRoom, PacketWriter, Ppid,
    PpidOrFsn, Ssn, StreamId, Tsn,
};

use crate::interface::reliability::DeliveryTerms;

/// The kind of chunk that carries user data, the same for the whole association and both directions (RFC 8260 §2.2.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum DataFormat {
    /// DATA: the fragments of a message have consecutive TSNs.
    #[default]
    Data,
    /// I-DATA: fragments of other messages may come between the fragments of a message.
    IData,
}

impl DataFormat {
    /// Length of the chunk header before the user data, in bytes.
    #[inline]
    pub(crate) fn header_len(self) -> usize {
        match self {
            DataFormat::Data => DATA_HEADER_LEN,
            DataFormat::IData => I_DATA_HEADER_LEN,
        }
    }

    /// Number of different SSNs or MIDs.
    #[inline]
    pub(crate) fn numbers(self) -> u64 {
        match self {
            DataFormat::Data => 1 << 16,
            DataFormat::IData => 1 << 32,
        }
    }
}

/// The flags B, E, U and I of a fragment, in one byte as on the wire. With four `bool`s an `Option` of a fragment would
/// keep its tag in one of them, and each move of the fragment would have to copy around that byte.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Flags(u8);

impl Flags {
    /// Returns whether this is the first fragment of its message (B bit).
    #[inline]
    pub(crate) fn beginning(self) -> bool {
        self.unpacked().beginning
    }

    /// Returns whether this is the last fragment of its message (E bit).
    #[inline]
    pub(crate) fn ending(self) -> bool {
        self.unpacked().ending
    }

    /// Returns whether the message is unordered (U bit).
    #[inline]
    pub(crate) fn unordered(self) -> bool {
        self.unpacked().unordered
    }

    /// Sets the I bit: the peer is to send a SACK at once (RFC 7053).
    pub(crate) fn request_report(&mut self) {
        *self = DataFlags { immediate: true, ..self.unpacked() }.into();
    }

    /// Returns the flags as a chunk has them.
    #[inline]
    pub(crate) fn unpacked(self) -> DataFlags {
        DataFlags::from_byte(self.0)
    }
}

impl From<DataFlags> for Flags {
    #[inline]
    fn from(flags: DataFlags) -> Self {
        Flags(flags.to_byte())
    }
}

/// A message that fits a chunk, or a fragment of a message.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) stream: StreamId,
    /// MID of the message in its stream; of DATA the low 16 bits are the SSN. Ordered and unordered messages have
    /// separate MIDs.
    pub(crate) mid: Mid,
    /// Number of the fragment in its message; a DATA chunk does not carry it.
    pub(crate) fsn: Fsn,
    /// 0 in a fragment that arrived in I-DATA and does not begin its message: such a chunk has no PPID.
    pub(crate) ppid: Ppid,
    pub(crate) flags: Flags,
    pub(crate) payload: Bytes,
}

/// A fragment of a queued message, cut to be sent.
#[derive(Debug)]
pub(crate) struct CutFragment {
    pub(crate) fragment: Fragment,
    /// The terms of the message, if it has partial reliability or a context of the application.
    pub(crate) terms: Option<Arc<DeliveryTerms>>,
}

impl Fragment {
    /// Returns the fragment in a DATA chunk; `payload` is its user data.
    #[inline]
    pub(crate) fn of_data(data: &Data<'_>, payload: Bytes) -> Self {
        let (mid, fsn) = (Mid(data.ssn.0.into()), Fsn(0));
        let (stream, ppid, flags) = (data.stream, data.ppid, data.flags.into());
        Fragment { stream, mid, fsn, ppid, flags, payload }
    }

    /// Returns the fragment in an I-DATA chunk; `payload` is its user data.
    #[inline]
    pub(crate) fn of_i_data(data: &IData<'_>, payload: Bytes) -> Self {
        let ppid = match data.ppid_or_fsn {
            PpidOrFsn::Ppid(ppid) => ppid,
            PpidOrFsn::Fsn(_) => Ppid(0),
        };
        let (stream, mid, fsn, flags) = (data.stream, data.mid, data.fsn(), data.flags.into());
        Fragment { stream, mid, fsn, ppid, flags, payload }
    }

    /// Returns the SSN of the message, as a DATA chunk has it.
    #[inline]
    pub(crate) fn ssn(&self) -> Ssn {
        Ssn(self.mid.0 as u16)
    }

    #[inline]
    fn data(&self, tsn: Tsn) -> Data<'_> {
        let Fragment { stream, ppid, .. } = *self;
        let flags = self.flags.unpacked();
        // RFC 9260 §3.3.1: a receiver ignores the SSN of an unordered message. Implementations send 0.
        let ssn = if flags.unordered { Ssn(0) } else { self.ssn() };
        Data { tsn, stream, ssn, ppid, flags, payload: &self.payload }
    }

    fn i_data(&self, tsn: Tsn) -> IData<'_> {
        let Fragment { stream, mid, .. } = *self;
        let flags = self.flags.unpacked();
        let ppid_or_fsn = if flags.beginning { PpidOrFsn::Ppid(self.ppid) } else { PpidOrFsn::Fsn(self.fsn) };
        IData { tsn, stream, mid, ppid_or_fsn, flags, payload: &self.payload }
    }
}

/// A fragment with its TSN, ready to be written into a packet.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Numbered<'a> {
    pub(crate) tsn: Tsn,
    pub(crate) fragment: &'a Fragment,
}

impl Numbered<'_> {
    /// Appends the chunk that carries the fragment.
    ///
    /// # Errors
    /// The chunk does not fit the packet.
    // Always: this is called for every chunk; otherwise the fields are copied through memory before they reach the
    // packet.
    #[inline(always)]
    pub(crate) fn write(&self, data_format: DataFormat, writer: &mut PacketWriter<'_>) -> Result<(), NoRoom> {
        match data_format {
            DataFormat::Data => writer.push_data(&self.fragment.data(self.tsn)),
            DataFormat::IData => writer.push(&Chunk::IData(self.fragment.i_data(self.tsn))),
        }
    }
}
