"""The command `tresse-lab`: its arguments, its exit codes, and errors of one line.

Exit codes: 0 success, 1 failure during a run, 2 wrong usage or input, 3 cluster not reachable, 4 verdicts differ from
the required ones, 130 interrupted (finished runs are kept).
"""

import json
import math
import shlex
import sys
from pathlib import Path
from typing import NoReturn

import click
import pandas as pd
from rich.console import Console

from tresse import _native, doctables, expected, report, reproduction, sensitivity, standings, traces
from tresse.claims import Row
from tresse.console import display, print_claims, print_table
from tresse.expected import Expected, ExpectedError
from tresse.figures import FIGURES, UnknownFigureError, select
from tresse.plots.sequence import draw_sequence
from tresse.profiles import PROFILES, QUICK
from tresse.reproduction import Made, Measured, OutputError
from tresse.runner import ClusterError, Workers
from tresse.sensitivity import Thoroughness
from tresse.standings import Standing
from tresse.sweep import Profile

FAILED, WRONG_INPUT, UNREACHABLE, DIFFERS, INTERRUPTED = 1, 2, 3, 4, 130

_OUT = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Directory of the results.",
)
_REQUIRE = click.option(
    "--require-claims",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Exit with 4 and list the differences unless the verdict of every row is that in FILE.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_native.version(), prog_name="tresse-lab")
def main() -> None:
    """Re-create published figures and judge their claims."""


@main.command("list")
def list_figures() -> None:
    """List the figures and the claims that they answer."""
    console = Console(highlight=False, soft_wrap=True)
    for figure in FIGURES:
        console.print(f"[bold]{figure.name}[/]  {figure.title}")
        console.print(f"  {figure.source}", style="dim")
        console.print(f"  {len(figure.sweep.points)} points of scenarios/{figure.sweep.scenario}")
        for claim in figure.claims:
            part = f" ({claim.part})" if claim.part else ""
            console.print(f"  {claim.id}{part}  {claim.statement}")


@main.command()
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--profile", type=click.Choice(sorted(PROFILES)), default=QUICK.name, show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), help="Runs at a time.  [default: all cores]")
@click.option("--dask", metavar="ADDRESS", help="Run on the Dask cluster whose scheduler is at ADDRESS.")
@_OUT
@_REQUIRE
@click.option("--quiet", is_flag=True, help="Show errors only.")
def reproduce(
    figures: tuple[str, ...],
    profile: str,
    jobs: int | None,
    dask: str | None,
    out: Path,
    require_claims: Path | None,
    quiet: bool,
) -> None:
    """Re-create FIGUREs (all when none is named) and write OUT/report.html.

    Finished runs are not run again, so an interrupted reproduction continues where it stopped.
    """
    required = _required(require_claims)
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    try:
        interrupted = _measure(figures, PROFILES[profile], Workers(jobs or -1, dask), out, command, quiet)
        measured = _conclude(out, interrupted)
    except KeyboardInterrupt:
        _fail(INTERRUPTED, f"interrupted; finished runs are kept in {out}, the report is not written")
    if not quiet:
        print_claims(Console(highlight=False), reproduction.rows_of(measured))
        click.echo(f"report: {out / 'report.html'}")
    if interrupted:
        _fail(INTERRUPTED, f"interrupted; finished runs are kept in {out}, the same command goes on from there")
    _hold_to(required, reproduction.all_rows(measured))


@main.command()
@_OUT
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@_REQUIRE
def claims(out: Path, as_json: bool, require_claims: Path | None) -> None:
    """Print the verdict of every row, with its parts, on the measurements in OUT."""
    required = _required(require_claims)
    try:
        measured = reproduction.load(out)
    except (OutputError, OSError) as error:
        _fail(WRONG_INPUT, str(error))
    rows = reproduction.all_rows(measured)
    if as_json:
        click.echo(json.dumps([row.document() for row in rows], indent=2, ensure_ascii=False))
    else:
        print_claims(Console(highlight=False), rows)
    _hold_to(required, rows)


