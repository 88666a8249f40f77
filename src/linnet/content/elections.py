"""Who is the rendezvous of an attribute: somebody closer to its key, or this node.

Each step of a walk goes to a node that is strictly closer to the key, so a walk ends. Where a node knows of
nobody closer, the published system makes it the rendezvous; with gaps in what nodes know there are several at
once, and events miss subscriptions. Here it first looks all over the network (`Locate`); it acts as
rendezvous only if nobody closer answered, and for a limited time.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from linnet.content.config import ContentConfig
from linnet.content.directory import Directory, Locate, Located
from linnet.content.keys import attribute_key, distance
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.overlay.kademlia.ids import NodeId

_CANDIDATES = 8
_UNNEEDED = (Reason.NOT_NEEDED, Reason.DUPLICATE_LINK)
"""Why links close without anything being wrong: if we need one after all, it is dialled again."""
_SHUNNED = (Reason.FLOODING, Reason.FORGING, Reason.REPLAYING, Reason.BLOCKED)
"""Why a peer wants nothing of us for a while."""


class Verdict(Enum):
    """What is known of a rendezvous if it is not known to be another node."""

    OURS = "ours"
    PENDING = "pending"
    """A lookup is under way."""


OURS: Final = Verdict.OURS
PENDING: Final = Verdict.PENDING


class Elections:
    """The next hop towards each rendezvous."""

    def __init__(self, ours: PeerId, config: ContentConfig, directory: Directory, out: Outbox) -> None:
        self._ours = ours
        self._out = out
        self._config = config
        self._directory = directory
        self._confirmed: dict[str, float] = {}
        """Attributes of which we are the rendezvous, and when that was last confirmed."""
        self._better: dict[str, Contact] = {}
        """What a lookup found that the directory may not know."""
        self._avoided: dict[PeerId, float] = {}
        self._shuns_us: dict[PeerId, float] = {}
        self._absent: dict[PeerId, None] = {}
        """Those of the avoided who take no part in content."""
        self._pending: dict[NodeId, str] = {}
        self._lost: dict[str, None] = {}
        """Attributes for which a lookup found nobody, though others are known."""
        self._named_by: dict[PeerId, PeerId] = {}
        """Nodes that were said to be closer, and by whom."""
        self._unheeded: dict[PeerId, float] = {}
        self.left: list[str] = []
        """Attributes of which another is the rendezvous now, as it turned out; for whoever clears this."""

    def decide(self, attribute: str, now: float) -> Contact | Verdict:
        """The next hop towards a rendezvous, or ours if that is this node, or that it is being looked up."""
        key = attribute_key(attribute)
        known = self._directory.closest(key, _CANDIDATES)
        if attribute in self._better:
            known.append(self._better[attribute])
        closer = self._closer(key, known, now)
        if closer is not None:
            if self._confirmed.pop(attribute, None) is not None:
                self.left.append(attribute)
            return closer
        if not self._config.confirm or now < self._confirmed.get(attribute, 0.0):
            self._confirmed.setdefault(attribute, now)
            return OURS
        self.look_up(attribute)
        return PENDING

    def handle_nodes_found(self, found: Located, now: float) -> str | None:
        """Learn what a lookup found; the attribute that can be decided now."""
        attribute = self._pending.pop(found.key, None)
        if attribute is None:
            return None
        # Who answered a lookup is there, whatever became of a link to it.
        for contact in found.contacts:
            self.forgive(contact.peer)
        is_lost = not found.contacts and bool(self._unreached(now))
        self._lost.pop(attribute, None)
        closer = self._closer(found.key, found.contacts, now)
        if closer is None:
            if is_lost:
                self._lost[attribute] = None
            self._better.pop(attribute, None)
            self._confirmed[attribute] = now + self._config.confirmed
        else:
            self._better[attribute] = closer
            if self._confirmed.pop(attribute, None) is not None:
                self.left.append(attribute)
        return attribute

    def look_up(self, attribute: str) -> None:
        """Look all over the network again; until that ends, what was decided counts."""
        key = attribute_key(attribute)
        if key not in self._pending:
            self._pending[key] = attribute
            self._out.notify(Locate(key))

    def lost_sight(self, attribute: str, now: float) -> bool:
        """Whether somebody closer to an attribute cannot be reached: it was there, and may be again."""
        return any(self.is_closer(peer, attribute) for peer in self._unreached(now))

    def _unreached(self, now: float) -> list[PeerId]:
        """Who takes part, as far as we know, and cannot be reached."""
        return [peer for peer, until in self._avoided.items() if until > now and peer not in self._absent]

    def is_lost(self, attribute: str) -> bool:
        """Whether this node is the rendezvous since it reaches none of those whom it knows."""
        return attribute in self._lost and attribute in self._confirmed

    def yield_to(self, attribute: str, contact: Contact, now: float, sender: PeerId | None = None) -> bool:
        """Yield to a node that is said to be closer to what we are rendezvous of; whether it is so.

        Anybody can make up an id that is closer. Who named one that cannot be reached is not heeded for a
        period, so a rendezvous is led astray once, and comes back.
        """
        closer = self._closer(attribute_key(attribute), (contact,), now)
        if closer is None or attribute not in self._confirmed:
            return False
        if sender is not None and self._unheeded.get(sender, 0.0) > now:
            return False
        if sender is not None and sender != contact.peer and len(self._named_by) < self._config.routes:
            self._named_by[contact.peer] = sender
        del self._confirmed[attribute]
        self._better[attribute] = closer
        return True

    def avoid(self, peer: PeerId, now: float) -> None:
        """Do not choose this peer for a while: it did not answer."""
        self._avoided[peer] = now + self._config.avoided
        sender = self._named_by.pop(peer, None)
        if sender is not None:
            self._unheeded[sender] = now + self._config.refresh

    def handle_link_down(self, peer: PeerId, reason: Reason, now: float) -> None:
        """A link is down, or none came up.

        Who cut us off does so at each dial: that a link opens is no proof then.
        """
        if reason not in _UNNEEDED:
            self.avoid(peer, now)
        if reason is Reason.UNSUPPORTED:
            self._absent[peer] = None
        if reason in _SHUNNED:
            self._shuns_us[peer] = now + self._config.avoided

    def is_avoided(self, peer: PeerId, now: float) -> bool:
        """Whether a peer is not chosen for now."""
        return max(self._avoided.get(peer, 0.0), self._shuns_us.get(peer, 0.0)) > now

    def forgive(self, peer: PeerId) -> None:
        """It is there after all."""
        self._named_by.pop(peer, None)
        self._avoided.pop(peer, None)
        self._absent.pop(peer, None)

    def is_closer(self, peer: PeerId, attribute: str) -> bool:
        """Whether a peer is closer to the rendezvous of an attribute than this node."""
        key = attribute_key(attribute)
        return distance(peer, key) < distance(self._ours, key)

    @property
    def held(self) -> list[str]:
        """The attributes of which this node has acted as rendezvous, as far as it knows still."""
        return list(self._confirmed)

    def tidy(self, now: float) -> None:
        """Forget what no longer counts."""
        self._unheeded = {peer: until for peer, until in self._unheeded.items() if until > now}
        self._avoided = {peer: until for peer, until in self._avoided.items() if until > now}
        self._shuns_us = {peer: until for peer, until in self._shuns_us.items() if until > now}
        self._absent = {peer: None for peer in self._absent if peer in self._avoided}
        self._better = {name: each for name, each in self._better.items() if each.peer not in self._avoided}

    def _closer(self, key: NodeId, contacts: Iterable[Contact], now: float) -> Contact | None:
        """The closest of these that is closer than this node."""
        closest, nearest = None, distance(self._ours, key)
        for contact in contacts:
            if self.is_avoided(contact.peer, now):
                continue
            how_far = distance(contact.peer, key)
            if how_far < nearest:
                closest, nearest = contact, how_far
        return closest
