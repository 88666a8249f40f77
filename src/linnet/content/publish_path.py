"""Events on their way up, to the rendezvous of each of their attributes."""

from __future__ import annotations

from collections import deque

from linnet.content.attribute_keys import attribute_key, base_of, distance, is_part
from linnet.content.branch_ledger import Count, Way
from linnet.content.config import ContentConfig
from linnet.content.delivery_path import DeliveryPath
from linnet.content.event_tracking import Trackers
from linnet.content.filter_backup import Backups, Copies
from linnet.content.filter_table import FilterTable
from linnet.content.hot_attributes import HotAttributes
from linnet.content.messages import Publish, Settled, SoFar, Taken
from linnet.content.passing import Passing
from linnet.content.reach import Reach
from linnet.content.rendezvous import OURS, PENDING, Claims, Elections
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

WALK = "walk"
_SLOW = 2
"""Sendings without a word after which the publisher is told that the next hop is silent."""
_SLOWER = 3
"""The same where a rendezvous has it and says no more: it has to hear from those below first."""
_PREDECESSORS = 4
"""Predecessors of one attribute."""


class WalkDue(Timer, frozen=True, gc=False):
    """The next hop has not said in time what became of an event on its way to a rendezvous."""

    event: EventId
    attribute: str


class _Walk:
    """One event on its way to one rendezvous, as far as this node has to do with it."""

    __slots__ = ("at", "before", "fate", "hops", "next", "passing", "so_far", "taken", "tries")

    def __init__(self, passing: Passing, before: PeerId | None, hops: int, at: float) -> None:
        self.at = at
        self.passing: Passing | None = passing
        self.before = before
        """Who sent it here; None: we published it."""
        self.hops = hops
        self.next: PeerId | None = None
        self.tries = 0
        self.taken = False
        self.fate: tuple[Count, Reason | None] | None = None
        self.so_far: SoFar | None = None
        """What became of it, as far as anybody answers."""


class PublishPath:
    """The way up. What ends at this node because it began here is in `ended`."""

    def __init__(
        self,
        config: ContentConfig,
        elections: Elections,
        reach: Reach,
        notices: DeliveryPath,
        predecessors: Predecessors,
        backups: Backups,
        trackers: Trackers,
        splits: HotAttributes,
        copies: Copies,
        out: Outbox,
    ) -> None:
        self._config = config
        self._out = out
        self._hot = splits
        self._copies = copies
        self._trackers = trackers
        self._predecessors = predecessors
        self._backups = backups
        self._elections = elections
        self._reach = reach
        self._delivery_path = notices
        self._walks: dict[Way, _Walk] = {}
        self._parked: dict[str, list[Way]] = {}
        self._lately: deque[tuple[float, Way, Passing]] = deque(maxlen=config.waiting)
        """Events that ended their walks here, and when."""
        self.ended: list[tuple[Way, Count, Reason | None]] = []
        self.stalled: list[tuple[Way, SoFar]] = []
        """Events that began here for which all have answered but those who say nothing."""
        self.fallen: list[tuple[str, Passing]] = []
        """Events of ours that went to a part which is not held: they go to the rendezvous."""
        self.learned: list[tuple[str, int]] = []
        """In how many parts events should go."""
        self.arrivals = 0
        """Events that ended their walks here."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing is under way, as far as this node would know."""
        return not any(walk.passing is not None for walk in self._walks.values())

    def is_known(self, way: Way) -> bool:
        """Whether an event has come up this way already."""
        return way in self._walks

    def begin(self, attribute: str, passing: Passing, before: PeerId | None, hops: int, now: float) -> None:
        """Send an event up that was not seen on this way before."""
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
            parked = self._parked.setdefault(way[1], [])
            if len(parked) >= self._config.waiting:
                self._end(way, Count(0, 0), Reason.QUEUE_FULL)
                return
            parked.append(way)
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
            # On the way up those below each node hear of it at once; the next one leaves them out.
            self._delivery_path.send_down(way[1], passing, walk.hops, None, walk.before, now)

    def _arrive(self, way: Way, walk: _Walk, passing: Passing, now: float) -> None:
        """This node is the rendezvous."""
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
        but = None if self._config.reliable else walk.before
        before = self._predecessors.of(way[1], now)
        keepers = self._backups.around(way[1], now) if before else ()
        self._delivery_path.send_down(
            way[1],
            passing,
            walk.hops,
            None,
            but,
            now,
            before=before,
            keepers=keepers,
            answered=self._trackers.answers_of(way),
            unknown=self._elections.is_lost(way[1]),
        )
        if not self._config.reliable:
            walk.passing = None

    def _serve_part(self, way: Way, walk: _Walk, passing: Passing, now: float) -> None:
        """This node is closest to a part: it serves the routes of the rendezvous, if it holds them and that
        is there."""
        key = attribute_key(base_of(way[1]))
        owners = [owner for owner in self._copies.owners(way[1]) if self._reach.is_up(owner)]
        if not owners:
            self._end(way, Count(0, 0), Reason.NOT_HELD)
            return
        owner = min(owners, key=lambda peer: distance(peer, key))
        routes = self._copies.routes(owner, way[1], passing.attributes)
        self._send_back(walk, Taken(*way, None))
        if not self._delivery_path.is_known(way):
            self._delivery_path.send_down(way[1], passing, walk.hops, None, None, now, mirrored=routes)

    def fall_back(self, now: float) -> None:
        """Use what was learned of parts, and send to the rendezvous what found no holder."""
        for attribute, parts in self.learned:
            self._hot.learn(attribute, parts, now)
        self.learned.clear()
        while self.fallen:
            base, passing = self.fallen.pop(0)
            self._hot.learn(base, 1, now)
            if not self.is_known((passing.id, base)):
                self.begin(base, passing, None, 0, now)

    def note_lost_owner(self, owner: PeerId, now: float) -> None:
        """Have what came lately to parts of a rendezvous that is gone go to the next one as well."""
        for at, way, passing in self._lately:
            if is_part(way[1]) and owner in self._copies.owners(way[1]) and at + self._config.lately > now:
                self.fallen.append((base_of(way[1]), passing))

    def send_on(self, attribute: str, now: float) -> None:
        """Send what came here lately to another node, which turns out to be the rendezvous."""
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
            # Tracked here for one who is gone: the new rendezvous may be it, back without its memory.
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
        """End an event for which all below this node, its rendezvous, have answered."""
        walk = self._walks.get(way)
        if walk is None or walk.fate is not None or walk.next is not None:
            return
        self._end(way, count, None)

    def stall(self, way: Way, so_far: SoFar) -> None:
        """Tell back what is known when only those below are left who say nothing."""
        walk = self._walks.get(way)
        if walk is None or walk.fate is not None or walk.next is not None:
            return
        self._note_stall(way, walk, so_far, self._hot.parts(base_of(way[1])))

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
        """Say again what is known of an event that comes up the same way once more."""
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
            self._elections.avoid(peer, now)
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
        """End an event of which the rendezvous says what became of it."""
        way = (message.event, message.attribute)
        walk = self._walks.get(way)
        if walk is None or walk.next != peer or walk.fate is not None:
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Settled"))
            return
        count = Count(message.delivered, message.missed, message.again, message.matches)
        self._end(way, count, None)

    def handle_timeout(self, timer: WalkDue, now: float) -> None:
        """Send an event once more, and in the end by another way."""
        way = (timer.event, timer.attribute)
        walk = self._walks.get(way)
        if walk is None or walk.passing is None:
            return
        walk.tries += 1
        is_slow = walk.tries >= (_SLOWER if walk.taken else _SLOW)
        if is_slow and walk.before is None and walk.so_far is None and walk.next is not None:
            self.stalled.append((way, SoFar(0, 0, 0, 0, (walk.next,))))
        if walk.tries % self._config.tries == 0 and walk.next is not None and not walk.taken:
            self._elections.avoid(walk.next, now)
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
        """Send another way what was on its way through a peer that is gone."""
        for way, walk in list(self._walks.items()):
            if walk.next == peer and walk.passing is not None:
                self._send_up(way, now)

    def resume(self, attribute: str, now: float) -> None:
        """Send up what waited for a lookup."""
        for way in self._parked.pop(attribute, ()):
            if way in self._walks:
                self._send_up(way, now)

    @property
    def next_hops(self) -> dict[PeerId, None]:
        """Peers through which something is on its way."""
        open_walks = (walk for walk in self._walks.values() if walk.passing is not None)
        return {walk.next: None for walk in open_walks if walk.next is not None}

    def __len__(self) -> int:
        return len(self._walks)

    def tidy(self, now: float) -> None:
        """Forget what is finished and will not come again, since it is too old to be taken."""
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


