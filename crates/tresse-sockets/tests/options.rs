//! Every option of the table, on sockets and on an association: what each says after it was set, and what it refuses.

#![cfg(target_os = "linux")]

mod common;

use std::ops::Range;
use std::process::Command;

use tresse_sockets::{
    ALL_OPTIONS, Errno, SocketOption, accept, bind, close, connect, listen, local_name, option, set_option,
    socket,
};

const SCTP: i32 = 132;

/// The socket that a row is about.
#[derive(Copy, Clone, PartialEq, Eq)]
enum On {
    /// One-to-one, not connected.
    One,
    /// One-to-many, without an association.
    Many,
    /// One-to-one, connected.
    Live,
}

/// What is to come of it.
enum Outcome {
    /// What was set is read back, in these bytes.
    Reads(Range<usize>),
    /// It is set.
    Sets,
    /// So many bytes are answered, at least.
    Gets(usize),
    /// It fails.
    Fails(Errno),
}
use On::{Live, Many, One};
use Outcome::{Fails, Gets, Reads, Sets};

type Row = (&'static str, On, Vec<u8>, Outcome);

fn longs(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn shorts(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// Zeros with these values at their places.
fn filled(size: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; size];
    for (at, part) in parts {
        bytes[*at..at + part.len()].copy_from_slice(part);
    }
    bytes
}

/// `struct sctp_tresse_choice`.
fn choice(name: &str) -> Vec<u8> {
    filled(64, &[(4, name.as_bytes())])
}

fn name(address: [u8; 4], port: u16) -> Vec<u8> {
    filled(16, &[(0, &2_u16.to_ne_bytes()), (2, &port.to_be_bytes()), (4, &address)])
}

fn all(value: Vec<u8>) -> (Vec<u8>, Outcome) {
    let whole = 0..value.len();
    (value, Reads(whole))
}

/// An `int`.
fn int(value: u32) -> (Vec<u8>, Outcome) {
    all(longs(&[value]))
}

/// `struct sctp_assoc_value`.
fn value(value: u32) -> (Vec<u8>, Outcome) {
    all(longs(&[0, value]))
}

#[rustfmt::skip]
fn of_rfc_6458() -> Vec<Row> {
    let own = |name, (value, outcome)| (name, Many, value, outcome);
    let thresholds = |parts: &[u16]| filled(144, &[(136, &shorts(parts))]);
    vec![
        own("SCTP_RTOINFO", all(longs(&[0, 900, 50_000, 400]))),
        ("SCTP_ASSOCINFO", Many, [shorts(&[0, 0, 5, 0]), longs(&[0, 0, 7000])].concat(), Reads(16..20)),
        own("SCTP_INITMSG", all(shorts(&[4, 5, 6, 700]))),
        own("SCTP_NODELAY", int(1)),
        own("SCTP_AUTOCLOSE", int(5)),
        ("SCTP_SET_PEER_PRIMARY_ADDR", Live, filled(132, &[(4, &name([127, 9, 9, 9], 0))]), Fails(Errno::ADDRNOTAVAIL)),
        ("SCTP_PRIMARY_ADDR", Live, filled(132, &[(4, &name([127, 0, 0, 1], 0))]), Reads(8..12)),
        own("SCTP_ADAPTATION_LAYER", int(77)),
        own("SCTP_DISABLE_FRAGMENTS", int(1)),
        ("SCTP_PEER_ADDR_PARAMS", Many, filled(156, &[(132, &longs(&[1234])), (136, &shorts(&[2])), (146, &longs(&[1]))]), Reads(132..138)),
        ("SCTP_DEFAULT_SEND_PARAM", Many, filled(32, &[(0, &shorts(&[1])), (8, &longs(&[4, 9]))]), Reads(0..32)),
        own("SCTP_EVENTS", all(vec![0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0])),
        own("SCTP_I_WANT_MAPPED_V4_ADDR", int(0)),
        own("SCTP_MAXSEG", value(1000)),
        ("SCTP_STATUS", Live, vec![0; 176], Gets(176)),
        ("SCTP_GET_PEER_ADDR_INFO", Live, vec![0; 152], Gets(152)),
        own("SCTP_DELAYED_SACK", all(longs(&[0, 50, 3]))),
        own("SCTP_CONTEXT", value(9)),
        own("SCTP_FRAGMENT_INTERLEAVE", int(0)),
        own("SCTP_PARTIAL_DELIVERY_POINT", int(5000)),
        own("SCTP_MAX_BURST", value(7)),
        ("SCTP_AUTH_CHUNK", Many, vec![0], Sets),
        own("SCTP_HMAC_IDENT", all([longs(&[1]), shorts(&[1])].concat())),
        ("SCTP_AUTH_KEY", Many, [longs(&[0]), shorts(&[5, 4]), vec![1, 2, 3, 4]].concat(), Sets),
        own("SCTP_AUTH_ACTIVE_KEY", all(longs(&[0, 0]))),
        ("SCTP_AUTH_DELETE_KEY", Many, longs(&[0, 0]), Fails(Errno::INVAL)),
        ("SCTP_PEER_AUTH_CHUNKS", Live, vec![0; 64], Gets(10)),
        ("SCTP_LOCAL_AUTH_CHUNKS", Many, vec![0; 64], Gets(9)),
        ("SCTP_GET_ASSOC_NUMBER", Many, vec![0; 4], Gets(4)),
        ("SCTP_GET_ASSOC_ID_LIST", Many, vec![0; 64], Gets(4)),
        own("SCTP_AUTO_ASCONF", int(0)),
        ("SCTP_PEER_ADDR_THLDS", Many, thresholds(&[4, 1]), Reads(136..140)),
        own("SCTP_RECVRCVINFO", int(1)),
        own("SCTP_RECVNXTINFO", int(1)),
        own("SCTP_DEFAULT_SNDINFO", all([shorts(&[3, 1]), longs(&[8, 9, 0])].concat())),
        ("SCTP_AUTH_DEACTIVATE_KEY", Many, longs(&[0, 0]), Fails(Errno::INVAL)),
        ("SCTP_REUSE_PORT", One, longs(&[1]), Reads(0..4)),
        ("SCTP_PEER_ADDR_THLDS_V2", Many, thresholds(&[4, 1, 9]), Reads(136..142)),
    ]
}

#[rustfmt::skip]
fn of_others() -> Vec<Row> {
    let own = |name, (value, outcome)| (name, Many, value, outcome);
    let status = || filled(24, &[(4, &shorts(&[3, 0x80]))]);
    vec![
        ("SCTP_GET_ASSOC_STATS", Live, vec![0; 256], Gets(256)),
        own("SCTP_PR_SUPPORTED", value(0)),
        ("SCTP_DEFAULT_PRINFO", Many, [longs(&[0, 500]), shorts(&[0x10, 0])].concat(), Reads(0..12)),
        ("SCTP_PR_ASSOC_STATUS", Live, status(), Gets(24)),
        ("SCTP_PR_STREAM_STATUS", Live, status(), Gets(24)),
        own("SCTP_RECONFIG_SUPPORTED", value(0)),
        own("SCTP_ENABLE_STREAM_RESET", value(1)),
        ("SCTP_RESET_STREAMS", Live, [longs(&[0]), shorts(&[2, 1, 2])].concat(), Sets),
        ("SCTP_RESET_ASSOC", Live, longs(&[0]), Sets),
        ("SCTP_ADD_STREAMS", Live, [longs(&[0]), shorts(&[0, 5])].concat(), Sets),
        own("SCTP_STREAM_SCHEDULER", value(1)),
        ("SCTP_STREAM_SCHEDULER_VALUE", Live, [longs(&[0]), shorts(&[3, 17])].concat(), Fails(Errno::INVAL)),
        own("SCTP_INTERLEAVING_SUPPORTED", value(1)),
        ("SCTP_EVENT", Many, [longs(&[0]), shorts(&[0x8009]), vec![1, 0]].concat(), Reads(0..7)),
        own("SCTP_ASCONF_SUPPORTED", value(0)),
        own("SCTP_AUTH_SUPPORTED", value(0)),
        own("SCTP_ECN_SUPPORTED", value(0)),
        own("SCTP_EXPOSE_POTENTIALLY_FAILED_STATE", value(1)),
        ("SCTP_REMOTE_UDP_ENCAPS_PORT", Many, filled(144, &[(136, &1234_u16.to_be_bytes())]), Reads(136..138)),
        ("SCTP_PLPMTUD_PROBE_INTERVAL", Many, filled(144, &[(136, &longs(&[600_000]))]), Reads(136..140)),
        own("SCTP_EXPLICIT_EOR", int(1)),
        own("SCTP_SCHED", all([filled(34, &[(0, b"prio"), (32, &shorts(&[4]))]), shorts(&[1, 2])].concat())),
        ("SCTP_TRESSE_STREAM_QUEUE", Live, vec![0; 64], Gets(20)),
        ("SCTP_TRESSE_LOW_WATER", Live, [longs(&[0]), shorts(&[1, 0]), longs(&[100])].concat(), Sets),
        own("SCTP_TRESSE_SETTING", all(filled(256, &[(4, b"nr_sack_blocks"), (68, b"16")]))),
        own("SCTP_CMT_ON_OFF", value(3)),
        own("SCTP_TRESSE_PATH_SCHEDULER", all(choice("lowest_rtt"))),
        own("SCTP_TRESSE_STREAM_MAP", all(choice("fixed:0,1"))),
        own("SCTP_TRESSE_CONGESTION_CONTROL", all(choice("olia"))),
    ]
}

const STREAM: i32 = 1;
const SEQPACKET: i32 = 5;

/// Sockets of one row; the first is the one that it is about.
struct Sockets(Vec<i32>);

impl Sockets {
    fn new(on: On) -> Self {
        let open = |kind| socket(2, kind, SCTP).expect("a socket");
        match on {
            One => Sockets(vec![open(STREAM)]),
            Many => Sockets(vec![open(SEQPACKET)]),
            Live => {
                let (near, waiting) = (open(STREAM), open(STREAM));
                bind(waiting, &name([127, 0, 0, 1], 0)).expect("bound");
                listen(waiting, 1).expect("it listens");
                connect(near, &local_name(waiting).expect("a name")).expect("connected");
                Sockets(vec![near, accept(waiting, 0).expect("accepted"), waiting])
            }
        }
    }

    fn set(&self, known: &SocketOption, value: &[u8]) -> Result<i32, Errno> {
        set_option(self.0[0], SCTP, known.number, value)
    }

    fn get(&self, known: &SocketOption, value: &[u8]) -> Result<Vec<u8>, Errno> {
        option(self.0[0], SCTP, known.number, value)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for &fd in &self.0 {
            close(fd).expect("it was open");
        }
    }
}

/// Does what a row says, once more for good measure, and what nobody should.
fn check(known: &SocketOption, (name, on, value, outcome): &Row) {
    let sockets = Sockets::new(*on);
    let (gets, sets) = (known.access().contains("get"), known.access().contains("set"));
    match outcome {
        Reads(bytes) => {
            for _ in 0..2 {
                sockets.set(known, value).unwrap_or_else(|error| panic!("{name}: {error}"));
                let got = sockets.get(known, value).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(got.get(bytes.clone()), value.get(bytes.clone()), "{name}");
            }
        }
        Sets => assert_eq!(sockets.set(known, value), Ok(0), "{name}"),
        Gets(size) => assert!(sockets.get(known, value).is_ok_and(|got| got.len() >= *size), "{name}"),
        Fails(error) if sets => assert_eq!(sockets.set(known, value), Err(*error), "{name}"),
        Fails(error) => assert_eq!(sockets.get(known, value), Err(*error), "{name}"),
    }
    if !gets {
        assert_eq!(sockets.get(known, value), Err(Errno::NOPROTOOPT), "{name} cannot be asked for");
    }
    if !sets {
        assert_eq!(sockets.set(known, value), Err(Errno::NOPROTOOPT), "{name} cannot be set");
        return;
    }
    assert_eq!(sockets.set(known, &[]), Err(Errno::INVAL), "{name} of nothing");
    // Whatever there is in it, and however long it is: it is set or refused, and the socket goes on.
    for length in 0..=value.len() {
        let _ = sockets.set(known, &vec![0xff; length]);
        let _ = sockets.get(known, &vec![0xff; length]);
    }
}

/// Of a one-to-many socket an association that there is not is refused; so is one where one is needed and none is named.
fn check_numbers(known: &SocketOption, (name, on, value, _): &Row) {
    let Some(at) = known.association_place() else { return };
    let sockets = Sockets::new(Many);
    let mut of_nobody = value.clone();
    of_nobody[at..at + 4].copy_from_slice(&999_999_i32.to_ne_bytes());
    let sets = known.access().contains("set");
    if known.access().contains("get") {
        assert_eq!(sockets.get(known, &of_nobody), Err(Errno::INVAL), "{name} of nobody");
    }
    if sets {
        assert_eq!(sockets.set(known, &of_nobody), Err(Errno::INVAL), "{name} for nobody");
    }
    if *on == Live {
        let got =
            if sets { sockets.set(known, value).map(drop) } else { sockets.get(known, value).map(drop) };
        assert!(got.is_err(), "{name} without an association");
    }
}

#[test]
fn every_option_of_the_table_does_what_its_row_says() {
    // The port that packets are carried by is told by the environment, which a process has from its start.
    if std::env::var_os("TRESSE_UDP_PORT").is_none() {
        let own = std::env::current_exe().expect("a path");
        let again = Command::new(own).env("TRESSE_UDP_PORT", common::udp_port()).status();
        assert!(again.expect("it starts").success());
        return;
    }
    let rows: Vec<Row> = of_rfc_6458().into_iter().chain(of_others()).collect();
    let names: Vec<&str> = rows.iter().map(|row| row.0).collect();
    assert_eq!(names, ALL_OPTIONS.iter().map(|known| known.name).collect::<Vec<_>>(), "a row for each");
    for (known, row) in ALL_OPTIONS.iter().zip(&rows) {
        check(known, row);
        check_numbers(known, row);
    }
}
