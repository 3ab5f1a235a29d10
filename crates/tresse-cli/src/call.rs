//! The two ends of an association in a command: the side that opens it (`CallArgs`) and the side that accepts it (`ListenArgs`).

use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tresse::host::{self, Due, Followed, HostAddress, Local, Remote};
use tresse::security::{Peers, Security};
use tresse::{
    Association, AssociationConfig, CloseReason, ConnectError, Ended, Endpoint, EndpointConfig, Peer,
    Registry, SendError, SendOptions,
};

use crate::args::{DEFAULT_SCTP_PORT, positive_duration};
use crate::failure::Failure;
use crate::links;
use crate::named::{self, Named};
use crate::output;
use crate::record::RecordArgs;
use crate::report::words::printable;
use crate::security::{self, SecurityArgs};

/// Addresses to call, and own addresses to call from.
#[derive(Args, Clone)]
pub(crate) struct CallArgs {
    /// The other side's addresses, the preferred one first; a host name stands for all of its addresses
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', required = true)]
    pub(crate) to: Vec<Named<Remote>>,
    /// Own addresses, paired by position with the other side's: addresses, interfaces, host names, 0.0.0.0 or ::, or
    /// auto: an address of every interface with a route to the other side
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', default_value = "auto")]
    pub(crate) from: Vec<Named<Local>>,
    /// The other side's UDP port
    #[arg(long, value_name = "UDP", default_value_t = tresse::DEFAULT_UDP_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// Own UDP port; 0 for any
    #[arg(long, value_name = "UDP", default_value_t = 0)]
    pub(crate) local_port: u16,
    /// The other side's SCTP port
    #[arg(long, default_value_t = DEFAULT_SCTP_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) sctp_port: u16,
    /// Time to wait for the other side's first answer
    #[arg(long, default_value = "15s", value_parser = positive_duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) security: SecurityArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

/// Own addresses on which to wait for calls.
#[derive(Args)]
pub(crate) struct ListenArgs {
    /// Own addresses to receive on, the preferred one first: addresses, interfaces, host names, 0.0.0.0 or ::, or auto:
    /// all addresses of every interface that is up
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', required = true)]
    pub(crate) listen: Vec<Named<Local>>,
    /// Own UDP port; 0 for any
    #[arg(long, value_name = "UDP", default_value_t = tresse::DEFAULT_UDP_PORT)]
    pub(crate) port: u16,
    /// Own SCTP port
    #[arg(long, default_value_t = DEFAULT_SCTP_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) sctp_port: u16,
    #[command(flatten)]
    pub(crate) security: SecurityArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

impl CallArgs {
    /// Looks up the names of both sides. This must be done before their addresses are used.
    pub(crate) async fn resolve(&mut self) -> Result<(), Failure> {
        named::look_up_both(&mut self.to, &mut self.from).await
    }

    /// The other side's addresses.
    pub(crate) fn remote(&self) -> Vec<IpAddr> {
        Remote::all_of(&named::found(&self.to))
    }

    /// Returns the same call over one path, without recordings.
    pub(crate) fn between(&self, local: IpAddr, remote: IpAddr) -> Self {
        CallArgs {
            to: vec![Named::from(remote)],
            from: vec![Named::from(local)],
            // Only the call over all paths is recorded.
            record: RecordArgs::default(),
            ..self.clone()
        }
    }

    /// Returns the own addresses to call from.
    pub(crate) fn local(&self) -> Result<Vec<IpAddr>, Failure> {
        let (own, others) = (named::found(&self.from), named::found(&self.to));
        host::starting_towards(&own, &others).map_err(Failure::unreachable)
    }

    /// Returns whether all names have been looked up and the other side has at least one address.
    pub(crate) fn is_resolved(&self) -> bool {
        named::are_looked_up(&self.to)
            && !named::found(&self.to).is_empty()
            && named::found(&self.from).len() == self.from.len()
    }

    /// Returns whether the host chooses the own addresses (`auto`).
    fn is_automatic(&self) -> bool {
        named::found(&self.from).contains(&Local::Auto)
    }

    /// Prints the own addresses if the host chose them, and the faults of the paths' links.
    pub(crate) fn say_links(&self, association: &Association, endpoint: &Endpoint) {
        let chosen = self.is_automatic();
        if chosen {
            output::say(&links::used(association));
        }
        links::faults(association, endpoint, chosen).iter().for_each(|line| output::say(line));
    }

    /// Binds the endpoint that opens associations.
    pub(crate) fn bind(&self, config: AssociationConfig, schedulers: Registry) -> Result<Endpoint, Failure> {
        self.bind_with(config, schedulers, self.keys()?.as_ref())
    }

