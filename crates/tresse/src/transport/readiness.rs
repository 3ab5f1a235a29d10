//! Readiness of a non-blocking socket of datagrams: to receive, always; to send, only while it is full.
//!
//! A socket that is always registered for both wakes the driver for each packet that leaves the send buffer, long before
//! that is full: at 100 Mbit/s for half of all wake-ups.

pub(super) use system::Polled;

#[cfg(unix)]
mod system {
    use std::io::{self, ErrorKind};
    use std::net::UdpSocket;
    use std::task::{Context, Poll, ready};

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// A socket that is registered with the runtime.
    pub(crate) struct Polled {
        arrivals: AsyncFd<UdpSocket>,
        /// Another descriptor of the socket, while it is full.
        room: Option<AsyncFd<UdpSocket>>,
    }

    impl Polled {
        pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
            Ok(Polled { arrivals: register(socket, Interest::READABLE)?, room: None })
        }

        pub(crate) fn socket(&self) -> &UdpSocket {
            self.arrivals.get_ref()
        }

        /// Receives by `receive`, which returns the number of datagrams, `most` at most. If there are fewer, none is left.
        /// Pending for good once the runtime shuts down.
        pub(crate) fn poll_receive(
            &self,
            cx: &mut Context<'_>,
            most: usize,
            receive: impl FnOnce(&UdpSocket) -> io::Result<usize>,
        ) -> Poll<io::Result<usize>> {
            let Ok(mut guard) = ready!(self.arrivals.poll_read_ready(cx)) else { return Poll::Pending };
            let received = receive(self.socket());
            let drained = match &received {
                Ok(count) => *count < most,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            if drained {
                guard.clear_ready();
            }
            Poll::Ready(received)
        }

        /// Sends by `send`.
        pub(crate) fn send(&self, send: impl FnOnce(&UdpSocket) -> io::Result<()>) -> io::Result<()> {
            send(self.socket())
        }

        /// Pending while the socket is full; to be asked after it refused to send. Also pending, without a wake-up, if the
        /// system grants no further descriptor: whoever asks again at the next event goes on.
        pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let watch = |socket: &UdpSocket| register(socket.try_clone().ok()?, Interest::WRITABLE).ok();
            let Some(room) = self.room.take().or_else(|| watch(self.socket())) else { return Poll::Pending };
            if room.poll_write_ready(cx).is_ready() {
                return Poll::Ready(());
            }
            self.room = Some(room);
            Poll::Pending
        }
    }

    fn register(socket: UdpSocket, interest: Interest) -> io::Result<AsyncFd<UdpSocket>> {
        #[expect(
            deprecated,
            reason = "what the newer one asks for in unsafe code, an owned socket has by its type"
        )]
        AsyncFd::with_interest(socket, interest)
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;
    use std::task::{Context, Poll, ready};

    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    /// A socket that is registered with the runtime: for both, as here there is no way to choose.
    pub(crate) struct Polled(UdpSocket);

    impl Polled {
        pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
            Ok(Polled(UdpSocket::from_std(socket)?))
        }

        /// Receives by `receive`, which returns the number of datagrams.
        pub(crate) fn poll_receive(
            &self,
            cx: &mut Context<'_>,
            _most: usize,
            receive: impl FnOnce(&UdpSocket) -> io::Result<usize>,
        ) -> Poll<io::Result<usize>> {
            if ready!(self.0.poll_recv_ready(cx)).is_err() {
                return Poll::Pending;
            }
            Poll::Ready(self.0.try_io(Interest::READABLE, || receive(&self.0)))
        }

        /// Sends by `send`.
        pub(crate) fn send(&self, send: impl FnOnce(&UdpSocket) -> io::Result<()>) -> io::Result<()> {
            self.0.try_io(Interest::WRITABLE, || send(&self.0))
        }

        /// Pending while the socket is full; to be asked after it refused to send.
        pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            self.0.poll_send_ready(cx).map(drop)
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::read_to_string;
    use std::future::poll_fn;
    use std::io;
    use std::net::UdpSocket;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::net::UnixDatagram;
    use std::task::Poll;

    use super::Polled;

    /// Datagrams of this kind wait in the sender's socket until they are read.
    fn pair() -> (Polled, UnixDatagram) {
        let (near, far) = UnixDatagram::pair().expect("two sockets");
        near.set_nonblocking(true).expect("it is open");
        far.set_nonblocking(true).expect("it is open");
        (Polled::new(UdpSocket::from(OwnedFd::from(near))).expect("registered"), far)
    }

    fn send(near: &Polled) -> io::Result<()> {
        near.send(|socket| Ok(rustix::net::send(socket, b"x", rustix::net::SendFlags::empty()).map(drop)?))
    }

    /// Events that epoll watches the descriptor for, of all instances of this process.
    fn watched(descriptor: i32) -> Vec<u32> {
        let entries = std::fs::read_dir("/proc/self/fdinfo").expect("Linux has it").flatten();
        let texts: Vec<String> = entries.filter_map(|entry| read_to_string(entry.path()).ok()).collect();
        let lines = texts.iter().flat_map(|text| text.lines());
        let fields = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
        let own = fields.filter(|words| words[..].starts_with(&["tfd:", &descriptor.to_string()]));
        own.map(|words| u32::from_str_radix(words[3], 16).expect("hexadecimal")).collect()
    }

    const EPOLLIN: u32 = 1;
    const EPOLLOUT: u32 = 4;

    #[tokio::test]
    async fn a_socket_that_is_not_full_wakes_nobody_when_something_leaves_it() {
        let (near, _far) = pair();
        let events = watched(near.socket().as_raw_fd());
        // The runtime has several descriptors of its instance.
        let only_arrivals = |events: &u32| events & (EPOLLIN | EPOLLOUT) == EPOLLIN;
        assert!(!events.is_empty() && events.iter().all(only_arrivals), "{events:?}");
    }

    #[tokio::test]
    async fn a_full_socket_tells_when_there_is_room_again() {
        let (mut near, far) = pair();
        for _ in 0..2 {
            while send(&near).is_ok() {}
            let pending = poll_fn(|cx| Poll::Ready(near.poll_room(cx).is_pending())).await;
            assert!(pending && send(&near).is_err());
            while far.recv(&mut [0; 8]).is_ok() {}
            poll_fn(|cx| near.poll_room(cx)).await;
            assert!(send(&near).is_ok());
        }
    }

    #[tokio::test]
    async fn a_batch_that_is_not_full_is_the_last_until_something_arrives() {
        let (near, far) = pair();
        let receive = |most: usize| {
            let near = &near;
            poll_fn(move |cx| {
                let count = near.poll_receive(cx, most, |socket| {
                    let one = || socket.recv(&mut [0; 8]);
                    let count = (0..most).take_while(|_| one().is_ok()).count();
                    if count > 0 { Ok(count) } else { Err(io::ErrorKind::WouldBlock.into()) }
                });
                Poll::Ready(count.map(Result::ok))
            })
        };
        let settle = || tokio::time::sleep(std::time::Duration::from_millis(5));
        (0..5).for_each(|_| drop(far.send(b"x")));
        settle().await;
        assert_eq!(receive(3).await, Poll::Ready(Some(3)));
        assert_eq!(receive(3).await, Poll::Ready(Some(2)));
        assert_eq!(receive(3).await, Poll::Pending, "without a system call");
        far.send(b"x").expect("room");
        settle().await;
        assert_eq!(receive(3).await, Poll::Ready(Some(1)));
    }
}
