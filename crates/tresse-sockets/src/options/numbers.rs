//! Table of options: numbers and names of Linux, of RFC 6458 and later RFCs, and tresse's own.

use rustix::io::Errno;

use super::{Target, addresses, keys, limits, own, queries, sending, streams};

type Set = fn(&mut Target<'_>, &[u8]) -> Result<(), Errno>;
type Get = fn(&mut Target<'_>, &[u8]) -> Result<Vec<u8>, Errno>;

/// An option of sockets or associations.
pub struct SocketOption {
    /// Number at level IPPROTO_SCTP.
    pub number: i32,
    /// Name in C.
    pub name: &'static str,
    /// Offset of the association ID in its structure, in bytes.
    pub(super) association_at: Option<usize>,
    pub(super) get: Option<Get>,
    pub(super) set: Option<Set>,
    /// True if a buffer that is too short gets the beginning of the structure: older versions of the structure were shorter.
    pub(super) grew: bool,
}

impl SocketOption {
    /// Returns the kinds of access: get, set or both.
    pub fn access(&self) -> &'static str {
        match (self.get.is_some(), self.set.is_some()) {
            (true, true) => "get, set",
            (true, false) => "get",
            _ => "set",
        }
    }

    /// Returns the offset of the association ID in the option's structure, in bytes; `None` for options of sockets alone.
    pub fn association_place(&self) -> Option<usize> {
        self.association_at
    }

    const fn both(number: i32, name: &'static str, get: Get, set: Set) -> Self {
        SocketOption { number, name, association_at: Some(0), get: Some(get), set: Some(set), grew: false }
    }

    const fn get(number: i32, name: &'static str, get: Get) -> Self {
        SocketOption { number, name, association_at: Some(0), get: Some(get), set: None, grew: false }
    }

    const fn set(number: i32, name: &'static str, set: Set) -> Self {
        SocketOption { number, name, association_at: Some(0), get: None, set: Some(set), grew: false }
    }

    const fn associated_at(self, at: usize) -> Self {
        SocketOption { association_at: Some(at), ..self }
    }

    const fn of_socket(self) -> Self {
        SocketOption { association_at: None, ..self }
    }

    const fn that_grew(self) -> Self {
        SocketOption { grew: true, ..self }
    }
}

/// Returns the option with this number.
pub(super) fn find(number: i32) -> Option<&'static SocketOption> {
    OPTIONS.iter().find(|known| known.number == number)
}

