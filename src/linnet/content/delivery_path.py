"""Events on their way down, along filters, and acknowledgements on their way back.

Each node sends an event to those of its routes that want it, sends again what is not acknowledged, and
acknowledges when all below it have, with how many nodes were handed the event and how many branches did not
answer. So the rendezvous, and with it the publisher, learns the outcome (Agostinho 2021, section 3.8, has
only the rendezvous send again; here each hop repairs its own losses). If a route is gone, the node asks the
keepers of its filters, and sends the event itself to the routes that they name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

from linnet.content.attribute_keys import base_of
from linnet.content.branch_ledger import (
    Branch,
    Count,
    Lately,
    Ledger,
    Ledgers,
    Upstream,
    Way,
    WentBy,
    count_of,
)
from linnet.content.filter_backup import Copies
from linnet.content.messages import (
    MOST_PATIENCE,
    SILENT,
    Held,
    KeptRoute,
    Notice,
    Reached,
    Routes,
    SoFar,
    StandIn,
)
from linnet.content.passing import Passing
from linnet.content.predicate import Predicate
from linnet.content.routes import Station
from linnet.core.counts import counted
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.trace.records import Kind, Record

NOTICE = "notice"
_EARLIER = 0.75
"""The share of its sender's patience that a node may use: if it took longer, it would be given up itself."""
NOBODY: Mapping[PeerId, Count] = MappingProxyType({})
_UNHEARD = 2
"""Sendings without an answer after which keepers are asked in a route's place."""
Take = Callable[[Passing, int, float], Count]
"""Hands an event, received over so many links, to this node's own subscriptions; returns its count."""


class NoticeDue(Timer, frozen=True, gc=False):
    """Some routes have not answered in time for an event."""

    event: EventId
    attribute: str


class Descent(Struct, frozen=True, gc=False):
    """The circumstances in which an event goes down from a node."""

    hops: int
    """Links that it has crossed so far."""
    upstream: Upstream | None = None
    """The peer that sent it down to here; None: this node is the first."""
    but: PeerId | None = None
    """A route that has it already."""
    before: tuple[Contact, ...] = ()
    """Earlier rendezvous: each is a route that wants everything."""
    keepers: tuple[Contact, ...] = ()
    """Keepers of the filters of those earlier rendezvous."""
    answered: Mapping[PeerId, Count] = NOBODY
    """Routes that have answered the earlier rendezvous."""
    mirrored: tuple[KeptRoute, ...] | None = None
    """The routes of a rendezvous that this node serves in its place; None: it serves its own."""
    own_only: bool = False
    """Whether it goes to this node's own subscriptions alone."""
    is_unknown: bool = False
    """Whether this node cannot tell if others want it: that counts as a branch that did not answer."""


