"""Every figure that the lab can re-create, by name."""

from collections.abc import Sequence

from tresse.figures.adaptive import changing, combinations, comparison, urgent
from tresse.figures.figure import Figure
from tresse.figures.globecom2005 import figure2 as globecom2005_2
from tresse.figures.globecom2005 import figure3 as globecom2005_3
from tresse.figures.globecom2005 import figure4 as globecom2005_4
from tresse.figures.globecom2005 import figure5 as globecom2005_5
from tresse.figures.globecom2010 import figure4 as globecom2010_4
from tresse.figures.globecom2010 import figure5 as globecom2010_5
from tresse.figures.globecom2010 import figure6 as globecom2010_6
from tresse.figures.globecom2010 import ordered as globecom2010_ordered
from tresse.figures.infocom2011 import figure9 as infocom2011_9
from tresse.figures.infocom2011 import figure10 as infocom2011_10
from tresse.figures.pfldnet2010 import figure4 as pfldnet2010_4
from tresse.figures.pfldnet2010 import figure5 as pfldnet2010_5
from tresse.figures.pfldnet2010 import figure6 as pfldnet2010_6
from tresse.figures.pfldnet2010 import figure7 as pfldnet2010_7

FIGURES: tuple[Figure, ...] = (
    pfldnet2010_4.FIGURE,
    pfldnet2010_5.FIGURE,
    pfldnet2010_6.FIGURE,
    pfldnet2010_7.FIGURE,
    globecom2005_2.FIGURE,
    globecom2005_3.FIGURE,
    globecom2005_4.FIGURE,
    globecom2005_5.FIGURE,
    globecom2010_4.FIGURE,
    globecom2010_5.FIGURE,
    globecom2010_6.FIGURE,
    globecom2010_ordered.FIGURE_7,
    globecom2010_ordered.FIGURE_8,
    infocom2011_9.FIGURE,
    infocom2011_10.FIGURE,
    *comparison.FIGURES,
    urgent.FIGURE,
    changing.FIGURE,
    *combinations.FIGURES,
)


class UnknownFigureError(ValueError):
    """There is no figure of this name."""


def select(names: Sequence[str]) -> list[Figure]:
    """Return the figures of these names, in the order of the list; a paper's name selects all of its figures.

    Without names, all figures are selected. Raises `UnknownFigureError`, which lists the names.
    """
    for name in names:
        if not any(_matches(figure, name) for figure in FIGURES):
            known = ", ".join(figure.name for figure in FIGURES)
            papers = ", ".join(dict.fromkeys(_paper(figure) for figure in FIGURES))
            raise UnknownFigureError(f'unknown figure "{name}"; the figures are {known}; several at once: {papers}')
    return [figure for figure in FIGURES if not names or any(_matches(figure, name) for name in names)]


def _matches(figure: Figure, name: str) -> bool:
    return name in (figure.name, _paper(figure))


def _paper(figure: Figure) -> str:
    """Return the name that selects all figures of the figure's paper."""
    return figure.name.rpartition("-")[0]
