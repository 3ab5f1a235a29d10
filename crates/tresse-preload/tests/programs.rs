//! Programs of others, unmodified, with both ends over tresse.

#![cfg(target_os = "linux")]

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{
    Running, compiled, conforms, has, is_bound, library, ports, program, python_with_pysctp, until_served,
};

#[test]
fn sockets_of_a_program_are_ours_and_everything_else_is_untouched() {
    let (udp, port) = ports();
    Running::start({
        let mut command = program(compiled("plain"), udp);
        command.arg(port.to_string());
        command
    })
    .finish();
}

#[test]
fn calls_out_of_place_answer_as_they_do_over_linux() {
    let (udp, _) = ports();
    let said = Running::start(program(compiled("conformance"), udp)).finish();
    conforms(&said, |(_, tresse)| tresse);
}

#[test]
fn several_messages_go_at_once_and_descriptors_are_replaced_and_closed_from_a_number_on() {
    let (udp, port) = ports();
    let mut command = program(compiled("batches"), udp);
    command.arg(port.to_string());
    Running::start(command).finish();
}

#[test]
fn handlers_of_signals_and_forks_write_while_descriptors_are_looked_up_or_held() {
    let (udp, port) = ports();
    let mut command = program(compiled("handlers"), udp);
    command.arg(port.to_string());
    Running::start(command).finish();
}

#[test]
fn handlers_of_signals_close_what_they_interrupt_jump_out_of_it_or_end_the_process() {
    let (udp, port) = ports();
    let mut command = program(compiled("signals"), udp);
    command.arg(port.to_string());
    Running::start(command).finish();
}

#[test]
fn exit_handlers_of_a_program_use_its_sockets_and_its_threads_do_not_notice_the_end() {
    let (udp, port) = ports();
    let mut command = program(compiled("ending"), udp);
    command.arg(port.to_string());
    Running::start(command).finish();
}

/// Whoever starts the server goes on when that is in the background, as after any daemon. It is gone when it has served.
fn goes_into_the_background(compiled: &Path, way: &str) {
    let (udp, port) = ports();
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("background-{port}"));
    let run = |word: &str| {
        let mut command = program(compiled, udp);
        command.args([word, &port.to_string()]).arg(&log);
        command.output().expect("it runs")
    };
    let heard = |output: &Output| {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        let text = [&output.stdout[..], &output.stderr[..], log.as_bytes()].concat();
        String::from_utf8_lossy(&text).into_owned()
    };
    assert_eq!(heard(&run(way)), "", "{way}");
    assert_eq!(heard(&run("client")), "served\n", "{way}");
    let started = Instant::now();
    while is_bound(udp) {
        assert!(started.elapsed() < Duration::from_secs(60), "{way}: somebody still has the port");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn servers_go_into_the_background_with_their_sockets() {
    let program = compiled("background");
    for way in ["daemon", "exit", "_exit", "twice"] {
        goes_into_the_background(&program, way);
    }
}

#[test]
fn socat_carries_bytes_from_one_process_to_another() {
    if !has(&["socat"]) {
        return;
    }
    let (udp, port) = ports();
    let text: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("socat-{port}"));
    let mut server = program("socat", udp);
    server
        .args(["-u", &format!("SCTP4-LISTEN:{port},bind=127.0.0.1")])
        .arg(format!("CREATE:{}", file.display()));
    let server = Running::serve(server, udp);
    until_served(|| {
        let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("socat-{port}-in"));
        std::fs::File::create(&source).and_then(|mut file| file.write_all(text.as_bytes())).expect("a file");
        let mut client = program("socat", udp);
        client.args([
            "-u",
            &format!("OPEN:{}", source.display()),
            &format!("SCTP4-CONNECT:127.0.0.1:{port}"),
        ]);
        client
    });
    server.finish();
    assert_eq!(std::fs::read_to_string(file).expect("it was written").len(), text.len());
}

#[test]
fn socat_forks_for_each_connection() {
    if !has(&["socat"]) {
        return;
    }
    let (udp, port) = ports();
    let mut server = program("socat", udp);
    server.args([&format!("SCTP4-LISTEN:{port},bind=127.0.0.1,fork,max-children=4"), "PIPE"]);
    let _server = Running::serve(server, udp);
    let client = |words: &str| {
        let mut client = program("socat", udp);
        // It waits for the answer, and ends when that has come.
        let talk = format!("SYSTEM:echo {words}; read answer; echo $answer >&2");
        client.args([&format!("SCTP4-CONNECT:127.0.0.1:{port}"), &talk]);
        client
    };
    assert_eq!(until_served(|| client("first")), "first\n");
    let both = [Running::start(client("second")), Running::start(client("third"))];
    assert_eq!(both.map(Running::finish), ["second\n", "third\n"]);
}

#[test]
fn a_tcp_program_speaks_sctp_where_that_is_asked_for() {
    if !has(&["socat"]) {
        return;
    }
    let (udp, port) = ports();
    let disguised = |mut command: Command| {
        command.env("TRESSE_TCP_AS_SCTP", "1");
        command
    };
    let mut server = disguised(program("socat", udp));
    server.args(["-u", &format!("TCP4-LISTEN:{port},bind=127.0.0.1"), "STDOUT"]);
    let server = Running::serve(server, udp);
    until_served(|| {
        let mut client = disguised(program("sh", udp));
        client.args(["-c", &format!("echo hello | socat -u STDIN TCP4:127.0.0.1:{port}")]);
        client
    });
    assert_eq!(server.finish(), "hello\n");
}

