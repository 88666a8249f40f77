"""Two or three nodes that do what a test tells them."""

from __future__ import annotations

from collections.abc import Callable

from tests.machines import Scripted

from linnet.core.effects import (
    Dial,
    Reply,
)
from linnet.core.ids import Contact
from linnet.core.inputs import (
    Asked,
    Received,
)
from linnet.machine.commands import Done
from linnet.peer.interface import Connect, Effect, Examine, Input
from linnet.peer.messages import Ping
from linnet.sim.clock import START
from linnet.sim.links import LinkModel
from linnet.sim.network import Network
from linnet.testing.networks import RowTrace, connect, named_peer, steady_links

A, B, C = named_peer("a"), named_peer("b"), named_peer("c")
Script = Callable[[Input, float], list[Effect]]


def obeying(script: Script | None = None) -> Scripted:
    """A machine that dials when asked to connect, and beside that does what its script says."""

    def answer(event: Input, now: float) -> list[Effect]:
        match event:
            case Asked(request, Connect(Contact(peer, hints))):
                return [Dial(peer, hints, False), Reply(request, Done())]
            case _:
                return [] if script is None else script(event, now)

    return Scripted(answer)


def apart(
    a: Scripted, b: Scripted, links: LinkModel | None = None, trace: RowTrace | None = None, seed: int = 1
) -> Network:
    """Two nodes that have no link yet, ten milliseconds apart unless it is said otherwise."""
    network = Network(seed, links or steady_links(10), trace)
    network.add(A, a)
    network.add(B, b)
    return network


def pair(links: LinkModel, a: Scripted, b: Scripted, trace: RowTrace | None = None) -> Network:
    """Two nodes with a link, A having dialled, and nothing else under way."""
    network = apart(a, b, links, trace)
    connect(network, [(A, B)])
    a.inputs.clear()
    b.inputs.clear()
    return network


def on_examine(*effects: Effect) -> Script:
    """Return these effects when asked to examine."""

    def script(event: Input, now: float) -> list[Effect]:
        match event:
            case Asked(_, Examine()):
                return list(effects)
            case _:
                return []

    return script


def received(machine: Scripted) -> list[int]:
    return [
        event.message.number
        for _, event in machine.inputs
        if isinstance(event, Received) and isinstance(event.message, Ping)
    ]


def moments(machine: Scripted) -> list[tuple[float, Input]]:
    """What happened, with milliseconds since the start."""
    return [(round((now - START) * 1000, 3), event) for now, event in machine.inputs]
