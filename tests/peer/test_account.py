"""The account of what was told, and what the user asks about it, at machines of all sorts."""

from __future__ import annotations

import pytest
from tests.edge.coast import Coast
from tests.streams.village import STREAM

from linnet.core.effects import Reply
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.machine.outbox import Outbox
from linnet.machine.router import Router
from linnet.overlay.gossip.commands import ExamineOverlay, ExaminePrivacy, ListTrust, SetTrust
from linnet.overlay.gossip.privacy_budget import BudgetIs
from linnet.peer.account import Account
from linnet.store.memory import MemoryStore

LAN = b"lan"
A = PeerId(b"a" * 32)


def test_what_a_proxy_is_asked_to_serve_is_entered_once_and_stays_over_a_crash() -> None:
    coast = Coast("p0", "q0", "m0")
    coast.subscribe("m0", wait=2.0)
    coast.publish("m0", "mine", stream="other", wait=2.0)
    told = coast.ask("m0", ExaminePrivacy())
    assert isinstance(told, BudgetIs)
    assert [(each.proxy, each.topics) for each in told.proxies] == [(coast.peer("q0"), 2)]
    coast.crash("m0")
    coast.restart("m0")
    coast.subscribe("m0", STREAM, wait=2.0)
    again = coast.ask("m0", ExaminePrivacy())
    assert again == told
    proxy = coast.ask("q0", ExaminePrivacy())
    assert isinstance(proxy, BudgetIs)
    assert proxy.proxies == ()


def test_what_was_announced_is_kept_when_the_node_goes_down() -> None:
    cells = MemoryStore().cells
    account = Account(None, cells, Outbox())
    for network, now in ((LAN, 1.0), (LAN, 1.0), (b"other", 2.0)):
        account.budget.enter_announcement(network, now)
    assert [(each.network, each.times) for each in account.budget.report().announcements] == [
        (LAN, 2),
        (b"other", 1),
    ]
    account.stop(3.0)
    assert Account(None, cells, Outbox()).budget.report() == account.budget.report()


@pytest.mark.parametrize("command", [SetTrust(A, 0.5), ListTrust(), ExamineOverlay()])
def test_a_node_that_follows_trackers_alone_declines(command: SetTrust | ListTrust | ExamineOverlay) -> None:
    out = Outbox()
    Router(out, (Account(None, MemoryStore().cells, out),)).command(7, command, 1.0)
    (reply,) = out.take()
    assert isinstance(reply, Reply)
    assert isinstance(reply.result, Declined)
    assert (reply.request, reply.result.reason) == (7, Reason.UNSUPPORTED)
    assert "linnet up --overlay ring" in reply.result.detail
