"""ScoutSubs: subscriptions walk to a rendezvous and leave filters; events walk there, and follow them back.

A subscription goes to the rendezvous of one of its attributes, the nearest to the subscriber; an event
goes to those of all its attributes. An event that a predicate accepts has all of the predicate's attributes,
so the two meet. After Agostinho 2021; what is different, and why, is in docs/adr/0021-content.md.
"""

from __future__ import annotations

from linnet.content.application import Application, ConfirmDue, Hand
from linnet.content.attribute_keys import Directory, Located, base_of, is_part
from linnet.content.branch_ledger import LogDue, Successions, Trackers, Upstream, WentBy, count_of
from linnet.content.commands import PublishContent
from linnet.content.config import ContentConfig
from linnet.content.delivery_path import NOTICE, DeliveryPath, Descent, NoticeDue
from linnet.content.filter_backup import BackupDue, Backups, Copies
from linnet.content.filter_table import FilterTable
from linnet.content.hot_attributes import HotAttributes
from linnet.content.messages import (
    Backup,
    Before,
    Claim,
    Closer,
    Held,
    Keepers,
    Kept,
    Log,
    Logged,
    Notice,
    Publish,
    Reached,
    Replace,
    Routes,
    Settled,
    StandIn,
    Subscribe,
    Subscribed,
    Taken,
)
from linnet.content.passing import Passing, check, check_asked
from linnet.content.predicate import Predicate, foreign_predicate
from linnet.content.publish_path import Predecessors, PublishPath, WalkDue
from linnet.content.rendezvous import Claims, Doubts, Elections, LookDue
from linnet.content.routes import Listener, Promise, Reach, RouteBook, RouteLapse, Station, hears
from linnet.content.subscription_router import SubscribeDue, SubscriptionRouter
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.machine.part import on_command, on_timer
from linnet.trace.records import Kind, Record

_KINDS: dict[type, str] = {
    Subscribe: "subscriptions",
    Replace: "subscriptions",
    Keepers: "subscriptions",
    Backup: "filters to keep",
    StandIn: "questions for routes",
    Claim: "claims",
    Closer: "claims",
    Before: "claims",
    Publish: "events",
    Notice: "events",
    Log: "events",
    Taken: "answers",
    Reached: "answers",
    Settled: "answers",
    Held: "answers",
    Logged: "answers",
}
"""Messages with quotas, and the quota that each kind counts against; answers are as many as events."""

_ANSWERS = 4
"""Answers that an event may cost: it is taken, waited for, reached all below, and settled."""


class Quotas:
    """Counts the messages of each peer in this period."""

    def __init__(self, config: ContentConfig) -> None:
        self._limits = dict.fromkeys(_KINDS.values(), config.budget)
        self._limits |= {"events": config.event_budget, "claims": config.claim_budget}
        self._limits["answers"] = _ANSWERS * config.event_budget
        self._most = config.routes
        self._spent: dict[PeerId, dict[str, int]] = {}

    def spend(self, peer: PeerId, message: Message) -> None:
        """Count a message; `RemoteError` if it exceeds the quota."""
        kind = _KINDS.get(type(message))
        if kind is None:
            return
        spent = self._spent.get(peer)
        if spent is None:
            if len(self._spent) >= self._most:
                del self._spent[next(iter(self._spent))]
            spent = self._spent[peer] = {}
        if spent.get(kind, 0) >= self._limits[kind]:
            raise RemoteError(Reason.QUOTA, f"more than {self._limits[kind]} {kind} in a period")
        spent[kind] = spent.get(kind, 0) + 1

    def turn(self) -> None:
        """End a period: all counts begin anew."""
        self._spent.clear()


class PeriodDue(Timer, frozen=True, gc=False):
    """A period is over: subscriptions are due to be sent again."""


