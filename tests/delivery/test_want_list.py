"""A want list that asks each source once, and for so many items at the same time.

Rounds, known holders and pages are tested with the events of a topic (`test_event_recovery`).
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.effects import CancelTimer, SetTimer
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.want_list import Batch, GivenUp, WantConfig, WantList
from linnet.machine.outbox import Outbox

P, Q, R = (PeerId(bytes([letter]) * 32) for letter in b"pqr")
ONCE = WantConfig(timeout=5.0, tries=None, batch=2, in_flight=3)


class Due(Timer, frozen=True):
    """The one timer of a list."""


def wanting(*items: int, config: WantConfig = ONCE) -> tuple[WantList[int], Outbox]:
    out = Outbox()
    wants: WantList[int] = WantList(config, Due(), out)
    for item in items:
        wants.want(item, None, 0.0, wanted=True)
    return wants, out


def test_what_exceeds_the_number_in_flight_waits_until_another_ends() -> None:
    wants, _ = wanting(1, 2, 3, 4, 5)
    assert wants.take_due(0.0, [P]) == ([], [Batch(P, 1, (1, 2)), Batch(P, 2, (3,))])
    assert wants.take_due(0.0, [P]) == ([], [])
    wants.remove(2)
    assert wants.take_due(0.1, [P]) == ([], [Batch(P, 3, (4,))])
    wants.remove(5)
    wants.remove(4)
    assert wants.take_due(0.2, [P]) == ([], []), "what waited was removed"
    assert len(wants) == 2


def test_one_that_is_given_up_makes_room_for_one_that_waits() -> None:
    wants, _ = wanting(1, 2, 3, 4)
    wants.take_due(0.0, [P])
    wants.handle_refusal(P, (1,), 0.1)
    assert wants.take_due(0.1, [P]) == ([GivenUp(1, P, 1, Reason.NOT_HELD)], [Batch(P, 3, (4,))])


def test_the_reason_tells_whether_a_source_was_silent() -> None:
    wants, _ = wanting(1)
    wants.take_due(0.0, [P, Q])
    wants.handle_refusal(P, (1,), 0.1)
    wants.take_due(0.1, [P, Q])
    assert wants.take_due(5.1, [P, Q]) == ([GivenUp(1, Q, 2, Reason.TIMEOUT)], [])
    assert 1 not in wants


def test_without_a_source_nothing_takes_a_place() -> None:
    wants, _ = wanting(*range(10))
    given_up, batches = wants.take_due(0.0, [])
    assert ([each.item for each in given_up], batches, len(wants)) == (list(range(10)), [], 0)


def test_it_has_one_timer_for_all() -> None:
    wants, out = wanting(1)
    wants.take_due(0.0, [P])
    wants.arm(0.0)
    wants.want(2, None, 1.0, wanted=True)
    wants.take_due(1.0, [P])
    wants.arm(1.0)
    assert out.take() == [SetTimer(5.0, Due())], "the earlier one will see to both"
    wants.handle_timer()
    wants.take_due(5.0, [])
    wants.arm(5.0)
    assert out.take() == [SetTimer(1.0, Due())]
    wants.stop()
    assert out.take() == [CancelTimer(Due())]
    assert len(wants) == 0


ACTS = st.sampled_from(("arrive", "refuse", "lose", "wait"))


@given(st.lists(st.tuples(ACTS, st.integers(0, 11), st.sampled_from([P, Q, R])), max_size=80))
def test_each_source_is_asked_once_and_everything_ends(acts: list[tuple[str, int, PeerId]]) -> None:
    wants, _ = wanting(*range(12))
    sources = [P, Q, R]
    asked: list[tuple[int, PeerId]] = []
    pending: dict[int, PeerId] = {}
    ended: list[int] = []
    now = 0.0

    def ask() -> None:
        given_up, batches = wants.take_due(now, sources)
        for each in given_up:
            pending.pop(each.item, None)
            ended.append(each.item)
        for batch in batches:
            assert len(batch.items) <= 2
            for item in batch.items:
                pending[item] = batch.peer
                asked.append((item, batch.peer))
        assert len(pending) <= 3

    ask()
    for act, item, peer in acts:
        if act == "arrive" and item in wants:
            wants.remove(item)
            pending.pop(item, None)
            ended.append(item)
        elif act == "refuse":
            wants.handle_refusal(peer, (item,), now)
        elif act == "lose" and peer in sources:
            sources.remove(peer)
            wants.handle_source_down(peer, now)
        elif act == "wait":
            now += 5.0
        ask()
    for _ in range(50):
        now += 5.0
        ask()
    assert sorted(ended) == list(range(12))
    assert len(asked) == len(set(asked))
    assert len(wants) == 0
