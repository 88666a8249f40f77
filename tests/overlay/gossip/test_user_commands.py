"""What the user asks about an overlay without trackers, and what the node answers."""

from __future__ import annotations

import pytest
from tests.overlay.gossip.village import Village

from linnet.core.effects import AfterCommit, Reply
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.machine.outbox import Outbox
from linnet.machine.router import Router
from linnet.overlay.gossip.commands import (
    ExamineOverlay,
    ExaminePrivacy,
    ListTrust,
    SetTrust,
    TrackerlessStatus,
    Trusted,
    TrustIs,
)
from linnet.overlay.gossip.part import GossipOverlay
from linnet.peer.account import Account
from linnet.peer.interface import AnyCommand
from linnet.store.memory import MemoryStore

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)
TOPIC = TopicId(b"t" * 32)


class Asked:
    """A node's account, and its outbox."""

    def __init__(self, overlay: GossipOverlay | None = None) -> None:
        self.out = Outbox()
        self.account = Account(overlay, MemoryStore().cells, self.out)

    def ask(self, command: AnyCommand, now: float = 2.0) -> object:
        Router(self.out, (self.account,)).command(7, command, now)
        (effect,) = self.out.take()
        (reply,) = effect.effects if isinstance(effect, AfterCommit) else (effect,)
        assert isinstance(reply, Reply)
        return reply.result


def ask(village: Village, command: AnyCommand) -> object:
    return Asked(village.nodes[0]).ask(command, village.world.now)


def test_trust_is_set_listed_and_taken_back_and_stays_over_a_restart() -> None:
    village = Village(1)
    assert ask(village, ListTrust()) == TrustIs(())
    assert ask(village, SetTrust(A, 0.5)) == TrustIs((Trusted(A, 0.5),))
    assert ask(village, SetTrust(B, 1.0)) == TrustIs((Trusted(B, 1.0), Trusted(A, 0.5)))
    village.crash(0)
    village.restart(0)
    assert ask(village, ListTrust()) == TrustIs((Trusted(B, 1.0), Trusted(A, 0.5)))
    assert ask(village, SetTrust(B, None)) == TrustIs((Trusted(A, 0.5),))
    assert ask(village, SetTrust(B, None)) == Declined(Reason.UNKNOWN, "no trust was set in this device")


@pytest.mark.parametrize("value", [0.0, -1.0, 1.001, float("nan")])
def test_a_value_that_is_no_trust(value: float) -> None:
    village = Village(1)
    refused = ask(village, SetTrust(A, value))
    assert refused == Declined(Reason.NOT_ALLOWED, f"trust is above 0 and at most 1, not {value}")
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
    assert ask(village, ExaminePrivacy()) == village.nodes[0].peers.budget.report()


def test_a_node_with_trackers_alone_says_what_to_do_and_keeps_its_account() -> None:
    node = Asked()
    node.account.budget.enter_service(A, TOPIC, 1.0)
    assert node.ask(ExaminePrivacy()) == node.account.budget.report()
    for command in (SetTrust(A, 1.0), ListTrust(), ExamineOverlay()):
        declined = node.ask(command)
        assert isinstance(declined, Declined)
        assert declined.reason is Reason.UNSUPPORTED
        assert "linnet up --overlay ring" in declined.detail
