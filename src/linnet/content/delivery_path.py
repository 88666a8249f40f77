"""Events on their way down: along filters, and back the word that they arrived.

Each node sends an event to those of its routes that want it, sends again what is not acknowledged, and
acknowledges when all below it have, with how many were handed the event and how many branches did not
answer. So the rendezvous, and with it the publisher, learns what became of it (Agostinho 2021, section
3.8, has only the rendezvous send again; here each hop mends its own). For a route that is gone, those are
asked that keep its filters; the routes that they name are sent the event from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from linnet.content.attribute_keys import base_of
from linnet.content.branch_ledger import Branch, Count, Ledger, Ledgers, Way
from linnet.content.config import ContentConfig
from linnet.content.event_tracking import Lately, WentBy
from linnet.content.filter_backup import Copies
from linnet.content.filter_table import FilterTable
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
from linnet.content.reach import Reach
from linnet.content.routes import RouteBook
from linnet.core.counts import counted
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

NOTICE = "notice"
_EARLIER = 0.75
"""The share of a sender's patience that a node has: who gives up too late is given up itself."""
NOBODY: Mapping[PeerId, Count] = MappingProxyType({})
_UNHEARD = 2
"""Sendings without a word after which others are asked in a route's place."""
Take = Callable[[Passing, int, float], Count]
"""Hands an event that came over so many links to this node's own subscriptions; what that counts."""


class NoticeDue(Timer, frozen=True, gc=False):
    """Some routes have not answered in time for an event."""

    event: EventId
    attribute: str


