"""Events on their way up, to the rendezvous of each of their attributes."""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from linnet.content.attribute_keys import attribute_key, base_of, distance, is_part
from linnet.content.branch_ledger import Count, Trackers, Way, count_of
from linnet.content.config import ContentConfig
from linnet.content.delivery_path import DeliveryPath, Descent
from linnet.content.filter_backup import Backups, Copies
from linnet.content.filter_table import FilterTable
from linnet.content.hot_attributes import HotAttributes
from linnet.content.messages import Publish, Settled, SoFar, Taken
from linnet.content.passing import Passing
from linnet.content.rendezvous import OURS, PENDING, Claims, Elections
from linnet.content.routes import Station
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.trace.records import Kind, Record

WALK = "walk"
_SLOW = 2
"""Sendings without an answer after which the publisher is told that the next hop is silent."""
_SLOWER = 3
"""The same for a rendezvous that has the event: it waits for the nodes below it first."""
_PREDECESSORS = 4
"""Predecessors of one attribute that are remembered, at most."""


class WalkDue(Timer, frozen=True, gc=False):
    """The next hop has not reported in time on an event on its way to a rendezvous."""

    event: EventId
    attribute: str


class _Walk(Struct, eq=False):
    """One event on its way to one rendezvous, from this node's view."""

    passing: Passing | None
    before: PeerId | None
    """The peer that sent it here; None: it began here."""
    hops: int
    at: float
    next: PeerId | None = None
    tries: int = 0
    taken: bool = False
    fate: tuple[Count, Reason | None] | None = None
    so_far: SoFar | None = None
    """The preliminary outcome, if only silent nodes are left."""