class Scout(Listener):
    """ScoutSubs at one node.

    The part that keeps subscriptions has events found here, and reports links and finished lookups.
    """

    def __init__(
        self,
        context: Context,
        config: ContentConfig,
        directory: Directory,
        out: Outbox,
        hand: Hand,
        promise: Promise,
    ) -> None:
        """`hand` passes events to subscriptions; `promise` gives the outbox that acknowledges them."""
        super().__init__(out)
        self._context = context
        ours, table = context.peer, FilterTable()
        self.table = table
        elections = self.elections = Elections(ours, config, directory, out)
        reach = Reach(config, out, promise)
        station = self._station = Station(ours, config, reach, table, RouteBook(config, reach, out), out)
        copies = self._copies = Copies(config)
        backups = self._backups = Backups(station, directory, elections)
        self._router = SubscriptionRouter(station, elections, backups)
        self._claims = Claims(config, directory, reach, out)
        self._doubts = Doubts(config, elections, table, out)
        predecessors = self._predecessors = Predecessors(ours, config, self._claims, copies, table)
        self._application = Application(context, config, out, hand, promise)
        delivery_path = self._delivery_path = DeliveryPath(station, copies, self._application.take)
        trackers = self._trackers = Trackers(config, reach, backups, out)
        self._successions = Successions(ours, reach, self._claims, delivery_path.lately)
        hot = self._hot = HotAttributes(ours, config, backups, out)
        self._publish_path = PublishPath(
            station, elections, delivery_path, predecessors, backups, trackers, hot, copies
        )
        self._quotas = Quotas(config)

    @property
    def is_settled(self) -> bool:
        """Whether all subscriptions stand and all events have arrived, as far as this node knows.

        A node that reaches none of the nodes that it knows is not settled: its subscriptions stand with
        nobody.
        """
        parts = (self._router, self._publish_path, self._delivery_path, self._backups)
        asked = {attribute: None for attribute, _ in self._application.own.values()}
        return all(part.is_settled for part in parts) and not any(map(self.elections.is_lost, asked))

    @property
    def remembered(self) -> int:
        """The number of entries kept about events, of all kinds: bounded however many events there were."""
        return (
            len(self._publish_path) + len(self._delivery_path) + len(self._trackers) + len(self._application)
        )

    @property
    def subscriptions(self) -> int:
        """The number of subscriptions of the application."""
        return len(self._application.own)

    @property
    def arrivals(self) -> int:
        """The number of events that came to this node as the rendezvous of an attribute, or of a part."""
        return self._publish_path.arrivals

    def start(self, now: float) -> None:
        """Start the period in which subscriptions are sent again, at a random moment."""
        self._out.set_timer(self._station.config.refresh * self._context.rng.uniform(0.5, 1.0), PeriodDue())

    # The application.

    def admit_subscription(self, number: int, text: str) -> str:
        """Keep a subscription; return the attribute whose rendezvous it goes to.

        `Refused` or `BadText` if it cannot be kept. Nothing is sent before `begin_subscription`.
        """
        return self._application.subscribe(number, text)

    def begin_subscription(self, number: int, now: float, returns: bool = False) -> None:
        """Subscribe at the next hops. A subscription that returns may have missed events."""
        self._tell_own(*self._application.own[number], now, returns)
        self.finish(now)

    def end_subscription(self, number: int, now: float) -> None:
        """End a subscription, and tell the next hop what is still wanted."""
        attribute, left = self._application.unsubscribe(number)
        self.table.replace(self._station.ours, attribute, left)
        self._backups.tell_change(attribute, self._station.ours, left, True, now)
        self._router.withdraw(attribute)

    def reads(self, subscription: int) -> bool:
        """Return whether a subscription of the application is served by rendezvous."""
        return subscription in self._application.own

    def _tell_own(self, attribute: str, predicate: Predicate, now: float, returns: bool = False) -> None:
        for piece in predicate.pieces:
            stands = self.table.add(self._station.ours, attribute, piece).stands
            self._backups.tell_change(attribute, self._station.ours, (piece,), False, now)
            self._router.tell(attribute, stands, 0, [], now, moved=returns)

    @on_command(PublishContent)
    def publish(self, request: int, command: PublishContent, now: float) -> None:
        """Sign an event, and send it to the rendezvous of each of its attributes."""
        passing = self._application.sign(command, now)
        self._application.note_published(request, passing, command.confirm)
        for attribute in passing.attributes.names:
            name = self._hot.choose(attribute, passing.id, now)
            self._publish_path.begin(name, passing, None, 0, now)
        self.finish(now)

    # Messages.

    def spend(self, peer: PeerId, message: Message) -> None:
        """See `Listener.spend`."""
        self._quotas.spend(peer, message)

    def answer(self, peer: PeerId, message: Message) -> None:
        """See `Listener.answer`."""
        self._station.reach.answer(peer, message)

    @hears(Subscribe, lambda message, reason: Subscribed(message.number, reason))
    def handle_subscribe(self, peer: PeerId, message: Subscribe, now: float) -> None:
        """Keep a filter of a peer, and ask the next hop for the events that it accepts."""
        config, book = self._station.config, self._station.book
        predicate = foreign_predicate(message.predicate, config.attributes)
        self._check_way(peer, message.attribute, predicate, message.hops, upwards=True)
        self.table.check_room(peer, message.attribute, predicate, config)
        stands = self.table.add(peer, message.attribute, predicate).stands
        book.learn(peer, message.backups, self._station.reach.contact(peer))
        book.set_shortcut(peer, message.attribute, message.shortcut)
        waiters = [(peer, message.number)] if config.reliable else []
        hops, moved = message.hops + 1, message.moved
        self._backups.tell_change(message.attribute, peer, (predicate,), False, now)
        self._router.tell(message.attribute, stands, hops, waiters, now, moved)
        if moved:
            self._delivery_path.replay(peer, message.attribute, predicate, now)

    def _check_way(self, peer: PeerId, attribute: str, asked: Predicate, hops: int, upwards: bool) -> None:
        """Check that walks come from nodes farther from the rendezvous, and notices from closer ones."""
        check_asked(attribute, asked, hops)
        if self.elections.is_closer(peer, attribute) is upwards:
            raise RemoteError(Reason.NOT_RESPONSIBLE, "not on the way to this rendezvous")

    def _check_event(self, message: Publish | Notice | Log, now: float) -> Passing:
        return check(message.unit, message.card, self._context, self._station.config, now)

    @hears(Subscribed)
    def handle_subscribed(self, peer: PeerId, message: Subscribed, now: float) -> None:
        """Note whether a predicate stands all the way to the rendezvous."""
        self._router.handle_answer(peer, message, now)

    @hears(Replace)
    def handle_replace(self, peer: PeerId, message: Replace, now: float) -> None:
        """Replace all filters of a peer under an attribute by these."""
        left = tuple(foreign_predicate(text, self._station.config.attributes) for text in message.predicates)
        if any(message.attribute not in predicate.names for predicate in left):
            raise RemoteError(Reason.MALFORMED, "a predicate without the attribute that it goes by")
        if not self.table.replace(peer, message.attribute, left) and left:
            self.table.replace(peer, message.attribute, ())
            raise RemoteError(Reason.STALE, "it had asked for nothing")
        self._backups.tell_change(message.attribute, peer, left, True, now)
        self._router.withdraw(message.attribute)

    @hears(Publish)
    def handle_publish(self, peer: PeerId, message: Publish, now: float) -> None:
        """Bring an event further on its way to a rendezvous."""
        passing = self._check_event(message, now)
        self._check_way(peer, message.attribute, passing.attributes, message.hops, upwards=True)
        way = (passing.id, message.attribute)
        if self._publish_path.is_known(way):
            self._publish_path.repeat_answer(peer, way)
        else:
            self._publish_path.begin(message.attribute, passing, peer, message.hops, now)

    @hears(Taken)
    def handle_taken(self, peer: PeerId, message: Taken, now: float) -> None:
        """Note that the rendezvous has an event, or that the next hop could not bring it there."""
        self._publish_path.handle_taken(peer, message, now)

    @hears(Settled)
    def handle_settled(self, peer: PeerId, message: Settled, now: float) -> None:
        """Note the outcome of an event at its rendezvous."""
        self._publish_path.handle_settled(peer, message, now)

    @hears(Notice)
    def handle_notice(self, peer: PeerId, message: Notice, now: float) -> None:
        """Send an event down to the routes that want it."""
        passing = self._check_event(message, now)
        self._check_way(peer, message.attribute, passing.attributes, message.hops, upwards=False)
        base = base_of(message.attribute)
        way = (passing.id, base)
        if self._delivery_path.is_known(way):
            self._delivery_path.repeat_answer(peer, way, message.attribute)
            return
        self._out.record(Record(Kind.RECEIVED, event=passing.id, peer=peer, hops=message.hops, note=NOTICE))
        upstream = Upstream(peer, message.attribute, message.patience / 1000)
        own_only = is_part(message.attribute) and base in self.elections.held
        descent = Descent(message.hops, upstream, own_only=own_only)
        self._delivery_path.send_down(base, passing, descent, now)

    @hears(Held)
    def handle_held(self, peer: PeerId, message: Held, now: float) -> None:
        """Note that a route has an event and waits for the nodes below it."""
        self._delivery_path.handle_held(peer, message, now)

    @hears(Reached)
    def handle_reached(self, peer: PeerId, message: Reached, now: float) -> None:
        """Note that a route has answered for an event."""
        way = (message.event, message.attribute)
        if self._delivery_path.owes(peer, way):
            self._trackers.note_answer(way, peer, count_of(message))
        self._delivery_path.handle_reached(peer, message, now)

    @hears(StandIn)
    def handle_stand_in(self, peer: PeerId, message: StandIn, now: float) -> None:
        """Tell a peer which routes of a lost node want an event."""
        for answer in self._copies.answers(message):
            self.answer(peer, answer)

    @hears(Routes)
    def handle_routes(self, peer: PeerId, message: Routes, now: float) -> None:
        """Send an event to the routes of a lost node."""
        self._delivery_path.handle_routes(peer, message, now)

    @hears(Backup, lambda message, reason: Kept(message.number, reason))
    def handle_backup(self, peer: PeerId, message: Backup, now: float) -> None:
        """Keep the filters of a peer."""
        self._copies.keep(peer, message)
        self.answer(peer, Kept(message.number, None))

    @hears(Kept)
    def handle_kept(self, peer: PeerId, message: Kept, now: float) -> None:
        """Note whether a peer keeps our filters."""
        self._backups.handle_kept(peer, message, now)
        self._name_keepers(now)

    def _name_keepers(self, now: float) -> None:
        """Tell next hops the keepers of our filters, if these have changed."""
        for peer in self._backups.take_untold(now):
            self.answer(peer, Keepers(self._backups.contacts(now)))

    @hears(Keepers)
    def handle_keepers(self, peer: PeerId, message: Keepers, now: float) -> None:
        """Note the keepers of a route's filters."""
        self._station.book.learn(peer, message.backups, self._station.reach.contact(peer))

    @hears(Log)
    def handle_log(self, peer: PeerId, message: Log, now: float) -> None:
        """Track an event for its rendezvous."""
        passing = self._check_event(message, now)
        check_asked(message.attribute, passing.attributes, message.hops)
        self._trackers.add_log(peer, (passing.id, message.attribute), passing, message.hops, now)

    @hears(Logged)
    def handle_logged(self, peer: PeerId, message: Logged, now: float) -> None:
        """Note the progress of events that are tracked here."""
        for way, passing, hops in self._trackers.handle_logged(peer, message):
            self._delivery_path.replay_tracked(WentBy(now, way, passing, hops, peer), now)

    @hears(Claim)
    def handle_claim(self, peer: PeerId, message: Claim, now: float) -> None:
        """Give way to a closer rendezvous, or tell a farther one of a closer node."""
        self._give_way(message.attribute, self._station.reach.contact(peer), now, peer)
        self._claims.handle_claim(peer, message.attribute)
        self._successions.hand_over(message.attribute, now)

    @hears(Closer)
    def handle_closer(self, peer: PeerId, message: Closer, now: float) -> None:
        """Give way to the rendezvous that a peer names."""
        if not self._give_way(message.attribute, message.contact, now, peer):
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Closer"))

    @hears(Before)
    def handle_before(self, peer: PeerId, message: Before, now: float) -> None:
        """Note the predecessor that a peer names."""
        if not self._predecessors.learn(message.attribute, message.contact, now):
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Before"))

    def _give_way(self, attribute: str, contact: Contact, now: float, sender: PeerId | None = None) -> bool:
        """Leave an attribute to another node, if this one is its rendezvous and the other is closer."""
        if not self.elections.yield_to(attribute, contact, now, sender):
            return False
        self._leave(attribute, now)
        return True

    def _leave(self, attribute: str, now: float) -> None:
        """Help the new, closer rendezvous, which is young: send it our filters and recent events at once."""
        self._predecessors.forget(attribute)
        self._hot.unsplit(attribute)
        self._router.retell(attribute, now)
        self._publish_path.send_on(attribute, now)

    # Links and lookups.

    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Send what waits for a link, and give way to a peer that is closer to one of our attributes."""
        contact = Contact(event.peer, event.hello.listens[:8])
        self.elections.suspects.forgive(event.peer)
        self._station.reach.handle_link_up(event.peer, contact.hints)
        for attribute in self.elections.held if contact.hints else ():
            self._give_way(attribute, contact, now)
        self.finish(now)

    def handle_link_loss(self, event: LinkDown | DialFailed, now: float) -> None:
        """Send another way what went over a link that is down or did not come up; replace lost keepers."""
        peer = event.peer
        self._station.reach.handle_link_down(peer, event.reason)
        self._station.book.handle_link_down(peer)
        self.elections.suspects.handle_link_down(peer, event.reason, now)
        for attribute in self._backups.kept_by(peer) if self.elections.suspects.is_avoided(peer, now) else ():
            self._doubts.handle_keeper_loss(attribute, now)
        self._backups.replace_keeper(peer, now)
        self._name_keepers(now)
        self._router.handle_link_down(peer, now)
        self._delivery_path.handle_link_down(peer, now)
        self._successions.handle_link_down(peer, now)
        self._publish_path.note_lost_owner(peer, now)
        self._publish_path.handle_link_down(peer, now)
        for attribute, passing, hops in self._trackers.unfinished_of(peer):
            if not self._publish_path.is_known((passing.id, attribute)):
                self._publish_path.begin(attribute, passing, None, hops, now)
        self.finish(now)

    def handle_nodes_found(self, found: Located, now: float) -> None:
        """Continue what waited for a lookup."""
        before = self.elections.held
        self._hot.handle_nodes_found(found)
        attribute = self.elections.handle_nodes_found(found, now)
        if attribute is None:
            return
        if attribute in self.elections.held:
            self._claims.claim(attribute, found.contacts)
            if attribute not in before:
                self._predecessors.begin(attribute, now)
            if not found.contacts or self.elections.lost_sight(attribute, now):
                self._doubts.begin(attribute, now)
        else:
            self._predecessors.forget(attribute)
            self._hot.unsplit(attribute)
        self._backups.handle_nodes_found(attribute, found.contacts, now)
        self._router.resume(attribute, now)
        self._publish_path.resume(attribute, now)
        self.finish(now)

    # Time.

    @on_timer(SubscribeDue)
    def resend_subscription(self, timer: SubscribeDue, now: float) -> None:
        """Send a predicate to the next hop once more."""
        self._router.handle_timeout(timer, now)

    @on_timer(WalkDue)
    def resend_event(self, timer: WalkDue, now: float) -> None:
        """Send an event up once more."""
        self._publish_path.handle_timeout(timer, now)
        self.finish(now)

    @on_timer(NoticeDue)
    def resend_notice(self, timer: NoticeDue, now: float) -> None:
        """Send an event down once more."""
        self._delivery_path.handle_timeout(timer, now)
        self.finish(now)

    @on_timer(BackupDue)
    def resend_backup(self, timer: BackupDue, now: float) -> None:
        """Have our filters kept by a keeper that did not answer, or by another one."""
        self._backups.handle_timeout(timer, now)
        self._name_keepers(now)

    @on_timer(LogDue)
    def tell_trackers(self, timer: LogDue, now: float) -> None:
        """Tell the trackers the news of our events."""
        self._trackers.tell_trackers()

    @on_timer(ConfirmDue)
    def end_confirmation(self, timer: ConfirmDue, now: float) -> None:
        """Answer the application although some nodes have not answered."""
        self._application.end_confirmation(timer)

    @on_timer(LookDue)
    def look_again(self, timer: LookDue, now: float) -> None:
        """Look once more for a closer node."""
        self._doubts.look_again(timer, now)

    @on_timer(RouteLapse)
    def forget_route(self, timer: RouteLapse, now: float) -> None:
        """Forget a route that has been gone for so long that all below it have moved elsewhere."""
        for attribute in self.table.drop(timer.peer) if self._station.book.forget_lapsed(timer.peer) else ():
            self._backups.tell_change(attribute, timer.peer, (), True, now)
            self._router.withdraw(attribute)

    @on_timer(PeriodDue)
    def begin_period(self, timer: PeriodDue, now: float) -> None:
        """Send our own subscriptions again, and forget the filters that others did not send again."""
        self.table.turn()
        self.elections.tidy(now)
        self._claims.begin_period()
        self._quotas.turn()
        self._copies.turn()
        self._trackers.tidy(now)
        self._successions.tidy()
        self._predecessors.tidy(now)
        self._publish_path.tidy(now)
        self._delivery_path.tidy(now)
        self._application.tidy(now)
        self._hot.begin_period(now)
        self._backups.begin_period(now)
        self._router.begin_period(now)
        for attribute, predicate in self._application.own.values():
            self._tell_own(attribute, predicate, now)
        self._station.book.keep_shortcuts({name: self.table.routes(name) for name in self.table.attributes})
        hops = {**self._router.next_hops, **self._publish_path.next_hops}
        self._station.reach.release_idle({**hops, **self._backups.keepers, **self._station.book.shortcuts})
        self._out.set_timer(self._station.config.refresh, PeriodDue())

    def finish(self, now: float) -> None:
        """Act on the results of an input: give way, hand events over, report outcomes."""
        while self.elections.left:
            self._leave(self.elections.left.pop(), now)
        for attribute in self.elections.take_surplus(self.table.routes):
            self._predecessors.forget(attribute)
            self._hot.unsplit(attribute)
            self._backups.forget(attribute)
        self._application.hand_over()
        for way, so_far in self._delivery_path.stalled:
            self._publish_path.stall(way, so_far)
        self._delivery_path.stalled.clear()
        for way, count in self._delivery_path.counted:
            self._publish_path.settle(way, count)
            self._trackers.note_end(way)
        self._delivery_path.counted.clear()
        self._publish_path.fall_back(now)
        for (event, attribute), count, reason in self._publish_path.ended:
            self._application.note_end(event, base_of(attribute), count, reason)
        self._publish_path.ended.clear()
        for (event, attribute), so_far in self._publish_path.stalled:
            self._application.note_stall(event, base_of(attribute), so_far)
        self._publish_path.stalled.clear()
