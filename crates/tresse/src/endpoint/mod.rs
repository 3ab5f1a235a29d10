//! Handle of an endpoint for applications: bound to addresses, it opens and accepts associations.

mod policies;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;
use tresse_proto::config::Encryption;
use tresse_proto::{AssociationConfig, ConfigError, Connect, Discards, EndpointConfig, KeyError, Registry};

use crate::association::Association;
use crate::connecting::Connecting;
use crate::driver::Driver;
use crate::driver_group::Group;
use crate::drivers::Drivers;
use crate::error::{BindError, ConnectError};
#[cfg(not(feature = "encryption"))]
use crate::no_keyring::Keyring;
#[cfg(feature = "encryption")]
use crate::security::{Keyring, Security};
use crate::shared::Shared;
use crate::tap::Tap;
use crate::transport::{
    DEFAULT_UDP_PORT, LocalStats, Sockets, TELLS_MARKS, bind_raw, bind_udp, stats_of_addresses,
};
use crate::waiting::until;

/// Address of a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Peer {
    /// Its addresses, at least one; the first is the primary address.
    pub addresses: Vec<IpAddr>,
    /// Its SCTP port.
    pub port: u16,
    /// The UDP port at which it receives encapsulated SCTP (RFC 6951); an endpoint over raw IP ignores it.
    pub udp_port: u16,
}

impl Peer {
    /// A peer at the registered UDP port.
    pub fn new(addresses: impl Into<Vec<IpAddr>>, port: u16) -> Self {
        Peer { addresses: addresses.into(), port, udp_port: DEFAULT_UDP_PORT }
    }

    /// Returns the same peer at another UDP port.
    #[must_use]
    pub fn with_udp_port(self, udp_port: u16) -> Self {
        Peer { udp_port, ..self }
    }
}

/// An SCTP endpoint over UDP or over raw IP: one SCTP port, any number of associations, and one driver task, or several
/// on as many cores ([`EndpointBuilder::drivers`](crate::EndpointBuilder::drivers)).
///
/// Dropping it aborts the associations that [`Endpoint::accept`] has not returned, and those that peers set up later. Other
/// established associations continue: they exist as long as their handles, and their queued messages are still delivered
/// while the runtime exists (see [`Endpoint::wait_idle`]).
pub struct Endpoint {
    drivers: Drivers,
    /// `None` over raw IP.
    udp_port: Option<u16>,
}

