//! Programs in C that use the library through its header, as a program for the kernel's SCTP would: compiled with `cc`, linked
//! with the shared object, and run over UDP and over raw IP, in both modes.

#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use common::{compile, compiled, udp_port};

#[track_caller]
fn succeeds(mut command: Command) {
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
}

/// Runs a program in every way that the library can carry packets.
#[track_caller]
fn runs(name: &'static str) {
    let program = compiled(name);
    let timed = || {
        let mut command = Command::new("timeout");
        command.arg("120").arg(&program).env_remove("TRESSE_UDP_PORT");
        command
    };
    let mut udp = timed();
    udp.env("TRESSE_UDP_PORT", udp_port());
    succeeds(udp);
    let mut synchronous = timed();
    synchronous.env("TRESSE_UDP_PORT", udp_port()).env("TRESSE_SYNCHRONOUS", "1");
    succeeds(synchronous);
    // Raw IP where this process may; UDP else, once more.
    succeeds(timed());
}

/// Runs a program under valgrind: no invalid access, no descriptor or block that is lost.
#[track_caller]
fn runs_clean(name: &'static str) {
    let found =
        Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(found, "valgrind is not installed");
    let mut command = Command::new("timeout");
    command.args(["300", "valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full"]);
    command.args(["--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"]);
    command.arg(compiled(name)).env("TRESSE_UDP_PORT", udp_port());
    succeeds(command);
}

#[test]
fn one_to_one_sockets_are_used_as_those_of_tcp() {
    runs("one_to_one");
}

#[test]
fn plain_names_mean_these_sockets_whatever_headers_follow() {
    // With these the C library's headers define functions of the same names inline, and rename others.
    let options =
        ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-D_FILE_OFFSET_BITS=64", "-D_GNU_SOURCE"];
    let mut command = Command::new("timeout");
    command.arg("120").arg(compile("header_first", &options)).env("TRESSE_UDP_PORT", udp_port());
    succeeds(command);
}

#[test]
fn one_to_many_sockets_have_associations_notifications_and_ancillary_data() {
    runs("one_to_many");
}

#[test]
fn figure_7_of_the_paper_on_pluggable_schedulers_runs_word_for_word() {
    runs("figure7");
}

#[test]
fn options_say_what_was_set_and_refuse_what_cannot_be() {
    runs("options");
}

#[test]
fn messages_come_in_parts_in_pieces_to_all_or_not_at_all() {
    runs("messages");
}

#[test]
fn what_was_not_delivered_is_told_and_messages_have_their_numbers() {
    runs("failures");
}

#[test]
fn every_notification_has_its_length_and_fields() {
    runs("notifications");
}

#[test]
fn parts_of_messages_come_between_others_as_far_as_the_program_wants_it() {
    runs("interleave");
}

#[test]
fn notifications_come_between_the_messages_and_every_peer_has_its_turn() {
    runs("turns");
}

#[test]
fn calls_that_wait_sleep_and_send_to_all_or_to_nobody() {
    runs("blocked");
}

#[test]
fn calls_that_wait_go_on_after_handlers_that_ask_for_it_as_over_linux() {
    // In the synchronous mode every handler interrupts them.
    let mut command = Command::new("timeout");
    command.arg("120").arg(compiled("restart")).env("TRESSE_UDP_PORT", udp_port());
    succeeds(command);
}

#[test]
fn schedulers_in_c_are_registered_and_taken_away_while_associations_run() {
    runs("schedulers");
}

#[test]
fn forked_processes_have_the_sockets_of_their_parents_and_make_their_own() {
    runs("forks");
}

#[test]
fn valgrind_finds_nothing_in_any_of_the_programs() {
    let all = [
        "blocked",
        "calls",
        "failures",
        "figure7",
        "interleave",
        "messages",
        "notifications",
        "one_to_many",
        "one_to_one",
        "options",
        "schedulers",
        "turns",
    ];
    for name in all {
        runs_clean(name);
    }
}

