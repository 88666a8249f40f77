"""ScoutSubs: subscriptions walk to a rendezvous and leave filters; events walk there, and follow them back.

A subscription goes to the rendezvous of one of its attributes, the nearest to the subscriber; an event
goes to those of all its attributes. An event that a predicate accepts has all of the predicate's attributes,
so the two meet. After Agostinho 2021; what is different, and why, is in docs/adr/0021-content.md.
"""

from __future__ import annotations

from typing import assert_never

from linnet.content.application import CONFIRM, TOPIC, Application
from linnet.content.backups import BACKUP, Backups
from linnet.content.branches import Count
from linnet.content.budgets import Budgets
from linnet.content.claims import Claims
from linnet.content.commands import (
    Ended,
    PublishContent,
    ScoutCommand,
    Standing,
    SubscribeContent,
    UnsubscribeContent,
)
from linnet.content.config import ContentConfig
from linnet.content.copies import Copies
from linnet.content.directory import Directory, Located
from linnet.content.doubts import LOOK, Doubts
from linnet.content.effects import OWNER, ContentEffect
from linnet.content.elections import Elections
from linnet.content.keeping import Keeping
from linnet.content.messages import (
    Backup,
    Before,
    Claim,
    Closer,
    ContentMessage,
    Kept,
    Notice,
    Publish,
    Reached,
    Replace,
    Settled,
    Subscribe,
    Subscribed,
    Taken,
)
from linnet.content.notices import NOTICE, Notices
from linnet.content.parts import base_of
from linnet.content.passage import Passage
from linnet.content.predecessors import Predecessors
from linnet.content.predicates import Predicate
from linnet.content.reach import Reach
from linnet.content.replays import Replays
from linnet.content.routes import LAPSE, RouteBook
from linnet.content.splits import Splits
from linnet.content.successions import Successions
from linnet.content.table import FilterTable
from linnet.content.trackers import LOG
from linnet.content.upstream import ASK, Upstream
from linnet.content.walks import WALK, Walks
from linnet.core.effects import Reply, SetTimer
from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.trace.records import Kind, Record

__all__ = ["TOPIC", "Scout"]
TURN = "turn"


