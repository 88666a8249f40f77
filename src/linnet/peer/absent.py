"""What becomes of messages and commands of parts that a node does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, get_args

from linnet.content.commands import ContentCommand
from linnet.content.fast.commands import FastCommand
from linnet.content.fast.messages import FastMessage
from linnet.content.messages import ContentMessage
from linnet.core.ids import PeerId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.machine.outbox import Outbox
from linnet.overlay.kademlia.messages import KademliaMessage
from linnet.overlay.messages import TrackerMessage
from linnet.overlay.trackerless.messages import TrackerlessMessage
from linnet.overlay.trackerless.trackerless import rejected_of_proxy
from linnet.peer.parts import Parts
from linnet.trace.records import Kind, Record

Reject: TypeAlias = Callable[[PeerId, Message], None]


class Absent:
    """Which messages and commands nobody hears here, and what is said to that."""

    def __init__(self, parts: Parts) -> None:
        self._out: Outbox = parts.out
        self._is_proxy = parts.edge.is_ours
        self.messages: dict[type, Reject] = {}
        self.commands: dict[type, str] = {}
        """With why they are declined."""
        if parts.content is None:
            self._leave_out((ContentMessage, FastMessage), self._reject_content)
            commands = {*members(ContentCommand), *members(FastCommand)} - {Consumed, Unsubscribe}
            self.commands = dict.fromkeys(commands, parts.content_refusal)
        if parts.kademlia is None:
            self._leave_out((KademliaMessage,), self._reject_kademlia)
        if parts.tracker is None:
            self._leave_out((TrackerMessage,), self._ignore_join)
        if parts.trackerless is None:
            self._leave_out((TrackerlessMessage,), self._ignore_gossip)

    def _leave_out(self, unions: tuple[Any, ...], reject: Reject) -> None:
        self.messages.update((kind, reject) for union in unions for kind in members(union))

    def _reject_content(self, peer: PeerId, message: Message) -> None:
        self._reject(peer, message, "this node does not take part in content")

    def _reject_kademlia(self, peer: PeerId, message: Message) -> None:
        self._reject(peer, message, "this node takes no part in the hash table")

    def _ignore_join(self, peer: PeerId, message: Message) -> None:
        """A node that is no tracker is asked for neighbours by who has not heard that it is none any more."""

    def _ignore_gossip(self, peer: PeerId, message: Message) -> None:
        """Others may gossip; from a proxy it is out of place."""
        if self._is_proxy(peer):
            self._out.record(rejected_of_proxy(peer, message))

    def _reject(self, peer: PeerId, message: Message, why: str) -> None:
        note = f"{type(message).__name__}: {why}"
        self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.UNSUPPORTED, note=note))


def members(union: Any) -> Iterator[type]:  # noqa: ANN401 (a union has no type of its own)
    """The types of a union, of unions in it as well."""
    for kind in get_args(union) or (union,):
        if isinstance(kind, type):
            yield kind
        else:
            yield from members(kind)
