from __future__ import annotations

import pytest
from tests.overlay.trackerless.village import Village

from linnet.core.errors import Refused
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.asking import answer
from linnet.overlay.trackerless.commands import (
    ExamineOverlay,
    ExaminePrivacy,
    ListTrust,
    SetTrust,
    TrackerlessCommand,
    TrackerlessResult,
    TrustIs,
)
from linnet.overlay.trackerless.privacy import Budget
from linnet.overlay.trackerless.status import TrackerlessStatus
from linnet.store.memory import MemoryStore

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)
TOPIC = TopicId(b"t" * 32)


def ask(village: Village, command: TrackerlessCommand) -> TrackerlessResult:
    node = village.nodes[0]
    return answer(node, node.gossip.budget, command, village.world.now)


def test_trust_is_set_listed_and_taken_back_and_stays_over_a_restart() -> None:
    village = Village(1)
    assert ask(village, ListTrust()) == TrustIs(())
    assert ask(village, SetTrust(A, 0.5)) == TrustIs(((A, 0.5),))
    assert ask(village, SetTrust(B, 1.0)) == TrustIs(((B, 1.0), (A, 0.5)))
    village.crash(0)
    village.restart(0)
    assert ask(village, ListTrust()) == TrustIs(((B, 1.0), (A, 0.5)))
    assert ask(village, SetTrust(B, None)) == TrustIs(((A, 0.5),))
    with pytest.raises(Refused, match="no trust was set") as caught:
        ask(village, SetTrust(B, None))
    assert caught.value.reason is Reason.UNKNOWN


@pytest.mark.parametrize("value", [0.0, -1.0, 1.001, float("nan")])
def test_a_value_that_is_no_trust(value: float) -> None:
    village = Village(1)
    with pytest.raises(Refused, match="above 0 and at most 1"):
        ask(village, SetTrust(A, value))
    assert ask(village, ListTrust()) == TrustIs(())


def test_how_it_stands_and_what_was_told() -> None:
    village = Village(3)
    village.start()
    village.join(0, TOPIC)
    village.join(1, TOPIC)
    village.run(150.0)
    status = ask(village, ExamineOverlay())
    assert isinstance(status, TrackerlessStatus)
    assert (status.rounds > 10, len(status.sample), [ring.topic for ring in status.rings]) == (
        True,
        2,
        [TOPIC],
    )
    assert status.rings[0].neighbors == (village.peers[1],)
    assert ask(village, ExaminePrivacy()) == village.nodes[0].gossip.budget.told()


def test_a_node_with_trackers_alone_says_what_to_do_and_keeps_its_account() -> None:
    budget = Budget(MemoryStore().cells)
    budget.served(A, TOPIC, 1.0)
    assert answer(None, budget, ExaminePrivacy(), 2.0) == budget.told()
    for command in (SetTrust(A, 1.0), ListTrust(), ExamineOverlay()):
        with pytest.raises(Refused, match="linnet up --overlay ring") as caught:
            answer(None, budget, command, 2.0)
        assert caught.value.reason is Reason.UNSUPPORTED
