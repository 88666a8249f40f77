"""Rendezvous that disagree find each other.

Lookups may disagree too, after a partition or where nodes know few others. So a rendezvous claims its
attribute at the closest nodes that its lookup found; two that claim the same one are likely to meet at some
of these. Whoever hears a claim and knows somebody closer says so; the farther one subscribes there as any
other node, and sends on the events that came to it lately. The closer one is told who came before it.
"""

from __future__ import annotations

from linnet.content.config import ContentConfig
from linnet.content.directory import Directory
from linnet.content.keys import attribute_key, distance
from linnet.content.messages import Before, Claim, Closer
from linnet.content.reach import Reach
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record


class Claims:
    """Who claims what, as far as this node heard."""

    def __init__(self, config: ContentConfig, directory: Directory, reach: Reach, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._directory = directory
        self._reach = reach
        self._claims: dict[str, Contact] = {}
        self._older: dict[str, Contact] = {}
        """Those of the period before."""

    def claim(self, attribute: str, found: tuple[Contact, ...]) -> None:
        """Tell the closest that a lookup found that this node is the rendezvous of an attribute."""
        for contact in found[: self._config.claims]:
            self._reach.send(contact, Claim(attribute))

    def handle_claim(self, peer: PeerId, attribute: str) -> None:
        """Tell a peer that claims an attribute who is closer, or else who claimed it before."""
        key = attribute_key(attribute)
        claimant = self._reach.contact(peer)
        before = self.claimant(attribute)
        known = [*self._directory.closest(key, 1), *([] if before is None else [before])]
        closest = min(known, key=lambda contact: distance(contact.peer, key), default=claimant)
        if distance(closest.peer, key) < distance(peer, key):
            self._reach.answer(peer, Closer(attribute, closest))
            return
        if before is None and len(self._claims) >= self._config.routes:
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.TOO_MANY, note="Claim"))
            return
        self._claims[attribute] = claimant
        if before is None or before.peer == peer:
            return
        self._reach.send(before, Closer(attribute, claimant))
        self._reach.answer(peer, Before(attribute, before))

    def claimant(self, attribute: str) -> Contact | None:
        """Who claimed an attribute last, as far as this node heard."""
        return self._claims.get(attribute) or self._older.get(attribute)

    def begin_period(self) -> None:
        """Begin to forget claims: who still is a rendezvous will say so again."""
        self._older, self._claims = self._claims, {}
