"""Execution of tasks on all cores, or on a Dask cluster; each outcome is stored as soon as its run ends.

The native call releases the interpreter lock, so threads use all cores of this machine; a cluster gets the same
function. The calling process stores the outcomes, so workers need no shared disk.
"""

import contextlib
import json
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed, parallel_config

from tresse import _native, traces
from tresse.readings import READINGS
from tresse.store import Store
from tresse.sweep import Task, code_version

CONNECT_TIMEOUT = "10s"
"""Longest time for an answer of the Dask scheduler."""


class ClusterError(RuntimeError):
    """The Dask cluster cannot be reached, lacks the package, or runs another version of the code."""


@dataclass(frozen=True)
class Workers:
    """Workers that run tasks: `jobs` threads here (-1: all cores), or the cluster at `dask`."""

    jobs: int = -1
    dask: str | None = None


def execute(task: Task, code: str) -> str:
    """Run one task and return its outcome as JSON text; refuse to if the version of the code is not `code`."""
    if code_version() != code:
        raise ClusterError(f"a worker runs tresse {code_version()}, this is {code}; install the same build")
    outcome = _native.run(task.scenario, dict(task.overrides), task.seed, name=task.name)
    if not task.reading:
        return outcome
    trace = traces.parse(_native.trace(task.scenario, dict(task.overrides), task.seed, name=task.name), task.name)
    return json.dumps({**json.loads(outcome), "reading": READINGS[task.reading](trace)})


def run_tasks(
    tasks: Sequence[Task],
    store: Store,
    workers: Workers,
    on_finished: Callable[[], None],
) -> None:
    """Run every task without an outcome in the store; `on_finished` is called after each.

    If it raises (an interrupt, a failing run), all outcomes reported until then are in the store.
    """
    code = code_version()
    pending = [task for task in dict.fromkeys(tasks) if store.load(task) is None]
    with _backend(workers):
        # Results are stored one by one as runs end; batches would only delay storing them.
        parallel = Parallel(n_jobs=workers.jobs, return_as="generator_unordered", batch_size=1)
        outcomes: Generator[Any, None, None] = parallel(delayed(_labelled)(task, code) for task in pending)
        try:
            for task, outcome in outcomes:
                store.keep(task, outcome)
                on_finished()
        finally:
            _close(outcomes)


def _close(outcomes: Generator[Any, None, None]) -> None:
    """End the workers. The caller knows that unfinished runs are lost, so there is no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        outcomes.close()


def _labelled(task: Task, code: str) -> tuple[Task, dict[str, Any]]:
    # Outcomes arrive in the order in which runs end, so each is returned with its task.
    try:
        return task, json.loads(execute(task, code))
    except _native.RunError as error:
        settings = " ".join(f"{key}={value}" for key, value in task.overrides)
        raise _native.RunError(f"{task.name} with {settings}, seed {task.seed}: {error}") from error


@contextlib.contextmanager
def _backend(workers: Workers) -> Iterator[None]:
    if workers.dask is None:
        with parallel_config(backend="threading"):
            yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError('--dask needs the extra "dask": pip install "tresse[dask]"') from None
    try:
        client: AbstractContextManager[Any] = Client(workers.dask, timeout=CONNECT_TIMEOUT)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"no Dask scheduler at {workers.dask}: {error}") from None
    with client, parallel_config(backend="dask", wait_for_workers_timeout=10):
        yield
