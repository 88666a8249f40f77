"""Many honest peers behind one address, as in a company or a town: all get in, and none is refused."""

from __future__ import annotations

from msgspec import structs
from tests.streams.village import STREAM, Village

from linnet.core.hello import Hello
from linnet.core.inputs import LinkUp
from linnet.core.reasons import Reason
from linnet.overlay.messages import Refusal
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.trace.records import Kind

PEERS = 200
NETWORK = "203.0.113.0/24"


class BehindOneAddress:
    """A node that sees all others come from one network, as a node outside does."""

    def __init__(self, inner: NodeMachine) -> None:
        self.inner = inner

    @property
    def hello(self) -> Hello:
        return self.inner.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        if isinstance(event, LinkUp):
            event = structs.replace(event, network=NETWORK)
        return self.inner.handle(event, now)


class Town(Village):
    def noted(self, name: str) -> NodeMachine:
        return BehindOneAddress(super().noted(name))


def test_two_hundred_peers_behind_one_address_take_part_and_none_is_refused() -> None:
    town = Town(peers=PEERS)
    names = [name for name in town.names if name[0] == "p"]
    readers = {name: town.subscribe(name) for name in names}
    town.run(30.0)
    for name in ("p0", f"p{PEERS - 1}"):
        town.publish(name, name.encode())
    town.run(20.0)
    for name, reader in readers.items():
        assert sorted(town.bodies(name, reader)) == [b"p0", f"p{PEERS - 1}".encode()], name
        assert town.missed(name, reader) == []
    refused = {Reason.TOO_MANY, Reason.TOO_MANY_LINKS, Reason.QUOTA, Reason.QUEUE_FULL, Reason.FLOODING}
    assert [record for _, record in town.notes.records if record.reason in refused] == []
    rejected = [record for _, record in town.notes.records if record.kind is Kind.REJECTED]
    assert {record.reason for record in rejected} <= {Reason.STALE}, "a status that crossed an instruction"
    heard = [message for name in names for _, message in town.heard[name]]
    assert not any(isinstance(message, Refusal) for message in heard)
    assert town.status("t0").tracked, f"{STREAM} is tracked"