class Scout:
    """Everything about content at one node."""

    def __init__(self, context: Context, config: ContentConfig, directory: Directory) -> None:
        self._context = context
        self._config = config
        ours = self._ours = context.peer
        self.table = FilterTable()
        self.elections = Elections(ours, config, directory)
        reach = self._reach = Reach(config)
        self._book = RouteBook(config, reach)
        self._copies = Copies(config)
        self._backups = Backups(ours, config, directory, self.elections, reach, self.table, self._book)
        self._upstream = Upstream(ours, config, self.elections, reach, self.table, self._backups, self._book)
        self._claims = Claims(config, directory, reach)
        self._doubts = Doubts(config, self.elections, self.table)
        self._predecessors = Predecessors(ours, config, self._claims, self._copies, self.table)
        self._application = Application(context, config)
        self._notices = Notices(
            ours, config, reach, self.table, self._book, self._copies, self._application.take
        )
        replays = Replays(self._notices, self.table)
        self._keeping = Keeping(
            context, config, reach, self._book, self._copies, self._backups, self._notices, replays
        )
        self._trackers = self._keeping.trackers
        self._successions = Successions(ours, reach, self._claims, self._notices.lately)
        self._splits = Splits(ours, config, self._backups)
        self._walks = Walks(
            config,
            self.elections,
            reach,
            self._notices,
            self._predecessors,
            self._backups,
            self._trackers,
            self._splits,
            self._copies,
        )
        self._passage = Passage(
            context,
            config,
            self.elections,
            reach,
            self.table,
            self._book,
            self._backups,
            self._upstream,
            self._walks,
            self._notices,
            replays,
        )
        self._budgets = Budgets(config)

    @property
    def is_settled(self) -> bool:
        """Whether all subscriptions stand and all events have arrived, as far as this node knows.

        Where none of the nodes can be reached that it knows, subscriptions stand with nobody.
        """
        parts = (self._upstream, self._walks, self._notices, self._backups)
        asked = {attribute: None for attribute, _ in self._application.own.values()}
        return all(part.is_settled for part in parts) and not any(map(self.elections.is_lost, asked))

    @property
    def remembered(self) -> int:
        """What is kept of events, of all kinds: it has to stay the same however many there were."""
        return len(self._walks) + len(self._notices) + len(self._trackers) + len(self._application)

    @property
    def subscriptions(self) -> int:
        """Those of the application."""
        return len(self._application.own)

    @property
    def arrivals(self) -> int:
        """Events that came to this node as the rendezvous of an attribute, or of a part."""
        return self._walks.arrivals

    def start(self, now: float) -> list[ContentEffect]:
        """Begin to tell subscriptions again, from a moment of this node's own."""
        return [SetTimer(self._config.refresh * self._context.rng.uniform(0.5, 1.0), Tick(OWNER, TURN))]

    # The application.

    def ask(self, request: int, command: ScoutCommand, now: float) -> list[ContentEffect]:
        """A command of the application."""
        try:
            match command:
                case SubscribeContent():
                    attribute, predicate = self._application.subscribe(command)
                    standing = Reply(request, Standing(predicate.text, attribute))
                    told = self._tell_own(attribute, predicate, now, command.returns)
                    return self._drained([standing, *told], now)
                case UnsubscribeContent(subscription):
                    attribute, left = self._application.unsubscribe(subscription)
                    self.table.replace(self._ours, attribute, left)
                    told = self._backups.changed(attribute, self._ours, left, True, now)
                    return [Reply(request, Ended()), *told, *self._upstream.withdraw(attribute)]
                case PublishContent():
                    return self._drained(self._publish(request, command, now), now)
                case _:
                    assert_never(command)
        except BadText as error:
            return [Reply(request, Declined(Reason.MALFORMED, str(error)))]
        except Refused as error:
            return [Reply(request, Declined(error.reason, error.detail))]

    def reads(self, subscription: int) -> bool:
        """Whether a subscription of the application is one of these."""
        return subscription in self._application.own

    def _tell_own(
        self, attribute: str, predicate: Predicate, now: float, returns: bool = False
    ) -> list[ContentEffect]:
        effects: list[ContentEffect] = []
        for piece in predicate.pieces:
            stands = self.table.add(self._ours, attribute, piece).stands
            effects += self._backups.changed(attribute, self._ours, (piece,), False, now)
            effects += self._upstream.tell(attribute, stands, 0, [], now, moved=returns)
        return effects

    def _publish(self, request: int, command: PublishContent, now: float) -> list[ContentEffect]:
        passing = self._application.sign(command, now)
        effects = self._application.published(request, passing, command.confirm)
        for attribute in passing.attributes.names:
            name = self._splits.choose(attribute, passing.id, now)
            effects += self._walks.begin(name, passing, None, 0, now)
        return effects

    # The network.

    def on_message(self, peer: PeerId, message: ContentMessage, now: float) -> list[ContentEffect]:
        """A message of a peer; what is wrong with it is said in a record."""
        try:
            self._budgets.spend(peer, message)
            return self._drained(self._on_message(peer, message, now), now)
        except RemoteError as error:
            note = f"{type(message).__name__}: {error.detail}"
            refused: list[ContentEffect] = [
                Record(Kind.REJECTED, peer=peer, reason=error.reason, note=note[:200])
            ]
            if isinstance(message, Subscribe):
                refused += self._reach.answer(peer, Subscribed(message.number, error.reason))
            if isinstance(message, Backup):
                refused += self._reach.answer(peer, Kept(message.number, error.reason))
            return refused

    def _on_message(self, peer: PeerId, message: ContentMessage, now: float) -> list[ContentEffect]:
        match message:
            case Subscribe() | Replace() | Publish() | Notice():
                return self._passage.take(peer, message, now)
            case Subscribed():
                return self._upstream.answered(peer, message, now)
            case Taken():
                return self._walks.taken(peer, message, now)
            case Reached():
                way = (message.event, message.attribute)
                count = Count(message.delivered, message.missed, message.again, message.matches)
                told = self._trackers.answered(way, peer, count) if self._notices.owes(peer, way) else []
                return [*told, *self._notices.reached(peer, message, now)]
            case Settled():
                return self._walks.settled(peer, message)
            case Claim() | Closer() | Before():
                return self._on_claim(peer, message, now)
            case _:
                return self._keeping.on_message(peer, message, now)

    def _on_claim(self, peer: PeerId, message: Claim | Closer | Before, now: float) -> list[ContentEffect]:
        attribute = message.attribute
        stale = Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note=type(message).__name__)
        if isinstance(message, Before):
            return [] if self._predecessors.learn(attribute, message.contact, now) else [stale]
        contact = self._reach.contact(peer) if isinstance(message, Claim) else message.contact
        moved = self._give_way(attribute, contact, now, peer)
        if moved is None and isinstance(message, Closer):
            return [stale]
        if isinstance(message, Closer):
            return moved or []
        heard = [*self._claims.heard(peer, attribute), *self._successions.claimed(attribute, now)]
        return [*(moved or ()), *heard]

    def _give_way(
        self, attribute: str, contact: Contact, now: float, sender: PeerId | None = None
    ) -> list[ContentEffect] | None:
        """Let another be rendezvous in our place; None unless we are that and it is closer."""
        if not self.elections.heed(attribute, contact, now, sender):
            return None
        return self._leave(attribute, now)

    def _leave(self, attribute: str, now: float) -> list[ContentEffect]:
        """Who is closer is young: it is helped by being told at once what we know, and what came lately."""
        self._predecessors.left(attribute)
        effects = [*self._splits.left(attribute), *self._upstream.retell(attribute, now)]
        return [*effects, *self._walks.moved(attribute, now)]

    # Links and time.

    def link_up(self, event: LinkUp, now: float) -> list[ContentEffect]:
        """A link is up; if who is there is closer to what we act as rendezvous of, it is that from now on."""
        contact = Contact(event.peer, event.hello.listens[:8])
        self.elections.forgive(event.peer)
        effects = self._reach.link_up(event.peer, contact.hints)
        for attribute in self.elections.held if contact.hints else ():
            effects += self._give_way(attribute, contact, now) or ()
        return self._drained(effects, now)

    def link_gone(self, event: LinkDown | DialFailed, now: float) -> list[ContentEffect]:
        """A link is down, or none came up: what went that way goes another."""
        peer = event.peer
        effects = self._reach.gone(peer, event.reason)
        effects += self._book.gone(peer)
        self.elections.link_gone(peer, event.reason, now)
        for attribute in self._backups.kept_by(peer) if self.elections.is_avoided(peer, now) else ():
            effects += self._doubts.abandoned(attribute, now)
        effects += self._keeping.replaced(self._backups.gone(peer, now), now)
        effects += self._upstream.gone(peer, now)
        effects += self._notices.gone(peer, now)
        effects += self._successions.gone(peer, now)
        self._walks.orphaned(peer, now)
        effects += self._walks.gone(peer, now)
        for attribute, passing, hops in self._trackers.gone(peer):
            if not self._walks.known((passing.id, attribute)):
                effects += self._walks.begin(attribute, passing, None, hops, now)
        return self._drained(effects, now)

    def located(self, found: Located, now: float) -> list[ContentEffect]:
        """A lookup has ended."""
        before = self.elections.held
        split = self._splits.located(found)
        attribute = self.elections.located(found, now)
        if attribute is None:
            return split
        effects = split
        if attribute in self.elections.held:
            effects += self._claims.claim(attribute, found.contacts)
            if attribute not in before:
                self._predecessors.took(attribute, now)
            if not found.contacts or self.elections.lost_sight(attribute, now):
                effects += self._doubts.begin(attribute, now)
        else:
            self._predecessors.left(attribute)
            effects += self._splits.left(attribute)
        effects += self._backups.located(attribute, found.contacts, now)
        effects += self._upstream.decided(attribute, now)
        return self._drained([*effects, *self._walks.decided(attribute, now)], now)

    def fired(self, tick: Tick, now: float) -> list[ContentEffect]:
        """A timer has run out."""
        if tick.what == ASK:
            return self._upstream.fired(tick, now)
        if tick.what == WALK:
            return self._drained(self._walks.fired(tick, now), now)
        if tick.what == NOTICE:
            return self._drained(self._notices.fired(tick, now), now)
        if tick.what == BACKUP:
            return self._keeping.replaced(self._backups.fired(tick, now), now)
        if tick.what == LOG:
            return self._trackers.fired()
        if tick.what == CONFIRM:
            return self._application.fired(tick)
        if tick.what == LOOK:
            return self._doubts.fired(tick, now)
        if tick.what == LAPSE:
            return self._lapse(PeerId(tick.key), now)
        return self._turn(now)

    def _turn(self, now: float) -> list[ContentEffect]:
        """A period is over: tell our own subscriptions again, and forget what others did not."""
        self.table.turn()
        self.elections.tidy(now)
        self._claims.turn()
        self._budgets.turn()
        self._keeping.tidy(now)
        self._successions.tidy()
        self._predecessors.tidy(now)
        self._walks.tidy(now)
        self._notices.tidy(now)
        self._application.tidy(now)
        effects = [*self._splits.turn(now), *self._backups.turn(now)]
        effects += self._upstream.turn(now)
        for attribute, predicate in self._application.own.values():
            effects += self._tell_own(attribute, predicate, now)
        self._book.keep({name: self.table.routes(name) for name in self.table.attributes})
        hops = {**self._upstream.next_hops, **self._walks.next_hops}
        effects += self._reach.keep({**hops, **self._backups.keepers, **self._book.shortcuts})
        return [*effects, SetTimer(self._config.refresh, Tick(OWNER, TURN))]

    def _lapse(self, peer: PeerId, now: float) -> list[ContentEffect]:
        """A route that is gone for so long that all below it have moved elsewhere is forgotten."""
        effects: list[ContentEffect] = []
        for attribute in self.table.drop(peer) if self._book.lapsed(peer) else ():
            effects += self._backups.changed(attribute, peer, (), True, now)
            effects += self._upstream.withdraw(attribute)
        return effects

    def _drained(self, effects: list[ContentEffect], now: float) -> list[ContentEffect]:
        """With what came of it: what we leave to others, events for the application, ends of its own."""
        while self.elections.left:
            effects += self._leave(self.elections.left.pop(), now)
        effects += self._application.handed
        self._application.handed.clear()
        for way, so_far in self._notices.stalled:
            effects += self._walks.stall(way, so_far)
        self._notices.stalled.clear()
        for way, count in self._notices.counted:
            effects += [*self._walks.settle(way, count), *self._trackers.finished(way)]
        self._notices.counted.clear()
        effects += self._walks.fell_back(now)
        for (event, attribute), count, reason in self._walks.ended:
            effects += self._application.ended(event, base_of(attribute), count, reason)
        self._walks.ended.clear()
        for (event, attribute), so_far in self._walks.stalled:
            effects += self._application.stalled(event, base_of(attribute), so_far)
        self._walks.stalled.clear()
        return effects
