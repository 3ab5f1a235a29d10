//! Builder of endpoints.

use std::fmt;
use std::net::IpAddr;
#[cfg(feature = "encryption")]
use std::sync::Arc;

use tresse_proto::congestion::ControllerFactory;
use tresse_proto::schedule::{PathSchedulerFactory, StreamSchedulerFactory};
use tresse_proto::{AssociationConfig, EndpointConfig, Registry, ScheduleError};

use crate::endpoint::{Core, Endpoint};
use crate::error::BindError;
use crate::host::{Local, NameError};
#[cfg(feature = "encryption")]
use crate::security::{Keyring, Security};

/// An endpoint to be; [`Endpoint::builder`] gives one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tresse::Endpoint;
///
/// let server = Endpoint::builder().local("127.0.0.1")?.listen(7).bind()?;
/// assert_eq!(server.port(), 7);
/// # Ok(())
/// # }
/// ```
#[must_use = "it does nothing until `bind`"]
pub struct EndpointBuilder {
    local: Vec<Local>,
    /// `None` for raw IP.
    udp_port: Option<u16>,
    drivers: usize,
    config: EndpointConfig,
    template: AssociationConfig,
    schedulers: Registry,
    #[cfg(feature = "encryption")]
    security: Option<Arc<Security>>,
}

impl EndpointBuilder {
    pub(crate) fn new() -> Self {
        EndpointBuilder {
            local: Vec::new(),
            udp_port: Some(0),
            drivers: 1,
            config: EndpointConfig::default(),
            template: AssociationConfig::default(),
            schedulers: Registry::default(),
            #[cfg(feature = "encryption")]
            security: None,
        }
    }

    /// One more address, interface or host name that paths start from, or several (`0.0.0.0`, `::`); `auto` stands for all
    /// addresses that others can reach, and so does a builder that is given none.
    ///
    /// # Errors
    /// A name that stands for nothing on this host.
    pub fn local(mut self, name: &str) -> Result<Self, NameError> {
        self.local.push(name.parse()?);
        Ok(self)
    }

    /// More addresses that paths start from.
    pub fn local_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.local.push(Local::These(addresses.into_iter().collect()));
        self
    }

    /// The UDP port of all sockets; without this one that is free on all addresses.
    pub fn udp_port(self, port: u16) -> Self {
        EndpointBuilder { udp_port: Some(port), ..self }
    }

    /// Number of driver tasks, for a server whose associations shall use as many cores; the default is one. Each has sockets of
    /// its own on the same addresses and port (SO_REUSEPORT). The two SCTP ports of an association determine its driver, so
    /// associations of peers with different ports are spread evenly. `max_associations` is divided among the drivers. Over raw
    /// IP, and on systems that cannot distribute packets by SCTP ports (all but Linux), there is one ([`Endpoint::drivers`]).
    ///
    /// The runtime must have that many threads for them to run at a time.
    pub fn drivers(self, drivers: usize) -> Self {
        EndpointBuilder { drivers, ..self }
    }

    /// SCTP over IP instead of UDP, for processes that may open raw sockets.
    pub fn raw_ip(self) -> Self {
        EndpointBuilder { udp_port: None, ..self }
    }

    /// Peers can set up associations, with this SCTP port.
    pub fn listen(mut self, port: u16) -> Self {
        (self.config.port, self.config.listen) = (port, true);
        self
    }

    /// The SCTP port of an endpoint that does not listen; without this one that is free.
    pub fn port(mut self, port: u16) -> Self {
        self.config.port = port;
        self
    }

    /// All settings of the endpoint at once, [`EndpointBuilder::listen`] and [`EndpointBuilder::port`] among them.
    pub fn endpoint_config(self, config: EndpointConfig) -> Self {
        EndpointBuilder { config, ..self }
    }

    /// The settings of the associations that peers set up, and of [`Endpoint::connect`]; without this the preset `cmt`.
    pub fn association_config(self, template: AssociationConfig) -> Self {
        EndpointBuilder { template, ..self }
    }

    /// Brings a stream scheduler along, which the settings may name.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn stream_scheduler(
        mut self,
        name: &str,
        factory: StreamSchedulerFactory,
    ) -> Result<Self, ScheduleError> {
        self.schedulers.register(name, factory)?;
        Ok(self)
    }

    /// Brings a path scheduler along, which the settings may name.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn path_scheduler(
        mut self,
        name: &str,
        factory: PathSchedulerFactory,
    ) -> Result<Self, ScheduleError> {
        self.schedulers.register_path_scheduler(name, factory)?;
        Ok(self)
    }

    /// Brings a congestion controller along, which the settings may name.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn controller(mut self, name: &str, factory: ControllerFactory) -> Result<Self, ScheduleError> {
        self.schedulers.register_controller(name, factory)?;
        Ok(self)
    }

    /// Brings all of these policies along, in place of those given before.
    pub fn schedulers(self, schedulers: Registry) -> Self {
        EndpointBuilder { schedulers, ..self }
    }

    /// Encrypts all associations, and accepts only authenticated peers.
    #[cfg(feature = "encryption")]
    pub fn security(self, security: Arc<Security>) -> Self {
        EndpointBuilder { security: Some(security), ..self }
    }

    /// Binds the sockets and starts the driver task.
    ///
    /// # Errors
    /// As [`Endpoint::bind`] or [`Endpoint::bind_raw`]; no address that others can reach, where none was given.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub fn bind(self) -> Result<Endpoint, BindError> {
        let given = if self.local.is_empty() { &[Local::Auto][..] } else { &self.local };
        let local = crate::host::waiting_on(given)?;
        #[cfg(feature = "encryption")]
        let keyring = {
            let listens = self.config.listen;
            let security = self.security;
            move || security.as_ref().map(|security| Keyring::new(Arc::clone(security), listens))
        };
        #[cfg(not(feature = "encryption"))]
        let keyring = || None;
        let core = Core { config: self.config, template: self.template, schedulers: self.schedulers };
        match self.udp_port {
            Some(port) => Endpoint::bind_udp(&local, port, core, self.drivers, keyring),
            None => Endpoint::bind_ip(&local, core, keyring()),
        }
    }
}

impl fmt::Debug for EndpointBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointBuilder")
            .field("local", &self.local)
            .field("udp_port", &self.udp_port)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
