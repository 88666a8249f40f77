from __future__ import annotations

from random import Random

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.peer_sampling import MOST_PULLS
from linnet.sim.attacks.sampling import Directory, Shipped
from linnet.sim.baselines.gossip import Ask, fresh

PEERS = [PeerId(Random(number).randbytes(32)) for number in range(30)]
CONFIG = TrackerlessConfig(view=6, answer=6)


def node(trusted: list[PeerId] | None = None) -> Shipped:
    return Shipped(PEERS[0], PEERS[1:7], trusted or [], Random(1), CONFIG, Directory())


def test_it_is_a_node_that_pulls_and_says_who_it_is() -> None:
    made = node()
    assert set(made.view) == set(PEERS[1:7])
    (ask,) = made.begin()
    assert ask == Ask(ask.peer, fresh([PEERS[0]]), is_answered=True)
    answer = made.asked(PEERS[9], fresh([PEERS[9]]))
    assert answer[0].peer == PEERS[0]
    assert {entry.peer for entry in answer[1:]} <= set(made.view)
    made.end()
    assert PEERS[9] in made.view, "it introduced itself"


def test_refused_pulls_are_counted_by_their_reason() -> None:
    made = node()
    for _ in range(MOST_PULLS + 2):
        made.asked(PEERS[9], fresh([PEERS[9]]))
    assert made.asked(PEERS[9], fresh([PEERS[10]])) == ()
    assert made.refused == {Reason.FLOODING: 2, Reason.NOT_ALLOWED: 1}
    made.end()
    assert made.asked(PEERS[9], fresh([PEERS[9]])) != ()


def test_the_trusted_are_asked_and_the_dead_are_dropped() -> None:
    made = node([PEERS[20]])
    assert made.trusted == (PEERS[20],)
    assert PEERS[20] in {ask.peer for _ in range(50) for ask in made.begin()}
    made.unanswered(PEERS[1])
    made.unanswered(PEERS[1])
    assert PEERS[1] not in made.view
    made.answered(PEERS[2], fresh([PEERS[2], PEERS[8]]))
    assert len(made.view) <= 6


def test_a_directory_gives_one_descriptor_for_each() -> None:
    directory = Directory()
    assert directory[PEERS[3]] is directory[PEERS[3]]
    assert directory[PEERS[3]].peer == PEERS[3]
