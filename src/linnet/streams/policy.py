"""Who may publish in a stream: what its owner signed, enforced by every node."""

from __future__ import annotations

import msgspec
from msgspec.structs import astuple

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.event.event import Event, Tail, Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit
from linnet.streams.commands import Policy

POLICY = "policy"
"""The kind of an event that sets a stream's policy; its body is a `Policy`."""

_POLICIES = "policy"
_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Policy)


class Governance:
    """The owner's word on one stream. A stream without an owner is open."""

    def __init__(self, topic: TopicId, owner: AuthorId | None, cells: Cells) -> None:
        self._topic = topic
        self._cells = cells
        self.owner = owner
        self.policy = Policy()
        self.unit: Unverified | None = None
        """The unit that carries the policy, to be shown to those who come later."""
        self._at: tuple[int, int] = (-1, -1)
        self._allowed: dict[AuthorId, None] | None = None if owner is None else {owner: None}
        kept = None if owner is None else cells.get(_POLICIES, topic)
        if kept is not None:
            self.read(recall_unit(decode_unit(kept)))

    def admit(self, author: AuthorId) -> None:
        """Raise `InvalidEvent` unless this author may publish.

        As long as no policy is known, only the owner may.
        """
        if self._allowed is not None and author not in self._allowed:
            raise InvalidEvent(Reason.NOT_A_PUBLISHER, "the stream's owner does not list this author")

    def read(self, verified: Verified) -> bool:
        """Take in a policy, if the unit holds one of the owner's that is newer; whether it did."""
        if self.owner is None or verified.unit.author != self.owner:
            return False
        news = False
        for event in verified.events:
            if event.kind == POLICY:
                news = self._take(event, verified.unit) or news
        return news

    def tail(self, policy: Policy, time: int) -> Tail:
        """The tail of an event that sets a policy."""
        # Versions before sealed streams read a policy that says nothing of them.
        fields = astuple(policy)
        body = _encode(fields[:-1] if policy.sealer is None else fields)
        return Tail(None, None, None, None, POLICY, "", time, None, body)

    def _take(self, event: Event, unit: Unverified) -> bool:
        # Later by the owner's own clock; the sequence number breaks ties of one device.
        at = (event.time, event.seq or 0)
        if at <= self._at:
            return False
        try:
            policy = _decoder.decode(event.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        self._at = at
        self.policy = policy
        self.unit = unit
        if policy.publishers is None:
            self._allowed = None
        else:
            self._allowed = {AuthorId(author): None for author in (event.author, *policy.publishers)}
        self._cells.put(_POLICIES, self._topic, encode_unit(unit))
        return True