/// All options, in the order of their numbers.
pub const OPTIONS: &[SocketOption] = &[
    SocketOption::both(0, "SCTP_RTOINFO", limits::rto, limits::set_rto),
    SocketOption::both(1, "SCTP_ASSOCINFO", limits::association, limits::set_association),
    SocketOption::both(2, "SCTP_INITMSG", sending::init, sending::set_init).of_socket(),
    SocketOption::both(3, "SCTP_NODELAY", sending::nodelay, sending::set_nodelay).of_socket(),
    SocketOption::both(4, "SCTP_AUTOCLOSE", limits::autoclose, limits::set_autoclose).of_socket(),
    SocketOption::set(5, "SCTP_SET_PEER_PRIMARY_ADDR", addresses::set_peer_primary),
    SocketOption::both(6, "SCTP_PRIMARY_ADDR", addresses::primary, addresses::set_primary),
    SocketOption::both(7, "SCTP_ADAPTATION_LAYER", sending::adaptation, sending::set_adaptation).of_socket(),
    SocketOption::both(8, "SCTP_DISABLE_FRAGMENTS", sending::whole_only, sending::set_whole_only).of_socket(),
    SocketOption::both(9, "SCTP_PEER_ADDR_PARAMS", addresses::parameters, addresses::set_parameters)
        .that_grew(),
    SocketOption::both(10, "SCTP_DEFAULT_SEND_PARAM", sending::default_old, sending::set_default_old)
        .associated_at(28),
    SocketOption::both(11, "SCTP_EVENTS", sending::events, sending::set_events).of_socket().that_grew(),
    SocketOption::both(12, "SCTP_I_WANT_MAPPED_V4_ADDR", sending::mapped, sending::set_mapped).of_socket(),
    SocketOption::both(13, "SCTP_MAXSEG", limits::max_segment, limits::set_max_segment),
    SocketOption::get(14, "SCTP_STATUS", queries::status),
    SocketOption::get(15, "SCTP_GET_PEER_ADDR_INFO", queries::peer_address),
    SocketOption::both(16, "SCTP_DELAYED_SACK", limits::delayed_sack, limits::set_delayed_sack),
    SocketOption::both(17, "SCTP_CONTEXT", sending::context, sending::set_context),
    SocketOption::both(18, "SCTP_FRAGMENT_INTERLEAVE", sending::interleave, sending::set_interleave)
        .of_socket(),
    SocketOption::both(19, "SCTP_PARTIAL_DELIVERY_POINT", sending::partial, sending::set_partial).of_socket(),
    SocketOption::both(20, "SCTP_MAX_BURST", limits::max_burst, limits::set_max_burst),
    SocketOption::set(21, "SCTP_AUTH_CHUNK", keys::set_chunk).of_socket(),
    SocketOption::both(22, "SCTP_HMAC_IDENT", keys::hash, keys::set_hash).of_socket(),
    SocketOption::set(23, "SCTP_AUTH_KEY", keys::set_key),
    SocketOption::both(24, "SCTP_AUTH_ACTIVE_KEY", keys::active, keys::set_active),
    SocketOption::set(25, "SCTP_AUTH_DELETE_KEY", keys::delete),
    SocketOption::get(26, "SCTP_PEER_AUTH_CHUNKS", keys::peer_chunks),
    SocketOption::get(27, "SCTP_LOCAL_AUTH_CHUNKS", keys::local_chunks),
    SocketOption::get(28, "SCTP_GET_ASSOC_NUMBER", queries::association_count).of_socket(),
    SocketOption::get(29, "SCTP_GET_ASSOC_ID_LIST", queries::association_list).of_socket(),
    SocketOption::both(30, "SCTP_AUTO_ASCONF", addresses::automatic, addresses::set_automatic).of_socket(),
    SocketOption::both(31, "SCTP_PEER_ADDR_THLDS", addresses::thresholds, addresses::set_thresholds),
    SocketOption::both(32, "SCTP_RECVRCVINFO", sending::receive_info, sending::set_receive_info).of_socket(),
    SocketOption::both(33, "SCTP_RECVNXTINFO", sending::next_info, sending::set_next_info).of_socket(),
    SocketOption::both(34, "SCTP_DEFAULT_SNDINFO", sending::default_new, sending::set_default_new)
        .associated_at(12),
    SocketOption::set(35, "SCTP_AUTH_DEACTIVATE_KEY", keys::deactivate),
    SocketOption::both(36, "SCTP_REUSE_PORT", sending::reuse_port, sending::set_reuse_port).of_socket(),
    SocketOption::both(37, "SCTP_PEER_ADDR_THLDS_V2", addresses::thresholds_v2, addresses::set_thresholds_v2),
    SocketOption::get(112, "SCTP_GET_ASSOC_STATS", queries::counters).that_grew(),
    SocketOption::both(113, "SCTP_PR_SUPPORTED", streams::pr_supported, streams::set_pr_supported),
    SocketOption::both(114, "SCTP_DEFAULT_PRINFO", streams::default_policy, streams::set_default_policy),
    SocketOption::get(115, "SCTP_PR_ASSOC_STATUS", streams::abandoned),
    SocketOption::get(116, "SCTP_PR_STREAM_STATUS", streams::abandoned_on_stream),
    SocketOption::both(117, "SCTP_RECONFIG_SUPPORTED", streams::reconfig, streams::set_reconfig),
    SocketOption::both(118, "SCTP_ENABLE_STREAM_RESET", streams::reset_mask, streams::set_reset_mask),
    SocketOption::set(119, "SCTP_RESET_STREAMS", streams::reset),
    SocketOption::set(120, "SCTP_RESET_ASSOC", streams::reset_association),
    SocketOption::set(121, "SCTP_ADD_STREAMS", streams::add),
    SocketOption::both(123, "SCTP_STREAM_SCHEDULER", streams::scheduler, streams::set_scheduler),
    SocketOption::both(124, "SCTP_STREAM_SCHEDULER_VALUE", streams::value, streams::set_value),
    SocketOption::both(125, "SCTP_INTERLEAVING_SUPPORTED", streams::interleaving, streams::set_interleaving),
    SocketOption::both(127, "SCTP_EVENT", sending::event, sending::set_event),
    SocketOption::both(128, "SCTP_ASCONF_SUPPORTED", addresses::asconf, addresses::set_asconf),
    SocketOption::both(129, "SCTP_AUTH_SUPPORTED", keys::supported, keys::set_supported),
    SocketOption::both(130, "SCTP_ECN_SUPPORTED", addresses::ecn, addresses::set_ecn),
    SocketOption::both(
        131,
        "SCTP_EXPOSE_POTENTIALLY_FAILED_STATE",
        addresses::exposes,
        addresses::set_exposes,
    ),
    SocketOption::both(
        132,
        "SCTP_REMOTE_UDP_ENCAPS_PORT",
        addresses::encapsulation,
        addresses::set_encapsulation,
    ),
    SocketOption::both(133, "SCTP_PLPMTUD_PROBE_INTERVAL", addresses::probing, addresses::set_probing),
    SocketOption::both(2001, "SCTP_EXPLICIT_EOR", sending::explicit, sending::set_explicit).of_socket(),
    SocketOption::both(2002, "SCTP_SCHED", own::scheduler, own::set_scheduler).of_socket(),
    SocketOption::get(2003, "SCTP_TRESSE_STREAM_QUEUE", own::stream_queue),
    SocketOption::set(2004, "SCTP_TRESSE_LOW_WATER", own::set_low_water),
    SocketOption::both(2005, "SCTP_TRESSE_SETTING", own::setting, own::set_setting),
    SocketOption::both(2006, "SCTP_CMT_ON_OFF", own::concurrent, own::set_concurrent),
    SocketOption::both(2007, "SCTP_TRESSE_PATH_SCHEDULER", own::path_scheduler, own::set_path_scheduler),
    SocketOption::both(2008, "SCTP_TRESSE_STREAM_MAP", own::stream_map, own::set_stream_map),
    SocketOption::both(2009, "SCTP_TRESSE_CONGESTION_CONTROL", own::congestion, own::set_congestion),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_in_the_order_of_their_numbers() {
        assert!(OPTIONS.is_sorted_by(|one, next| one.number < next.number));
    }
}