    /// Like [`CallArgs::bind`], with the given keys.
    pub(crate) fn bind_with(
        &self,
        config: AssociationConfig,
        schedulers: Registry,
        keys: Option<&Arc<Security>>,
    ) -> Result<Endpoint, Failure> {
        let settings = (EndpointConfig::default(), config);
        let endpoint = security::bind(&self.local()?, self.local_port, settings, schedulers, keys)?;
        self.record.watch(&endpoint)?;
        Ok(endpoint)
    }

    /// Returns the keys for associations; `None` without encryption.
    pub(crate) fn keys(&self) -> Result<Option<Arc<Security>>, Failure> {
        self.keys_trusting(&Peers::default())
    }

    /// Like [`CallArgs::keys`]. `trusted` becomes the list of trusted peers, which may change later.
    pub(crate) fn keys_trusting(&self, trusted: &Peers) -> Result<Option<Arc<Security>>, Failure> {
        self.security.keys_trusting(&self.remote(), trusted)
    }

    /// Opens an association. Fails if the other side does not answer in time.
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Association, Failure> {
        let answered = self.answered(endpoint, self.place(), endpoint.connect(self.peer())).await;
        answered.map_err(|failure| self.advised(failure))
    }

    /// Like [`CallArgs::connect`], with a first message that is queued before the handshake ends.
    pub(crate) async fn connect_saying(
        &self,
        endpoint: &Endpoint,
        options: SendOptions,
        first: Bytes,
    ) -> Result<Association, Failure> {
        let mut said = Ok(());
        let setup = async {
            let connecting = endpoint.begin(self.peer())?;
            said = connecting.send(options, first).await;
            connecting.established().await
        };
        let association = self.answered(endpoint, self.place(), setup).await;
        let association = association.map_err(|failure| self.advised(failure))?;
        said.map(|()| association).map_err(Failure::running)
    }

    /// Returns the successor of an association. `make` sets it up when one is due ([`CallArgs::follow`]); until then the present
    /// association follows the interfaces. After a failure, `make` is called again when a successor is due again.
    pub(crate) async fn successor<T>(
        &self,
        endpoint: &Endpoint,
        association: &Association,
        quiet: bool,
        make: impl AsyncFn(&Due) -> Result<T, Failure>,
    ) -> T {
        let mut last = String::new();
        loop {
            let due = self.follow(endpoint, association, quiet).await;
            match make(&due).await {
                Ok(new) => {
                    if !quiet {
                        let from = list(&due.addresses);
                        output::say(&format!(
                            "this host's addresses have changed, and the peer takes no changes of an association's: a new one \
                             goes on from {from}"
                        ));
                    }
                    return new;
                }
                Err(failure) if failure.message() == last => {}
                Err(failure) => {
                    last = failure.message().to_owned();
                    output::say(&format!("no new association from {}: {last}", list(&due.addresses)));
                }
            }
            tokio::time::sleep(BEFORE_TRYING_AGAIN).await;
        }
    }

    /// Adds addresses to the association and removes them as interfaces change, if the host chooses the own addresses (`auto`). Returns
    /// when a new association is due because the peer does not support such changes (RFC 5061).
    pub(crate) async fn follow(&self, endpoint: &Endpoint, association: &Association, quiet: bool) -> Due {
        if !self.is_automatic() {
            return std::future::pending().await;
        }
        let remote = self.remote();
        let wanted = |one: &HostAddress| host::is_wanted(one, &remote);
        let (tell, mut told) = mpsc::unbounded_channel();
        let say = |followed: &Followed| match followed {
            // The receiver is dropped only together with this future.
            Followed::Due(due) => drop(tell.send(due.clone())),
            _ if quiet => {}
            Followed::Joined(address) => output::say(&format!("{address} has come and joins")),
            Followed::Left(address) => output::say(&format!("{address} is gone and leaves")),
            Followed::Refused(address, why) => {
                output::say(&format!("{address} has come and is not used: {why}"))
            }
            _ => {}
        };
        tokio::select! {
            never = host::follow(endpoint, association, wanted, say) => match never {},
            Some(due) = told.recv() => due,
        }
    }

    /// Returns whether the sides have no address family in common, but names on the command line may have other addresses later.
    fn may_reach_later(&self, error: &ConnectError) -> bool {
        let fixed = named::are_addresses(&self.from) && named::are_addresses(&self.to);
        !fixed && error.lacks_address_family()
    }

    pub(crate) fn peer(&self) -> Peer {
        Peer::new(self.remote(), self.sctp_port).with_udp_port(self.port)
    }

