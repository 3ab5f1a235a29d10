"""Tables with measured numbers in the documentation, written between markers by `tresse-lab compare --write-docs`.

Tables on several pages come from the same reproduction. The text around the tables is written by hand and does not
repeat their numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tresse.figures import FIGURES
from tresse.figures.globecom2005.transfers import VOLUME_MBIT
from tresse.reproduction import Made
from tresse.standings import AIM, Standing, summary

Found = Mapping[str, list[Standing]]
"""Comparison of the preset with the best variants at the points of each measured figure."""

END = "<!-- end of what tresse-lab writes -->"


@dataclass(frozen=True, slots=True)
class DocTable:
    """A table: its page, the figures whose numbers it has, and the function that creates its lines."""

    page: str
    name: str
    figures: tuple[str, ...]
    lines: Callable[[Found], list[str]]

    @property
    def begin(self) -> str:
        """Marker before the table."""
        return f"<!-- {self.name}: written by tresse-lab compare --write-docs -->"


class DocTableError(ValueError):
    """A page does not have the markers of its tables."""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(header), _row(["---"] * len(header)), *map(_row, rows)]


def share(point: Standing) -> str:
    """Return the preset's throughput divided by the best variant's, in the format of all tables."""
    return f"{point.share:.3f}"


FIGURE_HEADER = ("figure", "points", f"below {100 * AIM:.0f} %", "least `cmt` / best", "at", "best variant there")
POINT_HEADER = ("paths, buffers", "bound", "better variant", "Mbit/s", "`cmt`", "`cmt` / better")
LOSS_HEADER = ("loss of path 2", "best variant", "s", "`cmt`, s", "less by")
LOSS_BY_DELAY_HEADER = ("loss of path 2", "one-way delay", "RTX-SSTHRESH, s", "`cmt`, s", "less by")
SHORT_KIB = 16
"""The receive buffer of the table by delay."""
UNLIKE_HEADER = ("path 2", "bound", "best variant", "Mbit/s", "`cmt`", "`cmt` / best")
BELOW_HEADER = ("figure", "point", "best variant", "`cmt` / best")


def _figures(found: Found) -> list[str]:
    rows = summary(dict(found)).itertuples(index=False, name=None)
    shown = [[f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    return _table(FIGURE_HEADER, shown)


def _below(found: Found) -> list[str]:
    rows = [
        (name, point.where, point.best, share(point))
        for name, points in found.items()
        for point in points
        if point.share < AIM
    ]
    return _table(BELOW_HEADER, rows)


def _throughputs(point: Standing) -> tuple[str, ...]:
    """Return the cells of a point: the bound, the best variant, its throughput, that of the preset, and their ratio."""
    best, ours = f"{point.best_mbps:.1f}", f"{point.cmt_mbps:.1f}"
    return f"{point.bound_mbps:.1f}", point.best, best, ours, share(point)


def _unlike_delays(found: Found) -> list[str]:
    [points] = found.values()
    rows = [(point.where, *_throughputs(point)) for point in points if not point.where.startswith("10/10 ms")]
    return _table(POINT_HEADER, rows)


def _unlike_paths(found: Found) -> list[str]:
    [points] = found.values()
    rows = [(point.where.removeprefix("path 2: "), *_throughputs(point)) for point in points]
    return _table(UNLIKE_HEADER, rows)


def _times(point: Standing) -> tuple[str, ...]:
    """Return the cells of a transfer: its time with the best variant and with the preset, and the part saved."""
    best, ours = VOLUME_MBIT / point.best_mbps, VOLUME_MBIT / point.cmt_mbps
    return f"{best:.1f}", f"{ours:.1f}", f"{100 * (1 - ours / best):.0f} %"


def _losses(found: Found) -> list[str]:
    [points] = found.values()
    return _table(LOSS_HEADER, [(_labels(point)[0], point.best, *_times(point)) for point in points])


def _losses_by_delay(found: Found) -> list[str]:
    [points] = found.values()
    rows = [(*_labels(point), *_times(point)) for point in points if point.buffer_kib == SHORT_KIB]
    return _table(LOSS_BY_DELAY_HEADER, rows)


def _labels(point: Standing) -> list[str]:
    """Return the loss of path 2 and the delay, as the point says them."""
    return point.where.removeprefix("path 2 loses ").split(", ")[:2]


_COMPARED = tuple(figure.name for figure in FIGURES if figure.standings is not None)
TABLES = (
    DocTable("verdicts.md", "the preset beside the best variants", _COMPARED, _figures),
    DocTable("verdicts.md", "points below the aim", _COMPARED, _below),
    DocTable("small-buffers.md", "streams over unlike delays", ("pfldnet2010-4",), _unlike_delays),
    DocTable("small-buffers.md", "losses with 16 KiB", ("globecom2005-3",), _losses),
    DocTable("small-buffers.md", "losses with 16 KiB by delay", ("globecom2005-5",), _losses_by_delay),
    DocTable("small-buffers.md", "ordered data over unlike paths", ("globecom2010-7",), _unlike_paths),
)


def text(table: DocTable, found: Found, made: Mapping[str, Made]) -> list[str]:
    """Return the text between the markers of `table`: date and profile of the measurement, and the table."""
    mine = {name: found[name] for name in table.figures}
    profiles = dict.fromkeys(made[name].profile for name in table.figures)
    days = sorted({made[name].when[:10] for name in table.figures})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return [f"Measured on {when}: {'; '.join(profiles)}.", "", *table.lines(mine)]


def write(docs: Path, found: Found, made: Mapping[str, Made]) -> list[str]:
    """Rewrite the tables in `docs` whose figures are all measured; return one line of report for each table.

    Raises `DocTableError` if a page does not have the markers; then nothing is written.
    """
    pages: dict[Path, str] = {}
    told = []
    for table in TABLES:
        page = docs / table.page
        missing = [name for name in table.figures if name not in found]
        if missing:
            told.append(f"{page}: {table.name}: left as it is: {', '.join(missing)} not measured")
            continue
        before = pages.get(page) or page.read_text(encoding="utf-8")
        head, rest = _split(before, table.begin, page)
        _, tail = _split(rest, END, page)
        inside = "\n".join(text(table, found, made))
        pages[page] = f"{head}{table.begin}\n\n{inside}\n\n{END}{tail}"
        told.append(f"{page}: {table.name}: written")
    for page, content in pages.items():
        page.write_text(content, encoding="utf-8")
    return told


def read(page: str, table: DocTable) -> list[str]:
    """Return the lines between the markers of `table` in the text of a page, without empty ones."""
    _, rest = _split(page, table.begin, Path(table.page))
    inside, _ = _split(rest, END, Path(table.page))
    return [line for line in inside.splitlines() if line]


def _split(page: str, marker: str, path: Path) -> tuple[str, str]:
    if page.count(marker) == 0:
        raise DocTableError(f"{path}: has no line {marker}")
    head, _, tail = page.partition(marker)
    return head, tail
