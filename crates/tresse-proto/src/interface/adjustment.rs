//! Changes of settings of an existing association.

use std::time::Duration;

use crate::config::{AssociationConfig, ConfigError, Size};
use crate::interface::error::NoSuchPath;

/// New values of settings of one association; `None` leaves a setting as it is.
///
/// RFC 6458 can change these settings in an existing association (SCTP_RTOINFO, SCTP_ASSOCINFO, SCTP_DELAYED_SACK,
/// SCTP_MAX_BURST, SCTP_PEER_ADDR_PARAMS without an address, and SO_SNDBUF); RFC 6525 adds the accepted requests of the peer
/// (SCTP_ENABLE_STREAM_RESET). New values take effect at the next event that they concern; measurements are kept.
///
/// ```
/// # use std::time::Duration;
/// # use tresse_proto::Adjustment;
/// let change = Adjustment::default().with(|a| {
///     a.rto_min = Some(Duration::from_millis(200));
///     a.paths.heartbeat_interval = Some(Duration::from_secs(5));
/// });
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Adjustment {
    /// The setting `rto_initial`.
    pub rto_initial: Option<Duration>,
    /// The setting `rto_min`.
    pub rto_min: Option<Duration>,
    /// The setting `rto_max`.
    pub rto_max: Option<Duration>,
    /// The setting `association_max_retrans`.
    pub association_max_retrans: Option<u32>,
    /// The setting `sack_delay`.
    pub sack_delay: Option<Duration>,
    /// The setting `sack_frequency`; it holds for bulk data as well, as with `sack_batch` = 1.
    pub sack_frequency: Option<u32>,
    /// The setting `max_burst`.
    pub max_burst: Option<u32>,
    /// The setting `send_buffer`, in bytes. Data in the buffer remains there.
    pub send_buffer: Option<usize>,
    /// The setting `accept_stream_resets` (RFC 6525 §6.3.1).
    pub accept_stream_resets: Option<bool>,
    /// The setting `accept_association_resets`.
    pub accept_association_resets: Option<bool>,
    /// The setting `accept_added_streams`.
    pub accept_added_streams: Option<bool>,
    /// Settings of all present and future paths.
    pub paths: PathAdjustment,
}

/// New values of settings of one path, or of all; `None` leaves a setting as it is.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PathAdjustment {
    /// The setting `heartbeat_interval`. With zero, only the heartbeats that confirm a path are sent.
    pub heartbeat_interval: Option<Duration>,
    /// The setting `path_max_retrans`.
    pub max_retrans: Option<u32>,
    /// The setting `potentially_failed_max_retrans`, and with it `potentially_failed`; 65535 switches that off.
    pub potentially_failed_max_retrans: Option<u32>,
    /// The setting `primary_switchover_max_retrans`; 65535 for never.
    pub primary_switchover_max_retrans: Option<u32>,
    /// The largest IP packet.
    pub packet_size: Option<PacketSize>,
}

/// Rule for the largest IP packet of a path.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PacketSize {
    /// This many bytes, IP and UDP headers included (RFC 6458 §8.1.12, SPP_PMTUD_DISABLE).
    Fixed(usize),
    /// Path MTU discovery by probing, up to the setting `mtu` (RFC 8899; SPP_PMTUD_ENABLE).
    Discovered,
}

/// A threshold of RFC 7829 that is never reached (§7.2, §7.3).
pub(crate) const NEVER: u32 = 65_535;

impl Adjustment {
    /// Returns these values, changed by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Writes the new values into `config`, such as the settings of future associations.
    pub fn apply(&self, config: &mut AssociationConfig) {
        let set = |setting: &mut Duration, value: Option<Duration>| *setting = value.unwrap_or(*setting);
        set(&mut config.rto_initial, self.rto_initial);
        set(&mut config.rto_min, self.rto_min);
        set(&mut config.rto_max, self.rto_max);
        set(&mut config.sack_delay, self.sack_delay);
        let set = |setting: &mut u32, value: Option<u32>| *setting = value.unwrap_or(*setting);
        set(&mut config.association_max_retrans, self.association_max_retrans);
        set(&mut config.sack_frequency, self.sack_frequency);
        config.sack_batch = self.sack_frequency.map_or(config.sack_batch, |_| 1);
        set(&mut config.max_burst, self.max_burst);
        config.send_buffer = self.send_buffer.map_or(config.send_buffer, Size);
        let set = |setting: &mut bool, value: Option<bool>| *setting = value.unwrap_or(*setting);
        set(&mut config.accept_stream_resets, self.accept_stream_resets);
        set(&mut config.accept_association_resets, self.accept_association_resets);
        set(&mut config.accept_added_streams, self.accept_added_streams);
        self.paths.apply(config);
    }
}

impl PathAdjustment {
    /// Returns these values, changed by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Checks the new values together with the unchanged settings.
    ///
    /// # Errors
    /// Values are not usable, or contradict others.
    pub(crate) fn check(&self, config: &AssociationConfig) -> Result<(), ConfigError> {
        let mut config = config.clone();
        self.apply(&mut config);
        config.check()
    }

    /// Writes the new values into `config`.
    fn apply(&self, config: &mut AssociationConfig) {
        config.heartbeat_interval = self.heartbeat_interval.unwrap_or(config.heartbeat_interval);
        config.path_max_retrans = self.max_retrans.unwrap_or(config.path_max_retrans);
        if let Some(most) = self.potentially_failed_max_retrans {
            config.potentially_failed = most < NEVER;
            config.potentially_failed_max_retrans = most;
        }
        let switchover = &mut config.primary_switchover_max_retrans;
        *switchover = self.primary_switchover_max_retrans.unwrap_or(*switchover);
        match self.packet_size {
            Some(PacketSize::Fixed(size)) => {
                config.mtu_discovery = false;
                config.mtu = Size(size);
            }
            Some(PacketSize::Discovered) => config.mtu_discovery = true,
            None => {}
        }
    }
}

/// Reason for which settings of an association could not be changed. No setting was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdjustError {
    /// The association has ended.
    #[error("cannot be changed in state {state}")]
    NotOpen {
        /// The state of the association, in the words of RFC 9260 §4.
        state: &'static str,
    },
    /// There is no such path.
    #[error(transparent)]
    NoSuchPath(#[from] NoSuchPath),
    /// A value is not valid, or contradicts another one.
    #[error(transparent)]
    Config(#[from] ConfigError),
}
