//! Configuration: every number and choice of the protocol as a named setting, and the presets.
//!
//! Settings are checked once, when an endpoint or an association is created from them. Other modules read them and never change
//! them.

mod authentication;
mod buffers;
mod classes;
mod effect;
mod encryption;
mod experiment;
mod groups;
mod multipath;
mod presets;
mod switch;

use std::time::Duration;

pub(crate) use authentication::UNLISTED;
pub use authentication::{AuthHash, ChunkList};
pub use buffers::{BufferPolicy, EqualParts};
pub use classes::StreamClasses;
pub use encryption::{Encryption, KeyManagement, KeyRole};
pub use experiment::Experiment;
pub use groups::{GROUPS, Group};
pub use multipath::{
    BufferAllocation, BufferSplit, ChunkRescheduling, CwndUpdate, LossDetection, NrSack, PathPairs,
    PeerWindowTest, ReinjectionCut, SplitCounts, StreamMap,
};
pub use presets::{PRESETS, Preset};
pub use switch::{ConfigError, Size, SwitchInfo, SwitchValue, guess, nearest};
pub use tresse_policy::{RetransmitPath, SackPath, StreamClass};

use switch::switches;

const fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

switches! {
    /// The settings of one association. The defaults are those of the preset `cmt`.
    pub struct AssociationConfig in "" {
        /// Retransmission timeout before the first measurement (RTO.Initial, RFC 9260 §16).
        rto_initial: Duration = millis(1000),
        /// Smallest retransmission timeout (RTO.Min, which RFC 9260 §16 has at 1s). A value below 1s relies on loss_detection=rack, which probes before the timeout and undoes spurious window reductions.
        rto_min: Duration = millis(300),
        /// Largest retransmission timeout (RTO.Max, RFC 9260 §16).
        rto_max: Duration = millis(60_000),
        /// Timeouts in a row on all paths before the association is given up (Association.Max.Retrans, 10 in RFC 9260 §16; with an rto_min of 300ms, 16 timeouts over two short paths take 167 s, 10 with 1s 63 s).
        association_max_retrans: u32 = 16,
        /// Timeouts in a row on one path before it counts as inactive (Path.Max.Retrans, 5 in RFC 9260 §16; with an rto_min of 300ms, 7 timeouts take about as long as 5 with 1s).
        path_max_retrans: u32 = 7,
        /// Retransmissions of INIT and COOKIE ECHO before set-up is given up (Max.Init.Retransmits).
        max_init_retransmits: u32 = 8,
        /// Pause between heartbeats on an idle path, added to its RTO (HB.interval); 0 sends none.
        heartbeat_interval: Duration = millis(30_000),
        /// Longest delay of a SACK (SACK.Delay; at most 500ms, RFC 9260 §6.2).
        sack_delay: Duration = millis(200),
        /// Packets with DATA after which a SACK is due; 1 acknowledges each (RFC 9260 §6.2 says 2). If it is above 2 and SACK.Delay ends with fewer packets, the number falls to half of those that came, because the peer's window may be smaller than the setting.
        sack_frequency: u32 = 2,
        /// Packets with DATA that a SACK acknowledges, for bulk data: at least as many arrive in each millisecond, and the rate has not grown by more than a quarter since the second before, so that the sender is not in slow start. The packets are at most 1/32 of the receive buffer, and a SACK waits for them for a millisecond at most. No effect if it is not above sack_frequency.
        sack_batch: u16 = 4,
        /// Most packets with user data that a path may send at one instant (Max.Burst, RFC 9260 §6.1 D, which says 4); 0 for no limit. A driver that hands in several SACKs at one instant gets one such burst for all of them.
        max_burst: u32 = 0,
        /// Spread packets over the round trip: 1.25 times the window in each round trip, twice the window in slow start (RFC 9002 §7.7), and at most 10 packets at once where a round trip takes a millisecond or more.
        pacing: bool = true,
        /// Initial congestion window; 0 takes the one of RFC 9260 §7.2.1.
        initial_window: Size = Size(0),
        /// Streams to ask for in the sending direction.
        outbound_streams: u16 = 10,
        /// Streams to accept in the receiving direction.
        inbound_streams: u16 = 65_535,
        /// Send buffer: user data accepted and not yet acknowledged non-renegably.
        send_buffer: Size = Size(1024 * 1024),
        /// Receive buffer: DATA chunks, headers included, received and not yet taken by the application.
        receive_buffer: Size = Size(1024 * 1024),
        /// Largest IP packet on any path, IP and UDP headers included.
        mtu: Size = Size(1500),
        /// Address pairs that become paths.
        path_pairs: PathPairs = PathPairs::ByPosition,
        /// The most paths that an association uses; further addresses of the peer are ignored.
        max_paths: u16 = 16,
        /// Send new data on all paths at once (CMT); off sends on the primary path.
        concurrent: bool = true,
        /// Path scheduler: round_robin, lowest_rtt, most_room, in_order, ecf or blest select a path with room;
        /// otias, daps and stms also queue data on paths whose windows are full; redundant sends all data on every
        /// path; or a registered name.
        path_scheduler: String = "ecf".to_owned(),
        /// Opaque configuration of the path scheduler; the built-in ones take none.
        path_scheduler_config: String = String::new(),
        /// Paths that a stream's data may use: any, adaptive (by measurements of the paths), or fixed: and the path of each stream.
        stream_map: StreamMap = StreamMap::Any,
        /// Streams that an adaptive map serves first or last, as in 0=latency,3=background; the others are bulk. Short messages
        /// of latency-critical streams are duplicated on the other paths, with any map.
        stream_classes: StreamClasses = StreamClasses::default(),
        /// Stream scheduler: first_come, round_robin, round_robin_packet, priority, fair_bandwidth, weighted_fair,
        /// their Linux names fcfs, prio and wfq, or a registered name.
        stream_scheduler: String = "first_come".to_owned(),
        /// Opaque configuration of the stream scheduler; priority and weighted_fair take initial values of streams, as in 0=1,5=10, or one for each from 0 on, as in 1,10.
        stream_scheduler_config: String = String::new(),
        /// Congestion controller over all windows: rfc9260, cubic, coupled_cubic (paths that share a bottleneck are one flow), bbr, cmt_rp_v1, cmt_rp_v2, lia, olia, balia, or a registered name.
        congestion_control: String = "coupled_cubic".to_owned(),
        /// Opaque configuration of the congestion controller; the built-in ones take none.
        congestion_control_config: String = String::new(),
        /// Loss detection: rack by time of sending, separately for each path, retransmissions included, with tail
        /// loss probes (RACK-TLP, RFC 8985); rfc9260 by missing reports, as the switches for fast retransmission say, and by T3.
        loss_detection: LossDetection = LossDetection::Rack,
        /// While data comes over several paths, delay SACKs although it arrives out of order, and report the number of packets that a SACK acknowledges (DAC). A peer that declines NR-SACK is assumed not to support this.
        delayed_ack: bool = true,
        /// Data that is reported as non-renegable (NR-SACK).
        nr_sack: NrSack = NrSack::Everything,
        /// Most blocks of a SACK where all data is non-renegable: if there are more, the SACK has the lowest and those that grew last; 0 for as many as fit a packet.
        nr_sack_blocks: u16 = 64,
        /// Buffers that are split between the paths. A path may send a further full DATA chunk (the MTU of the paper's
        /// equations 1 and 2, without the headers of IP and SCTP) if its part of the buffer has room for it, and in any
        /// case if no bytes of the path count.
        buffer_split: BufferSplit = BufferSplit::Both,
        /// Allocation of a split buffer to the paths (docs/sharing.md).
        buffer_allocation: BufferAllocation = BufferAllocation::WhenShort,
        /// Suspension of paths, where buffers are allocated by BDP: the allocation includes the cost of head-of-line
        /// blocking, and a path is suspended if it costs the others more than it delivers, or is allocated less than
        /// a packet.
        path_suspension: bool = true,
        /// Reinjection of the head-of-line chunk, before it counts as lost: when early arrivals (data that waits for a lower TSN) fill a part of a buffer, or by deadline.
        chunk_rescheduling: ChunkRescheduling = ChunkRescheduling::ByDeadline,
        /// Set the I bit (RFC 9260 section 3.3.1) of a chunk if early arrivals fill a buffer so that no chunk can follow it; and send a SACK at once when no full packet fits the receive buffer any more.
        immediate_sack_when_full: bool = true,
        /// Path on which a SACK is sent.
        sack_path: SackPath = SackPath::Fastest,
        /// Interval of heartbeats that measure a path on which data arrives, where nothing else measures it, with `sack_path` = `fastest`; 0 measures it once.
        sack_path_probes: Duration = millis(500),
        /// Path on which chunks that timed out are retransmitted.
        timeout_retransmit_path: RetransmitPath = RetransmitPath::Alternate,
        /// Accept messages before the association is set up, and send them behind COOKIE ECHO, in its packet (RFC 9260 §5.1).
        data_with_cookie: bool = true,
        /// Offer to report packets that arrive damaged, and retransmit what such a report names without a window reduction (PKTDROP).
        drop_reports: bool = true,
        /// Offer explicit congestion notification (ECN, RFC 3168): networks may mark new data where they would drop it.
        ecn: bool = true,
        /// Path on which chunks that were reported missing are retransmitted (RFC 9260 §7.2.4: on the same path).
        fast_retransmit_path: RetransmitPath = RetransmitPath::Same,
        /// Stop sending on a path at its first timeouts and probe it until it answers (RFC 7829); needs heartbeats.
        potentially_failed: bool = true,
        /// Timeouts in a row on one path before it counts as potentially failed (PFMR, RFC 7829 §3.1).
        potentially_failed_max_retrans: u32 = 0,
        /// Congestion window, in full packets, of a potentially failed path that answers a probe (CMT-PF); 0 leaves the window unchanged.
        potentially_failed_window: u32 = 1,
        /// Timeouts in a row on the primary path before another one takes its place for good (PSMR, RFC 7829 §5); 65535 for never.
        primary_switchover_max_retrans: u32 = 65_535,
        /// Offer to abandon messages after they were sent, and let the peer do so (FORWARD TSN, RFC 3758).
        partial_reliability: bool = true,
        /// Offer to reset and to add streams while the association runs (RE-CONFIG, RFC 6525).
        stream_reconfiguration: bool = true,
        /// Let the peer reset streams, its own and those of this side.
        accept_stream_resets: bool = true,
        /// Let the peer reset the numbers of all streams and the TSNs of both directions (RFC 6525 §4.3).
        accept_association_resets: bool = true,
        /// Let the peer add streams, to receive on up to inbound_streams and to send on up to 65535.
        accept_added_streams: bool = true,
        /// List all own addresses in INIT and INIT ACK; off lists none, for hosts behind a NAT: the peer then knows the packet's source only.
        list_addresses: bool = true,
        /// Do not list loopback, link-local and private addresses to a peer that is reached by addresses of a wider scope, and do not use those that it lists.
        address_scopes: bool = true,
        /// Code point for the adaptation layer above (Adaptation Layer Indication, RFC 5061 §4.2.6).
        adaptation: Option<u32> = None,
        /// Leave out checksums when the peer allows it too (RFC 9653); only where the layer below detects errors itself, as DTLS does.
        zero_checksum: bool = false,
        /// Offer to authenticate chunks (AUTH, RFC 4895), with keys of the application or the null key.
        authentication: bool = true,
        /// Offer to add, remove and prefer addresses while the association runs (ASCONF, RFC 5061); needs authentication.
        dynamic_addresses: bool = true,
        /// Chunk types that are accepted only when authenticated, besides those of dynamic addresses.
        authenticated_chunks: ChunkList = ChunkList::default(),
        /// Hash to ask for in authenticated chunks: sha256 or sha1.
        authentication_hash: AuthHash = AuthHash::Sha256,
        /// Encrypt and authenticate whole packets (DTLS chunk, docs/security.md): off, offer (only with peers that support it; an attacker that can change INIT can remove the offer) or require. The driver of the association provides the keys. An encrypted association does not use `authentication`.
        encryption: Encryption = Encryption::Off,
        /// Key management: tls13, or pre_shared.
        key_management: KeyManagement = KeyManagement::Tls13,
        /// Role in the key management: any, client or server. Both ends of a simultaneous set-up need any.
        key_role: KeyRole = KeyRole::Any,
        /// Time for which old keys still decrypt packets, once the peer uses newer ones; at least the longest RTO of a path.
        key_drain: Duration = millis(120_000),
        /// Megabytes that one key protects before new ones are asked for.
        rekey_megabytes: u32 = 100_000,
        /// Offer I-DATA: fragments of messages of different streams take turns (RFC 8260).
        interleaving: bool = false,
        /// Length of a message in the receive buffer from which on it is delivered in parts, if nothing before it is missing; 0 delivers whole messages as long as the buffer can hold them.
        partial_delivery_point: Size = Size(0),
        /// Probe the packet size, up to mtu, that each path carries (RFC 8899); off uses mtu on every path.
        mtu_discovery: bool = true,
    }
    /// Settings that only a paper's figure or an ablation needs.
    and experiment: Experiment
}

