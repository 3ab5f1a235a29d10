//! STUN server of `tresse perf server`: reports the source addresses of packets to clients.
//!
//! Stateless. An answer goes to the address of the request, and is no longer than the request.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::{Answer, PORTS, REQUEST, Request};

/// Sockets that answer requests until this is dropped.
pub(crate) struct Reflector {
    _answering: JoinSet<()>,
}

impl Reflector {
    /// Binds sockets to both ports of each of these addresses.
    ///
    /// # Errors
    /// A socket cannot be bound; the error has its address and port.
    pub(crate) async fn bind(addresses: &[IpAddr]) -> Result<Self, (SocketAddr, io::Error)> {
        let mut sockets = Vec::new();
        for place in addresses.iter().flat_map(|address| PORTS.map(|port| SocketAddr::new(*address, port))) {
            sockets.push((place, UdpSocket::bind(place).await.map_err(|error| (place, error))?));
        }
        let sockets = Arc::new(sockets);
        let mut answering = JoinSet::new();
        for own in 0..sockets.len() {
            let sockets = Arc::clone(&sockets);
            answering.spawn(async move { answer(&sockets, own).await });
        }
        Ok(Reflector { _answering: answering })
    }
}

async fn answer(sockets: &[(SocketAddr, UdpSocket)], own: usize) {
    let mut buffer = [0; 2048];
    loop {
        // The error belongs to an earlier answer that was refused (ICMP): the client is gone.
        let Ok((length, from)) = sockets[own].1.recv_from(&mut buffer).await else { continue };
        if let Some((by, to, bytes)) =
            answer_to(&buffer[..length], from, own, sockets.len(), &|at| sockets[at].0)
        {
            // An answer that the system refuses is lost, as on the network.
            let _ = sockets[by].1.try_send_to(&bytes, to);
        }
    }
}

/// Returns the socket that answers, the destination and the answer; `None` if there is no answer. The two sockets of one address have
/// adjacent indices.
fn answer_to(
    bytes: &[u8],
    from: SocketAddr,
    own: usize,
    sockets: usize,
    place: &dyn Fn(usize) -> SocketAddr,
) -> Option<(usize, SocketAddr, Vec<u8>)> {
    let request = Request::decode(bytes).filter(|_| bytes.len() >= REQUEST)?;
    let further = (1..sockets / 2).map(|step| (own + 2 * step) % sockets);
    let beside = further.into_iter().find(|at| place(*at).is_ipv4() == place(own).is_ipv4());
    let by = if request.change_address { beside? } else { own };
    let by = if request.change_port { by ^ 1 } else { by };
    let to = SocketAddr::new(from.ip(), request.response_port.unwrap_or(from.port()));
    let other = beside.map(|at| place(at ^ 1));
    let answer = Answer { transaction: request.transaction, mapped: from, origin: place(by), other };
    Some((by, to, answer.encode()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_from_where_they_were_asked_to_and_go_to_who_asked() {
        let all: Vec<SocketAddr> = [
            "192.0.2.1:3478",
            "192.0.2.1:3479",
            "[2001:db8::1]:3478",
            "[2001:db8::1]:3479",
            "192.0.2.2:3478",
            "192.0.2.2:3479",
        ]
        .map(|text| text.parse().expect("an address"))
        .to_vec();
        let from: SocketAddr = "198.51.100.1:700".parse().expect("an address");
        let ask = |request: Request, own: usize| {
            let (by, to, bytes) = answer_to(&request.encode(), from, own, all.len(), &|at| all[at])?;
            Some((by, to.to_string(), Answer::decode(&bytes, from)?))
        };
        let (by, to, answer) = ask(Request::default(), 0).expect("an answer");
        assert_eq!((by, to.as_str(), answer.mapped), (0, "198.51.100.1:700", from));
        assert_eq!((answer.origin, answer.other), (all[0], Some(all[5])));
        let changed = Request { change_address: true, change_port: true, ..Request::default() };
        assert_eq!(ask(changed, 4).map(|(by, ..)| by), Some(1));
        assert_eq!(ask(changed, 2), None, "there is one address of IPv6");
        let elsewhere = Request { response_port: Some(9), change_port: true, ..Request::default() };
        assert_eq!(ask(elsewhere, 2).map(|(by, to, _)| (by, to)), Some((3, "198.51.100.1:9".to_owned())));
        let short = &Request::default().encode()[..REQUEST - 4];
        assert_eq!(answer_to(short, from, 0, all.len(), &|at| all[at]), None);
    }
}
