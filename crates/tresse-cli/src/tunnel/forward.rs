//! Forwards on the command line: where connections are accepted, and where they lead.

use std::net::SocketAddr;
use std::str::FromStr;

use tresse::config::{StreamClass, SwitchValue};

use super::opening::{Destination, is_host};

/// `HOST:PORT`, of this host or another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
}

/// `ADDRESS:PORT`, or `ADDRESS:PORT=HOST:PORT`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Forward {
    pub(super) listen: SocketAddr,
    pub(super) to: Option<Target>,
}

/// `ADDRESS:PORT=HOST:PORT`, where the address is the other side's.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Reverse {
    pub(super) listen: SocketAddr,
    pub(super) to: Target,
}

/// Class of a port: `PORT=CLASS`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ClassOfPort(pub(super) u16, pub(super) StreamClass);

impl ClassOfPort {
    /// Returns the class of connections to `port`.
    pub(super) fn find(classes: &[ClassOfPort], port: u16) -> StreamClass {
        classes.iter().rev().find(|one| one.0 == port).map_or(StreamClass::Bulk, |one| one.1)
    }
}

impl Forward {
    /// Returns the port that determines the class: that of the target, or without a target that of the listener.
    pub(super) fn port(&self) -> u16 {
        self.to.as_ref().map_or(self.listen.port(), |to| to.port)
    }

    pub(super) fn destination(&self) -> Destination {
        self.to.as_ref().map_or(Destination::Default, |to| Destination::Named(to.to_string()))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        split(text)
            .and_then(|(host, port)| Some((host, port.parse().ok().filter(|port| *port > 0)?)))
            .filter(|(host, _)| is_host(host) && !host.contains('*'))
            .map(|(host, port)| Target { host: host.to_owned(), port })
            .ok_or_else(|| "it is not HOST:PORT, such as localhost:8080 or [::1]:8080".to_owned())
    }
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (listen, to) = match text.split_once('=') {
            Some((listen, to)) => (listen, Some(to.parse()?)),
            None => (text, None),
        };
        Ok(Forward { listen: address_and_port(listen)?, to })
    }
}

impl FromStr for Reverse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (listen, to) = text.split_once('=').ok_or(
            "it is not ADDRESS:PORT=HOST:PORT, an address of the server and what it leads to from here",
        )?;
        Ok(Reverse { listen: address_and_port(listen)?, to: to.parse()? })
    }
}

impl FromStr for ClassOfPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text
            .split_once('=')
            .and_then(|(port, class)| Some(ClassOfPort(port.parse().ok()?, StreamClass::parse(class)?)));
        parsed.ok_or_else(|| {
            let names: Vec<&str> = StreamClass::ALL.iter().map(|class| class.name()).collect();
            format!("it is not PORT=CLASS, such as 22=latency; classes are {}", names.join(", "))
        })
    }
}

/// Splits a text into host and port, and removes the brackets of IPv6 addresses.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    match host.strip_prefix('[') {
        Some(host) => Some((host.strip_suffix(']')?, port)),
        None if host.contains(':') => None,
        None => Some((host, port)),
    }
}

pub(super) fn address_and_port(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "it is not ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_read_as_they_are_typed() {
        let plain: Forward = "127.0.0.1:8080".parse().expect("a forward");
        assert_eq!((plain.port(), plain.destination()), (8080, Destination::Default));
        let named: Forward = "[::1]:2222=[fe80::1]:22".parse().expect("a forward");
        assert_eq!(named.port(), 22);
        assert_eq!(named.destination(), Destination::Named("[fe80::1]:22".to_owned()));
        let reverse: Reverse = "0.0.0.0:443=web:8443".parse().expect("a forward");
        assert_eq!((reverse.listen.port(), reverse.to.to_string().as_str()), (443, "web:8443"));
        for wrong in
            ["8080", "localhost:80", "127.0.0.1:80=", "127.0.0.1:80=web", "127.0.0.1:80=web:0", "1=*:1"]
        {
            assert!(wrong.parse::<Forward>().is_err(), "{wrong}");
        }
        assert!("127.0.0.1:80".parse::<Reverse>().is_err());
        for host in ["a b", "a\tb", &"a".repeat(254)] {
            assert!(format!("{host}:80").parse::<Target>().is_err(), "{host:?}");
        }
    }

    #[test]
    fn the_last_word_about_a_port_counts() {
        let classes = ["22=latency", "873=background", "22=bulk"].map(|text| text.parse().expect("a class"));
        assert_eq!(ClassOfPort::find(&classes, 22), StreamClass::Bulk);
        assert_eq!(ClassOfPort::find(&classes, 873), StreamClass::Background);
        assert_eq!(ClassOfPort::find(&classes, 80), StreamClass::Bulk);
        let refused = "22=fast".parse::<ClassOfPort>().expect_err("no class");
        assert!(refused.contains("latency, bulk, background"), "{refused}");
    }
}