@main.command()
@_OUT
@click.option("--points", is_flag=True, help="Print every point as well.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: every point of every figure.")
@click.option(
    "--write-docs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the tables of the pages in DIR, the docs of the repository, instead of printing.",
)
def compare(out: Path, points: bool, as_json: bool, write_docs: Path | None) -> None:
    """Compare the preset cmt with the best variant of each figure that was measured into OUT."""
    try:
        measured = reproduction.load(out)
        found = reproduction.standings(measured)
    except (OutputError, OSError) as error:
        _fail(WRONG_INPUT, str(error))
    if not found:
        _fail(WRONG_INPUT, f"no figure in {out} has runs of {standings.CMT}; make some with: tresse-lab reproduce")
    if write_docs is not None:
        _write_docs(write_docs, found, {each.figure.name: each.made for each in measured})
        return
    if as_json:
        rows = [{"figure": name, **point.row()} for name, figure in found.items() for point in figure]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    print_table(console, standings.CAPTION, standings.summary(found))
    print_table(console, standings.SMALLEST, standings.with_smallest_buffers(found))
    if points:
        for name, figure in found.items():
            print_table(console, name, pd.DataFrame([point.row() for point in figure]))


def _write_docs(docs: Path, found: dict[str, list[Standing]], made: dict[str, Made]) -> None:
    try:
        for line in doctables.write(docs, found, made):
            click.echo(line)
    except doctables.DocTableError as error:
        _fail(WRONG_INPUT, str(error))
    except OSError as error:
        _fail(FAILED, f"{error.filename or docs}: {error.strerror or error}")


@main.command("sensitivity")
@click.argument("paper", type=click.Choice(sorted(sensitivity.PAPERS)))
@click.option("--only", multiple=True, metavar="NAME", help="Only this alternative; may be repeated.")
@click.option("--profile", type=click.Choice(sorted(PROFILES)), default=QUICK.name, show_default=True)
@click.option("--runs", type=click.IntRange(min=1), help="Most runs a point.  [default: the profile's]")
@click.option("--jobs", type=click.IntRange(min=1), help="Runs at a time.  [default: all cores]")
@_OUT
@click.option("--quiet", is_flag=True, help="Show the table only.")
def show_sensitivity(
    paper: str, only: tuple[str, ...], profile: str, runs: int | None, jobs: int | None, out: Path, quiet: bool
) -> None:
    """Judge PAPER under each alternative of a setting that its text does not state; writes OUT/sensitivity-PAPER.csv.

    Every alternative takes as long as the paper's figures, with as many runs. Finished runs are kept and not run
    again. With few runs the intervals are wide, so more rows are weaker than in a reproduction, in all columns.
    """
    known = {alternative.name: alternative for alternative in sensitivity.PAPERS[paper]}
    if strange := [name for name in only if name not in known]:
        _fail(WRONG_INPUT, f'unknown alternative "{strange[0]}"; those of {paper} are {", ".join(known)}')
    chosen = [known[name] for name in only] or list(known.values())
    progress = display(Console(stderr=True, highlight=False), quiet)
    try:
        reproduction.open_directory(out)
        thoroughness = Thoroughness(PROFILES[profile], runs)
        found = sensitivity.measure(paper, chosen, thoroughness, out, Workers(jobs or -1, None), progress)
    except KeyboardInterrupt:
        _fail(INTERRUPTED, f"interrupted; finished runs are kept in {out}, the same command goes on from there")
    except (OutputError, _native.ScenarioError) as error:
        _fail(WRONG_INPUT, str(error))
    except (_native.RunError, OSError) as error:
        _fail(FAILED, str(error))
    print_table(Console(highlight=False, soft_wrap=True), f"Verdicts of {paper} by setting", found)


