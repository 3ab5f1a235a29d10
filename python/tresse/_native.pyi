"""The simulator, as Python sees it."""

class ScenarioError(ValueError):
    """A scenario, or an override of it, that is not accepted; the text names the key and what would be."""

class RunError(RuntimeError):
    """A run that could not be finished."""

def run(scenario_toml: str, overrides: dict[str, str], seed: int, *, name: str = "scenario") -> str:
    """Run the scenario with `seed` and return the outcome document as JSON text.

    `overrides` are dotted keys and values in their text form, as `tresse sim --set` takes them; `name` is
    what errors call the scenario. Other Python threads run meanwhile.

    Raises `ScenarioError` for bad input and `RunError` when the run fails.
    """

def trace(scenario_toml: str, overrides: dict[str, str], seed: int, *, name: str = "scenario") -> str:
    """Run the scenario with `seed` and return its trace, one JSON object a line (docs/scenarios.md).

    Raises as `run`.
    """

def resolve(scenario_toml: str, overrides: dict[str, str], *, name: str = "scenario") -> str:
    """Return the scenario as TOML text with overrides applied and every default filled in."""

def switches() -> list[tuple[str, str, str, str]]:
    """Return name, default, accepted values and documentation of every association switch."""

def version() -> str:
    """Return the version of the native module."""