impl Endpoint {
    /// Binds one UDP socket on each address of `local` and starts the driver task.
    ///
    /// With `udp_port` 0 it uses a port that is free on all addresses. An endpoint that does not listen and has no SCTP
    /// port in `config` uses the number of its UDP port, which no other endpoint on these addresses has. It uses
    /// another number if the peer of its first association knows that number from another host behind the same NAT.
    /// `template` has the settings of the associations that peers set up, and of [`Endpoint::connect`].
    ///
    /// # Errors
    /// An address that cannot be bound (the error has the address and the reason), or settings that contradict each
    /// other.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub fn bind(
        local: &[IpAddr],
        udp_port: u16,
        config: EndpointConfig,
        template: AssociationConfig,
    ) -> Result<Self, BindError> {
        Endpoint::bind_with_schedulers(local, udp_port, config, template, Registry::default())
    }

    /// As [`Endpoint::bind`], with policies that the template may already name.
    ///
    /// # Errors
    /// As [`Endpoint::bind`].
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub fn bind_with_schedulers(
        local: &[IpAddr],
        udp_port: u16,
        config: EndpointConfig,
        template: AssociationConfig,
        schedulers: Registry,
    ) -> Result<Self, BindError> {
        let core = Core { config, template, schedulers };
        Endpoint::bind_udp(local, udp_port, core, 1, || None)
    }

    /// As [`Endpoint::bind_with_schedulers`], with encrypted associations and authenticated peers only. The template's
    /// settings of encryption are ignored.
    ///
    /// # Errors
    /// As [`Endpoint::bind`].
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    #[cfg(feature = "encryption")]
    pub fn bind_secured(
        local: &[IpAddr],
        udp_port: u16,
        config: EndpointConfig,
        template: AssociationConfig,
        schedulers: Registry,
        security: &Arc<Security>,
    ) -> Result<Self, BindError> {
        let listens = config.listen;
        let core = Core { config, template, schedulers };
        Endpoint::bind_udp(local, udp_port, core, 1, || Some(Keyring::new(Arc::clone(security), listens)))
    }

    /// Binds UDP sockets for at most `drivers` drivers, each with a result of `keyrings`.
    pub(crate) fn bind_udp(
        local: &[IpAddr],
        udp_port: u16,
        mut core: Core,
        drivers: usize,
        keyrings: impl Fn() -> Option<Keyring>,
    ) -> Result<Self, BindError> {
        core.template = settings(keyrings().as_ref(), core.template).ok_or(BindError::NoKeys)?;
        if core.config.encapsulation_port == 0 {
            core.config.encapsulation_port = DEFAULT_UDP_PORT;
        }
        let (bound, udp_port) = bind_udp(local, udp_port, drivers)?;
        let port_is_free = core.config.port == 0 && !core.config.listen;
        if port_is_free {
            // To a peer, an address and an SCTP port are one endpoint, whatever its UDP port. If each of many endpoints
            // on one address drew a number, two would soon have the same; a UDP port has one user.
            core.config.port = udp_port;
        }
        let count = u32::try_from(bound.len()).unwrap_or(u32::MAX);
        core.config.max_associations = core.config.max_associations.div_ceil(count);
        let mut ready = Vec::with_capacity(bound.len());
        for sockets in bound {
            let mut core = core.make()?;
            if port_is_free && count == 1 {
                // Behind a NAT other hosts may have the same number. With several drivers the number must not change:
                // it determines the driver.
                core.let_port_change();
            }
            ready.push((core, Sockets::new(sockets), keyrings()));
        }
        Ok(Endpoint::start(ready, Some(udp_port)))
    }

    /// Opens one raw socket for SCTP (protocol 132) on each address of `local` and starts the driver task.
    ///
    /// The process needs the right to open raw sockets (root or CAP_NET_RAW). Packets for other SCTP ports are left to
    /// other processes. If the kernel of the host supports SCTP, it answers the packets too, with an ABORT: its module
    /// must not be loaded.
    ///
    /// # Errors
    /// [`BindError::RawNotPermitted`] without the permission for raw sockets; an address that cannot be used, an SCTP
    /// port that another such endpoint has, or settings that contradict each other.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub fn bind_raw(
        local: &[IpAddr],
        config: EndpointConfig,
        template: AssociationConfig,
    ) -> Result<Self, BindError> {
        Endpoint::bind_raw_with_schedulers(local, config, template, &Registry::default())
    }

    /// As [`Endpoint::bind_raw`], with policies that the template may already name.
    ///
    /// # Errors
    /// As [`Endpoint::bind_raw`].
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub fn bind_raw_with_schedulers(
        local: &[IpAddr],
        config: EndpointConfig,
        template: AssociationConfig,
        schedulers: &Registry,
    ) -> Result<Self, BindError> {
        let core = Core { config, template, schedulers: schedulers.clone() };
        Endpoint::bind_ip(local, core, None)
    }

    /// As [`Endpoint::bind_raw_with_schedulers`], with encrypted associations and authenticated peers only. The
    /// template's settings of encryption are ignored.
    ///
    /// # Errors
    /// As [`Endpoint::bind_raw`].
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    #[cfg(feature = "encryption")]
    pub fn bind_raw_secured(
        local: &[IpAddr],
        config: EndpointConfig,
        template: AssociationConfig,
        schedulers: &Registry,
        security: &Arc<Security>,
    ) -> Result<Self, BindError> {
        let keyring = Keyring::new(Arc::clone(security), config.listen);
        let core = Core { config, template, schedulers: schedulers.clone() };
        Endpoint::bind_ip(local, core, Some(keyring))
    }

    /// Binds raw sockets, for one driver.
    pub(crate) fn bind_ip(
        local: &[IpAddr],
        mut core: Core,
        keyring: Option<Keyring>,
    ) -> Result<Self, BindError> {
        core.template = settings(keyring.as_ref(), core.template).ok_or(BindError::NoKeys)?;
        core.config.encapsulation_port = 0;
        let any_port = core.config.port == 0;
        let mut attempt = 1;
        loop {
            // Without a port in the settings, the core draws one at random.
            let made = core.make()?;
            match bind_raw(local, made.port()) {
                Ok(bound) => {
                    return Ok(Endpoint::start(vec![(made, Sockets::new(bound), keyring)], None));
                }
                Err(BindError::PortTaken { .. }) if any_port && attempt < PORT_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Starts a driver for each core.
    fn start(ready: Vec<(tresse_proto::Endpoint, Sockets, Option<Keyring>)>, udp_port: Option<u16>) -> Self {
        let group = Arc::new(Group::new());
        let (mut all, mut bound) = (Vec::with_capacity(ready.len()), Vec::with_capacity(ready.len()));
        for (number, (mut core, sockets, keyring)) in ready.into_iter().enumerate() {
            core.set_local_addresses(sockets.addresses());
            let shared = Arc::new(Shared::new((number, Arc::clone(&group)), core, sockets.stats(), keyring));
            bound.push(sockets);
            all.push(shared);
        }
        let drivers = Drivers::new(all);
        let siblings = drivers.siblings();
        for (shared, sockets) in drivers.iter().zip(bound) {
            tokio::spawn(Driver::new(Arc::clone(shared), Arc::clone(&siblings), sockets));
        }
        Endpoint { drivers, udp_port }
    }

    /// Returns the number of its driver tasks: fewer than requested on systems that cannot distribute arriving packets.
    pub fn drivers(&self) -> usize {
        self.drivers.count()
    }

    /// Passes every packet and the state of associations to `tap` from now on, which replaces an earlier tap. The cost is that of
    /// the tap, and of reading the counters of each association in each round.
    pub fn watch(&self, tap: Box<dyn Tap>) {
        let tap = Arc::new(Mutex::new(tap));
        for shared in self.drivers.iter() {
            shared.lock().set_tap(Arc::clone(&tap), shared.number);
        }
    }

    /// Returns the addresses from which paths can start.
    pub fn local_addresses(&self) -> Vec<IpAddr> {
        self.drivers.first().lock().addresses()
    }

    /// Binds another address, on the same port as the others. New associations have it from the beginning, existing
    /// ones after a call of [`Association::add_address`].
    ///
    /// # Errors
    /// An address that cannot be bound, or is already bound.
    pub fn add_local_address(&self, address: IpAddr) -> Result<(), BindError> {
        if self.local_addresses().contains(&address) {
            return Err(BindError::Twice { address });
        }
        // The sockets belong to the runtime of the drivers, whatever thread this is.
        let _entered = self.drivers.first().group.runtime.as_ref().map(Handle::enter);
        let sockets = match self.udp_port {
            Some(port) => bind_udp(&[address], port, self.drivers.count())?.0,
            None => vec![bind_raw(&[address], self.port())?],
        };
        for (shared, sockets) in self.drivers.iter().zip(sockets) {
            shared.lock().join(sockets);
        }
        Ok(())
    }

    /// Removes an address that associations do not use any more: its sockets are closed soon, and packets from it are
    /// lost. If the address is not bound, there is no effect.
    pub fn remove_local_address(&self, address: IpAddr) {
        if !self.local_addresses().contains(&address) {
            return;
        }
        for shared in self.drivers.iter() {
            shared.lock().leave(address);
        }
    }

    /// Returns the UDP port of all sockets; 0 over raw IP.
    pub fn udp_port(&self) -> u16 {
        self.udp_port.unwrap_or(0)
    }

    /// Returns the SCTP port.
    pub fn port(&self) -> u16 {
        self.drivers.first().lock().core.port()
    }

    /// Sets the settings of new associations, those that peers set up and those of [`Endpoint::connect`]. Existing
    /// associations keep their settings. If the endpoint has keys, the settings of encryption are ignored.
    ///
    /// # Errors
    /// Settings that contradict each other, that name a scheduler that does not exist, or that require encryption
    /// although the endpoint has no keys; the old settings then stay.
    pub fn set_template(&self, template: AssociationConfig) -> Result<(), ConfigError> {
        let template = settings(self.drivers.first().lock().keyring.as_ref(), template).ok_or_else(|| {
            let reason = "the endpoint has no keys for encryption, only off is possible".to_owned();
            ConfigError::Inconsistent { name: "encryption", reason }
        })?;
        let template = config_for_sockets(template);
        self.all(|core| core.set_template(template.clone()))
    }

    /// Sets whether peers can set up associations; existing associations continue.
    pub fn set_listening(&self, listen: bool) {
        for shared in self.drivers.iter() {
            shared.lock().set_listening(listen);
        }
    }

    /// Returns whether peers can set up associations.
    pub fn is_listening(&self) -> bool {
        self.drivers.first().lock().core.is_listening()
    }

    /// Opens an association to `peer` with the endpoint's settings and waits until it is set up.
    ///
    /// Dropping the future cancels the association.
    ///
    /// # Errors
    /// Addresses that cannot be used, or a peer that refuses or does not answer.
    pub async fn connect(&self, peer: Peer) -> Result<Association, ConnectError> {
        self.begin(peer)?.established().await
    }

    /// As [`Endpoint::connect`], with settings for this association.
    ///
    /// # Errors
    /// As [`Endpoint::connect`], and settings that contradict each other.
    pub async fn connect_with(
        &self,
        peer: Peer,
        config: AssociationConfig,
    ) -> Result<Association, ConnectError> {
        self.begin_with(peer, config)?.established().await
    }

    /// Begins to set up an association with the endpoint's settings, without waiting: messages can be sent at once,
    /// before the set-up has ended.
    ///
    /// ```no_run
    /// # async fn ask(endpoint: tresse::Endpoint, peer: tresse::Peer) -> Result<(), Box<dyn std::error::Error>> {
    /// let connecting = endpoint.begin(peer)?;
    /// connecting.send(tresse::SendOptions::default(), "a question").await?;
    /// let association = connecting.established().await?;
    /// let answer = association.recv().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Addresses that cannot be used.
    pub fn begin(&self, peer: Peer) -> Result<Connecting, ConnectError> {
        let settings = self.drivers.first().lock().core.template().clone();
        self.begin_with(peer, settings)
    }

    /// As [`Endpoint::begin`], with settings for this association.
    ///
    /// # Errors
    /// As [`Endpoint::begin`], and settings that contradict each other.
    pub fn begin_with(&self, peer: Peer, config: AssociationConfig) -> Result<Connecting, ConnectError> {
        if self.udp_port.is_some() && peer.udp_port == 0 {
            return Err(ConnectError::UdpPortZero);
        }
        let shared = self.drivers.of(peer.port, self.port());
        let mut state = shared.lock();
        let config = settings(state.keyring.as_ref(), config).ok_or(ConnectError::NoKeys)?;
        let connect = Connect::new(state.addresses(), peer.addresses, peer.port, config_for_sockets(config))
            .with(|c| c.encapsulation_port = Some(self.udp_port.map_or(0, |_| peer.udp_port)));
        let id = state.core.connect(shared.now(), connect)?;
        let signals = state.insert(id);
        state.wake_driver();
        Ok(Connecting::new(Association::new(Arc::clone(shared), id, signals)))
    }

    /// Waits for the next association that a peer sets up; `None` once the runtime is shutting down.
    ///
    /// Associations that wait for this call are set up already, and count towards the setting `max_associations`.
    /// Dropping the future loses no association.
    pub async fn accept(&self) -> Option<Association> {
        let accepted = until(&self.drivers.first().group.incoming, || {
            let mut driven = false;
            for shared in self.drivers.iter() {
                let mut state = shared.lock();
                if let Some((id, signals)) = state.accept() {
                    return Some(Some(Association::new(Arc::clone(shared), id, signals)));
                }
                driven |= state.is_driven();
            }
            (!driven).then_some(None)
        });
        accepted.await
    }

    /// Sets a shared key for new associations (RFC 4895 §6.1); each gets its own copy at its beginning. Key 0 exists
    /// from the start, and is empty.
    pub fn set_shared_key(&self, number: u16, secret: &[u8]) {
        for shared in self.drivers.iter() {
            shared.lock().core.set_shared_key(number, secret);
        }
    }

    /// Lets new associations authenticate with this shared key.
    ///
    /// # Errors
    /// There is no key of this number.
    pub fn use_shared_key(&self, number: u16) -> Result<(), KeyError> {
        self.all(|core| core.use_shared_key(number))
    }

    /// Removes a shared key for new associations: they discard chunks that are authenticated with it.
    ///
    /// # Errors
    /// There is no key of this number, or it is in use.
    pub fn remove_shared_key(&self, number: u16) -> Result<(), KeyError> {
        self.all(|core| core.remove_shared_key(number))
    }

    /// Returns the number of peers that were refused because they are not trusted.
    #[cfg(feature = "encryption")]
    pub fn strangers(&self) -> u64 {
        let of = |shared: &Arc<Shared>| shared.lock().keyring.as_ref().map_or(0, Keyring::strangers);
        self.drivers.iter().map(of).sum()
    }

    /// Runs a command on all cores, whose state is alike: it succeeds on all of them or on none.
    fn all<E>(&self, command: impl Fn(&mut tresse_proto::Endpoint) -> Result<(), E>) -> Result<(), E> {
        self.drivers.iter().try_for_each(|shared| command(&mut shared.lock().core))
    }

    /// Waits until there is no association: all queued messages are delivered or abandoned. An association exists as long
    /// as it has a handle, so the handles have to be dropped before. Dropping the future has no effect.
    pub async fn wait_idle(&self) {
        let is_idle = |shared: &Arc<Shared>| {
            let state = shared.lock();
            state.is_idle() || !state.is_driven()
        };
        until(&self.drivers.first().group.idle, || self.drivers.iter().all(is_idle).then_some(())).await;
    }

    /// Returns the numbers of packets discarded before they reached an association, by reason.
    pub fn discards(&self) -> Discards {
        let of = |shared: &Arc<Shared>| shared.lock().core.discards();
        self.drivers.iter().map(of).reduce(|sum, one| sum.plus(&one)).unwrap_or_default()
    }

    /// Returns the numbers of packets that the operating system refused to send or receive, for each local address.
    pub fn local_stats(&self) -> Vec<LocalStats> {
        stats_of_addresses(self.drivers.iter().flat_map(|shared| shared.lock().locals.clone()))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("local_addresses", &self.local_addresses())
            .field("udp_port", &self.udp_port)
            .field("port", &self.port())
            .finish_non_exhaustive()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        for shared in self.drivers.iter() {
            let now = shared.now();
            shared.lock().close(now);
        }
    }
}

/// Settings from which the cores of an endpoint are made.
pub(crate) struct Core {
    pub(crate) config: EndpointConfig,
    pub(crate) template: AssociationConfig,
    pub(crate) schedulers: Registry,
}

impl Core {
    /// Makes a core with an unpredictable seed.
    fn make(&self) -> Result<tresse_proto::Endpoint, BindError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| BindError::Seed(error.to_string()))?;
        let (config, schedulers) = (self.config.clone(), self.schedulers.clone());
        let template = config_for_sockets(self.template.clone());
        Ok(tresse_proto::Endpoint::with_schedulers(config, template, schedulers, seed)?)
    }
}

/// Returns the settings, with encryption if there are keys, and without if there are none; `None` if encryption is
/// required but there are no keys.
fn settings(keyring: Option<&Keyring>, config: AssociationConfig) -> Option<AssociationConfig> {
    match keyring {
        Some(keyring) => Some(keyring.require(config)),
        None => Some(config).filter(|config| config.encryption == Encryption::Off),
    }
}

/// Returns the settings without features that sockets do not support on this system.
fn config_for_sockets(config: AssociationConfig) -> AssociationConfig {
    config.with(|c| c.ecn &= TELLS_MARKS)
}

/// Most SCTP ports that are tried over raw IP; an attempt fails only if another endpoint has the port.
const PORT_ATTEMPTS: u32 = 64;
