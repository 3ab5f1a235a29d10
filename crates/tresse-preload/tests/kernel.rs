//! Programs of others, unmodified, over tresse at one end and over the kernel's SCTP at the other: raw and in UDP, called from
//! either side. The kernel is Debian's in a virtual machine; whoever has none skips all of this, and is told so.

#![cfg(target_os = "linux")]

mod common;
mod guest;

use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use common::{Running, conforms, has, say, until_served};
use guest::{Carried, Guest, HERE, THERE, guest, pysctp};

/// Plays a case in both ways that packets are carried, if the machine and the programs are there.
fn plays(programs: &[&str], case: impl Fn(&Guest, Carried)) {
    if !has(programs) {
        return;
    }
    let Some(guest) = guest() else { return };
    for carried in Carried::ALL {
        let _turn = guest.turn(carried);
        case(guest, carried);
    }
}

/// A number of SCTP and TCP that nothing else has had in this run, and neither has the next one.
fn port() -> u16 {
    static PORTS: AtomicU16 = AtomicU16::new(5001);
    PORTS.fetch_add(10, Ordering::SeqCst)
}

fn with<const N: usize>(mut command: Command, arguments: [&str; N]) -> Command {
    command.args(arguments);
    command
}

#[test]
fn calls_out_of_place_answer_over_linux_as_they_are_said_to() {
    let Some(guest) = guest() else { return };
    let _turn = guest.turn(Carried::Raw);
    let (status, said) = guest.there("/conformance");
    assert_eq!(status, Some(0), "{said}");
    conforms(&said, |(linux, _)| linux);
}

/// iperf3's client with these arguments calls its server, from either side.
fn iperf3(arguments: &str) {
    plays(&["iperf3"], |guest, carried| {
        let (first, second) = (port(), port());
        let server = guest.start_there(&format!("iperf3 -s -1 -p {first}"));
        let said = until_served(|| {
            let mut client = guest.here("iperf3", carried);
            client
                .args(["-c", THERE[0], "-p", &first.to_string(), "--sctp", "-n", "2M"])
                .args(arguments.split_whitespace());
            client
        });
        assert!(said.contains("receiver"), "{said}");
        server.finish();

        let server = with(guest.here("iperf3", carried), ["-s", "-1", "-p", &second.to_string()]);
        let server = Running::start(server);
        // What is said of addresses is of this side's.
        let arguments = arguments.replace(HERE[0], THERE[0]).replace(HERE[1], THERE[1]);
        let said = guest.until_served(&format!("iperf3 -c {} -p {second} --sctp -n 2M {arguments}", HERE[0]));
        assert!(said.contains("receiver"), "{said}");
        server.finish();
    });
}

#[test]
fn iperf3_sends_and_receives() {
    iperf3("");
    iperf3("-R");
}

#[test]
fn iperf3_has_streams_and_several_associations() {
    // Without a bit rate iperf3 3.12 takes the number of streams for one.
    iperf3("--nstreams 5 -b 0");
    iperf3("--nstreams 3 -b 0 -P 2 -R");
}

#[test]
fn iperf3_binds_the_addresses_that_it_names() {
    iperf3(&format!("-4 -X {} -X {}", HERE[0], HERE[1]));
}

#[test]
fn socat_carries_bytes() {
    plays(&["socat"], |guest, carried| {
        let (first, second) = (port(), port());
        let text: String = (1..=20_000).map(|line| format!("{line}\n")).collect();
        // From here to there.
        let server = guest.start_there(&format!("socat -u SCTP4-LISTEN:{first} STDOUT | md5sum"));
        until_served(|| {
            let line = format!("seq 20000 | socat -u STDIN SCTP4-CONNECT:{}:{first}", THERE[0]);
            with(guest.here("sh", carried), ["-c", &line])
        });
        let expected = Command::new("sh").args(["-c", "seq 20000 | md5sum"]).output().expect("a shell");
        let expected = String::from_utf8_lossy(&expected.stdout).into_owned();
        assert_eq!(server.finish(), format!("{expected}ended 0\n"));
        // From there to here.
        let server = guest.here("socat", carried);
        let server = Running::start(with(server, ["-u", &format!("SCTP4-LISTEN:{second}"), "STDOUT"]));
        guest.until_served(&format!("seq 20000 | socat -u STDIN SCTP4-CONNECT:{}:{second}", HERE[0]));
        assert!(server.finish() == text, "what arrived is not what was sent");
    });
}

