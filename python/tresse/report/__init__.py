"""The report: one self-contained page with figures, verdicts, and the way they were produced."""

import base64
import contextlib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tresse import reproduction, standings
from tresse.claims import NotMeasured, verdict_counts
from tresse.figures.figure import Figure
from tresse.plots import theme
from tresse.reproduction import Measured
from tresse.store import write_atomically
from tresse.tables import cell, heading


@dataclass(frozen=True)
class _Plot:
    caption: str
    svg: Markup


@dataclass(frozen=True)
class _Numbers:
    caption: str
    header: list[str]
    rows: list[list[str]]
    csv_name: str
    csv_link: str


@dataclass(frozen=True)
class _Section:
    measured: Measured
    plots: list[_Plot]
    numbers: list[_Numbers]


def render(measured: list[Measured]) -> str:
    """Return the page as HTML text."""
    environment = Environment(
        loader=PackageLoader("tresse.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rows = reproduction.all_rows(measured)
    return environment.get_template("template.html.j2").render(
        sections=[_section(figure) for figure in measured],
        rows=rows,
        comparison=_comparison(measured),
        counts=verdict_counts(rows),
        incomplete=[figure for figure in measured if figure.made.finished_runs < figure.made.all_runs],
    )


def write(measured: list[Measured], path: Path) -> None:
    """Write the page to `path` in one step."""
    write_atomically(path, render(measured).encode())


def _section(measured: Measured) -> _Section:
    figure = measured.figure
    return _Section(measured, _plots(figure, measured), _numbers(figure, measured))


# Drawings and tables that need points without a run are left out; the page marks the figure as incomplete.


def _plots(figure: Figure, measured: Measured) -> list[_Plot]:
    plots = []
    for drawing in figure.drawings:
        with contextlib.suppress(NotMeasured):
            element = theme.inline_svg(drawing.draw(measured.tables), drawing.name)
            plots.append(_Plot(drawing.caption, Markup(element)))
    return plots


def _numbers(figure: Figure, measured: Measured) -> list[_Numbers]:
    numbers = []
    for listing in figure.listings:
        with contextlib.suppress(NotMeasured):
            table = listing.make(measured.tables)
            numbers.append(_shown(table, listing.caption, f"{figure.name}-{listing.name}.csv"))
    return numbers


def _comparison(measured: list[Measured]) -> list[_Numbers]:
    """Return the comparison of our preset with the best variants, over all figures."""
    found = reproduction.standings(measured)
    if not found:
        return []
    return [
        _shown(standings.summary(found), standings.CAPTION, "cmt.csv"),
        _shown(standings.with_smallest_buffers(found), standings.SMALLEST, "cmt-smallest-buffers.csv"),
    ]


def _shown(table: pd.DataFrame, caption: str, csv_name: str) -> _Numbers:
    csv = base64.b64encode(table.to_csv(index=False).encode()).decode()
    return _Numbers(
        caption,
        [heading(str(column)) for column in table.columns],
        [[cell(value) for value in row] for row in table.itertuples(index=False)],
        csv_name,
        f"data:text/csv;base64,{csv}",
    )