class Predecessors:
    """Who was the rendezvous before this node, by attribute, and may have subscriptions that it has not.

    A node that becomes the rendezvous is *young* until a period is over, in which all subscriptions are told
    again (Agostinho 2021, section 3.7: the age rule). Until then it sends each event to its predecessor as
    well, as if that were a route which wants everything. If the predecessor does not answer, those are asked
    that keep its filters; and if nobody has them, it counts as a branch that was missed: the publisher is
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
        """Whether subscriptions may be known to others alone."""
        return attribute in self._since and now < self._since[attribute] + self._config.refresh

    def begin(self, attribute: str, now: float) -> None:
        """Note who came before, as this node is the rendezvous of an attribute now and was not."""
        self._since[attribute] = now
        known = self._known[attribute] = {}
        claimant = self._claims.claimant(attribute)
        for contact in [claimant] if claimant is not None else []:
            known[contact.peer] = contact
        for peer in self._copies.rendezvous(attribute)[:_PREDECESSORS]:
            known.setdefault(peer, Contact(peer))
        known.pop(self._ours, None)

    def forget(self, attribute: str) -> None:
        """Forget who came before, as another is the rendezvous now."""
        self._since.pop(attribute, None)
        self._known.pop(attribute, None)

    def learn(self, attribute: str, contact: Contact, now: float) -> bool:
        """Somebody names a predecessor; whether that is of any use."""
        if not self.is_young(attribute, now) or contact.peer == self._ours:
            return False
        known = self._known[attribute]
        if contact.peer not in known and len(known) >= _PREDECESSORS:
            return False
        known[contact.peer] = contact
        return True

    def of(self, attribute: str, now: float) -> list[Contact]:
        """Who has to be sent an event beside those who asked here; who asked is a route like others."""
        if is_part(attribute) or not self.is_young(attribute, now):
            return []
        routes = self._table.routes(attribute)
        return [contact for peer, contact in self._known[attribute].items() if peer not in routes]

    def tidy(self, now: float) -> None:
        """Forget what no longer counts."""
        for attribute in [name for name in self._since if not self.is_young(name, now)]:
            self.forget(attribute)
