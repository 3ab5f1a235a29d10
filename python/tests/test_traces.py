"""Traces as tables, and what is read off them."""

import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from tresse import _native, scenarios, traces
from tresse.cli import main
from tresse.plots.sequence import draw_sequence
from tresse.readings import Stall, longest_stall

HEAD = '{"tresse_trace":1,"name":"made up","seed":7,"paths":2}'


def _sent(t: float, tsn: int, *, path: int = 0, again: bool = False) -> str:
    flags = f'"again":{str(again).lower()},"dropped":false'
    return f'{{"t":{t},"e":"sent","path":{path},"tsn":{tsn},"bytes":1452,{flags}}}'


def _state(t: float, window: int, timeouts: int) -> str:
    by_path = '"cwnd":[1,2],"ssthresh":[1,2],"flight":[0,0],"limit":["nothing","receive_buffer"]'
    return f'{{"t":{t},"e":"state","peer_window":{window},"send_buffer":0,{by_path},"timeouts":[0,{timeouts}]}}'


@pytest.mark.parametrize("name", ["a\u2028b", "$x^$"])
def test_a_trace_of_any_name_is_read(name: str) -> None:
    text = f'name = "{name}"\nsettle = "0s"\nmeasure = "1500ms"\n[[path]]\nrate = "1Mbit/s"\ndelay = "1ms"\n'
    trace = traces.parse(_native.trace(text, {}, 1))
    assert (trace.name, trace.sent.empty) == (name, False)


def test_a_name_is_no_formula_in_a_picture(tmp_path: Path) -> None:
    trace = traces.parse("\n".join([HEAD, _sent(1, 1), _state(1, 1452, 0)]))
    figure = draw_sequence(trace, "$x^$")
    figure.savefig(tmp_path / "picture.svg")
    assert "$x^$" in (tmp_path / "picture.svg").read_text(encoding="utf-8").replace("\\$", "$")