    /// Returns advice for a set-up that the other side refused, if its reason suggests any.
    fn hint(&self, error: &ConnectError) -> Option<String> {
        let ConnectError::Ended(Ended(reason)) = error else { return None };
        match reason {
            reason if reason.lacks_protection() && self.security.encrypt() => {
                Some("start the other side with --key and --peer, or --secret-file, too".to_owned())
            }
            reason if reason.lacks_protection() => {
                Some("it encrypts: give --key and --peer, or --secret-file, as there".to_owned())
            }
            CloseReason::AbortedByPeer { causes, .. } if causes.is_empty() => {
                Some(format!("does it listen on SCTP port {} (--sctp-port)?", self.sctp_port))
            }
            _ => None,
        }
    }

    /// Returns the other side's addresses and UDP port, for messages to the user.
    pub(crate) fn place(&self) -> String {
        format!("{} UDP port {}", list(&self.remote()), self.port)
    }

    /// Returns the failure of a set-up, with the command that finds what is in the way if the peer does not answer.
    fn advised(&self, failure: Failure) -> Failure {
        if !failure.is_unreachable() {
            return failure;
        }
        let port = if self.port == tresse::DEFAULT_UDP_PORT {
            String::new()
        } else {
            format!(" --port {}", self.port)
        };
        failure.followed_by(&format!(
            "tresse doctor --to {}{port} finds what is in the way",
            list(&self.remote())
        ))
    }

    /// Returns the result of `setup`, an association with `place`. Fails if that takes longer than the timeout.
    pub(crate) async fn answered(
        &self,
        endpoint: &Endpoint,
        place: String,
        setup: impl Future<Output = Result<Association, ConnectError>>,
    ) -> Result<Association, Failure> {
        let failure = match timeout(self.timeout, setup).await {
            Ok(Ok(association)) => return Ok(association),
            Ok(Err(error)) if self.may_reach_later(&error) => Failure::unreachable(error).at(place),
            Ok(Err(error)) => {
                let hint = self.hint(&error);
                let failure = Failure::from(error).at(place);
                match hint {
                    Some(hint) => failure.followed_by(&hint),
                    None => failure,
                }
            }
            Err(_) => {
                let patience = tresse::units::format_duration(self.timeout);
                Failure::unreachable(format!("{place}: no answer within {patience}"))
            }
        };
        Err(with_causes(failure, endpoint))
    }
}

impl ListenArgs {
    /// Looks up the own names, and returns their addresses.
    pub(crate) async fn local(&self) -> Result<Vec<IpAddr>, Failure> {
        let mut own = self.listen.clone();
        named::look_up_own(&mut own).await?;
        host::waiting_on(&named::found(&own)).map_err(|error| match error.kind() {
            // An interface may come up later.
            ErrorKind::AddrNotAvailable => Failure::running(error).at("--listen auto"),
            _ => Failure::running(error),
        })
    }

    /// Returns the own addresses that are known without a look-up of names.
    pub(crate) fn stated(&self) -> Vec<IpAddr> {
        host::waiting_on(&named::found(&self.listen)).unwrap_or_default()
    }

    /// Binds the endpoint that accepts associations.
    pub(crate) async fn bind(
        &self,
        config: AssociationConfig,
        schedulers: Registry,
    ) -> Result<Endpoint, Failure> {
        self.bind_trusting(config, schedulers, &Peers::default()).await
    }

    /// Like [`ListenArgs::bind`]. With keys, `trusted` becomes the list of trusted peers.
    pub(crate) async fn bind_trusting(
        &self,
        config: AssociationConfig,
        schedulers: Registry,
        trusted: &Peers,
    ) -> Result<Endpoint, Failure> {
        let listening = EndpointConfig::listening(self.sctp_port);
        let local = self.local().await?;
        let keys = self.security.keys_trusting(&local, trusted)?;
        let endpoint = security::bind(&local, self.port, (listening, config), schedulers, keys.as_ref())?;
        self.record.watch(&endpoint)?;
        Ok(endpoint)
    }

