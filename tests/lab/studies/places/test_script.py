"""The script of the large log follows from a seed alone, and has every sort of message."""

from __future__ import annotations

from collections import Counter

from linnet.lab.studies.places import script
from linnet.places.channel.membership import Membership, Verdict
from linnet.places.deed import Policy
from linnet.store.memory import MemoryStore


def test_the_script_is_the_same_every_time_and_mixed_as_it_says() -> None:
    acts = list(script.acts(1, 2, 4000))
    assert acts == list(script.acts(1, 2, 4000))
    assert acts != list(script.acts(1, 3, 4000))
    assert acts[:100] == list(script.acts(1, 2, 100))
    kinds = Counter(act.kind for act in acts)
    assert set(kinds) == {
        script.ASSIGN, script.COUNT, script.RESET, script.NOTICE, script.LONG, script.PLAIN,
    }  # fmt: skip
    assert 0.2 < kinds[script.ASSIGN] / 4000 < 0.28
    assert 0 < kinds[script.RESET] / 4000 < 0.01
    assert acts[0].kind == script.ASSIGN


def test_guests_of_the_script_come_and_go() -> None:
    said = script.spoken(1, 2, 400)
    membership = Membership(said[0][0].unit.topic, MemoryStore().cells, Policy.PUBLIC)
    changes = [head for _, head in said if head.change is not None]
    for head in changes:
        assert head.change is not None
        membership.store(head.change, head.message, head.generation)
    first, second = changes[0], changes[1]
    assert first.change is not None
    assert second.change is not None
    assert (first.change.joins, second.change.joins) == (True, False)
    assert first.change.nym == second.change.nym == script.nym_of(0)
    assert membership.known_generation == len(changes) // 2
    assert membership.test(script.nym_of(0), first.message, 0) is Verdict.NO
