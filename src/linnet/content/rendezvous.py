"""Who is the rendezvous of an attribute: somebody closer to its key, or this node.

Each step of a walk goes to a node that is strictly closer to the key, so a walk ends. Where a node knows of
nobody closer, the published system makes it the rendezvous; with gaps in what nodes know there are several at
once, and events miss subscriptions. Here it first looks all over the network (`Locate`); it acts as
rendezvous only if nobody closer answered, and for a limited time. Two that both act as one find each other
by their claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from linnet.content.attribute_keys import Directory, Locate, Located, attribute_key, distance
from linnet.content.config import ContentConfig
from linnet.content.filter_table import FilterTable
from linnet.content.messages import Before, Claim, Closer
from linnet.content.reach import Reach
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.overlay.kademlia.ids import NodeId
from linnet.trace.records import Kind, Record

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


class Claims:
    """Who claims what, as far as this node heard: so rendezvous that disagree find each other.

    Lookups may disagree too, after a partition or where nodes know few others. So a rendezvous claims its
    attribute at the closest nodes that its lookup found; two that claim the same one are likely to meet at
    some of these. Whoever hears a claim and knows somebody closer says so; the farther one subscribes there
    as any other node, and sends on the events that came to it lately. The closer one is told who came before
    it.
    """

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


class LookDue(Timer, frozen=True, gc=False):
    """A rendezvous has waited long enough to look again for somebody closer to its attribute."""

    attribute: str


class Doubts:
    """The attributes of which this node may not be the only rendezvous, and how often it looked.

    It looks again if somebody closer is gone, or who keeps its filters. Whoever is gone may come back without
    its memory, and so may all others at once: then nobody knows of this node and what is asked for here, and
    nobody will tell it. So it looks by itself: soon, and then at least as often as events are kept for those
    who were elsewhere, so that it is sent what it missed. Who is asked in a lookup knows of it again.
    """

    def __init__(self, config: ContentConfig, elections: Elections, table: FilterTable, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._elections = elections
        self._table = table
        self._looks: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def begin(self, attribute: str, now: float) -> None:
        """Look for a period, since somebody closer was there and is not found, or nobody is."""
        self._begin(attribute, now + self._config.refresh)

    def handle_keeper_loss(self, attribute: str, now: float) -> None:
        """Look for a while, since one is gone who keeps our filters as rendezvous."""
        self._begin(attribute, now + 2 * self._config.avoided)

    def _begin(self, attribute: str, until: float) -> None:
        is_new = attribute not in self._until
        self._until[attribute] = max(until, self._until.get(attribute, until))
        if not is_new:
            return
        self._looks[attribute] = 0
        self._set_timer(attribute)

    def look_again(self, timer: LookDue, now: float) -> None:
        """Look again, unless another is the rendezvous now, or it makes no difference here."""
        attribute = timer.attribute
        if not self._is_open(attribute) or now >= self._until[attribute]:
            del self._until[attribute], self._looks[attribute]
            return
        self._looks[attribute] += 1
        self._elections.look_up(attribute)
        self._set_timer(attribute)

    def _is_open(self, attribute: str) -> bool:
        """Whether somebody waits here for what others may be told, or others for what is said here."""
        is_asked = attribute in self._table.attributes and attribute in self._elections.held
        return is_asked or self._elections.is_lost(attribute)

    def _set_timer(self, attribute: str) -> None:
        most = self._config.lately or self._config.confirmed
        wait = min(most, self._config.resend * 2 ** min(16, self._looks[attribute]))
        self._out.set_timer(wait, LookDue(attribute))
