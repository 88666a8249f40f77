"""ScoutSubs: subscriptions walk to a rendezvous and leave filters; events walk there, and follow them back.

A subscription goes to the rendezvous of one of its attributes, the nearest to the subscriber; an event
goes to those of all its attributes. An event that a predicate accepts has all of the predicate's attributes,
so the two meet. After Agostinho 2021; what is different, and why, is in docs/adr/0021-content.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from linnet.content.application import TOPIC, Application, ConfirmDue, Hand
from linnet.content.attribute_keys import Directory, Located, base_of, is_part
from linnet.content.branch_ledger import Count
from linnet.content.commands import PublishContent
from linnet.content.config import ContentConfig
from linnet.content.delivery_path import NOTICE, DeliveryPath, NoticeDue
from linnet.content.event_tracking import LogDue, Successions, Trackers, WentBy
from linnet.content.filter_backup import BackupDue, Backups, Copies
from linnet.content.filter_table import FilterTable
from linnet.content.hot_attributes import HotAttributes
from linnet.content.messages import (
    Backup,
    Before,
    Claim,
    Closer,
    ContentMessage,
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
from linnet.content.passing import check, check_asked
from linnet.content.predicate import Predicate, foreign_predicate
from linnet.content.publish_path import Predecessors, PublishPath, WalkDue
from linnet.content.quotas import Quotas
from linnet.content.reach import Promise, Reach
from linnet.content.rendezvous import Claims, Doubts, Elections, LookDue
from linnet.content.routes import RouteBook, RouteLapse
from linnet.content.subscription_router import SubscribeDue, SubscriptionRouter
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_message, on_timer
from linnet.trace.records import Kind, Record

__all__ = ["TOPIC", "Scout"]
M = TypeVar("M", bound=ContentMessage)


class PeriodDue(Timer, frozen=True, gc=False):
    """A period is over, after which subscriptions are told again."""


class Scout(Part):
    """ScoutSubs at one node.

    The part that keeps subscriptions asks it for them, and tells it of links and of lookups that have ended.
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
        """Have events handed to subscriptions by `hand`, and say by `promise` that they arrived."""
        self._context = context
        self._config = config
        self._out = out
        ours = self._ours = context.peer
        table = self.table = FilterTable()
        elections = self.elections = Elections(ours, config, directory, out)
        reach = self._reach = Reach(config, out, promise)
        book = self._book = RouteBook(config, reach, out)
        copies = self._copies = Copies(config)
        backups = self._backups = Backups(ours, config, directory, elections, reach, table, book, out)
        self._router = SubscriptionRouter(ours, config, elections, reach, table, backups, book, out)
        self._claims = Claims(config, directory, reach, out)
        self._doubts = Doubts(config, elections, table, out)
        self._predecessors = Predecessors(ours, config, self._claims, copies, table)
        self._application = Application(context, config, out, hand, promise)
        take = self._application.take
        notices = self._delivery_path = DeliveryPath(ours, config, reach, table, book, copies, take, out)
        self._trackers = Trackers(config, reach, backups, out)
        self._successions = Successions(ours, reach, self._claims, notices.lately)
        self._hot = HotAttributes(ours, config, backups, out)
        self._publish_path = PublishPath(
            config,
            elections,
            reach,
            notices,
            self._predecessors,
            backups,
            self._trackers,
            self._hot,
            copies,
            out,
        )
        self._quotas = Quotas(config)

    @property
    def is_settled(self) -> bool:
        """Whether all subscriptions stand and all events have arrived, as far as this node knows.

        Where none of the nodes can be reached that it knows, subscriptions stand with nobody.
        """
        parts = (self._router, self._publish_path, self._delivery_path, self._backups)
        asked = {attribute: None for attribute, _ in self._application.own.values()}
        return all(part.is_settled for part in parts) and not any(map(self.elections.is_lost, asked))

    @property
    def remembered(self) -> int:
        """What is kept of events, of all kinds: it has to stay the same however many there were."""
        return (
            len(self._publish_path) + len(self._delivery_path) + len(self._trackers) + len(self._application)
        )

    @property
    def subscriptions(self) -> int:
        """Those of the application."""
        return len(self._application.own)

    @property
    def arrivals(self) -> int:
        """Events that came to this node as the rendezvous of an attribute, or of a part."""
        return self._publish_path.arrivals

    def start(self, now: float) -> None:
        """Begin to tell subscriptions again, from a moment of this node's own."""
        self._out.set_timer(self._config.refresh * self._context.rng.uniform(0.5, 1.0), PeriodDue())

    # The application.

    def admit_subscription(self, number: int, text: str) -> str:
        """Keep a subscription to a predicate; the attribute to whose rendezvous it goes.

        `Refused` or `BadText` if it cannot be. Nobody is asked for anything before `begin_subscription`.
        """
        return self._application.subscribe(number, text)

    def begin_subscription(self, number: int, now: float, returns: bool = False) -> None:
        """Ask for what a subscription accepts. One that returns may have missed something."""
        self._tell_own(*self._application.own[number], now, returns)
        self._finish(now)

    def end_subscription(self, number: int, now: float) -> None:
        """Ask for it no more."""
        attribute, left = self._application.unsubscribe(number)
        self.table.replace(self._ours, attribute, left)
        self._backups.tell_change(attribute, self._ours, left, True, now)
        self._router.withdraw(attribute)

    def reads(self, subscription: int) -> bool:
        """Whether a subscription of the application is one of these."""
        return subscription in self._application.own

    def _tell_own(self, attribute: str, predicate: Predicate, now: float, returns: bool = False) -> None:
        for piece in predicate.pieces:
            stands = self.table.add(self._ours, attribute, piece).stands
            self._backups.tell_change(attribute, self._ours, (piece,), False, now)
            self._router.tell(attribute, stands, 0, [], now, moved=returns)

    @on_command(PublishContent)
    def publish(self, request: int, command: PublishContent, now: float) -> None:
        """Sign an event, and send it to the rendezvous of each of its attributes."""
        passing = self._application.sign(command, now)
        self._application.note_published(request, passing, command.confirm)
        for attribute in passing.attributes.names:
            name = self._hot.choose(attribute, passing.id, now)
            self._publish_path.begin(name, passing, None, 0, now)
        self._finish(now)

    # Messages.

    def _hear(
        self, peer: PeerId, message: M, handle: Callable[[PeerId, M, float], None], now: float
    ) -> Reason | None:
        """Handle a message within the budget of its peer; why it is refused, which a record says as well."""
        before = self._out.mark()
        try:
            self._quotas.spend(peer, message)
            handle(peer, message, now)
        except RemoteError as error:
            self._out.forget_since(before)
            note = f"{type(message).__name__}: {error.detail}"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=error.reason, note=note[:200]))
            return error.reason
        self._finish(now)
        return None

    @on_message(Subscribe)
    def handle_subscribe(self, peer: PeerId, message: Subscribe, now: float) -> None:
        """Keep a filter of a peer, and ask the next hop for what it accepts."""
        refusal = self._hear(peer, message, self._keep_filter, now)
        if refusal is not None:
            self._reach.answer(peer, Subscribed(message.number, refusal))

    def _keep_filter(self, peer: PeerId, message: Subscribe, now: float) -> None:
        predicate = foreign_predicate(message.predicate, self._config.attributes)
        self._check_way(peer, message.attribute, predicate, message.hops, upwards=True)
        self.table.check_room(peer, message.attribute, predicate, self._config)
        stands = self.table.add(peer, message.attribute, predicate).stands
        self._book.learn(peer, message.backups, self._reach.contact(peer))
        self._book.set_shortcut(peer, message.attribute, message.shortcut)
        waiters = [(peer, message.number)] if self._config.reliable else []
        hops, moved = message.hops + 1, message.moved
        self._backups.tell_change(message.attribute, peer, (predicate,), False, now)
        self._router.tell(message.attribute, stands, hops, waiters, now, moved)
        if moved:
            self._delivery_path.replay(peer, message.attribute, predicate, now)

    def _check_way(self, peer: PeerId, attribute: str, asked: Predicate, hops: int, upwards: bool) -> None:
        """Walks go to nodes closer to the rendezvous, and notices come from them: none goes in circles."""
        check_asked(attribute, asked, hops)
        if self.elections.is_closer(peer, attribute) is upwards:
            raise RemoteError(Reason.NOT_RESPONSIBLE, "not on the way to this rendezvous")

    @on_message(Subscribed)
    def handle_subscribed(self, peer: PeerId, message: Subscribed, now: float) -> None:
        """Note whether a predicate stands all the way to the rendezvous."""
        self._hear(peer, message, self._router.handle_answer, now)

    @on_message(Replace)
    def handle_replace(self, peer: PeerId, message: Replace, now: float) -> None:
        """Forget the filters of a peer but these."""
        self._hear(peer, message, self._replace_filters, now)

    def _replace_filters(self, peer: PeerId, message: Replace, now: float) -> None:
        left = tuple(foreign_predicate(text, self._config.attributes) for text in message.predicates)
        if any(message.attribute not in predicate.names for predicate in left):
            raise RemoteError(Reason.MALFORMED, "a predicate without the attribute that it goes by")
        if not self.table.replace(peer, message.attribute, left) and left:
            self.table.replace(peer, message.attribute, ())
            raise RemoteError(Reason.STALE, "it had asked for nothing")
        self._backups.tell_change(message.attribute, peer, left, True, now)
        self._router.withdraw(message.attribute)

    @on_message(Publish)
    def handle_publish(self, peer: PeerId, message: Publish, now: float) -> None:
        """Bring an event further on its way to a rendezvous."""
        self._hear(peer, message, self._bring_up, now)

    def _bring_up(self, peer: PeerId, message: Publish, now: float) -> None:
        passing = check(message.unit, message.card, self._context, self._config, now)
        self._check_way(peer, message.attribute, passing.attributes, message.hops, upwards=True)
        way = (passing.id, message.attribute)
        if self._publish_path.is_known(way):
            self._publish_path.repeat_answer(peer, way)
        else:
            self._publish_path.begin(message.attribute, passing, peer, message.hops, now)

    @on_message(Taken)
    def handle_taken(self, peer: PeerId, message: Taken, now: float) -> None:
        """Note that the rendezvous has an event, or that the next hop could not bring it there."""
        self._hear(peer, message, self._publish_path.handle_taken, now)

    @on_message(Settled)
    def handle_settled(self, peer: PeerId, message: Settled, now: float) -> None:
        """Note what became of an event at its rendezvous."""
        self._hear(peer, message, self._publish_path.handle_settled, now)

    @on_message(Notice)
    def handle_notice(self, peer: PeerId, message: Notice, now: float) -> None:
        """Bring an event to those below this node who want it."""
        self._hear(peer, message, self._bring_down, now)

    def _bring_down(self, peer: PeerId, message: Notice, now: float) -> None:
        passing = check(message.unit, message.card, self._context, self._config, now)
        self._check_way(peer, message.attribute, passing.attributes, message.hops, upwards=False)
        base = base_of(message.attribute)
        way = (passing.id, base)
        if self._delivery_path.is_known(way):
            self._delivery_path.repeat_answer(peer, way, message.attribute)
            return
        hops, patience = message.hops, message.patience / 1000
        self._out.record(Record(Kind.RECEIVED, event=passing.id, peer=peer, hops=hops, note=NOTICE))
        said, own_only = message.attribute, is_part(message.attribute) and base in self.elections.held
        self._delivery_path.send_down(
            base, passing, hops, peer, None, now, patience, said_as=said, own_only=own_only
        )

    @on_message(Held)
    def handle_held(self, peer: PeerId, message: Held, now: float) -> None:
        """Note that a route has an event and waits for others."""
        self._hear(peer, message, self._delivery_path.handle_held, now)

    @on_message(Reached)
    def handle_reached(self, peer: PeerId, message: Reached, now: float) -> None:
        """Note that a route has answered for an event."""
        self._hear(peer, message, self._count_reached, now)

    def _count_reached(self, peer: PeerId, message: Reached, now: float) -> None:
        way = (message.event, message.attribute)
        if self._delivery_path.owes(peer, way):
            count = Count(message.delivered, message.missed, message.again, message.matches)
            self._trackers.note_answer(way, peer, count)
        self._delivery_path.handle_reached(peer, message, now)

    @on_message(StandIn)
    def handle_stand_in(self, peer: PeerId, message: StandIn, now: float) -> None:
        """Tell a peer which routes of a node that is gone want an event."""
        self._hear(peer, message, self._name_routes, now)

    def _name_routes(self, peer: PeerId, message: StandIn, now: float) -> None:
        for answer in self._copies.answers(message):
            self._reach.answer(peer, answer)

    @on_message(Routes)
    def handle_routes(self, peer: PeerId, message: Routes, now: float) -> None:
        """Send an event to the routes of one that is gone."""
        self._hear(peer, message, self._delivery_path.handle_routes, now)

    @on_message(Backup)
    def handle_backup(self, peer: PeerId, message: Backup, now: float) -> None:
        """Keep filters of a peer."""
        refusal = self._hear(peer, message, self._keep_backup, now)
        if refusal is not None:
            self._reach.answer(peer, Kept(message.number, refusal))

    def _keep_backup(self, peer: PeerId, message: Backup, now: float) -> None:
        self._copies.keep(peer, message)
        self._reach.answer(peer, Kept(message.number, None))

    @on_message(Kept)
    def handle_kept(self, peer: PeerId, message: Kept, now: float) -> None:
        """Note whether a peer keeps our filters."""
        self._hear(peer, message, self._note_kept, now)

    def _note_kept(self, peer: PeerId, message: Kept, now: float) -> None:
        self._backups.handle_kept(peer, message, now)
        self._name_keepers(now)

    def _name_keepers(self, now: float) -> None:
        """Tell those who send us what we asked for who keeps our filters, if that is others now."""
        for peer in self._backups.take_untold(now):
            self._reach.answer(peer, Keepers(self._backups.contacts(now)))

    @on_message(Keepers)
    def handle_keepers(self, peer: PeerId, message: Keepers, now: float) -> None:
        """Note who keeps the filters of a route."""
        self._hear(peer, message, self._note_keepers, now)

    def _note_keepers(self, peer: PeerId, message: Keepers, now: float) -> None:
        self._book.learn(peer, message.backups, self._reach.contact(peer))

    @on_message(Log)
    def handle_log(self, peer: PeerId, message: Log, now: float) -> None:
        """Track an event for its rendezvous."""
        self._hear(peer, message, self._track_event, now)

    def _track_event(self, peer: PeerId, message: Log, now: float) -> None:
        passing = check(message.unit, message.card, self._context, self._config, now)
        check_asked(message.attribute, passing.attributes, message.hops)
        self._trackers.add_log(peer, (passing.id, message.attribute), passing, message.hops, now)

    @on_message(Logged)
    def handle_logged(self, peer: PeerId, message: Logged, now: float) -> None:
        """Note how far events are that are tracked here."""
        self._hear(peer, message, self._note_logged, now)

    def _note_logged(self, peer: PeerId, message: Logged, now: float) -> None:
        for way, passing, hops in self._trackers.handle_logged(peer, message):
            self._delivery_path.replay_tracked(WentBy(now, way, passing, hops, peer), now)

    @on_message(Claim)
    def handle_claim(self, peer: PeerId, message: Claim, now: float) -> None:
        """Give way to a rendezvous that is closer, or tell it of one that is closer still."""
        self._hear(peer, message, self._hear_claim, now)

    def _hear_claim(self, peer: PeerId, message: Claim, now: float) -> None:
        self._give_way(message.attribute, self._reach.contact(peer), now, peer)
        self._claims.handle_claim(peer, message.attribute)
        self._successions.hand_over(message.attribute, now)

    @on_message(Closer)
    def handle_closer(self, peer: PeerId, message: Closer, now: float) -> None:
        """Give way to the rendezvous that a peer names."""
        self._hear(peer, message, self._hear_closer, now)

    def _hear_closer(self, peer: PeerId, message: Closer, now: float) -> None:
        if not self._give_way(message.attribute, message.contact, now, peer):
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Closer"))

    @on_message(Before)
    def handle_before(self, peer: PeerId, message: Before, now: float) -> None:
        """Note who was the rendezvous before this node."""
        self._hear(peer, message, self._hear_before, now)

    def _hear_before(self, peer: PeerId, message: Before, now: float) -> None:
        if not self._predecessors.learn(message.attribute, message.contact, now):
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Before"))

    def _give_way(self, attribute: str, contact: Contact, now: float, sender: PeerId | None = None) -> bool:
        """Let another be rendezvous in our place; not unless we are that and it is closer."""
        if not self.elections.yield_to(attribute, contact, now, sender):
            return False
        self._leave(attribute, now)
        return True

    def _leave(self, attribute: str, now: float) -> None:
        """Who is closer is young: it is helped by being told at once what we know, and what came lately."""
        self._predecessors.forget(attribute)
        self._hot.unsplit(attribute)
        self._router.retell(attribute, now)
        self._publish_path.send_on(attribute, now)

    # Links and lookups.

    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Send what waits for a link, and give way to a peer that is closer to what we are rendezvous of."""
        contact = Contact(event.peer, event.hello.listens[:8])
        self.elections.forgive(event.peer)
        self._reach.handle_link_up(event.peer, contact.hints)
        for attribute in self.elections.held if contact.hints else ():
            self._give_way(attribute, contact, now)
        self._finish(now)

    def handle_link_loss(self, event: LinkDown | DialFailed, now: float) -> None:
        """Send another way what went over a link that is down, or that did not come up."""
        peer = event.peer
        self._reach.handle_link_down(peer, event.reason)
        self._book.handle_link_down(peer)
        self.elections.handle_link_down(peer, event.reason, now)
        for attribute in self._backups.kept_by(peer) if self.elections.is_avoided(peer, now) else ():
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
        self._finish(now)

    def handle_nodes_found(self, found: Located, now: float) -> None:
        """Go on with what waited for a lookup."""
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
        self._finish(now)

    # Time.

    @on_timer(SubscribeDue)
    def resend_subscription(self, timer: SubscribeDue, now: float) -> None:
        """Tell the next hop a predicate once more."""
        self._router.handle_timeout(timer, now)

    @on_timer(WalkDue)
    def resend_event(self, timer: WalkDue, now: float) -> None:
        """Send an event up once more."""
        self._publish_path.handle_timeout(timer, now)
        self._finish(now)

    @on_timer(NoticeDue)
    def resend_notice(self, timer: NoticeDue, now: float) -> None:
        """Send an event down once more."""
        self._delivery_path.handle_timeout(timer, now)
        self._finish(now)

    @on_timer(BackupDue)
    def resend_backup(self, timer: BackupDue, now: float) -> None:
        """Have our filters kept by one who did not answer, or by another."""
        self._backups.handle_timeout(timer, now)
        self._name_keepers(now)

    @on_timer(LogDue)
    def tell_trackers(self, timer: LogDue, now: float) -> None:
        """Tell those who track events of ours how far these are."""
        self._trackers.tell_trackers()

    @on_timer(ConfirmDue)
    def end_confirmation(self, timer: ConfirmDue, now: float) -> None:
        """Answer a publisher without those who say nothing."""
        self._application.end_confirmation(timer)

    @on_timer(LookDue)
    def look_again(self, timer: LookDue, now: float) -> None:
        """Look once more for somebody closer."""
        self._doubts.look_again(timer, now)

    @on_timer(RouteLapse)
    def forget_route(self, timer: RouteLapse, now: float) -> None:
        """Forget a route that is gone for so long that all below it have moved elsewhere."""
        for attribute in self.table.drop(timer.peer) if self._book.forget_lapsed(timer.peer) else ():
            self._backups.tell_change(attribute, timer.peer, (), True, now)
            self._router.withdraw(attribute)

    @on_timer(PeriodDue)
    def begin_period(self, timer: PeriodDue, now: float) -> None:
        """Tell our own subscriptions again, and forget what others did not."""
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
        self._book.keep_shortcuts({name: self.table.routes(name) for name in self.table.attributes})
        hops = {**self._router.next_hops, **self._publish_path.next_hops}
        self._reach.release_idle({**hops, **self._backups.keepers, **self._book.shortcuts})
        self._out.set_timer(self._config.refresh, PeriodDue())

    def _finish(self, now: float) -> None:
        """See to what came of an input: what is left to others, what the application is handed and told."""
        while self.elections.left:
            self._leave(self.elections.left.pop(), now)
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
