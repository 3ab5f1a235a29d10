//! Readiness of a non-blocking datagram socket. It wakes the driver for arriving packets, unless the driver polls it by
//! a timer, and for room to send only while the socket is full.
//!
//! A socket that is always registered for both wakes the driver for each packet that leaves the send buffer, long
//! before the buffer is full: at 100 Mbit/s that is half of all wake-ups.

pub(super) use system::Polled;

#[cfg(unix)]
mod system {
    use std::io::{self, ErrorKind};
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;
    use std::sync::Arc;
    use std::task::{Context, Poll, ready};

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// A socket that is registered with the runtime, or polled by a timer.
    pub(crate) struct Polled {
        socket: Arc<UdpSocket>,
        /// Registration that wakes the driver for arriving packets; `None` while they must not wake it.
        arrivals: Option<AsyncFd<Arc<UdpSocket>>>,
        /// Without `arrivals`: true if the socket was empty when it was last polled.
        drained: bool,
        /// Another descriptor of the socket, while the socket is full.
        room: Option<AsyncFd<UdpSocket>>,
    }

    impl Polled {
        pub(crate) const CAN_DEREGISTER: bool = true;

        pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
            let socket = Arc::new(socket);
            let arrivals = Some(registered(Arc::clone(&socket), Interest::READABLE)?);
            Ok(Polled { socket, arrivals, drained: false, room: None })
        }

        pub(crate) fn socket(&self) -> &UdpSocket {
            &self.socket
        }

        /// Stops wake-ups by this socket until [`Self::register`]. Called when the socket is empty.
        pub(crate) fn deregister(&mut self) {
            if self.arrivals.take().is_some() {
                self.drained = true;
            }
        }

        /// Makes [`Self::poll_receive`] query the system again, if the socket is not registered.
        pub(crate) fn poll_again(&mut self) {
            self.drained = false;
        }

        /// Enables wake-ups by arriving packets, and by those that have arrived, for the next poll. Returns false if
        /// the system refuses that: then a timer has to poll the socket.
        pub(crate) fn register(&mut self) -> bool {
            if self.arrivals.is_none() {
                self.arrivals = registered(Arc::clone(&self.socket), Interest::READABLE).ok();
            }
            self.arrivals.is_some()
        }

        /// Receives by `receive`, which returns the number of datagrams, at most `most`. If there are fewer, the socket
        /// is empty. Pending forever once the runtime shuts down.
        pub(crate) fn poll_receive(
            &mut self,
            cx: &mut Context<'_>,
            most: usize,
            receive: impl FnOnce(&UdpSocket) -> io::Result<usize>,
        ) -> Poll<io::Result<usize>> {
            let is_drained = |received: &io::Result<usize>| match received {
                Ok(count) => *count < most,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            let Some(arrivals) = &self.arrivals else {
                if self.drained {
                    return Poll::Pending;
                }
                let received = receive(&self.socket);
                self.drained = is_drained(&received);
                return match received {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
                    received => Poll::Ready(received),
                };
            };
            let Ok(mut guard) = ready!(arrivals.poll_read_ready(cx)) else { return Poll::Pending };
            let received = receive(&self.socket);
            if is_drained(&received) {
                guard.clear_ready();
            }
            Poll::Ready(received)
        }

        /// Sends by `send`.
        pub(crate) fn send(&self, send: impl FnOnce(&UdpSocket) -> io::Result<()>) -> io::Result<()> {
            send(self.socket())
        }

        /// Pending while the socket is full; called after the socket refused to send. Also pending, without a wake-up,
        /// if the system grants no further descriptor: a later call may succeed.
        pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let watch = |socket: &UdpSocket| registered(socket.try_clone().ok()?, Interest::WRITABLE).ok();
            let Some(room) = self.room.take().or_else(|| watch(self.socket())) else { return Poll::Pending };
            if room.poll_write_ready(cx).is_ready() {
                return Poll::Ready(());
            }
            self.room = Some(room);
            Poll::Pending
        }
    }

    fn registered<T: AsRawFd>(socket: T, interest: Interest) -> io::Result<AsyncFd<T>> {
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

    /// A socket that is registered with the runtime, always for both: there is no choice here.
    pub(crate) struct Polled(UdpSocket);

    impl Polled {
        pub(crate) const CAN_DEREGISTER: bool = false;

        pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
            Ok(Polled(UdpSocket::from_std(socket)?))
        }

        pub(crate) fn socket(&self) -> &UdpSocket {
            &self.0
        }

        /// Has no effect: arriving packets always wake the driver.
        pub(crate) fn deregister(&mut self) {}

        /// Has no effect: the socket is always queried.
        pub(crate) fn poll_again(&mut self) {}

        /// Returns true: the socket is always registered.
        pub(crate) fn register(&mut self) -> bool {
            true
        }

        /// Receives by `receive`, which returns the number of datagrams.
        pub(crate) fn poll_receive(
            &mut self,
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

        /// Pending while the socket is full; called after the socket refused to send.
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

    /// Makes a pair of sockets. Datagrams of this kind occupy the sender's socket until they are read.
    fn pair() -> (Polled, UnixDatagram) {
        let (near, far) = UnixDatagram::pair().expect("two sockets");
        near.set_nonblocking(true).expect("it is open");
        far.set_nonblocking(true).expect("it is open");
        (Polled::new(UdpSocket::from(OwnedFd::from(near))).expect("registered"), far)
    }

    fn send(near: &Polled) -> io::Result<()> {
        near.send(|socket| Ok(rustix::net::send(socket, b"x", rustix::net::SendFlags::empty()).map(drop)?))
    }

    /// Returns the events for which epoll watches the descriptor, in all instances of this process.
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
        // The runtime has several descriptors of its epoll instance.
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
        let (mut near, far) = pair();
        let mut receive = async |most: usize| {
            let near = &mut near;
            poll_fn(move |cx| {
                let count = near.poll_receive(cx, most, |socket| {
                    let one = || socket.recv(&mut [0; 8]);
                    let count = (0..most).take_while(|_| one().is_ok()).count();
                    if count > 0 { Ok(count) } else { Err(io::ErrorKind::WouldBlock.into()) }
                });
                Poll::Ready(count.map(Result::ok))
            })
            .await
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

    /// Returns the bytes received; `None` if there are none, or no system call is made.
    fn take(near: &mut Polled, cx: &mut std::task::Context<'_>) -> Option<usize> {
        match near.poll_receive(cx, 2, |socket| socket.recv(&mut [0; 8])) {
            Poll::Ready(received) => received.ok(),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn what_arrives_at_a_deregistered_socket_wakes_nobody_and_is_found_by_a_poll() {
        let (mut near, far) = pair();
        let descriptor = near.socket().as_raw_fd();
        far.send(b"x").expect("room");
        near.deregister();
        assert_eq!(watched(descriptor), []);
        assert_eq!(poll_fn(|cx| Poll::Ready(take(&mut near, cx))).await, None, "until the next poll");
        near.poll_again();
        assert_eq!(poll_fn(|cx| Poll::Ready(take(&mut near, cx))).await, Some(1));
        far.send(b"xy").expect("room");
        assert_eq!(poll_fn(|cx| Poll::Ready(take(&mut near, cx))).await, None, "it was drained");
        assert!(near.register() && !watched(descriptor).is_empty());
        let arrival = poll_fn(|cx| match take(&mut near, cx) {
            Some(count) => Poll::Ready(count),
            None => Poll::Pending,
        });
        let arrival = tokio::time::timeout(std::time::Duration::from_secs(300), arrival).await;
        assert_eq!(arrival, Ok(2), "what came before it was registered again");
    }
}
