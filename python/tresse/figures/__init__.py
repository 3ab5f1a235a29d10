"""Every figure that the lab can re-create, by name."""

from collections.abc import Sequence

from tresse.figures.figure import Figure
from tresse.figures.pfldnet2010 import figure4, figure5

FIGURES: tuple[Figure, ...] = (figure4.FIGURE, figure5.FIGURE)


class UnknownFigureError(ValueError):
    """A name that no figure has."""


def select(names: Sequence[str]) -> list[Figure]:
    """The figures of these names, in the order of the list; a paper's name stands for all of its figures.

    No name at all selects every figure. Raises `UnknownFigureError` that lists the names.
    """
    for name in names:
        if not any(_matches(figure, name) for figure in FIGURES):
            known = ", ".join(figure.name for figure in FIGURES)
            raise UnknownFigureError(f'unknown figure "{name}"; the figures are {known}')
    return [figure for figure in FIGURES if not names or any(_matches(figure, name) for name in names)]


def _matches(figure: Figure, name: str) -> bool:
    return name in (figure.name, figure.name.rpartition("-")[0])