/// Names of functions that the library exports.
fn exported() -> BTreeSet<String> {
    let library = common::library().join("libtresse_sockets.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().expect("nm");
    let text = String::from_utf8(output.stdout).expect("names");
    let functions = text.lines().filter_map(|line| line.split_once(" T ").map(|(_, name)| name.to_owned()));
    functions.collect()
}

#[test]
fn every_call_of_the_library_is_made_and_refuses_what_is_not_its() {
    let mut called = BTreeSet::new();
    for name in ["calls", "daemon"] {
        runs(name);
        let output = Command::new(compiled(name)).env("TRESSE_UDP_PORT", udp_port()).output();
        let text = String::from_utf8(output.expect("it runs").stdout).expect("names");
        called.extend(text.lines().map(str::to_owned));
    }
    assert_eq!(called, exported());
}

/// Sizes and offsets that this crate reads and writes by; `docs/sockets.md` promises libsctp-dev's.
const LAYOUTS: &str = "\
sctp_initmsg sinit_max_init_timeo 8 6
sctp_sndrcvinfo sinfo_ppid 32 8
sctp_sndrcvinfo sinfo_timetolive 32 16
sctp_sndrcvinfo sinfo_assoc_id 32 28
sctp_sndinfo snd_assoc_id 16 12
sctp_rcvinfo rcv_ppid 28 8
sctp_rcvinfo rcv_context 28 20
sctp_rcvinfo rcv_assoc_id 28 24
sctp_nxtinfo nxt_length 16 8
sctp_nxtinfo nxt_assoc_id 16 12
sctp_prinfo pr_value 8 4
sctp_sendv_spa sendv_prinfo 32 20
sctp_rtoinfo srto_min 16 12
sctp_assocparams sasoc_cookie_life 20 16
sctp_prim ssp_addr 132 4
sctp_setpeerprim sspp_addr 132 4
sctp_paddrparams spp_hbinterval 156 132
sctp_paddrparams spp_pathmaxrxt 156 136
sctp_paddrparams spp_pathmtu 156 138
sctp_paddrparams spp_sackdelay 156 142
sctp_paddrparams spp_flags 156 146
sctp_paddrinfo spinfo_address 152 4
sctp_paddrinfo spinfo_state 152 132
sctp_paddrinfo spinfo_cwnd 152 136
sctp_paddrinfo spinfo_mtu 152 148
sctp_status sstat_rwnd 176 8
sctp_status sstat_instrms 176 16
sctp_status sstat_fragmentation_point 176 20
sctp_status sstat_primary 176 24
sctp_paddrthlds spt_pathmaxrxt 144 136
sctp_paddrthlds_v2 spt_pathcpthld 144 140
sctp_event se_on 8 6
sctp_event_subscribe sctp_send_failure_event_event 14 13
sctp_assoc_value assoc_value 8 4
sctp_stream_value stream_value 8 6
sctp_sack_info sack_freq 12 8
sctp_authkey sca_key 8 8
sctp_authkeyid scact_keynumber 8 4
sctp_authchunks gauth_chunks 8 8
sctp_reset_streams srs_stream_list 8 8
sctp_add_streams sas_outstrms 8 6
sctp_default_prinfo pr_policy 12 8
sctp_prstatus sprstat_abandoned_sent 24 16
sctp_udpencaps sue_port 144 136
sctp_probeinterval spi_interval 144 136
sctp_getaddrs addrs 8 8
sctp_assoc_stats sas_maxrto 256 136
sctp_assoc_stats sas_rtxchunks 256 176
sctp_assoc_stats sas_idupchunks 256 192
sctp_assoc_stats sas_oodchunks 256 224
sctp_assoc_change sac_assoc_id 20 16
sctp_paddr_change spc_state 148 136
sctp_paddr_change spc_assoc_id 148 144
sctp_remote_error sre_data 16 16
sctp_send_failed ssf_assoc_id 48 44
sctp_send_failed_event ssf_assoc_id 32 28
sctp_shutdown_event sse_assoc_id 12 8
sctp_adaptation_event sai_assoc_id 16 12
sctp_pdapi_event pdapi_seq 24 20
sctp_authkey_event auth_assoc_id 20 16
sctp_sender_dry_event sender_dry_assoc_id 12 8
sctp_stream_reset_event strreset_stream_list 12 12
sctp_assoc_reset_event assocreset_assoc_id 20 8
sctp_stream_change_event strchange_outstrms 16 14
sctp_sched ssched_config 34 34
sctp_tresse_stream_queue ssq_unsent_on 20 20
sctp_tresse_low_water slw_bytes 12 8
sctp_tresse_stream_low ssl_unsent 20 16
sctp_tresse_setting sts_value 256 68
sctp_tresse_choice stc_name 64 4
";

#[test]
fn structures_are_laid_out_as_those_of_libsctp() {
    let output = Command::new(compiled("layouts")).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), LAYOUTS);
}

#[test]
fn the_page_has_every_option_with_its_number_and_what_can_be_done_with_it() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sockets.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, options) = page.split_once("\n## Options\n").expect("a section about options");
    let listed: Vec<String> = options
        .lines()
        .filter(|line| line.starts_with("| SCTP_"))
        .map(|line| line.split('|').take(4).collect::<Vec<_>>().join("|"))
        .collect();
    let known: Vec<String> = tresse_sockets::ALL_OPTIONS
        .iter()
        .map(|known| format!("| {} | {} | {} ", known.name, known.number, known.access()))
        .collect();
    assert_eq!(listed, known);
}