impl AssociationConfig {
    /// Returns the settings of the preset `name`.
    ///
    /// # Errors
    /// The name is unknown; the error lists the known names.
    pub fn preset(name: &str) -> Result<Self, ConfigError> {
        presets::build(name)
    }

    /// Checks that the settings agree with each other and with the protocol.
    ///
    /// # Errors
    /// The first contradiction found, with the setting to change.
    pub fn check(&self) -> Result<(), ConfigError> {
        let inconsistent =
            |name, reason: &str| Err(ConfigError::Inconsistent { name, reason: reason.to_owned() });
        if self.rto_min > self.rto_max || self.rto_initial > self.rto_max {
            return inconsistent("rto_max", "must be at least rto_min and rto_initial");
        }
        if self.rto_min < millis(1) {
            return inconsistent("rto_min", "must be at least 1ms");
        }
        if self.sack_delay > millis(500) {
            return inconsistent("sack_delay", "must be at most 500ms (RFC 9260 §6.2)");
        }
        if (1..8).contains(&self.nr_sack_blocks) {
            return inconsistent("nr_sack_blocks", "must be 0 or at least 8");
        }
        if self.sack_frequency == 0 {
            return inconsistent("sack_frequency", "must be at least 1");
        }
        if self.outbound_streams == 0 || self.inbound_streams == 0 {
            return inconsistent(
                "outbound_streams",
                "an association has at least one stream in each direction",
            );
        }
        if self.mtu.0 < MIN_MTU || self.mtu.0 > MAX_MTU {
            return inconsistent("mtu", "must be from 576B to 65535B");
        }
        if self.receive_buffer.0 < MIN_RECEIVE_BUFFER || self.receive_buffer.0 > MAX_BUFFER {
            return inconsistent("receive_buffer", "must be from 1500B (RFC 9260 §3.3.2) to 1GiB");
        }
        if self.send_buffer.0 == 0 || self.send_buffer.0 > MAX_BUFFER {
            return inconsistent("send_buffer", "must be from 1B to 1GiB");
        }
        if self.experiment.rescheduling_threshold == 0 || self.experiment.rescheduling_threshold > 100 {
            return inconsistent("experiment.rescheduling_threshold", "must be from 1 to 100 percent");
        }
        if self.max_paths == 0 || self.max_paths > 255 {
            return inconsistent("max_paths", "must be from 1 to 255");
        }
        if !self.authentication && !self.authenticated_chunks.0.is_empty() {
            return inconsistent("authenticated_chunks", "needs authentication = true");
        }
        if self.encryption != Encryption::Off && !self.authenticated_chunks.0.is_empty() {
            return inconsistent(
                "authenticated_chunks",
                "must be none with encryption, which protects them all",
            );
        }
        if self.rekey_megabytes == 0 {
            return inconsistent("rekey_megabytes", "must be at least 1");
        }
        if self.primary_switchover_max_retrans < self.potentially_failed_max_retrans {
            return inconsistent(
                "primary_switchover_max_retrans",
                "must be at least potentially_failed_max_retrans (RFC 7829 §5)",
            );
        }
        if let StreamMap::Fixed(table) = &self.stream_map
            && table.iter().any(|&path| path >= self.max_paths)
        {
            return inconsistent("stream_map", "names a path position that max_paths does not allow");
        }
        Ok(())
    }
}

