"""A program adds a protocol to a node: by one description, and to its own node alone."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from linnet.api.field_docs import field_docs
from linnet.api.operations import offered_by
from linnet.core.effects import Reply, Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import Asked, LinkUp, Received
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.machine.commands import Command, Declined, Done
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_message
from linnet.machine.protocol import FIRST_FREE_TAG, Offer, Protocol, Vocabulary
from linnet.peer.config import PeerConfig, Surroundings
from linnet.peer.messages import PROTOCOLS, SHIPPED, STANDARD, Ping, vocabulary_with
from linnet.peer.peer import Peer
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record
from linnet.wire.codec import UnknownMessage

THERE = PeerId(b"\x07" * 32)
NOW = 1e9


class Hail(Message, frozen=True, tag=FIRST_FREE_TAG):
    """Somebody says a word."""

    word: str


class SayWord(Command[Done], frozen=True):
    """Say a word to a peer."""

    peer: PeerId
    """Who hears it."""


class Echo(Part):
    """Says every word back."""

    def __init__(self, around: Surroundings) -> None:
        self._out: Outbox = around.out

    @on_message(Hail)
    def echo(self, peer: PeerId, message: Hail, now: float) -> None:
        self._out.send(peer, message)

    @on_command(SayWord)
    def say(self, request: int, command: SayWord, now: float) -> None:
        self._out.send(command.peer, Hail("first"))
        self._out.reply(request, Done())


ECHO = Protocol("echo", (Hail,), make=Echo, offers=(Offer("POST", "/v1/echo", SayWord),))


def peer(*protocols: Protocol[Surroundings]) -> Peer:
    config = PeerConfig(protocols=protocols)
    return Peer(config, known_identity("us"), MemoryStore(), Random(1))


def linked(*protocols: Protocol[Surroundings], spoken: dict[str, int]) -> Peer:
    made = peer(*protocols)
    made.handle(LinkUp(THERE, Hello(WIRE_VERSION, WIRE_VERSION, spoken), True, None), NOW)
    return made


def test_an_added_part_hears_its_messages_and_commands() -> None:
    made = linked(ECHO, spoken={**PROTOCOLS, "echo": 1})
    assert made.hello.protocols["echo"] == 1
    assert made.handle(Received(THERE, Hail("rain")), NOW) == [Send(THERE, Hail("rain"))]
    assert made.handle(Asked(1, SayWord(THERE)), NOW) == [Send(THERE, Hail("first")), Reply(1, Done())]


def test_nothing_is_said_to_a_peer_that_lacks_it() -> None:
    made = linked(ECHO, spoken=PROTOCOLS)
    note = "Hail: the peer does not speak this protocol"
    dropped = Record(Kind.DROPPED, peer=THERE, reason=Reason.UNSUPPORTED, note=note)
    assert made.handle(Asked(1, SayWord(THERE)), NOW) == [dropped, Reply(1, Done())]


def test_a_node_without_it_declines_its_commands() -> None:
    made = linked(spoken=PROTOCOLS)
    assert "echo" not in made.hello.protocols
    declined = Declined(Reason.UNSUPPORTED, "no part of this node carries out SayWord")
    assert made.handle(Asked(1, SayWord(THERE)), NOW) == [Reply(1, declined)]


def test_its_messages_are_known_to_its_own_node_alone() -> None:
    with_echo = vocabulary_with((ECHO,))
    raw = with_echo.encode(Hail("rain"))
    assert with_echo.decode(raw) == Hail("rain")
    assert with_echo.decode(with_echo.encode(Ping(1))) == Ping(1)
    with pytest.raises(UnknownMessage):
        STANDARD.decode(raw)


class Twin(Message, frozen=True, tag=1):
    """It has the tag of `Ping`."""


@pytest.mark.parametrize(
    "wrong", [Protocol[Any]("link", ()), Protocol[Any]("twin", (Twin,))], ids=["name", "tag"]
)
def test_a_name_or_a_tag_that_is_taken_is_refused(wrong: Protocol[Any]) -> None:
    with pytest.raises(ValueError, match="two protocols"):
        Vocabulary((*SHIPPED, wrong))


def test_shipped_tags_leave_room_for_those_that_are_added() -> None:
    assert max(kind.__struct_config__.tag for kind in STANDARD.protocol_of) < FIRST_FREE_TAG  # type: ignore[attr-defined] # of a struct


def test_its_operations_stand_beside_those_that_ship() -> None:
    [operation] = offered_by([ECHO])
    assert (operation.name, operation.path, operation.summary) == (
        "say_word",
        "/v1/echo",
        "Say a word to a peer.",
    )


def test_its_fields_are_described_by_their_docstrings() -> None:
    assert field_docs(SayWord) == {"peer": "Who hears it."}


def test_an_operation_that_is_taken_is_refused() -> None:
    taken = Offer("POST", "/v1/publish", SayWord)
    with pytest.raises(ValueError, match="two operations"):
        offered_by([Protocol[Any]("echo", (), offers=(taken,))])