class PublishPath:
    """Sends events up and their outcomes back. The outcomes of events that began here are in `ended`."""

    def __init__(
        self,
        station: Station,
        elections: Elections,
        delivery_path: DeliveryPath,
        predecessors: Predecessors,
        backups: Backups,
        trackers: Trackers,
        hot: HotAttributes,
        copies: Copies,
    ) -> None:
        self._config = station.config
        self._out = station.out
        self._reach = station.reach
        self._hot = hot
        self._copies = copies
        self._trackers = trackers
        self._predecessors = predecessors
        self._backups = backups
        self._elections = elections
        self._delivery_path = delivery_path
        self._walks: dict[Way, _Walk] = {}
        self._parked: dict[str, dict[Way, None]] = {}
        """Events that wait for a lookup, by attribute."""
        self._lately: deque[tuple[float, Way, Passing]] = deque(maxlen=station.config.waiting)
        """Events that ended their walks here, and when."""
        self.ended: list[tuple[Way, Count, Reason | None]] = []
        self.stalled: list[tuple[Way, SoFar]] = []
        """Events that began here and for which only silent nodes have yet to answer."""
        self.fallen: list[tuple[str, Passing]] = []
        """Events of ours that went to a part nobody holds: they go to the rendezvous instead."""
        self.learned: list[tuple[str, int]] = []
        """Attributes, and in how many parts their events should go."""
        self.arrivals = 0
        """The number of events that ended their walks here."""

    @property
    def is_settled(self) -> bool:
        """Whether no event is under way, as far as this node knows."""
        return not any(walk.passing is not None for walk in self._walks.values())

    def is_known(self, way: Way) -> bool:
        """Return whether an event has already come up this way."""
        return way in self._walks

    def begin(self, attribute: str, passing: Passing, before: PeerId | None, hops: int, now: float) -> None:
        """Send an event up that this node has not seen on this way before."""
        way = (passing.id, attribute)
        self._walks[way] = _Walk(passing, before, hops, now)
        self._forget()
        self._send_up(way, now)

    def _send_up(self, way: Way, now: float) -> None:
        walk = self._walks[way]
        passing = walk.passing
        if passing is None:
            return
        decided = self._elections.decide(way[1], now)
        if decided is PENDING:
            parked = self._parked.setdefault(way[1], {})
            if len(parked) >= self._config.waiting:
                self._end(way, Count(0, 0), Reason.QUEUE_FULL)
                return
            parked[way] = None
            return
        if decided is OURS:
            self._lately.append((now, way, passing))
            self._arrive(way, walk, passing, now)
            return
        if not isinstance(decided, Contact):
            raise TypeError(decided)
        walk.next = decided.peer
        self._reach.send(decided, Publish(way[1], passing.unit, passing.card, walk.hops + 1))
        if self._config.reliable:
            wait = self._config.resend * 2 ** (walk.tries % self._config.tries)
            self._out.set_timer(wait, WalkDue(*way))
            return
        walk.passing = None
        if not self._delivery_path.is_known(way):
            # On the way up each node sends it to its own routes at once; the next hop leaves this node out.
            descent = Descent(walk.hops, but=walk.before)
            self._delivery_path.send_down(way[1], passing, descent, now)

    def _arrive(self, way: Way, walk: _Walk, passing: Passing, now: float) -> None:
        """End the walk of an event here, since this node is the rendezvous."""
        walk.taken, walk.next = True, None
        self.arrivals += 1
        if is_part(way[1]) and base_of(way[1]) not in self._elections.held:
            self._serve_part(way, walk, passing, now)
            return
        if self._delivery_path.is_known(way):
            if self._config.reliable:
                self._send_back(walk, Taken(*way, None))
            known = self._delivery_path.count(way)
            if known is not None:
                self._end(way, known, None)
            return
        self._hot.count_arrival(way[1], now)
        self._trackers.lead(way, passing, walk.hops, now)
        parts = self._hot.parts(base_of(way[1]))
        if self._config.reliable:
            self._send_back(walk, Taken(*way, None, parts))
        if walk.before is None:
            self.learned.append((base_of(way[1]), parts))
        before = tuple(self._predecessors.of(way[1], now))
        descent = Descent(
            walk.hops,
            but=None if self._config.reliable else walk.before,
            before=before,
            keepers=self._backups.around(way[1], now) if before else (),
            answered=self._trackers.answers_of(way),
            is_unknown=self._elections.is_lost(way[1]),
        )
        self._delivery_path.send_down(way[1], passing, descent, now)
        if not self._config.reliable:
            walk.passing = None

    def _serve_part(self, way: Way, walk: _Walk, passing: Passing, now: float) -> None:
        """Serve an event of a part to the routes of its rendezvous, if they are held here and it is there."""
        key = attribute_key(base_of(way[1]))
        owners = [owner for owner in self._copies.owners(way[1]) if self._reach.is_up(owner)]
        if not owners:
            self._end(way, Count(0, 0), Reason.NOT_HELD)
            return
        owner = min(owners, key=lambda peer: distance(peer, key))
        routes = self._copies.routes(owner, way[1], passing.attributes)
        self._send_back(walk, Taken(*way, None))
        if not self._delivery_path.is_known(way):
            descent = Descent(walk.hops, mirrored=tuple(routes or ()))
            self._delivery_path.send_down(way[1], passing, descent, now)

    def fall_back(self, now: float) -> None:
        """Use the numbers of parts that were learned, and send events without a holder to the rendezvous."""
        for attribute, parts in self.learned:
            self._hot.learn(attribute, parts, now)
        self.learned.clear()
        while self.fallen:
            base, passing = self.fallen.pop(0)
            self._hot.learn(base, 1, now)
            if not self.is_known((passing.id, base)):
                self.begin(base, passing, None, 0, now)

    def note_lost_owner(self, owner: PeerId, now: float) -> None:
        """Send the recent events of parts to the next rendezvous as well, since their own is gone."""
        for at, way, passing in self._lately:
            if is_part(way[1]) and owner in self._copies.owners(way[1]) and at + self._config.lately > now:
                self.fallen.append((base_of(way[1]), passing))

    def send_on(self, attribute: str, now: float) -> None:
        """Send the recent events of an attribute to the node that turns out to be its rendezvous."""
        lately, self._lately = self._lately, deque(maxlen=self._config.waiting)
        for at, way, passing in lately:
            walk = self._walks.get(way)
            if at + self._config.lately <= now or walk is None:
                continue
            if way[1] != attribute:
                self._lately.append((at, way, passing))
                continue
            self._send_up_again(way, passing, now)
        for event in self._delivery_path.lately.elsewhere(attribute, now):
            # Tracked here for a lost rendezvous: the new one may be the same, back without its memory.
            if not self.is_known(event.way):
                self.begin(attribute, event.passing, None, event.hops, now)
            elif self._walks[event.way].fate is not None:
                self._send_up_again(event.way, event.passing, now)

    def _send_up_again(self, way: Way, passing: Passing, now: float) -> None:
        walk = self._walks[way]
        if walk.fate is not None:
            walk.before, walk.fate, walk.so_far = None, None, None
        walk.passing, walk.taken, walk.tries = passing, False, 0
        self._send_up(way, now)

    def settle(self, way: Way, count: Count) -> None:
        """End an event at its rendezvous, this node, when all below have answered."""
        if self._walk_here(way) is not None:
            self._end(way, count, None)

    def stall(self, way: Way, so_far: SoFar) -> None:
        """Report back the preliminary outcome of an event when only silent nodes are left below."""
        walk = self._walk_here(way)
        if walk is not None:
            self._note_stall(way, walk, so_far, self._hot.parts(base_of(way[1])))

    def _walk_here(self, way: Way) -> _Walk | None:
        """Return the open walk of an event that has ended its way here, or None."""
        walk = self._walks.get(way)
        return None if walk is None or walk.fate is not None or walk.next is not None else walk

    def _note_stall(self, way: Way, walk: _Walk, so_far: SoFar, parts: int) -> None:
        walk.so_far = so_far
        if walk.before is None:
            self.stalled.append((way, so_far))
        self._send_back(walk, Taken(*way, None, parts, so_far))

    def _end(self, way: Way, count: Count, reason: Reason | None) -> None:
        walk = self._walks[way]
        fallen, walk.passing, walk.fate = walk.passing, None, (count, reason)
        self._out.cancel_timer(WalkDue(*way))
        if walk.before is not None:
            self._tell_fate(way, walk)
        elif reason is not None and is_part(way[1]) and fallen is not None:
            self.fallen.append((base_of(way[1]), fallen))
        else:
            self.ended.append((way, count, reason))

    def _tell_fate(self, way: Way, walk: _Walk) -> None:
        if walk.fate is None:
            if walk.taken:
                self._send_back(walk, Taken(*way, None, so_far=walk.so_far))
            return
        count, reason = walk.fate
        self._send_back(walk, Settled(*way, *count) if reason is None else Taken(*way, reason))

    def _send_back(self, walk: _Walk, message: Taken | Settled) -> None:
        if walk.before is not None:
            self._reach.answer(walk.before, message)

    def repeat_answer(self, peer: PeerId, way: Way) -> None:
        """Repeat the answer for an event that comes up the same way once more."""
        walk = self._walks[way]
        self._out.record(Record(Kind.DUPLICATE, event=way[0], peer=peer, note=WALK))
        if self._config.reliable:
            walk.before = peer if walk.before is not None else None
            self._tell_fate(way, walk)

    def handle_taken(self, peer: PeerId, message: Taken, now: float) -> None:
        """Note that the rendezvous has an event, or send it another way."""
        way = (message.event, message.attribute)
        walk = self._walks.get(way)
        if walk is None or walk.next != peer or walk.passing is None:
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Taken"))
            return
        if message.reason is Reason.NOT_HELD:
            self._end(way, Count(0, 0), Reason.NOT_HELD)
            return
        if message.reason is not None:
            self._elections.suspects.avoid(peer, now)
            walk.tries += self._config.tries
            self._retry(way, walk, now)
            return
        walk.taken = True
        if walk.before is None and not is_part(way[1]):
            self.learned.append((way[1], message.parts))
        if message.so_far is not None:
            self._note_stall(way, walk, message.so_far, message.parts)
            return
        self._send_back(walk, Taken(*way, None, message.parts))

    def handle_settled(self, peer: PeerId, message: Settled, now: float) -> None:
        """End an event whose outcome the rendezvous reports."""
        way = (message.event, message.attribute)
        walk = self._walks.get(way)
        if walk is None or walk.next != peer or walk.fate is not None:
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Settled"))
            return
        self._end(way, count_of(message), None)

    def handle_timeout(self, timer: WalkDue, now: float) -> None:
        """Send an event once more, or by another way when all tries are spent."""
        way = (timer.event, timer.attribute)
        walk = self._walks.get(way)
        if walk is None or walk.passing is None:
            return
        walk.tries += 1
        is_slow = walk.tries >= (_SLOWER if walk.taken else _SLOW)
        if is_slow and walk.before is None and walk.so_far is None and walk.next is not None:
            self.stalled.append((way, SoFar(0, 0, 0, 0, (walk.next,))))
        if walk.tries % self._config.tries == 0 and walk.next is not None and not walk.taken:
            self._elections.suspects.avoid(walk.next, now)
        self._retry(way, walk, now)

    def _retry(self, way: Way, walk: _Walk, now: float) -> None:
        if walk.tries >= self._config.tries * self._config.tries:
            self._out.record(
                Record(Kind.DROPPED, event=way[0], peer=walk.next, reason=Reason.TIMEOUT, note=WALK)
            )
            self._end(way, Count(0, 0), Reason.TIMEOUT)
            return
        self._send_up(way, now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Send another way the events that went through a peer that is gone."""
        for way, walk in list(self._walks.items()):
            if walk.next == peer and walk.passing is not None:
                self._send_up(way, now)

    def resume(self, attribute: str, now: float) -> None:
        """Send up the events that waited for a lookup."""
        for way in self._parked.pop(attribute, ()):
            if way in self._walks:
                self._send_up(way, now)

    @property
    def next_hops(self) -> dict[PeerId, None]:
        """Peers that events are on their way through."""
        open_walks = (walk for walk in self._walks.values() if walk.passing is not None)
        return {walk.next: None for walk in open_walks if walk.next is not None}

    def __len__(self) -> int:
        return len(self._walks)

    def tidy(self, now: float) -> None:
        """Forget finished events that are so old that they would be refused if they came again."""
        for way, walk in list(self._walks.items()):
            if walk.passing is None and walk.at + self._config.taken_for <= now:
                del self._walks[way]
        while self._lately and self._lately[0][0] + self._config.lately <= now:
            self._lately.popleft()

    def _forget(self) -> None:
        while len(self._walks) > self._config.remembered:
            way = next(iter(self._walks))
            if self._walks[way].passing is not None:
                self._end(way, Count(0, 0), Reason.TOO_MANY)
            del self._walks[way]
            parked = self._parked.get(way[1], {})
            if parked.pop(way, self) is None and not parked:
                del self._parked[way[1]]


class Predecessors:
    """Earlier rendezvous of the attributes that are this node's now; they may know other subscriptions.

    A node that becomes the rendezvous is *young* until a period is over, in which all subscriptions are sent
    again (Agostinho 2021, section 3.7: the age rule). Until then it sends each event to its predecessor as
    well, as if that were a route that wants everything. If the predecessor does not answer, the keepers of
    its filters are asked; if nobody has them, it counts as a branch that was missed, and the publisher is
    told.
    """

    def __init__(
        self, ours: PeerId, config: ContentConfig, claims: Claims, copies: Copies, table: FilterTable
    ) -> None:
        self._ours = ours
        self._config = config
        self._claims = claims
        self._copies = copies
        self._table = table
        self._since: dict[str, float] = {}
        self._known: dict[str, dict[PeerId, Contact]] = {}

    def is_young(self, attribute: str, now: float) -> bool:
        """Return whether other nodes may have subscriptions that this node lacks."""
        return attribute in self._since and now < self._since[attribute] + self._config.refresh

    def begin(self, attribute: str, now: float) -> None:
        """Note the predecessors when this node becomes the rendezvous of an attribute."""
        self._since[attribute] = now
        known = self._known[attribute] = {}
        claimant = self._claims.claimant(attribute)
        for contact in [claimant] if claimant is not None else []:
            known[contact.peer] = contact
        for peer in self._copies.rendezvous(attribute)[:_PREDECESSORS]:
            known.setdefault(peer, Contact(peer))
        known.pop(self._ours, None)

    def forget(self, attribute: str) -> None:
        """Forget the predecessors, since another node is the rendezvous now."""
        self._since.pop(attribute, None)
        self._known.pop(attribute, None)

    def learn(self, attribute: str, contact: Contact, now: float) -> bool:
        """Note a predecessor that a peer names; return whether that is of any use."""
        if not self.is_young(attribute, now) or contact.peer == self._ours:
            return False
        known = self._known[attribute]
        if contact.peer not in known and len(known) >= _PREDECESSORS:
            return False
        known[contact.peer] = contact
        return True

    def of(self, attribute: str, now: float) -> list[Contact]:
        """Return the predecessors to send an event to, without those that are routes here anyway."""
        if is_part(attribute) or not self.is_young(attribute, now):
            return []
        routes = self._table.routes(attribute)
        return [contact for peer, contact in self._known[attribute].items() if peer not in routes]

    def tidy(self, now: float) -> None:
        """Forget predecessors once this node is no longer young."""
        for attribute in [name for name in self._since if not self.is_young(name, now)]:
            self.forget(attribute)
