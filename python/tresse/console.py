"""Output on the terminal: progress during runs, verdicts at the end.

Results go to standard output, everything else to standard error.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from tresse.claims import Finding, Row, Verdict, verdict_counts
from tresse.reproduction import Display, Progress
from tresse.tables import cell, heading

_STYLES = {
    Verdict.BETTER: "bold cyan",
    Verdict.REPRODUCED: "green",
    Verdict.WEAKER: "yellow",
    Verdict.MISSED: "bold red",
    Verdict.NOT_MEASURED: "dim",
}


def display(console: Console, quiet: bool) -> Display:
    """Return a display of progress: none if quiet, a bar on a terminal, otherwise two lines."""
    if quiet:
        return _silent
    bar = _bar if console.is_terminal else _lines

    @contextmanager
    def shown(progress: Progress) -> Iterator[Callable[[], None]]:
        with bar(console, progress) as advance:
            yield advance

    return shown


def print_claims(console: Console, rows: Sequence[Row]) -> None:
    """Print the verdict of each row; for each part the paper's number and the measured ones; at the end the counts."""
    for row in rows:
        several = len(row.parts) > 1
        title = f"{row.id}  {_shown(row.verdict)}"
        if not several:
            title += f"  paper: {row.parts[0].claim.paper}"
        console.print(title, soft_wrap=True)
        for part in row.parts:
            if several:
                heading = f"  {part.claim.part}: {_shown(part.judgement.verdict)}  paper: {part.claim.paper}"
                console.print(heading, soft_wrap=True)
            _print_finding(console, part)
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in verdict_counts(rows))
    console.print(f"{len(rows)} rows: {counts}", soft_wrap=True)


def _shown(verdict: Verdict) -> str:
    return f"[{_STYLES[verdict]}]{verdict.value}[/]"


def _print_finding(console: Console, finding: Finding) -> None:
    console.print(f"    {finding.judgement.finding}", soft_wrap=True)
    for measure in finding.judgement.measures:
        console.print(f"    {measure.text()}", style="dim", soft_wrap=True)


def print_table(console: Console, caption: str, table: pd.DataFrame) -> None:
    """Print a table in columns under its caption, without wrapping its lines."""
    rows = [[heading(str(column)) for column in table.columns]]
    rows += [[cell(value) for value in row] for row in table.itertuples(index=False)]
    numeric = [pd.api.types.is_numeric_dtype(table[column]) for column in table.columns]
    widths = [max(len(row[column]) for row in rows) for column in range(len(numeric))]
    console.print(caption, style="bold", markup=False)
    for row in rows:
        fields = [
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(row, widths, numeric, strict=True)
        ]
        console.print("  ".join(fields).rstrip(), markup=False)
    console.print()


@contextmanager
def _silent(_progress: Progress) -> Iterator[Callable[[], None]]:
    yield lambda: None


@contextmanager
def _bar(console: Console, progress: Progress) -> Iterator[Callable[[], None]]:
    columns = (
        TextColumn("[progress.description]{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("runs", total=progress.all_runs, completed=progress.kept_runs)
        yield lambda: bar.advance(task)


@contextmanager
def _lines(console: Console, progress: Progress) -> Iterator[Callable[[], None]]:
    started = time.monotonic()
    kept = f", {progress.kept_runs} of them kept from before" if progress.kept_runs else ""
    console.print(f"{progress.all_runs} runs{kept}")
    finished = 0

    def advance() -> None:
        nonlocal finished
        finished += 1

    try:
        yield advance
    finally:
        console.print(f"{finished} runs finished in {time.monotonic() - started:.0f} s")