def test_a_trace_becomes_a_table_for_each_kind() -> None:
    trace = traces.parse("\n".join([HEAD, _sent(0.1, 1), _sent(0.2, 1, again=True), _state(0.2, 9, 3)]))
    assert (trace.name, trace.seed, trace.paths) == ("made up", 7, 2)
    assert list(trace.sent["again"]) == [False, True]
    assert trace.states.loc[0, "limit_1"] == "receive_buffer"
    assert trace.arrived.empty
    assert len(trace.between(0.15, 1).sent) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 1 is not JSON"),
        ("[]", "line 1 is not a JSON object"),
        ('{"tresse_trace": 2}', "line 1 is not the head of a trace"),
        (HEAD + "\nnonsense", "line 2 is not JSON"),
        ('{"tresse_trace":1}', "line 1 does not say how many paths"),
        (HEAD + '\n{"t":1,"e":"sent","tsn":1}', "line 2: 'sent' lacks path, bytes, again, dropped"),
        (HEAD + '\n{"t":1,"e":"state","peer_window":1,"send_buffer":1}', "line 2: 'state' lacks cwnd"),
        (HEAD + '\n{"t":1,"e":"flew"}', "line 2: 'flew' is none of sent, arrived, sack, state"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(traces.TraceError, match=complaint):
        traces.parse(text, "file")


def test_the_longest_pause_is_between_new_data() -> None:
    lines = [_sent(0, 1), _sent(1, 2), _state(1, 500, 1), _sent(3, 2, again=True), _state(4, 100, 3), _sent(5, 3)]
    stall = longest_stall(traces.parse("\n".join([HEAD, *lines])))
    assert stall == Stall(1, 5, 100, (0, 2))


def test_what_sends_too_little_has_no_pause() -> None:
    assert longest_stall(traces.parse("\n".join([HEAD, _sent(0, 1), _sent(1, 1, again=True)]))) is None


def test_a_real_trace_is_read_and_drawn(tmp_path: Path) -> None:
    text = _native.trace(scenarios.read("globecom2005/two-paths.toml"), {"traffic.volume": "256KiB"}, 1)
    trace = traces.parse(text)
    assert trace.paths == 2
    assert len(trace.sent) > 180
    assert trace.arrived["tsn"].nunique() == 181
    assert draw_sequence(trace).axes

    file = tmp_path / "run.trace"
    file.write_text(text, encoding="utf-8")
    assert CliRunner().invoke(main, ["timeline", str(file), "--to", "1"]).exit_code == 0
    assert (tmp_path / "run.svg").stat().st_size > 1000
    again = CliRunner().invoke(main, ["timeline", str(file)])
    assert (again.exit_code, "--force" in again.output) == (2, True)


@pytest.mark.parametrize(
    ("lines", "span", "complaint"),
    [
        ([_sent(4.25, 1), _state(5.5, 9, 3)], ["--to", "1"], "from 0 s to 1 s; the trace covers 4.2 s to 5.5 s"),
        ([_sent(4.25, 1)], ["--from", "5", "--to", "4"], "nothing happened from 5 s to 4 s"),
        ([_sent(4.25, 1)], ["--from", "5"], "nothing happened from 5 s on; the trace covers"),
        ([], [], "nothing happened in it"),
    ],
)
def test_a_span_without_anything_is_refused(tmp_path: Path, lines: list[str], span: list[str], complaint: str) -> None:
    file = tmp_path / "run.trace"
    file.write_text("\n".join([HEAD, *lines]), encoding="utf-8")
    refused = CliRunner().invoke(main, ["timeline", str(file), *span])
    assert (refused.exit_code, complaint in refused.output) == (2, True), refused.output
    assert not (tmp_path / "run.svg").exists()


def test_a_picture_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "run.trace"
    file.write_text("\n".join([HEAD, _sent(0.1, 1), _state(0.2, 9, 3)]), encoding="utf-8")
    refused = CliRunner().invoke(main, ["timeline", str(file), "--out", str(tmp_path / "gone" / "run.svg")])
    assert refused.exit_code == 1, refused.output
    assert refused.output.strip().endswith("run.svg: No such file or directory")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    refused = CliRunner().invoke(main, ["timeline", str(tmp_path / "binary")])
    assert (refused.exit_code, "binary: is no text" in refused.output) == (2, True)


def _command() -> Path:
    """The newest build of the command line; the test is skipped where there is none."""
    target = Path(__file__).parents[2] / "target"
    built = [path for profile in ("debug", "release") if (path := target / profile / "tresse").exists()]
    if not built:
        pytest.skip("the command line is not built: make build")
    return max(built, key=lambda path: path.stat().st_mtime)


HERE, THERE = "127.0.0.1,127.0.0.2", "127.0.0.3,127.0.0.4"


class _Side:
    """One side of a real association, with both of its recordings."""

    def __init__(self, directory: Path, name: str, args: str) -> None:
        self.trace, self.pcap = directory / f"{name}.trace", directory / f"{name}.pcapng"
        record = ["--pcap", str(self.pcap), "--trace", str(self.trace)]
        self.process = subprocess.Popen(
            [str(_command()), *args.split(), *record], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )

    def said(self, words: str) -> str:
        """The word that follows these on standard error, up to a comma or the end."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if words in line:
                return line.split(words)[1].split(",")[0].split()[0]
        raise AssertionError(f"nothing was said of {words!r}")

    def finish(self, *, interrupt: bool = False) -> None:
        if interrupt:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        assert interrupt or self.process.returncode == 0

    def assert_drawn(self, *, sends: bool) -> None:
        trace = traces.parse(self.trace.read_text(encoding="utf-8"))
        assert trace.paths == 2
        assert not sends or trace.sent["bytes"].sum() >= 100_000
        drawn = CliRunner().invoke(main, ["timeline", str(self.trace)])
        assert drawn.exit_code == 0, drawn.output
        assert self.trace.with_suffix(".svg").stat().st_size > 1000
        assert self.pcap.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"


def test_traces_of_a_measurement_are_drawn(tmp_path: Path) -> None:
    server = _Side(tmp_path, "server", f"perf server --listen {THERE} --port 0 --once")
    call = f"perf client --from {HERE} --to {THERE} --port {server.said('UDP port ')} --both --bytes 300kB"
    client = _Side(tmp_path, "client", call)
    for side in (client, server):
        side.finish()
        side.assert_drawn(sends=True)


def test_traces_of_a_transfer_are_drawn(tmp_path: Path) -> None:
    file, out = tmp_path / "file", tmp_path / "out"
    file.write_bytes(bytes(300_000))
    out.mkdir()
    receiver = _Side(tmp_path, "recv", f"recv --listen {THERE} --port 0 --once --out {out}")
    call = f"send {file} --from {HERE} --to {THERE} --port {receiver.said('UDP port ')}"
    sender = _Side(tmp_path, "send", call)
    for side in (sender, receiver):
        side.finish()
        side.assert_drawn(sends=side is sender)


def test_traces_of_a_peers_work_are_drawn(tmp_path: Path) -> None:
    serve = f"peer server --listen {THERE} --port 0 --mode echo --associations 1"
    server = _Side(tmp_path, "server", serve)
    call = f"peer client --from {HERE} --to {THERE} --port {server.said('UDP port ')} --await-echo --count 100"
    client = _Side(tmp_path, "client", f"{call} --size 2kB")
    for side in (client, server):
        side.finish()
        side.assert_drawn(sends=True)


def test_traces_of_a_tunnel_are_drawn(tmp_path: Path) -> None:
    def echo(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        echoing = threading.Thread(target=echo, args=(listener,), daemon=True)
        echoing.start()
        target = f"127.0.0.1:{listener.getsockname()[1]}"
        server = _Side(tmp_path, "server", f"tunnel server --listen {THERE} --port 0 --tcp {target}")
        call = f"tunnel client --from {HERE} --to {THERE} --port {server.said('UDP port ')} --tcp 127.0.0.1:0"
        client = _Side(tmp_path, "client", call)
        host, _, port = client.said("connections to ").partition(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            threading.Thread(target=connection.sendall, args=(bytes(300_000),), daemon=True).start()
            left = 300_000
            while left > 0:
                got = len(connection.recv(65536))
                assert got > 0
                left -= got
            # The connection ends before the tunnel does, which would reset it.
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
        echoing.join(timeout=60)
        assert not echoing.is_alive()
    for side in (client, server):
        side.finish(interrupt=True)
        side.assert_drawn(sends=True)
