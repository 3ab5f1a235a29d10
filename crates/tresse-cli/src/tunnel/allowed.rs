//! Permissions of a server: destinations that clients may reach, and addresses on which they may request listeners.

use std::net::SocketAddr;
use std::str::FromStr;

use super::forward::{Target, split};
use super::opening::{Destination, Kind, Refusal};

/// A pattern `HOST:PORT`. Either part may be `*`, and a host that begins with `*.` matches all names below a domain. Hosts are compared
/// as text; names are not looked up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pattern {
    host: String,
    port: Option<u16>,
}

/// A server's permissions.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowed {
    /// Targets of TCP connections; the first is the default.
    pub(super) tcp: Vec<Target>,
    /// Targets of UDP flows; the first is the default.
    pub(super) udp: Vec<Target>,
    /// Patterns of further destinations.
    pub(super) patterns: Vec<Pattern>,
    /// Addresses on which the server may listen for clients.
    pub(super) listen: Vec<Pattern>,
}

impl Allowed {
    /// Returns the target of an opening as `HOST:PORT`, if it is permitted.
    pub(super) fn destination(&self, kind: Kind, to: &Destination) -> Result<String, Refusal> {
        let own = match kind {
            Kind::Tcp => &self.tcp,
            Kind::Udp => &self.udp,
            Kind::Packets => return Err(Refusal::Forbidden),
        };
        match to {
            Destination::Default => own.first().map(Target::to_string).ok_or(Refusal::Forbidden),
            Destination::Named(name) => {
                let target: Target = name.parse().map_err(|_| Refusal::Forbidden)?;
                let allowed = own.contains(&target) || matches(&self.patterns, &target.host, target.port);
                allowed.then(|| target.to_string()).ok_or(Refusal::Forbidden)
            }
            Destination::Listener(_) | Destination::Nowhere => Err(Refusal::Forbidden),
        }
    }

    /// Returns whether the server may listen on `address` for clients.
    pub(super) fn may_listen(&self, address: SocketAddr) -> bool {
        matches(&self.listen, &address.ip().to_string(), address.port())
    }
}

fn matches(patterns: &[Pattern], host: &str, port: u16) -> bool {
    patterns.iter().any(|pattern| {
        let host_fits = match pattern.host.strip_prefix('*') {
            Some(end) => host.to_ascii_lowercase().ends_with(end),
            None => host.eq_ignore_ascii_case(&pattern.host),
        };
        host_fits && pattern.port.is_none_or(|wanted| wanted == port)
    })
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "it is not HOST:PORT, where HOST may be * or *.name, and PORT may be *, such as *.example.org:443"
                .to_owned()
        };
        let (host, port) = split(text).ok_or_else(wrong)?;
        let starred = host.strip_prefix("*.").unwrap_or(host);
        if host.is_empty() || (host != "*" && starred.contains('*')) {
            return Err(wrong());
        }
        let port = match port {
            "*" => None,
            port => Some(port.parse().map_err(|_| wrong())?),
        };
        Ok(Pattern { host: host.to_ascii_lowercase(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(patterns: &[&str]) -> Allowed {
        let patterns: Vec<Pattern> = patterns.iter().map(|text| text.parse().expect("a pattern")).collect();
        Allowed {
            tcp: vec!["web:80".parse().expect("a target"), "db:5432".parse().expect("a target")],
            udp: Vec::new(),
            listen: patterns.clone(),
            patterns,
        }
    }

    #[test]
    fn only_what_is_named_can_be_reached() {
        let named = |name: &str| Destination::Named(name.to_owned());
        let some = allowed(&["*.example.org:443"]);
        for (to, leads) in [
            (Destination::Default, Ok("web:80")),
            (named("db:5432"), Ok("db:5432")),
            (named("www.Example.org:443"), Ok("www.Example.org:443")),
            (named("www.example.org:80"), Err(Refusal::Forbidden)),
            (named("example.org.evil:443"), Err(Refusal::Forbidden)),
            (named("db:22"), Err(Refusal::Forbidden)),
            (named("no port"), Err(Refusal::Forbidden)),
            (Destination::Listener(1), Err(Refusal::Forbidden)),
            (Destination::Nowhere, Err(Refusal::Forbidden)),
        ] {
            assert_eq!(some.destination(Kind::Tcp, &to), leads.map(str::to_owned), "{to:?}");
        }
        assert_eq!(some.destination(Kind::Udp, &Destination::Default), Err(Refusal::Forbidden));
        assert_eq!(some.destination(Kind::Udp, &named("db:5432")), Err(Refusal::Forbidden));
        let all = allowed(&["*:*"]);
        assert!(all.destination(Kind::Udp, &named("[::1]:53")).is_ok());
    }

    #[test]
    fn listeners_need_a_permission_too() {
        let some = allowed(&["127.0.0.1:*"]);
        assert!(some.may_listen("127.0.0.1:80".parse().expect("an address")));
        assert!(!some.may_listen("0.0.0.0:80".parse().expect("an address")));
        for wrong in ["80", "a*b:1", "*.*.x:1", ":1", "host:", "host:x"] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
        }
    }
}
