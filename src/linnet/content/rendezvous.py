"""Finds the rendezvous of an attribute: a node closer to its key, or this node.

Each step of a walk goes to a node that is strictly closer to the key, so a walk ends. Where a node knows of
nobody closer, the published system makes it the rendezvous; with gaps in what nodes know there are several at
once, and events miss subscriptions. Here it first looks all over the network (`Locate`); it acts as
rendezvous only if nobody closer answered, and for a limited time. Two rendezvous of one attribute find each
other by their claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from enum import Enum
from typing import Final

from linnet.content.attribute_keys import Directory, Locate, Located, attribute_key, distance
from linnet.content.config import ContentConfig
from linnet.content.filter_table import FilterTable
from linnet.content.messages import Before, Claim, Closer
from linnet.content.routes import Reach
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.overlay.kademlia.routing_table import NodeId
from linnet.trace.records import Kind, Record

_CANDIDATES = 8
_UNNEEDED = (Reason.NOT_NEEDED, Reason.DUPLICATE_LINK)
"""Reasons for closing a link that are no fault: the link is dialled again if it is needed after all."""
_SHUNNED = (Reason.FLOODING, Reason.FORGING, Reason.REPLAYING, Reason.BLOCKED)
"""Reasons for which a peer wants nothing of us for a while."""


class Verdict(Enum):
    """The state of a rendezvous that is not known to be another node."""

    OURS = "ours"
    PENDING = "pending"
    """A lookup is under way."""


OURS: Final = Verdict.OURS
PENDING: Final = Verdict.PENDING


class Suspects:
    """Peers that are not chosen for now: they did not answer, want nothing of us, or were named falsely."""

    def __init__(self, config: ContentConfig) -> None:
        self._config = config
        self._avoided: dict[PeerId, float] = {}
        self._shuns_us: dict[PeerId, float] = {}
        self._absent: dict[PeerId, None] = {}
        """The avoided peers that take no part in content."""
        self._named_by: dict[PeerId, PeerId] = {}
        """Nodes that were named as closer, and the peers that named them."""
        self._unheeded: dict[PeerId, float] = {}

    def __contains__(self, peer: PeerId) -> bool:
        """Return whether a peer did not answer last time."""
        return peer in self._avoided

    def avoid(self, peer: PeerId, now: float) -> None:
        """Do not choose this peer for a while, since it did not answer; distrust the peer that named it."""
        self._note(self._avoided, peer, now + self._config.avoided)
        sender = self._named_by.pop(peer, None)
        if sender is not None:
            self._note(self._unheeded, sender, now + self._config.refresh)

    def forgive(self, peer: PeerId) -> None:
        """Clear a peer that turned out to be reachable."""
        self._named_by.pop(peer, None)
        self._avoided.pop(peer, None)
        self._absent.pop(peer, None)

    def handle_link_down(self, peer: PeerId, reason: Reason, now: float) -> None:
        """Avoid a peer whose link is down or did not come up.

        A peer that cuts us off does so at each dial: that a link to it opens proves nothing then.
        """
        if reason not in _UNNEEDED:
            self.avoid(peer, now)
        if reason is Reason.UNSUPPORTED and peer in self._avoided:
            self._absent[peer] = None
        if reason in _SHUNNED:
            self._note(self._shuns_us, peer, now + self._config.avoided)

    def is_avoided(self, peer: PeerId, now: float) -> bool:
        """Return whether a peer is not chosen for now."""
        return max(self._avoided.get(peer, 0.0), self._shuns_us.get(peer, 0.0)) > now

    def unreached(self, now: float) -> list[PeerId]:
        """Return the peers that take part, as far as we know, and cannot be reached."""
        return [peer for peer, until in self._avoided.items() if until > now and peer not in self._absent]

    def heeds(self, sender: PeerId, now: float) -> bool:
        """Return whether a peer may name closer nodes: not if one that it named recently was out of reach."""
        return self._unheeded.get(sender, 0.0) <= now

    def note_named(self, peer: PeerId, sender: PeerId) -> None:
        """Note the peer that named another one, until that one is reached or fails."""
        if sender != peer and len(self._named_by) < self._config.routes:
            self._named_by[peer] = sender

    def _note(self, noted: dict[PeerId, float], peer: PeerId, until: float) -> None:
        """Note a peer until a time; of too many, the one that was noted longest ago is forgotten."""
        noted.pop(peer, None)
        noted[peer] = until
        if len(noted) > self._config.routes:
            oldest = next(iter(noted))
            del noted[oldest]
            if noted is self._avoided:
                self._absent.pop(oldest, None)

    def tidy(self, now: float) -> None:
        """Forget what has expired."""
        self._unheeded = {peer: until for peer, until in self._unheeded.items() if until > now}
        self._avoided = {peer: until for peer, until in self._avoided.items() if until > now}
        self._shuns_us = {peer: until for peer, until in self._shuns_us.items() if until > now}
        self._absent = {peer: None for peer in self._absent if peer in self._avoided}


class Elections:
    """Chooses the next hop towards each rendezvous."""

    def __init__(self, ours: PeerId, config: ContentConfig, directory: Directory, out: Outbox) -> None:
        self._ours = ours
        self._out = out
        self._config = config
        self._directory = directory
        self._confirmed: dict[str, float] = {}
        """Attributes that this node is the rendezvous of, and until when that is confirmed."""
        self._better: dict[str, Contact] = {}
        """Closer nodes that lookups found and the directory may not know."""
        self.suspects = Suspects(config)
        self._pending: dict[NodeId, str] = {}
        self._lost: dict[str, None] = {}
        """Attributes for which a lookup found nobody, though other nodes are known."""
        self.left: list[str] = []
        """Attributes whose rendezvous turned out to be another node; the caller clears the list."""

    def decide(self, attribute: str, now: float) -> Contact | Verdict:
        """Return the next hop towards a rendezvous; `OURS` if it is this node, `PENDING` during a lookup."""
        key = attribute_key(attribute)
        known = self._directory.closest(key, _CANDIDATES)
        if attribute in self._better:
            known.append(self._better[attribute])
        closer = self._closer(key, known, now)
        if closer is not None:
            if self._resign(attribute):
                self.left.append(attribute)
            return closer
        if not self._config.confirm or now < self._confirmed.get(attribute, 0.0):
            self._confirmed.setdefault(attribute, now)
            return OURS
        self.look_up(attribute)
        return PENDING

    def handle_nodes_found(self, found: Located, now: float) -> str | None:
        """Learn the result of a lookup; return the attribute that can be decided now."""
        attribute = self._pending.pop(found.key, None)
        if attribute is None:
            return None
        # A node that answered a lookup is there, whatever became of a link to it.
        for contact in found.contacts:
            self.suspects.forgive(contact.peer)
        is_lost = not found.contacts and bool(self.suspects.unreached(now))
        self._lost.pop(attribute, None)
        closer = self._closer(found.key, found.contacts, now)
        if closer is None:
            if is_lost:
                self._lost[attribute] = None
            self._better.pop(attribute, None)
            self._confirmed[attribute] = now + self._config.confirmed
        else:
            self._prefer(attribute, closer)
            if self._resign(attribute):
                self.left.append(attribute)
        return attribute

    def _resign(self, attribute: str) -> bool:
        """Be the rendezvous of an attribute no longer; return whether this node was."""
        self._lost.pop(attribute, None)
        return self._confirmed.pop(attribute, None) is not None

    def _prefer(self, attribute: str, closer: Contact) -> None:
        self._better.pop(attribute, None)
        self._better[attribute] = closer
        if len(self._better) > self._config.routes:  # a lookup will find it again
            del self._better[next(iter(self._better))]

    def take_surplus(self, routes: Callable[[str], Sized]) -> list[str]:
        """Forget attributes without routes here if there are too many; return them.

        Anyone can publish under attributes that nobody has used before. An event under a forgotten one has
        this node look again.
        """
        if len(self._confirmed) <= 2 * self._config.routes:
            return []
        surplus = [name for name in self._confirmed if not len(routes(name))]
        surplus = surplus[: len(self._confirmed) - self._config.routes]
        for name in surplus:
            self._resign(name)
        return surplus

    def look_up(self, attribute: str) -> None:
        """Look all over the network again; until that ends, earlier decisions count."""
        key = attribute_key(attribute)
        if key not in self._pending:
            self._pending[key] = attribute
            self._out.notify(Locate(key))

    def lost_sight(self, attribute: str, now: float) -> bool:
        """Return whether a node closer to an attribute cannot be reached: it was there, and may come back."""
        return any(self.is_closer(peer, attribute) for peer in self.suspects.unreached(now))

    def is_lost(self, attribute: str) -> bool:
        """Return whether this node is the rendezvous only because it reaches no node that it knows."""
        return attribute in self._lost and attribute in self._confirmed

    def yield_to(self, attribute: str, contact: Contact, now: float, sender: PeerId | None = None) -> bool:
        """Yield to a node that is said to be closer to an attribute of which this node is the rendezvous.

        Return whether it is closer. Anybody can make up an id that is closer: a peer that named a node that
        cannot be reached is ignored for a period, so a rendezvous is led astray once, and comes back.
        """
        closer = self._closer(attribute_key(attribute), (contact,), now)
        if closer is None or attribute not in self._confirmed:
            return False
        if sender is not None:
            if not self.suspects.heeds(sender, now):
                return False
            self.suspects.note_named(contact.peer, sender)
        self._resign(attribute)
        self._prefer(attribute, closer)
        return True

    def is_closer(self, peer: PeerId, attribute: str) -> bool:
        """Return whether a peer is closer to the rendezvous of an attribute than this node."""
        key = attribute_key(attribute)
        return distance(peer, key) < distance(self._ours, key)

    @property
    def held(self) -> list[str]:
        """The attributes that this node is the rendezvous of, as far as it knows."""
        return list(self._confirmed)

    def tidy(self, now: float) -> None:
        """Forget what has expired."""
        self.suspects.tidy(now)
        self._better = {name: each for name, each in self._better.items() if each.peer not in self.suspects}

    def _closer(self, key: NodeId, contacts: Iterable[Contact], now: float) -> Contact | None:
        """Return the closest of these contacts if it is closer than this node."""
        closest, nearest = None, distance(self._ours, key)
        for contact in contacts:
            if self.suspects.is_avoided(contact.peer, now):
                continue
            how_far = distance(contact.peer, key)
            if how_far < nearest:
                closest, nearest = contact, how_far
        return closest


class Claims:
    """The claims to be a rendezvous that this node heard: by them rendezvous that disagree find each other.

    Lookups may disagree too, after a partition or where nodes know few others. So a rendezvous claims its
    attribute at the closest nodes that its lookup found; two that claim the same one are likely to meet at
    some of these. A node that hears a claim and knows a closer node says so; the farther rendezvous
    subscribes there like any other node, and sends on its recent events. The closer one is told its
    predecessor.
    """

    def __init__(self, config: ContentConfig, directory: Directory, reach: Reach, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._directory = directory
        self._reach = reach
        self._claims: dict[str, Contact] = {}
        self._older: dict[str, Contact] = {}
        """Claims of the period before."""

    def claim(self, attribute: str, found: tuple[Contact, ...]) -> None:
        """Claim an attribute at the closest nodes that a lookup found."""
        for contact in found[: self._config.claims]:
            self._reach.send(contact, Claim(attribute))

    def handle_claim(self, peer: PeerId, attribute: str) -> None:
        """Tell a claiming peer of a closer node, or else of an earlier claimant."""
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
        """Return the node that claimed an attribute last, as far as this node heard."""
        return self._claims.get(attribute) or self._older.get(attribute)

    def begin_period(self) -> None:
        """Begin to forget claims: nodes that still are a rendezvous will claim again."""
        self._older, self._claims = self._claims, {}


class LookDue(Timer, frozen=True, gc=False):
    """A rendezvous is due to look again for a node closer to its attribute."""

    attribute: str


class Doubts:
    """Makes this node look again for closer nodes where it may not be the only rendezvous of an attribute.

    It looks again if a closer node is gone, or a keeper of its filters. A lost node may come back without its
    memory, and so may all others at once: then nobody knows of this node and its subscriptions, and nobody
    will tell it. So it looks by itself: soon, and then at least as often as events are kept for returning
    routes, so that it is sent what it missed. The nodes that its lookup asks know of it again.
    """

    def __init__(self, config: ContentConfig, elections: Elections, table: FilterTable, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._elections = elections
        self._table = table
        self._looks: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def begin(self, attribute: str, now: float) -> None:
        """Look again for a period, since a closer node is lost, or no other node answered."""
        self._begin(attribute, now + self._config.refresh)

    def handle_keeper_loss(self, attribute: str, now: float) -> None:
        """Look again for a while, since a keeper of the filters that we hold as rendezvous is lost."""
        self._begin(attribute, now + 2 * self._config.avoided)

    def _begin(self, attribute: str, until: float) -> None:
        is_new = attribute not in self._until
        if is_new and len(self._until) >= 2 * self._config.routes:
            note = f"no second look for {attribute}"
            self._out.record(Record(Kind.CONTROL, reason=Reason.TOO_MANY, note=note))
            return
        self._until[attribute] = max(until, self._until.get(attribute, until))
        if not is_new:
            return
        self._looks[attribute] = 0
        self._set_timer(attribute)

    def look_again(self, timer: LookDue, now: float) -> None:
        """Look again, unless another node is the rendezvous now, or nobody here would benefit."""
        attribute = timer.attribute
        if not self._is_open(attribute) or now >= self._until[attribute]:
            del self._until[attribute], self._looks[attribute]
            return
        self._looks[attribute] += 1
        self._elections.look_up(attribute)
        self._set_timer(attribute)

    def _is_open(self, attribute: str) -> bool:
        """Return whether subscriptions here may miss events, or events here may miss subscriptions."""
        is_asked = attribute in self._table.attributes and attribute in self._elections.held
        return is_asked or self._elections.is_lost(attribute)

    def _set_timer(self, attribute: str) -> None:
        most = self._config.lately or self._config.confirmed
        wait = min(most, self._config.resend * 2 ** min(16, self._looks[attribute]))
        self._out.set_timer(wait, LookDue(attribute))