    /// Returns a line with the addresses and ports of `endpoint`.
    pub(crate) fn greeting(&self, endpoint: &Endpoint) -> String {
        let (udp, sctp) = (endpoint.udp_port(), endpoint.port());
        format!("listening on {}, UDP port {udp}, SCTP port {sctp}", list(&endpoint.local_addresses()))
    }
}

/// Adds the send errors of the operating system to the failure if the peer is unreachable: they may be the cause.
pub(crate) fn with_causes(mut failure: Failure, endpoint: &Endpoint) -> Failure {
    if failure.is_unreachable() {
        for stats in endpoint.local_stats() {
            if let Some(error) = stats.last_error {
                failure = failure.followed_by(&format!("{}: {error}", stats.local));
            }
        }
    }
    failure
}

/// Sends one message. On failure, the error is the reason for which the association ended. If the future is dropped, nothing is sent.
pub(crate) async fn put(association: &Association, options: SendOptions, data: Bytes) -> Result<(), Failure> {
    association.send(options, data).await.map_err(|error| ended(association, error))
}

/// Returns the reason for which an association accepts no more messages.
pub(crate) fn ended(association: &Association, error: SendError) -> Failure {
    if let Some(fault) = association.security_fault() {
        return Failure::not_authenticated(fault);
    }
    match association.close_reason() {
        Some(reason) => Ended(reason).into(),
        None => Failure::running(error),
    }
}

/// Returns the failure of a peer that violates the protocol. `what` may come from the network, so its control characters are escaped.
pub(crate) fn breach(what: &str) -> Failure {
    Failure::running(format!("the peer does not speak the protocol: it sent {}", printable(what)))
}

/// Returns the peer's first address, for messages to the user.
pub(crate) fn peer_of(association: &Association) -> String {
    association.path_stats().first().map_or_else(|| "a peer".to_owned(), |path| path.remote.to_string())
}

/// Aborts an association that another one has replaced. The ABORT is sent in the background.
pub(crate) fn retire(endpoint: Endpoint, association: Association) {
    association.abort("this host goes on from other addresses");
    drop(association);
    tokio::spawn(async move { say_farewell(&endpoint).await });
}

/// Waits until the endpoint has no association any more, so that peers learn of the end; [`FAREWELL`] at most.
pub(crate) async fn say_farewell(endpoint: &Endpoint) {
    let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
}

/// Returns the addresses in the syntax of the options, separated by commas.
pub(crate) fn list(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",")
}

/// Time to wait for peers at the end of a command.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);
/// Pause between two attempts to set up a successor.
const BEFORE_TRYING_AGAIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn no_common_family_is_a_mistake_of_addresses_and_not_of_names() {
        let here = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let (config, settings) = (AssociationConfig::default(), EndpointConfig::default());
        let endpoint = Endpoint::bind(&here, 0, settings, config).expect("a free port");
        for (from, to, code) in
            [("127.0.0.1", "::1", 2), ("eth7", "::1", 3), ("127.0.0.1", "host.invalid", 3)]
        {
            let call = CallArgs {
                to: vec![to.parse().expect("one")],
                from: vec![from.parse().expect("one")],
                port: 9,
                local_port: 0,
                sctp_port: DEFAULT_SCTP_PORT,
                timeout: Duration::from_secs(300),
                security: SecurityArgs::default(),
                record: RecordArgs::default(),
            };
            let there = Peer::new([IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])], DEFAULT_SCTP_PORT);
            let failure =
                call.answered(&endpoint, call.place(), endpoint.connect(there)).await.expect_err("no family");
            assert_eq!(failure.exit_code(), code, "{from} to {to}: {}", failure.message());
        }
    }

    #[tokio::test]
    async fn what_is_said_first_is_acknowledged_with_the_end_of_the_set_up() {
        let here = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let own = || here.iter().copied().map(Named::from).collect();
        let listen = ListenArgs {
            listen: own(),
            port: 0,
            sctp_port: DEFAULT_SCTP_PORT,
            security: SecurityArgs::default(),
            record: RecordArgs::default(),
        };
        for early in [true, false] {
            let mut config = AssociationConfig::preset("cmt").expect("a preset");
            config.data_with_cookie = early;
            let server = listen.bind(config.clone(), Registry::default()).await.expect("a free port");
            let call = CallArgs {
                to: vec!["127.0.0.1".parse().expect("an address")],
                from: own(),
                port: server.udp_port(),
                local_port: 0,
                sctp_port: DEFAULT_SCTP_PORT,
                timeout: Duration::from_secs(300),
                security: SecurityArgs::default(),
                record: RecordArgs::default(),
            };
            let client = call.bind(config, Registry::default()).expect("a free port");
            let first = call.connect_saying(&client, SendOptions::default(), Bytes::from_static(b"hello"));
            let association = first.await.expect("a server that answers");
            let acked: u64 = association.path_stats().iter().map(|path| path.bytes_acked).sum();
            assert_eq!(acked, if early { 5 } else { 0 }, "data_with_cookie = {early}");

            let heard = server.accept().await.expect("the endpoint is open").recv().await;
            let heard = heard.expect("an open association").expect("a message");
            assert_eq!(heard.payload.into_bytes(), b"hello".as_slice());
        }
    }
}
