"""Proxies that withhold, delay or lie, with real machines: what they can do, and what undoes it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.edge.coast import Coast, Hostile, Watched

from linnet.core.ids import PeerId
from linnet.core.inputs import Received
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data, Heads, Resent
from linnet.edge.commands import Sleep, Wake
from linnet.edge.config import EdgeConfig, ProxyConfig
from linnet.edge.messages import Answer, Served
from linnet.event.event import Unverified
from linnet.peer.interface import Effect, Input
from linnet.trace.records import Kind, Record

WITHHOLDS = {"data": (Data,), "data and heads": (Data, Heads), "everything": (Data, Heads, Resent)}


class Withholding(Hostile):
    """A proxy that sends a mobile some things never, and says that there is nothing to know."""

    kinds: tuple[type, ...] = ()
    lies = False

    def twist(self, peer: PeerId, message: Message, now: float) -> list[Message]:
        if isinstance(message, self.kinds):
            return []
        if self.lies and isinstance(message, Served):
            return [replace(message, answers=tuple(Answer(each.refusal, True) for each in message.answers))]
        return [message]


class Forgetful(Withholding):
    """A proxy that answers what a mobile asks, and tells it nothing by itself."""

    def handle(self, event: Input, now: float) -> list[Effect]:
        is_asked = isinstance(event, Received) and self._coast.name(event.peer).startswith("m")
        return Watched.handle(self, event, now) if is_asked else super().handle(event, now)


def turn(
    coast: Coast, name: str, kinds: tuple[type, ...], lies: bool, way: type[Withholding] = Withholding
) -> None:
    """From now on this proxy is a bad one."""
    coast.crash(name)
    bad = way(coast, name)
    bad.kinds, bad.lies = kinds, lies
    coast.begin(name, bad)


@pytest.mark.parametrize("lies", [False, True])
@pytest.mark.parametrize("kinds", WITHHOLDS.values(), ids=WITHHOLDS.keys())
def test_of_two_proxies_one_may_withhold_and_lie_and_nothing_is_lost(
    kinds: tuple[type, ...], lies: bool
) -> None:
    coast = Coast("p0", "q0", "q1", "m0", edge=EdgeConfig(at_once=2))
    turn(coast, "q0", kinds, lies)
    mine = coast.subscribe("m0", wait=15.0)
    for number in range(10):
        coast.publish("p0", f"{number}", wait=0.2)
    coast.run(31.0)
    assert coast.bodies("m0", mine) == [f"{number}" for number in range(10)]
    assert coast.missed("m0", mine) == []


def test_one_that_forgets_to_pass_on_is_noticed_by_comparing() -> None:
    """It sends neither events nor heads by itself; what it is asked for it answers."""
    coast = Coast("p0", "q0", "m0")
    turn(coast, "q0", (Data, Heads), False, Forgetful)
    mine = coast.subscribe("m0", wait=15.0)
    coast.publish("p0", "one", "two", wait=0.0)
    coast.run(31.0)
    assert coast.bodies("m0", mine) == ["one", "two"]


def test_a_proxy_can_add_nothing_under_anothers_name() -> None:
    """What it makes up is rejected by its signature, and blamed on it."""
    coast = Coast("p0", "q0", "m0")
    mine = coast.subscribe("m0", wait=3.0)
    coast.publish("p0", "true", wait=2.0)
    genuine = next(
        message for *_, message, _ in coast.heard if isinstance(message, Data) and message.unit.seq == 0
    )
    unit = genuine.unit
    forged = Unverified(unit.topic, unit.author, unit.device, 1, unit.prev, unit.tails, unit.sig)
    phone = coast.network.machine(coast.peer("m0"))
    effects = phone.handle(Received(coast.peer("q0"), Data(forged, 1, 0, 0, None)), coast.network.now)
    assert [each.reason for each in effects if isinstance(each, Record)] == [Reason.BAD_SIGNATURE]
    coast.run(2.0)
    assert coast.bodies("m0", mine) == ["true"]


@pytest.mark.parametrize("clients", [1, 3])
def test_a_proxy_keeps_no_more_than_it_allows_and_says_what_went(clients: int) -> None:
    names = [f"m{number}" for number in range(clients)]
    limits = ProxyConfig(open=True, bytes=20_000, look_period=5.0)
    coast = Coast("p0", "q0", *names, proxy=limits)
    for name in names:
        coast.subscribe(name, "a", wait=1.0)
        coast.subscribe(name, "b", wait=1.0)
    for number in range(60):
        coast.publish("p0", "x" * 500, stream="ab"[number % 2], wait=0.2)
    coast.run(30.0)
    assert all(client.kept_bytes <= 20_000 for client in coast.edge("q0").clients)
    gone = coast.records("q0", Kind.EVICTED)
    assert gone
    assert {record.reason for record in gone} == {Reason.QUOTA}


def test_what_a_client_has_taken_goes_first() -> None:
    limits = ProxyConfig(open=True, bytes=20_000, look_period=5.0)
    coast = Coast("p0", "q0", "m0", proxy=limits)
    first = coast.subscribe("m0", "read", wait=1.0)
    second = coast.subscribe("m0", "unread", wait=1.0)
    for number in range(20):
        coast.publish("p0", f"{number}" + "x" * 500, stream="read", wait=0.1)
    coast.run(40.0)  # the proxy has heard that all this has arrived
    coast.ask("m0", Sleep())
    for number in range(20):
        coast.publish("p0", f"{number}" + "x" * 500, stream="unread", wait=0.1)
    coast.run(30.0)
    coast.crash("p0")
    coast.ask("m0", Wake(), wait=20.0)
    assert len(coast.bodies("m0", first)) == 20
    assert len(coast.bodies("m0", second)) == 20
    assert coast.missed("m0", second) == []
    assert {record.topic for record in coast.records("q0", Kind.EVICTED)} == {
        next(status.topic for status in coast.status("m0").streams if status.stream == "read")
    }
