"""The command line: what it prints, its exit codes, one line for every error."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from synthetic import Model

from tresse import _native, report, runner
from tresse.cli import main
from tresse.figures import select
from tresse.profiles import QUICK
from tresse.reproduction import all_rows

Install = Callable[[Model], None]


def lab(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_list_names_figures_and_claims() -> None:
    result = lab("list")
    assert result.exit_code == 0
    assert "pfldnet2010-4" in result.stdout
    assert "P7" in result.stdout


def test_reproduce_writes_the_report_and_says_so(tmp_path: Path, made_up: Install) -> None:
    made_up(Model())
    result = lab("reproduce", "pfldnet2010-4", "pfldnet2010-5", "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "report.html" in result.stdout
    assert "P1  better" in result.stdout
    sweep = select(["pfldnet2010-5"])[0].sweep
    all_runs = len(sweep.tasks(QUICK)) + len(sweep.recorded)
    assert f"{all_runs} runs" in result.stderr, "those of figure 4 are among those of figure 5"


def test_claims_as_json(tmp_path: Path, made_up: Install) -> None:
    made_up(Model())
    out = str(tmp_path / "out")
    assert lab("reproduce", "pfldnet2010-5", "--quiet", "--out", out).output == ""
    result = lab("claims", "--json", "--out", out)
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert len(rows) == 46
    measured = [row for row in rows if row["verdict"] != "not measured"]
    assert [row["id"] for row in measured] == ["P5", "P6", "P7"]
    assert [part["figure"] for row in measured for part in row["parts"]] == ["pfldnet2010-5"] * 3
    printed = lab("claims", "--out", out).stdout
    assert "P5  reproduced" in printed
    assert "G12  not measured" in printed
    assert "  CMT/RP: not measured" in printed
    assert printed.endswith("46 rows: 3 reproduced, 43 not measured\n")


def required(tmp_path: Path, verdicts: dict[str, str]) -> str:
    """A file that requires these verdicts, and that all other rows are missed."""
    lines = [f'[{row.id}]\nverdict = "{verdicts.get(row.id, "missed")}"\nreason = "so it is"' for row in all_rows([])]
    file = tmp_path / "required.toml"
    file.write_text("\n".join(lines))
    return str(file)


def test_verdicts_that_differ_from_those_required_are_listed(tmp_path: Path, made_up: Install) -> None:
    made_up(Model(bend=1.0))
    out = str(tmp_path / "out")
    assert lab("reproduce", "pfldnet2010-5", "--quiet", "--out", out).exit_code == 0
    file = required(tmp_path, {"P5": "reproduced", "P6": "missed", "P7": "reproduced"})
    for arguments in (["reproduce", "pfldnet2010-5", "--quiet"], ["claims"]):
        result = lab(*arguments, "--require-claims", file, "--out", out)
        assert result.exit_code == 4
        lines = result.stderr.splitlines()
        assert "P6: reproduced, expected missed" in lines, "for the better as well"
        assert "P7: missed, expected reproduced" in lines
        assert "P1: not measured, expected missed" in lines
        assert not any(line.startswith("P5") for line in lines)
        assert lines[-1] == "tresse-lab: 45 of 46 verdicts are not as expected"


def test_a_file_of_requirements_is_read_before_anything_runs(tmp_path: Path) -> None:
    file = tmp_path / "required.toml"
    file.write_text("[P1]\nverdict = 'fine'\n")
    result = lab("reproduce", "--require-claims", str(file), "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"tresse-lab: {file}: no verdict for P2, P3")
    assert not (tmp_path / "out").exists()


def test_an_interrupt_keeps_results_and_exits_with_130(
    tmp_path: Path, made_up: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up(Model())
    real = runner.execute
    calls = 0

    def interrupted(*arguments: object) -> str:
        nonlocal calls
        calls += 1
        if calls == 10:
            raise KeyboardInterrupt
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "execute", interrupted)
    out = str(tmp_path / "out")
    result = lab("reproduce", "pfldnet2010-5", "--quiet", "--jobs", "1", "--out", out)
    assert result.exit_code == 130
    assert "finished runs are kept" in result.stderr
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 9
    assert (tmp_path / "out" / "report.html").exists()


def test_an_interrupt_while_the_report_is_made(
    tmp_path: Path, made_up: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up(Model())

    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "write", interrupted)
    result = lab("reproduce", "pfldnet2010-5", "--quiet", "--out", str(tmp_path / "out"))
    assert result.exit_code == 130
    assert "the report is not written" in result.stderr


def test_an_interrupt_before_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "execute", interrupted)
    result = lab("reproduce", "--quiet", "--out", str(tmp_path / "out"))
    assert result.exit_code == 130
    assert "before the first run" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["reproduce", "pfldnet2010-44"],
            'unknown figure "pfldnet2010-44"; the figures are pfldnet2010-4, pfldnet2010-5',
        ),
        (
            ["reproduce", "pfldnet"],
            "; several at once: pfldnet2010, globecom2005, globecom2010, infocom2011, adaptive\n",
        ),
        (["reproduce", "--jobs", "0"], "0 is not in the range x>=1"),
        (["reproduce", "--profile", "slow"], "'slow' is not one of 'paper', 'quick'"),
        (["claims"], "no results in out; make some with: tresse-lab reproduce --out out"),
        (["reproduce", "--no-such-option"], "No such option"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what_is_accepted(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = lab(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_directory_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    result = lab("reproduce", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "not the lab's" in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_failing_run_is_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise _native.RunError("the association was lost")

    monkeypatch.setattr(_native, "run", fail)
    result = lab("reproduce", "--quiet", "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "sigma" in result.stderr or "send_buffer=" in result.stderr
    assert result.stderr.endswith("the association was lost\n")
    assert result.stderr.count("\n") == 1


def test_a_cluster_that_is_not_there_is_exit_code_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(runner, "CONNECT_TIMEOUT", "200ms")
    result = lab("reproduce", "--quiet", "--dask", "tcp://127.0.0.1:1", "--out", str(tmp_path / "out"))
    assert result.exit_code == 3
    assert "no Dask scheduler at tcp://127.0.0.1:1" in result.stderr


def test_a_full_disk_is_exit_code_1(tmp_path: Path, made_up: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(Model())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tresse.store.write_atomically", full)
    result = lab("reproduce", "--quiet", "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