class DeliveryPath:
    """Sends events down, collects the answers, and asks keepers where a route is gone."""

    def __init__(self, station: Station, copies: Copies, take: Take) -> None:
        self._station = station
        self._take = take
        self._copies = copies
        self._ledgers = Ledgers(station.config)
        self.lately = Lately(station.config)
        self.stalled: list[tuple[Way, SoFar]] = []
        """Events for which only silent routes have yet to answer."""
        self.counted: list[tuple[Way, Count]] = []
        """Events for which all below have answered."""

    def is_known(self, way: Way) -> bool:
        """Return whether an event has already gone down this way."""
        return way in self._ledgers

    def count(self, way: Way) -> Count | None:
        """Return the count of an event that has gone down this way; None while some routes are open."""
        ledger = self._ledgers[way]
        return None if ledger.open else ledger.count

    @property
    def is_settled(self) -> bool:
        """Whether every branch has answered, or was given up."""
        return not self._ledgers.open

    def __len__(self) -> int:
        return len(self._ledgers)

    def send_down(self, attribute: str, passing: Passing, descent: Descent, now: float) -> None:
        """Send an event to all routes that want it. Its final count appears in `counted`, now or later."""
        way, upstream = (passing.id, attribute), descent.upstream
        wanted = self._wanted(attribute, passing, descent)
        ledger = Ledger(passing, descent.hops, upstream)
        served = (self._station.ours, descent.but, None if upstream is None else upstream.peer)
        ledger.served = {route: None for route in served if route is not None}
        for route, count in descent.answered.items():
            ledger.served[route] = None
            ledger.count = ledger.count.plus(count)
        if self._station.ours in wanted:
            ledger.count = ledger.count.plus(self._take(passing, descent.hops, now))
        if descent.is_unknown:
            ledger.count = ledger.count.plus(Count(0, 1))
        ledger.deadline = now + (self._patience() if upstream is None else upstream.patience * _EARLIER)
        self.lately.went_down(WentBy(now, way, passing, descent.hops))
        self._ledgers.open[way] = None
        self._put(way, ledger)
        for route in wanted:
            self._begin(way, ledger, self._station.book.contact(route), now)
        for each in descent.mirrored or ():
            self._station.book.learn(each.contact.peer, each.backups, each.contact)
            self._begin(way, ledger, each.contact, now)
        for contact in descent.before:
            others = tuple(each for each in descent.keepers if each.peer != contact.peer)
            self._begin(way, ledger, contact, now, others)
        if ledger.open:
            self._set_timer(way, ledger, min(self._station.config.resend, ledger.deadline - now))
        self._close(way, ledger, now)

    def _wanted(self, attribute: str, passing: Passing, descent: Descent) -> list[PeerId]:
        """Return the routes that want the event.

        A node that serves a part serves the routes of the rendezvous, and its own subscriptions only if the
        rendezvous lists it as a route.
        """
        ours, mirrored = self._station.ours, descent.mirrored
        if mirrored is not None and all(each.contact.peer != ours for each in mirrored):
            return []
        wanted = self._station.table.interested(base_of(attribute), passing.attributes)
        return [route for route in wanted if route == ours] if descent.own_only else wanted

    def _set_timer(self, way: Way, ledger: Ledger, wait: float) -> None:
        ledger.timed = True
        self._station.out.set_timer(wait, NoticeDue(*way))

    def _begin(
        self,
        way: Way,
        ledger: Ledger,
        contact: Contact,
        now: float,
        keepers: tuple[Contact, ...] | None = None,
    ) -> None:
        """Send an event to one more route, or ask its keepers if it cannot be reached.

        An earlier rendezvous comes with keepers of its own, and its answer is not waited for."""
        route = contact.peer
        if route in ledger.served:
            return
        ledger.served[route] = None
        awaited = keepers is None
        backups = self._station.book.backups(route) if keepers is None else keepers
        branch = Branch(contact, list(backups), awaited)
        ledger.open[route] = branch
        shortcut = self._station.book.shortcut(route, way[1])
        if (
            shortcut is not None
            and self._station.reach.is_up(shortcut.peer)
            and shortcut.peer not in ledger.served
        ):
            branch.contact = shortcut
            ledger.served[shortcut.peer] = None
            self._send_to(way, ledger, route, now)
            return
        if not self._station.reach.is_up(route) and (branch.backups or not awaited):
            self._seek(way, ledger, route, now)
            return
        self._send_to(way, ledger, route, now)

    def _send_to(self, way: Way, ledger: Ledger, route: PeerId, now: float) -> None:
        self._send(way, ledger, ledger.open[route], now)
        if not self._station.config.reliable:
            del ledger.open[route]

    def _lengthen(self, route: PeerId, branch: Branch) -> bool:
        """Address an event to the route itself if it was sent past it in vain; return whether it was."""
        if branch.target == route:
            return False
        branch.contact, branch.sent, branch.has_it = self._station.book.contact(route), 0, False
        return True

    def _send(self, way: Way, ledger: Ledger, branch: Branch, now: float) -> None:
        if ledger.passing is None:
            return
        branch.sent += 1
        left = max(0, int(1000 * (ledger.deadline - now)))
        notice = Notice(way[1], ledger.passing.unit, ledger.passing.card, ledger.hops + 1, left)
        contact = branch.contact
        if contact.hints or self._station.reach.is_up(branch.target):
            self._station.reach.send(contact, notice)
            return
        self._station.reach.answer(branch.target, notice)

    def _seek(self, way: Way, ledger: Ledger, route: PeerId, now: float) -> None:
        """Ask the next keeper of a route's filters, since the route is gone or silent."""
        branch = ledger.open[route]
        if ledger.passing is None:
            return
        own = self._copies.routes(route, base_of(way[1]), ledger.passing.attributes)
        if own is not None:
            self._send_instead(way, ledger, route, own, now)
            return
        if branch.backups:
            asked = branch.backups.pop(0)
            branch.asked[asked.peer] = None
            text = ledger.passing.attributes.text
            self._station.reach.send(asked, StandIn(*way, text, route))
            return
        if branch.awaited or branch.asked:
            return
        self._give_up(way, ledger, route)

    def _give_up(self, way: Way, ledger: Ledger, route: PeerId) -> None:
        del ledger.open[route]
        ledger.count = ledger.count.plus(Count(0, 1))
        self._station.out.record(
            Record(Kind.DROPPED, event=way[0], peer=route, reason=Reason.TIMEOUT, note=NOTICE)
        )

    def _send_instead(
        self, way: Way, ledger: Ledger, route: PeerId, routes: Iterable[KeptRoute], now: float
    ) -> None:
        """Send the event to the routes of one that is gone, or seems to be."""
        branch = ledger.open[route]
        branch.stood_in = True
        branch.backups.clear()
        if not branch.awaited or not self._station.reach.is_up(branch.target):
            del ledger.open[route]
        for each in routes:
            if each.contact.peer not in ledger.served:
                self._station.book.learn(each.contact.peer, each.backups, each.contact)
                self._begin(way, ledger, each.contact, now)

    def handle_routes(self, peer: PeerId, message: Routes, now: float) -> None:
        """Send an event to the routes that a keeper names in place of one that is gone."""
        way = (message.event, message.attribute)
        ledger = self._ledgers.get(way)
        branch = None if ledger is None else ledger.open.get(message.absent)
        if ledger is None or branch is None or peer not in branch.asked:
            self._station.out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Routes"))
            return
        if message.reason is not None:
            del branch.asked[peer]
            self._station.out.record(
                Record(Kind.CONTROL, event=way[0], peer=peer, reason=message.reason, note="Routes")
            )
            self._seek(way, ledger, message.absent, now)
        else:
            self._send_instead(way, ledger, message.absent, message.routes, now)
            if message.more:
                ledger.open[message.absent] = branch
        self._close(way, ledger, now)

    def handle_held(self, peer: PeerId, message: Held, now: float) -> None:
        """Note that a route has an event and waits for others, perhaps for silent ones, which it names."""
        way = (message.event, message.attribute)
        ledger = self._ledgers.get(way)
        route = None if ledger is None else ledger.branch(peer)
        if ledger is None or route is None:
            self._station.out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Held"))
            return
        ledger.open[route].has_it = True
        if message.so_far is not None:
            ledger.open[route].so_far = message.so_far
        self._close(way, ledger, now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Ask the keepers of each route that a lost link led to."""
        for way in list(self._ledgers.open):
            ledger = self._ledgers[way]
            for route in [route for route, each in ledger.open.items() if peer in each.asked]:
                del ledger.open[route].asked[peer]
                self._seek(way, ledger, route, now)
            route_gone = ledger.branch(peer)
            if route_gone is not None and self._lengthen(route_gone, ledger.open[route_gone]):
                self._send_to(way, ledger, route_gone, now)
            elif route_gone is not None and ledger.open[route_gone].stood_in:
                del ledger.open[route_gone]
            elif route_gone is not None:
                ledger.open[route_gone].failed, ledger.open[route_gone].so_far = True, None
                if not ledger.open[route_gone].asked:
                    ledger.open[route_gone].has_it = False
                    self._seek(way, ledger, route_gone, now)
            self._close(way, ledger, now)

    def _adopt(self, event: WentBy) -> None:
        """Treat an event that went down elsewhere as if it had gone down here."""
        if event.way in self._ledgers:
            return
        self.lately.went_down(event)
        self._put(event.way, Ledger(event.passing, event.hops))

    def _resend(self, route: PeerId, event: WentBy, now: float) -> None:
        """Send an event that went down here to one route, even if it was sent there before."""
        ledger = self._ledgers.get(event.way)
        if ledger is None or route == self._station.ours:
            return
        if ledger.upstream is not None and ledger.upstream.peer == route:
            return
        if not ledger.open:
            # The answer was given already; this route is sent the event for its own sake.
            ledger.upstream, ledger.passing = None, event.passing
        # An earlier sending need not have reached it before it went elsewhere: it gets all tries again.
        ledger.tries, ledger.deadline, ledger.so_far = 0, now + self._patience(), None
        self._ledgers.open[event.way] = None
        self._set_timer(event.way, ledger, self._station.config.resend)
        ledger.served.pop(route, None)
        self._begin(event.way, ledger, self._station.book.contact(route), now)
        self._close(event.way, ledger, now)

    def replay(self, route: PeerId, attribute: str, predicate: Predicate, now: float) -> None:
        """Send a returning route the recent events that it wants."""
        self.lately.came_back(attribute, route, now)
        for event in self.lately.elsewhere(attribute, now):
            if predicate.covers(event.passing.attributes):
                self._adopt(event)
        for event in self.lately.here(attribute, now):
            if predicate.covers(event.passing.attributes):
                self._resend(route, event, now)

    def replay_tracked(self, event: WentBy, now: float) -> None:
        """Send a finished event that was tracked here to routes that came back before it was known here."""
        self.lately.finished_elsewhere(event)
        attribute = event.way[1]
        wanted = self._station.table.interested(attribute, event.passing.attributes)
        back = [route for route in wanted if self.lately.is_back(attribute, route, now)]
        if not back or self.is_known(event.way):
            return
        self._adopt(event)
        for route in back:
            self._resend(route, event, now)

    def _patience(self) -> float:
        """Return the seconds until a rendezvous gives up a branch: all tries, the waits doubling."""
        return float(
            min(self._station.config.resend * (2**self._station.config.tries - 1), MOST_PATIENCE / 1000)
        )

    def repeat_answer(self, peer: PeerId, way: Way, said_as: str) -> None:
        """Repeat the answer for an event that comes down the same way once more."""
        ledger = self._ledgers[way]
        self._station.out.record(Record(Kind.DUPLICATE, event=way[0], peer=peer, note=NOTICE))
        if not self._station.config.reliable:
            return
        if ledger.open:
            self._station.reach.answer(peer, Held(way[0], said_as, ledger.so_far))
            return
        # If another sender was told this count before, these nodes would be counted twice, unless that
        # sender is gone and its count with it.
        before = ledger.upstream
        is_told = before is not None and before.peer != peer and self._station.reach.is_up(before.peer)
        count = ledger.count.counted if is_told else ledger.count
        self._station.reach.answer(peer, Reached(way[0], said_as, *count))

    def owes(self, peer: PeerId, way: Way) -> bool:
        """Return whether a peer has yet to answer for an event."""
        ledger = self._ledgers.get(way)
        return ledger is not None and ledger.branch(peer) is not None

    def handle_reached(self, peer: PeerId, message: Reached, now: float) -> None:
        """Count a route's answer for all below it."""
        way = (message.event, message.attribute)
        ledger = self._ledgers.get(way)
        route = None if ledger is None else ledger.branch(peer)
        if ledger is None or route is None:
            self._station.out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Reached"))
            return
        ledger.count = ledger.count.plus(count_of(message))
        del ledger.open[route]
        self._close(way, ledger, now)

    def handle_timeout(self, timer: NoticeDue, now: float) -> None:
        """Send an event once more, or ask keepers in a route's place; go on without it at the deadline."""
        way = (timer.event, timer.attribute)
        ledger = self._ledgers.get(way)
        if ledger is None or ledger.passing is None:
            return
        ledger.tries += 1
        left = ledger.deadline - now
        if left <= 0.001:
            for route in list(ledger.open):
                self._give_up(way, ledger, route)
            self._close(way, ledger, now)
            return
        for route, branch in list(ledger.open.items()):
            is_up = self._station.reach.is_up(branch.target)
            if not branch.has_it and self._lengthen(route, branch):
                self._send_to(way, ledger, route, now)
            elif branch.backups and not branch.has_it and (branch.sent >= _UNHEARD or not is_up):
                self._seek(way, ledger, route, now)
            elif branch.awaited or is_up:
                self._send_to(way, ledger, route, now)
        seeking = any(branch.backups and not branch.has_it for branch in ledger.open.values())
        if ledger.open:
            wait = self._station.config.resend * (1 if seeking else 2**ledger.tries)
            self._set_timer(way, ledger, min(left, wait))
        self._close(way, ledger, now)

    def _close(self, way: Way, ledger: Ledger, now: float) -> None:
        """Acknowledge the event if all routes have answered; report a stall if only silent ones are left."""
        if way not in self._ledgers.open:
            return
        if ledger.open:
            self._stall(way, ledger)
            return
        self._ledgers.settle(way, now)
        self.counted.append((way, ledger.count))
        if ledger.timed:
            self._station.out.cancel_timer(NoticeDue(*way))
        ledger.timed = False
        if ledger.upstream is not None and self._station.config.reliable:
            peer, said_as, _ = ledger.upstream
            self._station.reach.answer(peer, Reached(way[0], said_as, *ledger.count))

    def _stall(self, way: Way, ledger: Ledger) -> None:
        """Report silent routes and the preliminary count if no others are left, and any change of that."""
        silent: dict[PeerId, None] = {}
        count, more = ledger.count, 0
        for route, branch in ledger.open.items():
            told = branch.so_far
            if told is not None:
                count = count.plus(count_of(told))
                silent |= dict.fromkeys(told.silent)
                more += told.more
            elif self._is_silent(ledger, branch):
                silent[route] = None
            else:
                return
        named = tuple(silent)[:SILENT]
        so_far = SoFar(*count, named, more + len(silent) - len(named))
        if so_far == ledger.so_far or not self._station.config.reliable:
            return
        ledger.so_far = so_far
        self.stalled.append((way, so_far))
        if ledger.upstream is not None:
            peer, said_as, _ = ledger.upstream
            self._station.reach.answer(peer, Held(way[0], said_as, so_far))

    def _is_silent(self, ledger: Ledger, branch: Branch) -> bool:
        """Return whether a route is silent: no link comes up, or nothing comes back over it, however often
        the event is sent. A live one says at least that it waits for others."""
        if branch.has_it:
            return False
        if branch.asked:
            return ledger.tries >= _UNHEARD
        if self._station.reach.is_up(branch.target):
            return ledger.tries >= _UNHEARD
        return branch.failed or ledger.tries > 0

    def tidy(self, now: float) -> None:
        """Forget finished events that will not come again."""
        self._ledgers.tidy(now)
        self.lately.tidy(now)

    def _put(self, way: Way, ledger: Ledger) -> None:
        """Add a ledger. If there are too many, give up the oldest, and record the branches it had open."""
        for old, given_up in self._ledgers.put(way, ledger):
            note = f"{counted(len(given_up.open), 'branch', 'branches')} had not answered"
            self._station.out.cancel_timer(NoticeDue(*old))
            self._station.out.record(Record(Kind.EVICTED, event=old[0], reason=Reason.TOO_MANY, note=note))
