"""Running tasks: once each, resumable, on threads and on a cluster."""

import json
import threading
from typing import Any

import pytest

from tresse import _native, runner, scenarios
from tresse.readings import STALL
from tresse.runner import ClusterError, Workers, run_tasks
from tresse.store import Store
from tresse.sweep import Point, Task, code_version
from tresse.tables import Tables

TASKS = [Task("text", (), seed) for seed in range(1, 21)]


class Stack:
    """A made-up stack that counts its runs and can be told to fail at one of them."""

    def __init__(self, fail_at: int = 0, error: BaseException | None = None) -> None:
        self.seeds: list[int] = []
        self._lock = threading.Lock()
        self._fail_at = fail_at
        self._error = error

    def run(self, scenario: str, overrides: dict[str, str], seed: int, *, name: str = "scenario") -> str:
        with self._lock:
            self.seeds.append(seed)
        if seed == self._fail_at and self._error:
            raise self._error
        return json.dumps({"seed": seed})


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Stack:
    made_up = Stack()
    monkeypatch.setattr(_native, "run", made_up.run)
    return made_up


def test_every_task_runs_once_and_is_kept(stack: Stack, store: Store) -> None:
    finished: list[None] = []
    run_tasks(TASKS, store, Workers(jobs=2), lambda: finished.append(None))
    assert sorted(stack.seeds) == list(range(1, 21))
    assert len(finished) == 20
    assert [store.load(task) for task in TASKS] == [{"seed": seed} for seed in range(1, 21)]


def test_a_task_named_twice_runs_once(stack: Stack, store: Store) -> None:
    run_tasks([*TASKS, *TASKS], store, Workers(jobs=2), lambda: None)
    assert sorted(stack.seeds) == list(range(1, 21))


def test_an_interrupt_keeps_what_was_finished_and_the_next_call_runs_only_the_rest(stack: Stack, store: Store) -> None:
    finished = 0

    def interrupt_at_the_fifth() -> None:
        nonlocal finished
        finished += 1
        if finished == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks(TASKS, store, Workers(jobs=1), interrupt_at_the_fifth)
    kept = {task.seed for task in TASKS if store.load(task)}
    assert len(kept) == 5

    stack.seeds.clear()
    run_tasks(TASKS, store, Workers(jobs=1), lambda: None)
    assert set(stack.seeds) == set(range(1, 21)) - kept
    assert all(store.load(task) for task in TASKS)


def test_a_failing_run_is_named_and_the_others_are_kept(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    monkeypatch.setattr(_native, "run", Stack(7, _native.RunError("the association was lost")).run)
    with pytest.raises(_native.RunError, match=r"scenario.*seed 7: the association was lost"):
        run_tasks(TASKS, store, Workers(jobs=1), lambda: None)
    assert store.load(TASKS[0]) == {"seed": 1}
    assert store.load(TASKS[6]) is None


def test_a_worker_with_other_code_is_refused() -> None:
    with pytest.raises(ClusterError, match="install the same build"):
        runner.execute(TASKS[0], "another build")


def test_an_unreachable_cluster_is_one_clear_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(runner, "CONNECT_TIMEOUT", "200ms")
    with pytest.raises(ClusterError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:1"):
        run_tasks(TASKS, store, Workers(dask="tcp://127.0.0.1:1"), lambda: None)


@pytest.mark.filterwarnings("ignore")  # of the cluster's own event loop
def test_a_local_cluster_runs_the_same_tasks(stack: Stack, store: Store) -> None:
    distributed: Any = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, scheduler_port=0
    )
    with cluster:
        run_tasks(TASKS, store, Workers(dask=cluster.scheduler_address), lambda: None)
    assert sorted(stack.seeds) == list(range(1, 21))
    assert all(store.load(task) for task in TASKS)


def test_the_code_is_checked_on_every_worker(stack: Stack) -> None:
    assert json.loads(runner.execute(TASKS[2], code_version())) == {"seed": 3}


def test_what_a_sweep_reads_off_traces_is_in_the_table_of_its_runs(store: Store) -> None:
    overrides = (("measure", "600s"), ("transport.receive_buffer", "16KiB"), ("traffic.volume", "256KiB"))
    text = scenarios.read("globecom2005/two-paths.toml")
    task, plain = (Task(text, overrides, 1, reading=reading) for reading in (STALL, ""))
    run_tasks([task, plain], store, Workers(jobs=1), lambda: None)
    outcome, without = store.load(task), store.load(plain)
    assert outcome is not None
    assert without is not None
    [row] = Tables.of([(Point({}, {}), outcome)]).runs.to_dict("records")
    assert 0 < row["stall_s"] < row["completed_s"]
    assert row["stall_window_bytes"] < 16 * 1024
    assert outcome.pop("reading") == {name: value for name, value in row.items() if str(name).startswith("stall_")}
    assert outcome == without
