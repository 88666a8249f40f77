from __future__ import annotations

from random import Random

import pytest

from linnet.core.ids import PeerId
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.sim.attacks.sampling import brahms, cyclon, jelasity, shipped
from linnet.sim.baselines.brahms import BrahmsConfig
from linnet.sim.baselines.gossip import Entry, Way, fresh
from linnet.sim.baselines.view_exchange import JelasityConfig

PEERS = [PeerId(Random(number).randbytes(32)) for number in range(40)]
WAYS = {
    "shipped": shipped(TrackerlessConfig()),
    "cyclon": cyclon(),
    "jelasity": jelasity(JelasityConfig(healing=5, swapping=5)),
    "brahms": brahms(BrahmsConfig()),
}


def test_fresh_entries_have_no_age() -> None:
    assert fresh(PEERS[:2]) == (Entry(PEERS[0], 0), Entry(PEERS[1], 0))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_every_way_keeps_the_form_that_it_declares(way: Way) -> None:
    node = way.make(PEERS[0], PEERS[1:21], [], Random(1))
    other = way.make(PEERS[1], PEERS[2:22], [], Random(2))
    asks = node.begin()
    assert asks
    for ask in asks:
        assert len(ask.entries) <= way.sent
        answer = other.asked(PEERS[0], ask.entries)
        assert len(answer) <= way.answer
        if ask.is_answered:
            assert answer
            node.answered(ask.peer, answer)
        node.unanswered(ask.peer)
    node.end()
    assert 0 < len(node.view) <= 20
    assert PEERS[0] not in node.view