switches! {
    /// The settings of an endpoint: what all its associations share.
    pub struct EndpointConfig in "" {
        /// SCTP port; with 0 a client gets a free port, and an endpoint that listens is refused.
        port: u16 = 0,
        /// Answer INITs, as a server does.
        listen: bool = false,
        /// UDP port of the peer when SCTP is encapsulated in UDP (RFC 6951); 0 for raw IP.
        encapsulation_port: u16 = 0,
        /// Lifetime of a state cookie (Valid.Cookie.Life, RFC 9260 §16).
        cookie_lifetime: Duration = millis(60_000),
        /// Largest extension of a cookie's lifetime that a peer gets after its cookie came back too late (Cookie Preservative, RFC 9260 §5.2.6).
        cookie_extension: Duration = millis(10_000),
        /// Interval at which the key that signs cookies changes.
        cookie_key_lifetime: Duration = millis(3_600_000),
        /// The most associations at a time; further INITs are refused.
        max_associations: u32 = 100_000,
        /// Leave checksums to the driver, or to the network card; packets have the checksum 0 until the driver fills it in.
        checksum_offload: bool = false,
    }
}

impl EndpointConfig {
    /// Returns the settings of a server on this SCTP port.
    pub fn listening(port: u16) -> Self {
        EndpointConfig { port, listen: true, ..EndpointConfig::default() }
    }
}

/// Smallest IP packet size of a path: every IPv4 host must accept it (RFC 791).
pub(crate) const MIN_MTU: usize = 576;
/// Largest size of an IPv4 packet.
pub(crate) const MAX_MTU: usize = 65_535;
/// Smallest a_rwnd of an INIT (RFC 9260 §3.3.2).
const MIN_RECEIVE_BUFFER: usize = 1500;
/// Largest buffer: sums of buffer sizes do not overflow, and TSN distances remain below 2^31.
const MAX_BUFFER: usize = 1 << 30;

#[cfg(test)]
mod tests;
