//! Byte stream without message boundaries, as in TCP, over one stream of an association.

use std::fmt;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tresse_proto::{CloseReason, Message, Part, SendError, SendOptions, StreamId};

use crate::association::Association;
use crate::error::Ended;
use crate::messages::Messages;

/// A stream of an association as bytes, both ways; [`Association::byte_stream`] makes one.
///
/// Written bytes are sent as ordered messages of at most 16 KiB. A write waits while the send buffer is full. Accepted
/// bytes are delivered even if the stream is dropped then. Reading accepts messages of any length. It receives the
/// messages of the whole association, and a message of another stream is an error ([`ErrorKind::InvalidData`]). Reading
/// ends when the peer shuts the association down. An abort by the peer is [`ErrorKind::ConnectionReset`], a peer that does
/// not answer any more [`ErrorKind::TimedOut`], and another end [`ErrorKind::ConnectionAborted`]; the error has the
/// [`Ended`]. SCTP has no half-open state: `shutdown` ends both directions after everything is delivered, and waits until
/// the other side has been read as well.
///
/// ```no_run
/// # async fn carry(association: tresse::Association) -> std::io::Result<()> {
/// let mut connection = tokio::net::TcpStream::connect("127.0.0.1:80").await?;
/// let mut stream = association.byte_stream(tresse::StreamId(0));
/// tokio::io::copy_bidirectional(&mut connection, &mut stream).await?;
/// # Ok(())
/// # }
/// ```
pub struct ByteStream {
    messages: Messages,
    stream: StreamId,
    /// Pieces of the last message that were not read, in reverse order.
    unread: Vec<Bytes>,
}

impl Association {
    /// Returns one stream as bytes without boundaries (`AsyncRead` and `AsyncWrite`). The association must not be used
    /// for anything else.
    pub fn byte_stream(&self, stream: StreamId) -> ByteStream {
        ByteStream::new(self.clone(), stream)
    }
}

impl ByteStream {
    fn new(association: Association, stream: StreamId) -> Self {
        ByteStream { messages: Messages::new(association), stream, unread: Vec::new() }
    }

    /// Returns the association.
    pub fn association(&self) -> &Association {
        self.messages.association()
    }

    /// Returns the stream.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    fn take_in(&mut self, message: Message) -> io::Result<()> {
        if message.stream != self.stream {
            let (came, own) = (message.stream.0, self.stream.0);
            let reason =
                format!("a message came on stream {came}, and bytes are read from stream {own} alone");
            return Err(io::Error::new(ErrorKind::InvalidData, reason));
        }
        if message.part == Part::Abandoned || message.unordered {
            let reason = "bytes are missing: the peer sent a message that need not arrive, or not in order";
            return Err(io::Error::new(ErrorKind::InvalidData, reason));
        }
        // The piece that is read first is the last.
        self.unread = message.payload.pieces().iter().rev().cloned().collect();
        Ok(())
    }

    /// Returns the error of a write: the reason for the end of the association, if it did not end gracefully.
    fn refused(&self, error: SendError) -> io::Error {
        match (error, self.association().close_reason()) {
            (error @ SendError::NotOpen { .. }, None | Some(CloseReason::Graceful)) => {
                io::Error::new(ErrorKind::BrokenPipe, error)
            }
            (SendError::NotOpen { .. }, Some(reason)) => ended_io(Ended(reason)),
            (error, _) => io::Error::new(ErrorKind::InvalidInput, error),
        }
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        while buffer.remaining() > 0 {
            if let Some(piece) = self.unread.last_mut() {
                let len = piece.len().min(buffer.remaining());
                buffer.put_slice(&piece[..len]);
                piece.advance(len);
                if piece.is_empty() {
                    self.unread.pop();
                }
                continue;
            }
            // Bytes that have been read are returned before the read waits or fails.
            if buffer.filled().len() > before {
                break;
            }
            match ready!(self.messages.poll_recv(cx)) {
                Ok(Some(message)) => self.take_in(message)?,
                Ok(None) => break,
                Err(ended) => return Poll::Ready(Err(ended_io(ended))),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let options = SendOptions::on(self.stream);
        let mut part = &bytes[..bytes.len().min(LONGEST_MESSAGE)];
        while !part.is_empty() {
            match ready!(self.messages.poll_send(cx, options, part)) {
                Ok(()) => break,
                // The whole send buffer is smaller.
                Err(SendError::TooLong { len, limit }) if limit < len => part = &part[..limit],
                Err(error) => return Poll::Ready(Err(self.refused(error))),
            }
        }
        Poll::Ready(Ok(part.len()))
    }

    /// Ready at once, because all written bytes are in the send buffer of the association.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.messages.poll_shutdown(cx).map_err(ended_io)
    }
}

/// Returns the error with the kind that a TCP connection has for such an end.
fn ended_io(ended: Ended) -> io::Error {
    let kind = match ended.0 {
        CloseReason::AbortedByPeer { .. } => ErrorKind::ConnectionReset,
        CloseReason::SetupTimeout | CloseReason::PathsLost | CloseReason::ShutdownTimeout => {
            ErrorKind::TimedOut
        }
        _ => ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, ended)
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unread: usize = self.unread.iter().map(Bytes::len).sum();
        f.debug_struct("ByteStream")
            .field("association", self.association())
            .field("stream", &self.stream)
            .field("unread", &unread)
            .finish()
    }
}

/// Most bytes of a write that are sent as one message.
const LONGEST_MESSAGE: usize = 16 * 1024;