class DeliveryPath:
    """The way down."""

    def __init__(
        self,
        ours: PeerId,
        config: ContentConfig,
        reach: Reach,
        table: FilterTable,
        book: RouteBook,
        copies: Copies,
        take: Take,
        out: Outbox,
    ) -> None:
        self._ours = ours
        self._out = out
        self._take = take
        self._config = config
        self._reach = reach
        self._table = table
        self._book = book
        self._copies = copies
        self._ledgers = Ledgers(config)
        self.lately = Lately(config)
        self.stalled: list[tuple[Way, SoFar]] = []
        """Events for which all below have answered now but those who say nothing."""
        self.counted: list[tuple[Way, Count]] = []
        """Events for which all below have answered now."""

    def is_known(self, way: Way) -> bool:
        """Whether an event has gone down this way already."""
        return way in self._ledgers

    def count(self, way: Way) -> Count | None:
        """What became of an event that has gone down this way, if all have answered."""
        ledger = self._ledgers[way]
        return None if ledger.open else ledger.count

    @property
    def is_settled(self) -> bool:
        """Whether every branch has answered, or was given up."""
        return not self._ledgers.open

    def __len__(self) -> int:
        return len(self._ledgers)

    def send_down(
        self,
        attribute: str,
        passing: Passing,
        hops: int,
        upstream: PeerId | None,
        but: PeerId | None,
        now: float,
        patience: float | None = None,
        before: Iterable[Contact] = (),
        keepers: tuple[Contact, ...] = (),
        answered: Mapping[PeerId, Count] = NOBODY,
        said_as: str = "",
        mirrored: list[KeptRoute] | None = None,
        own_only: bool = False,
        unknown: bool = False,
    ) -> None:
        """Send an event to all routes that want it, but one, and to who was the rendezvous `before`, whose
        filters the `keepers` keep, but not to who answered that one. If it is `unknown` whether others want
        it, that counts as a branch that did not answer. What became of it is in `counted`, now or later."""
        way = (passing.id, attribute)
        wanted = self._wanted(attribute, passing, mirrored, own_only)
        ledger = Ledger(passing, hops, upstream)
        ledger.said_as = said_as
        ledger.served = {route: None for route in (self._ours, but, upstream) if route is not None}
        for route, count in answered.items():
            ledger.served[route] = None
            ledger.count = ledger.count.plus(count)
        if self._ours in wanted:
            ledger.count = ledger.count.plus(self._take(passing, hops, now))
        if unknown:
            ledger.count = ledger.count.plus(Count(0, 1))
        ledger.deadline = now + (self._patience() if patience is None else patience * _EARLIER)
        self.lately.went_down(WentBy(now, way, passing, hops))
        self._ledgers.open[way] = None
        self._put(way, ledger)
        for route in wanted:
            self._begin(way, ledger, self._book.contact(route), now)
        for each in mirrored or ():
            self._book.learn(each.contact.peer, each.backups, each.contact)
            self._begin(way, ledger, each.contact, now)
        for contact in before:
            others = tuple(each for each in keepers if each.peer != contact.peer)
            self._begin(way, ledger, contact, now, others, awaited=False)
        if ledger.open:
            self._set_timer(way, ledger, min(self._config.resend, ledger.deadline - now))
        self._close(way, ledger, now)

    def _wanted(
        self, attribute: str, passing: Passing, mirrored: list[KeptRoute] | None, own_only: bool
    ) -> list[PeerId]:
        """The routes that it goes to. Who holds a part serves others', and its own if it is one of these."""
        if mirrored is not None and all(each.contact.peer != self._ours for each in mirrored):
            return []
        wanted = self._table.interested(base_of(attribute), passing.attributes)
        return [route for route in wanted if route == self._ours] if own_only else wanted

    def _set_timer(self, way: Way, ledger: Ledger, wait: float) -> None:
        ledger.timed = True
        self._out.set_timer(wait, NoticeDue(*way))

    def _begin(
        self,
        way: Way,
        ledger: Ledger,
        contact: Contact,
        now: float,
        keepers: tuple[Contact, ...] | None = None,
        awaited: bool = True,
    ) -> None:
        """Send an event to one more route, or ask who stands in for it."""
        route = contact.peer
        if route in ledger.served:
            return
        ledger.served[route] = None
        branch = Branch(contact, self._book.backups(route) if keepers is None else keepers, awaited)
        ledger.open[route] = branch
        shortcut = self._book.shortcut(route, way[1])
        if shortcut is not None and self._reach.is_up(shortcut.peer) and shortcut.peer not in ledger.served:
            branch.contact = shortcut
            ledger.served[shortcut.peer] = None
            self._send_to(way, ledger, route, now)
            return
        if not self._reach.is_up(route) and (branch.backups or not awaited):
            self._seek(way, ledger, route, now)
            return
        self._send_to(way, ledger, route, now)

    def _send_to(self, way: Way, ledger: Ledger, route: PeerId, now: float) -> None:
        self._send(way, ledger, ledger.open[route], now)
        if not self._config.reliable:
            del ledger.open[route]

    def _lengthen(self, route: PeerId, branch: Branch) -> bool:
        """If an event was sent past a route and not answered, it has to go to the route itself."""
        if branch.target == route:
            return False
        branch.contact, branch.sent, branch.has_it = self._book.contact(route), 0, False
        return True

    def _send(self, way: Way, ledger: Ledger, branch: Branch, now: float) -> None:
        if ledger.passing is None:
            return
        branch.sent += 1
        left = max(0, int(1000 * (ledger.deadline - now)))
        notice = Notice(way[1], ledger.passing.unit, ledger.passing.card, ledger.hops + 1, left)
        contact = branch.contact
        if contact.hints or self._reach.is_up(branch.target):
            self._reach.send(contact, notice)
            return
        self._reach.answer(branch.target, notice)

    def _seek(self, way: Way, ledger: Ledger, route: PeerId, now: float) -> None:
        """A route is gone or says nothing: ask the next of those who keep its filters."""
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
            self._reach.send(asked, StandIn(*way, text, route))
            return
        if branch.awaited or branch.asked:
            return
        self._give_up(way, ledger, route)

    def _give_up(self, way: Way, ledger: Ledger, route: PeerId) -> None:
        del ledger.open[route]
        ledger.count = ledger.count.plus(Count(0, 1))
        self._out.record(Record(Kind.DROPPED, event=way[0], peer=route, reason=Reason.TIMEOUT, note=NOTICE))

    def _send_instead(
        self, way: Way, ledger: Ledger, route: PeerId, routes: Iterable[KeptRoute], now: float
    ) -> None:
        """Send the event to the routes of one that is gone, or seems to be."""
        branch = ledger.open[route]
        branch.stood_in = True
        branch.backups.clear()
        if not branch.awaited or not self._reach.is_up(branch.target):
            del ledger.open[route]
        for each in routes:
            if each.contact.peer not in ledger.served:
                self._book.learn(each.contact.peer, each.backups, each.contact)
                self._begin(way, ledger, each.contact, now)

    def handle_routes(self, peer: PeerId, message: Routes, now: float) -> None:
        """Send an event to those whom a keeper of a route's filters names, since the route is gone."""
        way = (message.event, message.attribute)
        ledger = self._ledgers.get(way)
        branch = None if ledger is None else ledger.open.get(message.absent)
        if ledger is None or branch is None or peer not in branch.asked:
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Routes"))
            return
        if message.reason is not None:
            del branch.asked[peer]
            self._out.record(
                Record(Kind.CONTROL, event=way[0], peer=peer, reason=message.reason, note="Routes")
            )
            self._seek(way, ledger, message.absent, now)
        else:
            self._send_instead(way, ledger, message.absent, message.routes, now)
            if message.more:
                ledger.open[message.absent] = branch
        self._close(way, ledger, now)

    def handle_held(self, peer: PeerId, message: Held, now: float) -> None:
        """Note that a route has an event and waits for others, and perhaps for whom."""
        way = (message.event, message.attribute)
        ledger = self._ledgers.get(way)
        route = None if ledger is None else ledger.branch(peer)
        if ledger is None or route is None:
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Held"))
            return
        ledger.open[route].has_it = True
        if message.so_far is not None:
            ledger.open[route].so_far = message.so_far
        self._close(way, ledger, now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Ask who keeps the filters of a route whose link is down."""
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
        self._put(event.way, Ledger(event.passing, event.hops, None))

    def _resend(self, route: PeerId, event: WentBy, now: float) -> None:
        """Send what went down here to one route, whether or not it was sent to it before."""
        ledger = self._ledgers.get(event.way)
        if ledger is None or route in (ledger.upstream, self._ours):
            return
        if not ledger.open:
            # What is known of it was said already; this one is sent again for its own sake.
            ledger.upstream, ledger.passing = None, event.passing
        # What it was sent before it was elsewhere need not have got there: it has all tries again.
        ledger.tries, ledger.deadline, ledger.so_far = 0, now + self._patience(), None
        self._ledgers.open[event.way] = None
        self._set_timer(event.way, ledger, self._config.resend)
        ledger.served.pop(route, None)
        self._begin(event.way, ledger, self._book.contact(route), now)
        self._close(event.way, ledger, now)

    def replay(self, route: PeerId, attribute: str, predicate: Predicate, now: float) -> None:
        """Send a route that was elsewhere what it wants of what there was, for its own sake."""
        self.lately.came_back(attribute, route, now)
        for event in self.lately.elsewhere(attribute, now):
            if predicate.covers(event.passing.attributes):
                self._adopt(event)
        for event in self.lately.here(attribute, now):
            if predicate.covers(event.passing.attributes):
                self._resend(route, event, now)

    def replay_tracked(self, event: WentBy, now: float) -> None:
        """Send a finished event that was tracked here to those who came back before we had it."""
        self.lately.finished_elsewhere(event)
        attribute = event.way[1]
        wanted = self._table.interested(attribute, event.passing.attributes)
        back = [route for route in wanted if self.lately.is_back(attribute, route, now)]
        if not back or self.is_known(event.way):
            return
        self._adopt(event)
        for route in back:
            self._resend(route, event, now)

    def _patience(self) -> float:
        """Seconds until a branch is given up, at a rendezvous: all tries, each twice as long as the last."""
        return float(min(self._config.resend * (2**self._config.tries - 1), MOST_PATIENCE / 1000))

    def repeat_answer(self, peer: PeerId, way: Way, said_as: str) -> None:
        """Say again what is known of an event that comes down the same way once more."""
        ledger = self._ledgers[way]
        self._out.record(Record(Kind.DUPLICATE, event=way[0], peer=peer, note=NOTICE))
        if not self._config.reliable:
            return
        if ledger.open:
            self._reach.answer(peer, Held(way[0], said_as, ledger.so_far))
            return
        # Who comes with it after another was told has those nodes counted once too often, unless that
        # other is gone, and what it was told with it.
        before = ledger.upstream
        is_told = before is not None and before != peer and self._reach.is_up(before)
        count = ledger.count.counted if is_told else ledger.count
        self._reach.answer(peer, Reached(way[0], said_as, *count))

    def owes(self, peer: PeerId, way: Way) -> bool:
        """Whether a peer has yet to answer for an event."""
        ledger = self._ledgers.get(way)
        return ledger is not None and ledger.branch(peer) is not None

    def handle_reached(self, peer: PeerId, message: Reached, now: float) -> None:
        """Count the answer of a route for all below it."""
        way = (message.event, message.attribute)
        ledger = self._ledgers.get(way)
        route = None if ledger is None else ledger.branch(peer)
        if ledger is None or route is None:
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Reached"))
            return
        count = Count(message.delivered, message.missed, message.again, message.matches)
        ledger.count = ledger.count.plus(count)
        del ledger.open[route]
        self._close(way, ledger, now)

    def handle_timeout(self, timer: NoticeDue, now: float) -> None:
        """Send an event once more, or ask others in a route's place, and in the end go on without it."""
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
            is_up = self._reach.is_up(branch.target)
            if not branch.has_it and self._lengthen(route, branch):
                self._send_to(way, ledger, route, now)
            elif branch.backups and not branch.has_it and (branch.sent >= _UNHEARD or not is_up):
                self._seek(way, ledger, route, now)
            elif branch.awaited or is_up:
                self._send_to(way, ledger, route, now)
        seeking = any(branch.backups and not branch.has_it for branch in ledger.open.values())
        if ledger.open:
            wait = self._config.resend * (1 if seeking else 2**ledger.tries)
            self._set_timer(way, ledger, min(left, wait))
        self._close(way, ledger, now)

    def _close(self, way: Way, ledger: Ledger, now: float) -> None:
        """If all have answered, say so; or that only those are left who say nothing."""
        if way not in self._ledgers.open:
            return
        if ledger.open:
            self._stall(way, ledger)
            return
        self._ledgers.settle(way, now)
        self.counted.append((way, ledger.count))
        if ledger.timed:
            self._out.cancel_timer(NoticeDue(*way))
        ledger.timed = False
        if ledger.upstream is not None and self._config.reliable:
            said_as = ledger.said_as or way[1]
            self._reach.answer(ledger.upstream, Reached(way[0], said_as, *ledger.count))

    def _stall(self, way: Way, ledger: Ledger) -> None:
        """If all who live have answered, tell what is known and who is silent; and again when it changes."""
        silent: dict[PeerId, None] = {}
        count, more = ledger.count, 0
        for route, branch in ledger.open.items():
            told = branch.so_far
            if told is not None:
                count = count.plus(Count(told.delivered, told.missed, told.again, told.matches))
                silent |= dict.fromkeys(told.silent)
                more += told.more
            elif self._is_silent(ledger, branch):
                silent[route] = None
            else:
                return
        named = tuple(silent)[:SILENT]
        so_far = SoFar(*count, named, more + len(silent) - len(named))
        if so_far == ledger.so_far or not self._config.reliable:
            return
        ledger.so_far = so_far
        self.stalled.append((way, so_far))
        if ledger.upstream is not None:
            self._reach.answer(ledger.upstream, Held(way[0], ledger.said_as or way[1], so_far))

    def _is_silent(self, ledger: Ledger, branch: Branch) -> bool:
        """Whether a route says nothing: no link comes up, or nothing comes back over it however often it is
        sent to. One who lives says at least that it waits for others."""
        if branch.has_it:
            return False
        if branch.asked:
            return ledger.tries >= _UNHEARD
        if self._reach.is_up(branch.target):
            return ledger.tries >= _UNHEARD
        return branch.failed or ledger.tries > 0

    def tidy(self, now: float) -> None:
        """Forget what is finished and will not come again."""
        self._ledgers.tidy(now)
        self.lately.tidy(now)

    def _put(self, way: Way, ledger: Ledger) -> None:
        """Keep no more than may be remembered; what is still open is given up with a word."""
        for old, given_up in self._ledgers.put(way, ledger):
            note = f"{counted(len(given_up.open), 'branch', 'branches')} had not answered"
            self._out.cancel_timer(NoticeDue(*old))
            self._out.record(Record(Kind.EVICTED, event=old[0], reason=Reason.TOO_MANY, note=note))