#[test]
fn socat_answers_several_callers_at_once() {
    plays(&["socat"], |guest, carried| {
        let (first, second) = (port(), port());
        let call = |address: &str, port: u16, word: &str| {
            format!(
                "socat SCTP4-CONNECT:{address}:{port} 'SYSTEM:echo {word}; read answer; echo $answer >&2'"
            )
        };
        let _server = guest.start_there(&format!("socat SCTP4-LISTEN:{first},fork PIPE"));
        let client = |word: &str| with(guest.here("sh", carried), ["-c", &call(THERE[0], first, word)]);
        assert_eq!(until_served(|| client("first")), "first\n");
        let both = [Running::start(client("second")), Running::start(client("third"))];
        assert_eq!(both.map(Running::finish), ["second\n", "third\n"]);

        let server = guest.here("socat", carried);
        let _server = Running::start(with(server, [&format!("SCTP4-LISTEN:{second},fork"), "PIPE"]));
        assert_eq!(guest.until_served(&call(HERE[0], second, "first")), "first\n");
        let both = ["second", "third"].map(|word| guest.start_there(&call(HERE[0], second, word)));
        assert_eq!(both.map(Running::finish), ["second\nended 0\n", "third\nended 0\n"]);
    });
}

/// `sctp_test` sends messages to another one.
fn sctp_test(arguments: &str) {
    plays(&["sctp_test"], |guest, carried| {
        let (first, second) = (port(), port());
        let serve = |address: &str, port: u16| format!("sctp_test -H {address} -P {port} -l -d 1");
        let call = |from: &str, to: &str, port: u16| {
            format!("sctp_test -H {from} -P {} -h {to} -p {port} -s -x 3 {arguments}", port + 1)
        };
        let here = |line: &str| with(guest.here("sh", carried), ["-c", &format!("exec {line}")]);
        let _server = guest.start_there(&serve(THERE[0], first));
        let said = until_served(|| here(&call(HERE[0], THERE[0], first)));
        assert!(said.contains("Client: Sending packets.(3/3)"), "{said}");

        let _server = Running::start(here(&serve(HERE[0], second)));
        let said = guest.until_served(&call(THERE[0], HERE[0], second));
        assert!(said.contains("Client: Sending packets.(3/3)"), "{said}");
    });
}

#[test]
fn sctp_test_sends_messages_of_every_size() {
    for case in 0..=5 {
        sctp_test(&format!("-c {case}"));
    }
}

#[test]
fn sctp_test_has_sockets_of_the_other_style() {
    sctp_test("-c 3 -T");
}

#[test]
fn sctp_darn_sets_up_an_association() {
    plays(&["sctp_darn"], |guest, carried| {
        let (first, second) = (port(), port());
        let serve = |address: &str, port: u16| format!("sctp_darn -H {address} -P {port} -l");
        // It says what came of it, and is told to go on until then.
        let call = |from: &str, to: &str, port: u16| {
            let darn = format!("sctp_darn -H {from} -P {} -h {to} -p {port} -s", port + 1);
            let talk = "echo hello; until grep -qE \"COMM_UP|CANT_STR\" $log; do sleep 0.1; done; echo quit";
            format!("log=$(mktemp); ({talk}) | {darn} >$log 2>&1; cat $log; grep -q SCTP_COMM_UP $log")
        };
        let _server = guest.start_there(&serve(THERE[0], first));
        let said = until_served(|| with(guest.here("sh", carried), ["-c", &call(HERE[0], THERE[0], first)]));
        assert!(said.contains("SCTP_COMM_UP"), "{said}");

        let line = format!("exec {}", serve(HERE[0], second));
        let _server = Running::start(with(guest.here("sh", carried), ["-c", &line]));
        let said = guest.until_served(&call(THERE[0], HERE[0], second));
        assert!(said.contains("SCTP_COMM_UP"), "{said}");
    });
}