@main.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--from", "start", type=float, default=0.0, show_default=True, help="First second shown.")
@click.option("--to", "end", type=float, default=math.inf, help="Last second shown.  [default: the end]")
@click.option("--out", type=click.Path(path_type=Path), help="The picture, SVG or PNG.  [default: TRACE.svg]")
@click.option("--force", is_flag=True, help="Overwrite the picture if it exists.")
def timeline(trace: Path, start: float, end: float, out: Path | None, force: bool) -> None:
    """Draw a TRACE of `tresse sim --trace`: TSNs by path, windows, and what blocked."""
    picture = out or trace.with_suffix(".svg")
    if picture.suffix not in (".svg", ".png"):
        _fail(WRONG_INPUT, f"{picture}: a picture's name ends in .svg or .png")
    if picture.exists() and not force:
        _fail(WRONG_INPUT, f"{picture}: the file exists (--force overwrites it)")
    try:
        read = traces.parse(trace.read_text(encoding="utf-8"), str(trace))
        shown = read.between(start, end)
        if shown.span_s is None:
            _fail(WRONG_INPUT, f"{trace}: {_nothing(read, start, end)}")
        figure = draw_sequence(shown, f"{read.name}, seed {read.seed}")
        figure.savefig(picture, dpi=110)
    except UnicodeDecodeError:
        _fail(WRONG_INPUT, f"{trace}: is no text: a trace is what `tresse sim --trace` writes")
    except traces.TraceError as error:
        _fail(WRONG_INPUT, str(error))
    except OSError as error:
        _fail(FAILED, f"{error.filename or picture}: {error.strerror or error}")
    click.echo(f"picture: {picture}")


def _nothing(trace: traces.Trace, start: float, end: float) -> str:
    """Return the reason why there is nothing to draw, and the time span that could be drawn."""
    if trace.span_s is None:
        return "nothing happened in it"
    first, last = trace.span_s
    until = "on" if math.isinf(end) else f"to {end:g} s"
    return f"nothing happened from {start:g} s {until}; the trace covers {first:.1f} s to {last:.1f} s"


def _measure(names: tuple[str, ...], profile: Profile, workers: Workers, out: Path, command: str, quiet: bool) -> bool:
    """Run the tasks that have no outcome yet; return whether this was interrupted."""
    progress = display(Console(stderr=True, highlight=False), quiet)
    try:
        figures = select(names)
        reproduction.open_directory(out)
        reproduction.reproduce(figures, profile, out, workers, command, progress)
    except KeyboardInterrupt:
        return True
    except (UnknownFigureError, OutputError, _native.ScenarioError) as error:
        _fail(WRONG_INPUT, str(error))
    except FileNotFoundError as error:
        _fail(WRONG_INPUT, f"{out} cannot be made: {error.strerror}" if error.strerror else str(error))
    except ClusterError as error:
        _fail(UNREACHABLE, str(error))
    except (_native.RunError, OSError) as error:
        _fail(FAILED, str(error))
    return False


def _required(file: Path | None) -> dict[str, Expected] | None:
    """Return the required verdicts in `file`. Called before any run, so that errors of the file are reported early."""
    if file is None:
        return None
    try:
        return expected.load(file, [row.id for row in reproduction.all_rows([])])
    except (ExpectedError, OSError) as error:
        _fail(WRONG_INPUT, str(error))


def _hold_to(required: dict[str, Expected] | None, rows: list[Row]) -> None:
    if required is not None and (found := expected.differences(rows, required)):
        for line in found:
            click.echo(line, err=True)
        _fail(DIFFERS, f"{len(found)} of {len(rows)} verdicts are not as expected")


def _conclude(out: Path, interrupted: bool) -> list[Measured]:
    try:
        measured = reproduction.load(out)
        report.write(measured, out / "report.html")
    except OutputError:
        if interrupted:
            _fail(INTERRUPTED, "interrupted before the first run was finished")
        raise
    except OSError as error:
        _fail(FAILED, f"the report cannot be written: {error}")
    return measured


def _fail(code: int, message: str) -> NoReturn:
    click.echo(f"tresse-lab: {message}", err=True)
    sys.exit(code)
