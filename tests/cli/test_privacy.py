from __future__ import annotations

from math import exp

import pytest
from tests.cli.shell import Linnet

from linnet.cli.privacy import lines, odds_text, rows, sure_text
from linnet.core.ids import PeerId, TopicId
from linnet.node.control_views import device_text
from linnet.node.overlay_views import privacy_view
from linnet.overlay.trackerless.privacy import Budget
from linnet.store.memory import MemoryStore

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)


def test_a_node_that_told_nothing_says_so_and_any_node_can_be_asked(running: Linnet) -> None:
    assert running.ok("privacy").splitlines() == [
        "filters: none was released; nobody could tell from one what you are interested in",
        "intersections: none; nobody could test topics against yours",
        "local networks: this node did not show itself on any",
        "proxies: none serves this node",
        "addresses: nobody was told where you may be dialled, nor where others may",
        "members: whoever is in a topic with you knows so; that is not counted here",
    ]
    assert running.json("privacy")["epsilon"] == 0


def test_all_that_was_told_in_plain_words() -> None:
    budget = Budget(MemoryStore().cells)
    budget.released(2952, 3.0, 1_800_000_000.0)
    first = lines(privacy_view(budget.told()))
    assert "1 randomised filter of your topics" in first[0]
    assert "odds of at most 20 to 1 whether you are in it (if it was even before: 95.3 % sure)" in first[1]
    assert "learns nothing of it" in first[2]
    assert "answers to searches" not in first[0]
    budget.answered(2952, 3.0, 1_800_000_100.0)
    answered = lines(privacy_view(budget.told()))
    assert "and answers to searches, which are as noisy" in answered[0]
    assert (
        "odds of at most 403 to 1 whether you are in it (if it was even before: 99.8 % sure)" in answered[1]
    )
    budget.released(2953, 3.0, 1_800_604_800.0)
    budget.intersected(A, 5, 2, 30.0, tested=16)
    budget.intersected(B, 20, 0, 31.0, tested=64)
    budget.announced(b"n", 40.0)
    budget.served(B, TopicId(b"t" * 32), 50.0)
    budget.located(A, True, 60.0)
    budget.located(A, False, 61.0)
    budget.located(B, True, 62.0)
    view = privacy_view(budget.told())
    said = "\n".join(lines(view))
    assert "2 randomised filters" in said
    assert "2 devices in a topic with you learned where you may be dialled, and 1 device where others" in said
    assert [(each.peer, each.own, each.others) for each in view.addresses] == [
        (device_text(A), 1, 1),
        (device_text(B), 1, 0),
    ]
    assert "epsilon 9 in all" in said
    assert "at most 8,103 to 1 (if it was even before: all but certain)" in said
    assert "2 private intersections with 2 peers" in said
    assert "none could ask about more than 64 topics" in said
    assert "shown on 1 network, 1 time: that a node is there, and no topic" in said
    assert f"{device_text(B)} knows your address and 1 topic that it serves you" in said
    assert [row[0] for row in rows(view)] == [device_text(B), device_text(A)]
    assert "more than one" not in said
    budget.released(2953, 3.0, 1_800_604_801.0)
    assert "1 week saw more than one, which should not be" in "\n".join(lines(privacy_view(budget.told())))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0, 6.0])
def test_a_promise_is_never_too_good(epsilon: float) -> None:
    said = sure_text(epsilon)
    assert float(said.removesuffix(" % sure")) / 100 >= 1 / (1 + exp(-epsilon))


def test_what_is_certain_is_called_so() -> None:
    assert sure_text(10.0) == "all but certain"
    assert odds_text(exp(30.0)) == "a million to 1 and more"
