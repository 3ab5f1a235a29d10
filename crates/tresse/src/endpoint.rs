//! An endpoint as the application holds it: bound to addresses, opening and accepting associations.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use tresse_proto::config::Encryption;
use tresse_proto::congestion::ControllerFactory;
use tresse_proto::schedule::{PathSchedulerFactory, StreamSchedulerFactory};
use tresse_proto::{
    AssociationConfig, ConfigError, Connect, Discards, EndpointConfig, KeyError, Registry, ScheduleError,
};

use crate::association::Association;
use crate::builder::EndpointBuilder;
use crate::connecting::Connecting;
use crate::driver::Driver;
use crate::error::{BindError, ConnectError};
#[cfg(not(feature = "encryption"))]
use crate::no_keyring::Keyring;
#[cfg(feature = "encryption")]
use crate::security::{Keyring, Security};
use crate::shared::{Shared, until};
use crate::tap::Tap;
use crate::transport::{DEFAULT_UDP_PORT, LocalStats, Sockets, TELLS_MARKS, bind_raw, bind_udp};

/// Where a peer can be found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Its addresses; the first is the primary one.
    pub addresses: Vec<IpAddr>,
    /// Its SCTP port.
    pub port: u16,
    /// The UDP port that it takes encapsulated SCTP on (RFC 6951); an endpoint over raw IP ignores it.
    pub udp_port: u16,
}

impl Peer {
    /// A peer on the registered UDP port.
    pub fn new(addresses: impl Into<Vec<IpAddr>>, port: u16) -> Self {
        Peer { addresses: addresses.into(), port, udp_port: DEFAULT_UDP_PORT }
    }

    /// The same peer on another UDP port.
    #[must_use]
    pub fn with_udp_port(self, udp_port: u16) -> Self {
        Peer { udp_port, ..self }
    }
}

/// An SCTP endpoint over UDP or over raw IP: one SCTP port, any number of associations, one driver task.
///
/// Dropping it ends nothing that is established: associations live as long as their handles, and
/// what they had queued is still delivered while the runtime lives (see [`Endpoint::wait_idle`]).
pub struct Endpoint {
    shared: Arc<Shared>,
    /// `None` over raw IP.
    udp_port: Option<u16>,
}

