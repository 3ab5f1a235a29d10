//! Fragment of a message with all fields of DATA or I-DATA except the TSN: `outbound` cuts it, `transmission` keeps
//! it and `inbound` joins it; and the choice between the two kinds of chunk.

use std::sync::Arc;

use bytes::Bytes;
use tresse_wire::{
    Chunk, DATA_HEADER_LEN, Data, DataFlags, Fsn, I_DATA_HEADER_LEN, IData, Mid, NoRoom, PacketWriter, Ppid,
    PpidOrFsn, Ssn, StreamId, Tsn,
};

use crate::interface::reliability::DeliveryTerms;

/// The chunk that carries user data: one of the two for a whole association, in both directions
/// (RFC 8260 §2.2.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum DataFormat {
    /// DATA: the fragments of a message have consecutive TSNs.
    #[default]
    Data,
    /// I-DATA: fragments of other messages may come in between.
    IData,
}

impl DataFormat {
    /// Bytes of the chunk before the user data.
    #[inline]
    pub(crate) fn header_len(self) -> usize {
        match self {
            DataFormat::Data => DATA_HEADER_LEN,
            DataFormat::IData => I_DATA_HEADER_LEN,
        }
    }

    /// Count of numbers that the messages of a stream can have, SSNs or MIDs.
    #[inline]
    pub(crate) fn numbers(self) -> u64 {
        match self {
            DataFormat::Data => 1 << 16,
            DataFormat::IData => 1 << 32,
        }
    }
}

/// B, E, U and I of a fragment, in one byte as on the wire: every `Option` of a fragment would else keep its tag in
/// one of four `bool`s, and each move of it would go around that byte.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Flags(u8);

impl Flags {
    /// First fragment of its message.
    #[inline]
    pub(crate) fn beginning(self) -> bool {
        self.unpacked().beginning
    }

    /// Last fragment of its message.
    #[inline]
    pub(crate) fn ending(self) -> bool {
        self.unpacked().ending
    }

    /// The message is unordered.
    #[inline]
    pub(crate) fn unordered(self) -> bool {
        self.unpacked().unordered
    }

    /// A report is wanted at once (I bit, RFC 7053).
    pub(crate) fn request_report(&mut self) {
        *self = DataFlags { immediate: true, ..self.unpacked() }.into();
    }

    /// As a chunk has them.
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

/// A message, or a piece of one, that fits a chunk.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) stream: StreamId,
    /// Number of the message in its stream. Of DATA only the low 16 bits count, the SSN; of I-DATA ordered
    /// and unordered messages are numbered apart.
    pub(crate) mid: Mid,
    /// Number of the piece in its message; DATA does not say it.
    pub(crate) fsn: Fsn,
    /// Known of every piece but those that arrived in I-DATA and begin no message.
    pub(crate) ppid: Ppid,
    pub(crate) flags: Flags,
    pub(crate) payload: Bytes,
}

/// A piece of a waiting message, cut to be sent.
#[derive(Debug)]
pub(crate) struct CutFragment {
    pub(crate) fragment: Fragment,
    /// Of a message that need not arrive.
    pub(crate) terms: Option<Arc<DeliveryTerms>>,
}

impl Fragment {
    /// The fragment in a DATA chunk; `payload` is its user data.
    #[inline]
    pub(crate) fn of_data(data: &Data<'_>, payload: Bytes) -> Self {
        let (mid, fsn) = (Mid(data.ssn.0.into()), Fsn(0));
        let (stream, ppid, flags) = (data.stream, data.ppid, data.flags.into());
        Fragment { stream, mid, fsn, ppid, flags, payload }
    }

    /// The fragment in an I-DATA chunk; `payload` is its user data.
    #[inline]
    pub(crate) fn of_i_data(data: &IData<'_>, payload: Bytes) -> Self {
        let ppid = match data.ppid_or_fsn {
            PpidOrFsn::Ppid(ppid) => ppid,
            PpidOrFsn::Fsn(_) => Ppid(0),
        };
        let (stream, mid, fsn, flags) = (data.stream, data.mid, data.fsn(), data.flags.into());
        Fragment { stream, mid, fsn, ppid, flags, payload }
    }

    /// The SSN of its message, as DATA has it.
    #[inline]
    pub(crate) fn ssn(&self) -> Ssn {
        Ssn(self.mid.0 as u16)
    }

    #[inline]
    fn data(&self, tsn: Tsn) -> Data<'_> {
        let Fragment { stream, ppid, .. } = *self;
        let flags = self.flags.unpacked();
        // An unordered message has no SSN (RFC 9260 §3.3.1); 0 is what everybody sends for none.
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

/// A fragment with its TSN, on its way out.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Numbered<'a> {
    pub(crate) tsn: Tsn,
    pub(crate) fragment: &'a Fragment,
}

impl Numbered<'_> {
    /// Appends the chunk that carries it.
    ///
    /// # Errors
    /// It does not fit.
    // Always: called for every chunk; otherwise its fields are copied through memory before they reach the packet.
    #[inline(always)]
    pub(crate) fn write(&self, data_format: DataFormat, writer: &mut PacketWriter<'_>) -> Result<(), NoRoom> {
        match data_format {
            DataFormat::Data => writer.push_data(&self.fragment.data(self.tsn)),
            DataFormat::IData => writer.push(&Chunk::IData(self.fragment.i_data(self.tsn))),
        }
    }
}