#[test]
fn python_has_both_styles_of_sockets() {
    let Some(module) = pysctp() else {
        return say("SKIPPED: pysctp cannot be installed (python3-dev, libsctp-dev)");
    };
    let module = module.display().to_string();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/one_end.py");
    plays(&["python3"], |guest, carried| {
        let (first, second) = (port(), port());
        let here = |role: &str, address: &str, port: u16| {
            let mut command = guest.here("python3", carried);
            command.env("PYTHONPATH", &module).args([script, role, address, &port.to_string()]);
            command
        };
        let there = |role: &str, address: &str, port: u16| {
            format!("PYTHONPATH={module} python3 /one_end.py {role} {address} {port}")
        };
        let server = guest.start_there(&there("serve", THERE[0], first));
        until_served(|| here("call", THERE[0], first));
        assert_eq!(server.finish(), "served\nended 0\n");

        let server = Running::start(here("serve", HERE[0], second));
        guest.until_served(&there("call", HERE[0], second));
        assert_eq!(server.finish(), "served\n");
    });
}

/// Expressions for Erlang: its callee answers a message and says so, its caller waits for the answer.
fn erlang(serves: bool, address: &str, port: u16) -> String {
    let address = address.replace('.', ",");
    let from = |what: &str| {
        format!("F = fun(F) -> case gen_sctp:recv(S, 60000) of {what} {{ok, _}} -> F(F) end end, F(F)")
    };
    let text = if serves {
        let answer = from(
            "{ok, {_, _, [{sctp_sndrcvinfo, 1, _, _, _, _, _, _, _, A}], <<\"hello\">>}} -> \
             ok = gen_sctp:send(S, A, 2, <<\"welcome\">>), io:format(\"arrived~n\");",
        );
        let end = "E = fun(E) -> case gen_sctp:recv(S, 60000) of \
                   {ok, {_, _, _, {sctp_shutdown_event, _}}} -> ok; {ok, _} -> E(E) end end, E(E)";
        format!(
            "{{ok, S}} = gen_sctp:open([{{port, {port}}}, {{ip, {{{address}}}}}]), ok = gen_sctp:listen(S, true), {answer}, {end}"
        )
    } else {
        let answer = from("{ok, {_, _, _, <<\"welcome\">>}} -> ok;");
        format!(
            "{{ok, S}} = gen_sctp:open([]), {{ok, A}} = gen_sctp:connect(S, {{{address}}}, {port}, []), \
             ok = gen_sctp:send(S, A, 1, <<\"hello\">>), {answer}, gen_sctp:eof(S, A), gen_sctp:close(S)"
        )
    };
    format!("{text}, halt().")
}

#[test]
fn erlang_has_either_end_of_an_association() {
    plays(&["erl"], |guest, carried| {
        let (first, second) = (port(), port());
        let here = |serves, address, port| {
            let mut command = guest.here("erl", carried);
            // Where nobody listens yet it ends in haste: it need not leave a file about that here.
            command.env("ERL_CRASH_DUMP_SECONDS", "0").args(["-noshell", "-eval"]);
            with(command, [&erlang(serves, address, port)])
        };
        let there = |serves, address, port| {
            format!(
                "ERL_ROOTDIR=/usr/lib/erlang /usr/lib/erlang/bin/erl -noshell -eval '{}'",
                erlang(serves, address, port)
            )
        };
        let server = guest.start_there(&there(true, THERE[0], first));
        until_served(|| here(false, THERE[0], first));
        assert_eq!(server.finish(), "arrived\nended 0\n");

        let server = Running::start(here(true, HERE[0], second));
        guest.until_served(&there(false, HERE[0], second));
        assert_eq!(server.finish(), "arrived\n");
    });
}