impl Endpoint {
    /// The way to an endpoint with names for addresses, and with settings one by one.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::new()
    }

    /// Binds one UDP socket on each address of `local` and starts the driver task.
    ///
    /// `udp_port` 0 takes a port that is free on all addresses. An endpoint that does not listen and names no SCTP port
    /// has the number of its UDP port: no other on these addresses has it; it takes another when a peer of its first association
    /// knows that number from another host behind the same translator. `template` holds the settings of the
    /// associations that peers set up, and of [`Endpoint::connect`].
    ///
    /// # Errors
    /// An address that cannot be bound (the error says which and why), or settings that contradict
    /// each other.
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

    /// As [`Endpoint::bind`], with stream schedulers that the template may name already.
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
        Endpoint::bind_udp(local, udp_port, config, template, schedulers, None)
    }

    /// As [`Endpoint::bind_with_schedulers`], for associations that are encrypted, with peers that prove who they are: there
    /// are no others. What the template says of encryption is overruled.
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
        let keyring = Keyring::new(Arc::clone(security), config.listen);
        Endpoint::bind_udp(local, udp_port, config, template, schedulers, Some(keyring))
    }

    fn bind_udp(
        local: &[IpAddr],
        udp_port: u16,
        mut config: EndpointConfig,
        template: AssociationConfig,
        schedulers: Registry,
        keyring: Option<Keyring>,
    ) -> Result<Self, BindError> {
        let template = settings(keyring.as_ref(), template).ok_or(BindError::NoKeys)?;
        if config.encapsulation_port == 0 {
            config.encapsulation_port = DEFAULT_UDP_PORT;
        }
        let (bound, udp_port) = bind_udp(local, udp_port)?;
        let port_is_free = config.port == 0 && !config.listen;
        if port_is_free {
            // To a peer, an address and an SCTP port are one endpoint, whichever UDP port it comes from. A number drawn by
            // each of many endpoints on one address soon comes twice; UDP ports are taken once.
            config.port = udp_port;
        }
        let mut core = core(config, template, schedulers)?;
        if port_is_free {
            // Behind an address translator other hosts have numbers of their own.
            core.let_port_change();
        }
        Ok(Endpoint::start(core, Sockets::new(bound), Some(udp_port), keyring))
    }

    /// Opens one raw socket for SCTP (protocol 132) on each address of `local` and starts the driver task.
    ///
    /// The process needs the right to open raw sockets (root or CAP_NET_RAW). Packets for other SCTP ports
    /// are left to others. A host whose kernel speaks SCTP itself answers them too, with an ABORT: its
    /// module must not be loaded.
    ///
    /// # Errors
    /// [`BindError::RawNotPermitted`] for those who may not; an address that cannot be used, an SCTP port
    /// that another such endpoint has, or settings that contradict each other.
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

    /// As [`Endpoint::bind_raw`], with stream schedulers that the template may name already.
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
        Endpoint::bind_ip(local, config, template, schedulers, None)
    }

    /// As [`Endpoint::bind_raw_with_schedulers`], for associations that are encrypted, with peers that prove who they are:
    /// there are no others. What the template says of encryption is overruled.
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
        Endpoint::bind_ip(local, config, template, schedulers, Some(keyring))
    }

    fn bind_ip(
        local: &[IpAddr],
        mut config: EndpointConfig,
        template: AssociationConfig,
        schedulers: &Registry,
        keyring: Option<Keyring>,
    ) -> Result<Self, BindError> {
        let template = settings(keyring.as_ref(), template).ok_or(BindError::NoKeys)?;
        config.encapsulation_port = 0;
        let any_port = config.port == 0;
        let mut attempt = 1;
        loop {
            // Without a port in the settings, the core takes one at random.
            let core = core(config.clone(), template.clone(), schedulers.clone())?;
            match bind_raw(local, core.port()) {
                Ok(bound) => return Ok(Endpoint::start(core, Sockets::new(bound), None, keyring)),
                Err(BindError::PortTaken { .. }) if any_port && attempt < PORT_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn start(
        mut core: tresse_proto::Endpoint,
        sockets: Sockets,
        udp_port: Option<u16>,
        keyring: Option<Keyring>,
    ) -> Self {
        core.set_local_addresses(sockets.addresses());
        let shared = Arc::new(Shared::new(core, sockets.stats(), keyring));
        tokio::spawn(Driver::new(Arc::clone(&shared), sockets));
        Endpoint { shared, udp_port }
    }

    /// Shows `tap` every packet and how associations stand from now on, in place of whoever watched before. It costs what the
    /// tap does, and counters of each association for each turn.
    pub fn watch(&self, tap: Box<dyn Tap>) {
        self.shared.lock().set_tap(tap);
    }

    /// The addresses that paths can start from.
    pub fn local_addresses(&self) -> Vec<IpAddr> {
        self.shared.lock().addresses()
    }

    /// Binds one more address, on the same port as the others: associations to come have it from the beginning, those
    /// there are when [`Association::add_address`] is called.
    ///
    /// # Errors
    /// An address that cannot be bound, or is bound already.
    pub fn add_local_address(&self, address: IpAddr) -> Result<(), BindError> {
        if self.local_addresses().contains(&address) {
            return Err(BindError::Twice { address });
        }
        let sockets = match self.udp_port {
            Some(port) => bind_udp(&[address], port)?.0,
            None => bind_raw(&[address], self.port())?,
        };
        self.shared.lock().join(sockets);
        Ok(())
    }

    /// The UDP port of all sockets; 0 over raw IP.
    pub fn udp_port(&self) -> u16 {
        self.udp_port.unwrap_or(0)
    }

    /// The SCTP port.
    pub fn port(&self) -> u16 {
        self.shared.lock().core.port()
    }

    /// The names of the stream schedulers that associations can be given, in alphabetical order.
    pub fn stream_schedulers(&self) -> Vec<String> {
        self.shared.lock().core.schedulers().names().into_iter().map(str::to_owned).collect()
    }

    /// Adds a stream scheduler; [`schedule`](crate::schedule) has an example of one. From now on
    /// [`Association::set_stream_scheduler`] and settings find it by its name.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn register_stream_scheduler(
        &self,
        name: &str,
        factory: StreamSchedulerFactory,
    ) -> Result<(), ScheduleError> {
        self.shared.lock().core.schedulers().register(name, factory)
    }

    /// Removes a stream scheduler.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association or the endpoint still uses.
    pub fn remove_stream_scheduler(&self, name: &str) -> Result<(), ScheduleError> {
        self.shared.lock().core.schedulers().remove(name)
    }

    /// The names of the path schedulers that associations can be given, in alphabetical order.
    pub fn path_schedulers(&self) -> Vec<String> {
        self.shared.lock().core.schedulers().path_scheduler_names().into_iter().map(str::to_owned).collect()
    }

    /// Adds a path scheduler. From now on the setting `path_scheduler` finds it by its name.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn register_path_scheduler(
        &self,
        name: &str,
        factory: PathSchedulerFactory,
    ) -> Result<(), ScheduleError> {
        self.shared.lock().core.schedulers().register_path_scheduler(name, factory)
    }

    /// Removes a path scheduler.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association or the endpoint still uses.
    pub fn remove_path_scheduler(&self, name: &str) -> Result<(), ScheduleError> {
        self.shared.lock().core.schedulers().remove_path_scheduler(name)
    }

    /// The names of the congestion controllers that associations can be given, in alphabetical order.
    pub fn controllers(&self) -> Vec<String> {
        self.shared.lock().core.schedulers().controller_names().into_iter().map(str::to_owned).collect()
    }

    /// Adds a congestion controller; [`congestion`](crate::congestion) has an example of one. From now on the setting
    /// `congestion_control` finds it by its name.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn register_controller(&self, name: &str, factory: ControllerFactory) -> Result<(), ScheduleError> {
        self.shared.lock().core.schedulers().register_controller(name, factory)
    }

    /// Removes a congestion controller.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association still uses.
    pub fn remove_controller(&self, name: &str) -> Result<(), ScheduleError> {
        self.shared.lock().core.schedulers().remove_controller(name)
    }

    /// Chooses the stream scheduler of the associations to come, those that peers set up and those of
    /// [`Endpoint::connect`]; those there are keep theirs.
    ///
    /// # Errors
    /// An unknown name, or a configuration that the scheduler refuses; the old choice then stays.
    pub fn set_stream_scheduler(&self, name: &str, config: &str) -> Result<(), ScheduleError> {
        self.shared.lock().core.set_stream_scheduler(name, config)
    }

    /// Chooses the settings of the associations to come, those that peers set up and those of [`Endpoint::connect`]; those
    /// there are keep theirs.
    ///
    /// # Errors
    /// Settings that contradict each other, or that name a scheduler that does not exist; the old ones then stay.
    pub fn set_template(&self, template: AssociationConfig) -> Result<(), ConfigError> {
        self.shared.lock().core.set_template(config_for_sockets(template))
    }

    /// Starts or stops to answer peers that want to set up an association; those that there are go on.
    pub fn set_listening(&self, listen: bool) {
        self.shared.lock().core.set_listening(listen);
    }

    /// Whether peers can set up associations.
    pub fn is_listening(&self) -> bool {
        self.shared.lock().core.is_listening()
    }

    /// Opens an association to `peer` with the endpoint's settings and waits until it is set up.
    ///
    /// Giving up the future gives up the association.
    ///
    /// # Errors
    /// Addresses that cannot work, or a peer that refuses or does not answer.
    pub async fn connect(&self, peer: Peer) -> Result<Association, ConnectError> {
        self.begin(peer)?.established().await
    }

    /// As [`Endpoint::connect`], with settings of its own.
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

    /// Begins to set up an association with the endpoint's settings, and waits for nothing: messages can be given at
    /// once, and need not wait for the set-up to end.
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
    /// Addresses that cannot work.
    pub fn begin(&self, peer: Peer) -> Result<Connecting, ConnectError> {
        let settings = self.shared.lock().core.template().clone();
        self.begin_with(peer, settings)
    }

    /// As [`Endpoint::begin`], with settings of its own.
    ///
    /// # Errors
    /// As [`Endpoint::begin`], and settings that contradict each other.
    pub fn begin_with(&self, peer: Peer, config: AssociationConfig) -> Result<Connecting, ConnectError> {
        let mut state = self.shared.lock();
        let config = settings(state.keyring.as_ref(), config).ok_or(ConnectError::NoKeys)?;
        let connect = Connect {
            local: state.addresses(),
            remote: peer.addresses,
            remote_port: peer.port,
            encapsulation_port: Some(self.udp_port.map_or(0, |_| peer.udp_port)),
            config: config_for_sockets(config),
        };
        let id = state.core.connect(self.shared.now(), connect)?;
        let signals = state.insert(id);
        state.wake_driver();
        Ok(Connecting::new(Association::new(Arc::clone(&self.shared), id, signals)))
    }

    /// Waits for the next association that a peer sets up; `None` once the runtime is shutting down.
    ///
    /// Associations that wait for this call are set up, and count towards the setting `max_associations`.
    pub async fn accept(&self) -> Option<Association> {
        let accepted = until(&self.shared.incoming, || {
            let mut state = self.shared.lock();
            match state.accept() {
                Some(accepted) => Some(Some(accepted)),
                None if state.is_driven() => None,
                None => Some(None),
            }
        });
        let (id, signals) = accepted.await?;
        Some(Association::new(Arc::clone(&self.shared), id, signals))
    }

    /// Sets a shared key for the associations to come (RFC 4895 §6.1); each has its own copy from its beginning
    /// on. Key 0 is there, and empty, from the start.
    pub fn set_shared_key(&self, number: u16, secret: &[u8]) {
        self.shared.lock().core.set_shared_key(number, secret);
    }

    /// Lets associations to come authenticate with this shared key.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn use_shared_key(&self, number: u16) -> Result<(), KeyError> {
        self.shared.lock().core.use_shared_key(number)
    }

    /// Lets associations to come do without a shared key: they believe nothing that is authenticated with it.
    ///
    /// # Errors
    /// There is none of this number, or it is the one in use.
    pub fn remove_shared_key(&self, number: u16) -> Result<(), KeyError> {
        self.shared.lock().core.remove_shared_key(number)
    }

    /// Peers that were turned away because they are not trusted.
    #[cfg(feature = "encryption")]
    pub fn strangers(&self) -> u64 {
        self.shared.lock().keyring.as_ref().map_or(0, Keyring::strangers)
    }

    /// Waits until no association is left: everything that was queued is delivered or given up.
    pub async fn wait_idle(&self) {
        until(&self.shared.idle, || {
            let state = self.shared.lock();
            (state.is_idle() || !state.is_driven()).then_some(())
        })
        .await;
    }

    /// Packets thrown away before they reached an association, by reason.
    pub fn discards(&self) -> Discards {
        self.shared.lock().core.discards()
    }

    /// What the operating system refused to send or receive, for each local address.
    pub fn local_stats(&self) -> Vec<LocalStats> {
        self.shared.lock().locals.clone()
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
        let now = self.shared.now();
        self.shared.lock().close(now);
    }
}

/// The core of an endpoint, with an unpredictable seed.
fn core(
    config: EndpointConfig,
    template: AssociationConfig,
    schedulers: Registry,
) -> Result<tresse_proto::Endpoint, BindError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| BindError::Seed(error.to_string()))?;
    let template = config_for_sockets(template);
    Ok(tresse_proto::Endpoint::with_schedulers(config, template, schedulers, seed)?)
}

/// The settings with encryption where there are keys, and without where there are none; `None` where it is asked for and
/// nobody could agree on keys.
fn settings(keyring: Option<&Keyring>, config: AssociationConfig) -> Option<AssociationConfig> {
    match keyring {
        Some(keyring) => Some(keyring.require(config)),
        None => Some(config).filter(|config| config.encryption == Encryption::Off),
    }
}

/// The settings without what sockets cannot do here.
fn config_for_sockets(config: AssociationConfig) -> AssociationConfig {
    AssociationConfig { ecn: config.ecn && TELLS_MARKS, ..config }
}

/// SCTP ports that are tried over raw IP; each fails only if another endpoint happens to have it.
const PORT_ATTEMPTS: u32 = 64;
