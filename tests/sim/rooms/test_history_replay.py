"""Concurrent histories through rooms."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import msgspec
import pytest

from linnet.core.errors import BadText
from linnet.sim.rooms.history_replay import History, HistoryReport, Step, check_history, read_history, replay


def drawn_history(seed: int, agents: int, steps: int) -> History:
    """Authors who see each other's steps late, and merge what they see."""
    luck = Random(seed)
    seen: list[set[int]] = [set() for _ in range(agents)]
    parents: list[tuple[int, ...]] = []
    made: list[Step] = []
    for number in range(steps):
        agent = luck.randrange(agents)
        if made and luck.random() < 0.5:
            seen[agent] |= seen[made[luck.randrange(number)].agent]
        covered = {parent for each in seen[agent] for parent in parents[each]}
        heads = tuple(sorted(seen[agent] - covered))
        parents.append(heads)
        seen[agent].add(number)
        made.append(Step(heads, agent, ((0, 0, str(number)),)))
    return History(agents, tuple(made))


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_arrival_gives_one_state_and_one_causal_order(seed: int) -> None:
    history = drawn_history(seed, agents=3, steps=120)
    report = replay(history, replicas=4, seed=seed)
    assert report.agrees
    assert report.merges > 5
    assert report.waited > 100
    assert report == replay(history, replicas=4, seed=seed)


def test_what_does_not_agree_is_said() -> None:
    fine = HistoryReport(10, 1, 2, 2, 5, 0, 0, 1, 1, 0)
    assert fine.agrees
    for wrong in ("waiting", "rejected", "distinct_states", "distinct_orders", "causal_violations"):
        assert not msgspec.structs.replace(fine, **{wrong: 2}).agrees


def test_a_file_is_read_packed_or_not(tmp_path: Path) -> None:
    raw = b'{"numAgents": 1, "kind": "concurrent", "txns": [{"parents": [], "agent": 0, "time": "x"}]}'
    (tmp_path / "plain.json").write_bytes(raw)
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(raw))
    plain = read_history(tmp_path / "plain.json")
    assert plain == read_history(tmp_path / "packed.json.gz") == History(1, (Step((), 0),))


@pytest.mark.parametrize(
    "history",
    [History(1, ()), History(1, (Step((), 1),)), History(1, (Step((0,), 0),)), History(1, (Step((-1,), 0),))],
    ids=["empty", "author out of range", "follows itself", "follows nothing"],
)
def test_what_is_no_history_is_said(history: History) -> None:
    with pytest.raises(BadText):
        check_history(history)


def test_a_file_that_is_no_history_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    with pytest.raises(BadText, match="no concurrent history"):
        read_history(path)
