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

/// Settings of an endpoint that is not bound yet; [`Endpoint::builder`] makes one.
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

impl Endpoint {
    /// Returns a builder of endpoints, for addresses by name and single settings.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::new()
    }
}

impl EndpointBuilder {
    fn new() -> Self {
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

    /// Adds an address, interface or host name from which paths start, or several (`0.0.0.0`, `::`). `auto` means all
    /// addresses that others can reach. So does a builder without any name. The thread waits while the system resolves a
    /// host name.
    ///
    /// # Errors
    /// A name that means no address of this host.
    pub fn local(mut self, name: &str) -> Result<Self, NameError> {
        self.local.push(name.parse()?);
        Ok(self)
    }

    /// Adds addresses from which paths start.
    pub fn local_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.local.push(Local::These(addresses.into_iter().collect()));
        self
    }

    /// Sets the UDP port of all sockets; the default is a port that is free on all addresses.
    pub fn udp_port(self, port: u16) -> Self {
        EndpointBuilder { udp_port: Some(port), ..self }
    }

    /// Sets the number of driver tasks, for a server whose associations are to use as many cores; the default is one.
    /// Each driver has sockets of its own on the same addresses and port (SO_REUSEPORT). The two SCTP ports of an
    /// association determine its driver, so associations of peers with different ports are distributed evenly.
    /// `max_associations` is divided among the drivers. Over raw IP, and on systems that cannot distribute packets by
    /// SCTP ports (all but Linux), there is one driver ([`Endpoint::drivers`]). More than 1024 are refused.
    ///
    /// The drivers run in parallel only if the runtime has as many threads.
    pub fn drivers(self, drivers: usize) -> Self {
        EndpointBuilder { drivers, ..self }
    }

    /// Uses SCTP over IP without UDP, for processes that may open raw sockets.
    pub fn raw_ip(self) -> Self {
        EndpointBuilder { udp_port: None, ..self }
    }

    /// Accepts associations from peers on this SCTP port.
    pub fn listen(mut self, port: u16) -> Self {
        (self.config.port, self.config.listen) = (port, true);
        self
    }

    /// Sets the SCTP port of an endpoint that does not listen; the default is a free port.
    pub fn port(mut self, port: u16) -> Self {
        self.config.port = port;
        self
    }

    /// Sets all settings of the endpoint, including those of [`EndpointBuilder::listen`] and [`EndpointBuilder::port`].
    pub fn endpoint_config(self, config: EndpointConfig) -> Self {
        EndpointBuilder { config, ..self }
    }

    /// Sets the settings of associations that peers set up, and of [`Endpoint::connect`]; the default is the preset `cmt`.
    pub fn association_config(self, template: AssociationConfig) -> Self {
        EndpointBuilder { template, ..self }
    }

    /// Adds a stream scheduler, which the settings may name.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn stream_scheduler(
        mut self,
        name: &str,
        factory: StreamSchedulerFactory,
    ) -> Result<Self, ScheduleError> {
        self.schedulers.register_stream_scheduler(name, factory)?;
        Ok(self)
    }

    /// Adds a path scheduler, which the settings may name.
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

    /// Adds a congestion controller, which the settings may name.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn controller(mut self, name: &str, factory: ControllerFactory) -> Result<Self, ScheduleError> {
        self.schedulers.register_controller(name, factory)?;
        Ok(self)
    }

    /// Replaces all policies by these, including those added before.
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
    /// As [`Endpoint::bind`] or [`Endpoint::bind_raw`]. If no address was given: there is none that others can reach.
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
