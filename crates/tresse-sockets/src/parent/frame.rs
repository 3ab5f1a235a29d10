//! Frames between a forked process and the one that has the sockets: a length, then the fields in order. Both ends run the same
//! program.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::settings::LARGEST_BUFFER;

/// A frame that is being written.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn number(mut self, value: i32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn unsigned(self, value: u32) -> Self {
        self.number(value.cast_signed())
    }

    pub(crate) fn flag(self, value: bool) -> Self {
        self.number(i32::from(value))
    }

    pub(crate) fn bytes(self, value: &[u8]) -> Self {
        let mut longer = self.unsigned(u32::try_from(value.len()).unwrap_or(u32::MAX));
        longer.0.extend_from_slice(value);
        longer
    }

    pub(crate) fn numbers(self, values: &[i32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.bytes(&bytes)
    }

    /// Sends the frame, and a descriptor with it.
    ///
    /// # Errors
    /// `MSGSIZE` for a frame that is too long, before any of it is sent; `PIPE` if the other process has ended.
    pub(crate) fn send(self, to: impl AsFd, with: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
        let length = u32::try_from(self.0.len()).map_err(|_| Errno::MSGSIZE)?;
        if self.0.len() > LONGEST {
            return Err(Errno::MSGSIZE);
        }
        let mut frame = length.to_ne_bytes().to_vec();
        frame.extend(self.0);
        let mut rest = frame.as_slice();
        let mut with = with;
        while !rest.is_empty() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let fds = with.map(|fd| [fd]);
            if let Some(fds) = &fds {
                control.push(SendAncillaryMessage::ScmRights(fds));
            }
            match sendmsg(&to, &[IoSlice::new(rest)], &mut control, SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    rest = &rest[sent..];
                    with = None;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A frame that is being read.
pub(crate) struct Reader {
    bytes: Vec<u8>,
    at: usize,
    with: Option<OwnedFd>,
}

impl Reader {
    /// Receives one frame.
    ///
    /// # Errors
    /// `MSGSIZE` for a frame that is too long; `PIPE` if the other process has ended.
    pub(crate) fn receive(from: impl AsFd) -> Result<Self, Errno> {
        let mut with = None;
        let mut length = [0; 4];
        fill(&from, &mut length, &mut with)?;
        let length = u32::from_ne_bytes(length) as usize;
        if length > LONGEST {
            return Err(Errno::MSGSIZE);
        }
        let mut bytes = vec![0; length];
        fill(&from, &mut bytes, &mut with)?;
        Ok(Reader { bytes, at: 0, with })
    }

    pub(crate) fn number(&mut self) -> Result<i32, Errno> {
        self.take(4).and_then(|bytes| bytes.try_into().map(i32::from_ne_bytes).map_err(|_| Errno::PROTO))
    }

    pub(crate) fn unsigned(&mut self) -> Result<u32, Errno> {
        self.number().map(i32::cast_unsigned)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Errno> {
        self.number().map(|value| value != 0)
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Errno> {
        let length = self.unsigned()? as usize;
        self.take(length).map(<[u8]>::to_vec)
    }

    pub(crate) fn numbers(&mut self) -> Result<Vec<i32>, Errno> {
        let bytes = self.bytes()?;
        Ok(bytes
            .chunks_exact(4)
            .map(|four| i32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
            .collect())
    }

    /// Takes the descriptor that came with the frame.
    pub(crate) fn descriptor(&mut self) -> Result<OwnedFd, Errno> {
        self.with.take().ok_or(Errno::PROTO)
    }

    fn take(&mut self, length: usize) -> Result<&[u8], Errno> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..length)).ok_or(Errno::PROTO)?;
        self.at += length;
        Ok(taken)
    }
}

fn fill(from: impl AsFd, mut into: &mut [u8], with: &mut Option<OwnedFd>) -> Result<(), Errno> {
    while !into.is_empty() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(&from, &mut [IoSliceMut::new(into)], &mut control, RecvFlags::CMSG_CLOEXEC);
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                *with = fds.last().or(with.take());
            }
        }
        match got {
            Ok(message) if message.bytes == 0 => return Err(Errno::PIPE),
            Ok(message) => into = &mut std::mem::take(&mut into)[message.bytes..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Greatest length of a frame in bytes: a message that fills the largest send buffer, and what comes with it.
const LONGEST: usize = LARGEST_BUFFER + (1 << 16);

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn fields_and_a_descriptor_arrive_as_they_were_written() {
        let pair = || socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let (one, other) = pair().expect("a pair");
        let (given, _kept) = pair().expect("a pair");
        let frame =
            Writer::default().number(-7).bytes(b"abc").flag(true).numbers(&[4, 5]).bytes(&[9; 300_000]);
        let writer = std::thread::spawn(move || {
            frame.send(&one, Some(given.as_fd())).expect("sent");
            Writer::default().unsigned(u32::MAX).send(&one, None).expect("sent");
        });
        let mut reader = Reader::receive(&other).expect("a frame");
        assert_eq!((reader.number(), reader.bytes()), (Ok(-7), Ok(b"abc".to_vec())));
        assert_eq!((reader.flag(), reader.numbers()), (Ok(true), Ok(vec![4, 5])));
        assert_eq!(reader.bytes().expect("many").len(), 300_000);
        assert_eq!(reader.number(), Err(Errno::PROTO));
        assert!(reader.descriptor().is_ok() && reader.descriptor().is_err());
        assert_eq!(Reader::receive(&other).expect("a frame").unsigned(), Ok(u32::MAX));
        writer.join().expect("it ends");
        assert_eq!(Reader::receive(&other).err(), Some(Errno::PIPE));
    }

    #[test]
    fn a_length_that_nobody_writes_is_refused() {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a pair");
        rustix::io::write(&one, &u32::MAX.to_ne_bytes()).expect("written");
        assert_eq!(Reader::receive(&other).err(), Some(Errno::MSGSIZE));
    }
}