/// iperf3 with these arguments of its client; answers what that said.
fn iperf3(arguments: &[&str]) -> String {
    let (udp, port) = ports();
    let port = port.to_string();
    let mut server = program("iperf3", udp);
    server.args(["-s", "-1", "-B", "127.0.0.1", "-p", &port]);
    // It has no SCTP socket before the client has called it by TCP.
    let server = Running::start(server);
    let said = until_served(|| {
        let mut client = program("iperf3", udp);
        client.args(["-c", "127.0.0.1", "-p", &port, "--sctp", "-n", "4M"]).args(arguments);
        client
    });
    server.finish();
    assert!(said.contains("receiver"), "{said}");
    said
}

#[test]
fn iperf3_measures_one_association() {
    if has(&["iperf3"]) {
        iperf3(&[]);
    }
}

#[test]
fn iperf3_measures_the_other_direction() {
    if has(&["iperf3"]) {
        iperf3(&["-R"]);
    }
}

#[test]
fn iperf3_has_streams_and_addresses_that_it_names() {
    if has(&["iperf3"]) {
        // Without a bit rate iperf3 3.12 takes the number of streams for one, also with TCP.
        iperf3(&["--nstreams", "5", "-b", "0"]);
        iperf3(&["--nstreams", "3", "-b", "0", "-P", "2", "-R"]);
        // Without `-4` it looks for IPv6 addresses of these names.
        iperf3(&["-4", "-X", "127.0.0.1", "-X", "127.0.0.2"]);
    }
}

/// `sctp_test` sends so many messages to another one.
fn sctp_test(arguments: &[&str]) {
    if !has(&["sctp_test"]) {
        return;
    }
    let (udp, port) = ports();
    let (port, own) = (port.to_string(), (port + 1000).to_string());
    let mut server = program("sctp_test", udp);
    server.args(["-H", "127.0.0.1", "-P", &port, "-l", "-d", "1"]);
    let _server = Running::serve(server, udp);
    let said = until_served(|| {
        let mut client = program("sctp_test", udp);
        client.args(["-H", "127.0.0.1", "-P", &own, "-h", "127.0.0.1", "-p", &port, "-s"]).args(arguments);
        client
    });
    assert!(said.contains("Client: Sending packets.(3/3)"), "{said}");
}

#[test]
fn sctp_test_sends_messages_of_every_size() {
    for case in ["0", "1", "2", "3", "4", "5"] {
        sctp_test(&["-x", "3", "-c", case]);
    }
    sctp_test(&["-x", "3", "-c", "4", "-o", "1", "-t", "1", "-M", "5"]);
}

#[test]
fn sctp_test_has_sockets_of_the_other_style() {
    sctp_test(&["-x", "3", "-c", "3", "-T"]);
}

#[test]
fn erlang_has_both_ends_of_an_association() {
    if !has(&["erl"]) {
        return;
    }
    let (udp, port) = ports();
    let lines = format!(
        "Here = {{ip, {{127,0,0,1}}}},
         {{ok, S}} = gen_sctp:open([{{port, {port}}}, Here]), ok = gen_sctp:listen(S, true),
         {{ok, C}} = gen_sctp:open([Here]), {{ok, A}} = gen_sctp:connect(C, {{127,0,0,1}}, {port}, []),
         ok = gen_sctp:send(C, A, 1, <<\"hello\">>),
         F = fun(F) -> case gen_sctp:recv(S, 60000) of
             {{ok, {{_, _, _, <<\"hello\">>}}}} -> io:format(\"arrived~n\");
             {{ok, _}} -> F(F)
         end end,
         F(F), gen_sctp:eof(C, A), gen_sctp:close(C), halt()."
    );
    let mut erlang = program("erl", udp);
    erlang.args(["-noshell", "-eval", &lines]);
    assert_eq!(Running::start(erlang).finish(), "arrived\n");
}

#[test]
fn python_has_both_styles_of_sockets() {
    let python = match python_with_pysctp() {
        Ok(python) => python,
        Err(why) => {
            return common::say(&format!(
                "SKIPPED: pysctp cannot be installed (python3-dev, libsctp-dev): {why}"
            ));
        }
    };
    let (udp, _) = ports();
    let mut command = program(python, udp);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pysctp.py"));
    assert_eq!(Running::start(command).finish(), "served\n");
}

#[test]
fn sctp_darn_sets_up_an_association() {
    if !has(&["sctp_darn"]) {
        return;
    }
    let (udp, port) = ports();
    let port = port.to_string();
    let own = (port.parse::<u16>().expect("a number") + 1000).to_string();
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("darn-{port}"));
    let mut server = program("sctp_darn", udp);
    server.args(["-H", "127.0.0.1", "-P", &port, "-l"]);
    let _server = Running::serve(server, udp);
    let said = until_served(|| {
        let mut client = program("sh", udp);
        let darn = format!("sctp_darn -H 127.0.0.1 -P {own} -h 127.0.0.1 -p {port} -s");
        // It is to go on until it has said what came of it. It ends with the number of bytes that it sent last: what it says is
        // asked instead.
        let talk = "echo hello; until grep -qE 'COMM_UP|CANT_STR' $0; do sleep 0.1; done; echo quit";
        let heard = "cat $0; grep -q SCTP_COMM_UP $0";
        client.args(["-c", &format!(": > $0; ( {talk} ) | {darn} > $0 2>&1; {heard}")]).arg(&log);
        client
    });
    assert!(said.contains("SCTP_COMM_UP"), "{said}");
}

#[test]
fn a_program_without_sctp_sockets_does_not_notice_the_library() {
    let output = Command::new("sh")
        .args(["-c", "echo one two | (read a b; echo $b $a)"])
        .env("LD_PRELOAD", library())
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    assert_eq!(common::said(&output), "two one\n");
}
