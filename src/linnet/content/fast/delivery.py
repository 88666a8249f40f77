"""FastDelivery: groups of a publisher, at one node.

After Agostinho 2021. A node may be all of it at once: publisher of groups, member of others',
one who serves members for a publisher, and keeper of boards. Why so: docs/adr/0022-fast-delivery.md.
"""

from __future__ import annotations

from typing import assert_never

from linnet.content.config import ContentConfig
from linnet.content.directory import Directory, Located
from linnet.content.fast.adverts import Adverts
from linnet.content.fast.boards import Boards
from linnet.content.fast.calls import CALL, Calls
from linnet.content.fast.charges import GATHER, Charges
from linnet.content.fast.commands import (
    CloseGroup,
    ExamineGroups,
    FastCommand,
    GroupsStatus,
    JoinGroups,
    LeaveGroups,
    OpenGroup,
    PublishToGroup,
    SearchGroups,
)
from linnet.content.fast.config import FastConfig
from linnet.content.fast.effects import OWNER, FastEffect
from linnet.content.fast.memberships import Memberships
from linnet.content.fast.messages import (
    Browse,
    Browsed,
    Convey,
    Conveyed,
    Enrol,
    Enrolled,
    Entrust,
    Entrusted,
    FastMessage,
    Parted,
    Post,
    Posted,
    Quit,
)
from linnet.content.fast.places import is_near
from linnet.content.fast.publications import CONFIRM
from linnet.content.fast.publisher import Publisher
from linnet.content.fast.searches import Searches
from linnet.content.fast.signed import check_enrolment, check_posting
from linnet.content.fast.subscriptions import Subscriptions
from linnet.content.fast.tasks import (
    Advertising,
    Browsing,
    Entering,
    Entrusting,
    Forwarding,
    Leaving,
    Publishing,
    Task,
)
from linnet.content.passing import check
from linnet.content.predicates import foreign_predicate
from linnet.core.effects import Reply, SetTimer
from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.ids import EventId, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.trace.records import Kind, Record

RENEW = "renew"
IDLE = "idle"


class FastDelivery:
    """Everything about groups at one node."""

    def __init__(
        self,
        context: Context,
        config: FastConfig,
        content: ContentConfig,
        directory: Directory,
        listens: tuple[str, ...],
    ) -> None:
        self._context = context
        self._config = config
        self._content = content
        self._directory = directory
        calls = self._calls = Calls(config)
        self._boards = Boards(config)
        adverts = self._adverts = Adverts(context, config, calls, self._boards, listens)
        self._searches = Searches(context, config, content.attributes, calls, self._boards)
        self.memberships = Memberships(context, config, content, calls, listens)
        self._charges = Charges(calls, config.publications)
        self.publisher = Publisher(context, config, content, calls, adverts, self.memberships)
        self._subscriptions = Subscriptions(
            context, config, content, self._searches, self.memberships, self.publisher
        )

    @property
    def is_settled(self) -> bool:
        """Whether everything that was asked has been answered, as far as this node knows."""
        return not len(self._calls) and not len(self._searches) and self._adverts.is_settled

    def start(self, now: float) -> list[FastEffect]:
        """Begin to renew, from a moment of this node's own."""
        luck = self._context.rng
        return [
            SetTimer(self._config.refresh * luck.uniform(0.5, 1.0), Tick(OWNER, RENEW)),
            SetTimer(self._config.idle, Tick(OWNER, IDLE)),
        ]

    def looks_again(self, *, is_lacking: bool) -> float:
        """Seconds after which groups are looked for again, for a subscription that is in none or in some."""
        return self._config.idle if is_lacking else self._config.refresh

    def reads(self, subscription: int) -> bool:
        """Whether a subscription of the application is one of these."""
        return self._subscriptions.reads(subscription)

    # The application.

    def ask(self, request: int, command: FastCommand, now: float) -> list[FastEffect]:
        """A command of the application."""
        try:
            return self._drained(self._ask(request, command, now), now)
        except BadText as error:
            return [Reply(request, Declined(Reason.MALFORMED, str(error)))]
        except Refused as error:
            return [Reply(request, Declined(error.reason, error.detail))]

    def _ask(self, request: int, command: FastCommand, now: float) -> list[FastEffect]:
        match command:
            case OpenGroup():
                return self.publisher.open(request, command, now)
            case CloseGroup(group):
                return self.publisher.close(request, group, now)
            case PublishToGroup():
                return self.publisher.publish(request, command, now)
            case SearchGroups(text):
                return self._subscriptions.search(request, text)
            case JoinGroups():
                return self._subscriptions.join(request, command, now)
            case LeaveGroups(subscription):
                return self._leave(request, subscription, now)
            case ExamineGroups():
                return [Reply(request, self._status())]
            case _:
                assert_never(command)

    def _leave(self, request: int, number: int, now: float) -> list[FastEffect]:
        effects = self._subscriptions.leave(request, number, now)
        for group in list(self._charges.counts):
            if group not in self.memberships:
                self._charges.release(group)
        return effects

    def _status(self) -> GroupsStatus:
        return GroupsStatus(
            self.publisher.status(), self.memberships.status(self._charges.counts), len(self._boards)
        )

    # The network.

    def on_message(self, peer: PeerId, message: FastMessage, now: float) -> list[FastEffect]:
        """A message of a peer; what is wrong with it is said in a record, and to who asked."""
        try:
            return self._drained(self._on_message(peer, message, now), now)
        except RemoteError as error:
            note = f"{type(message).__name__}: {error.detail}"
            record = Record(Kind.REJECTED, peer=peer, reason=error.reason, note=note[:200])
            return [record, *self._refuse(peer, message, error.reason)]

    def _refuse(self, peer: PeerId, message: FastMessage, reason: Reason) -> list[FastEffect]:
        match message:
            case Post(number):
                return self._calls.answer(peer, Posted(number, reason))
            case Browse(number):
                return self._calls.answer(peer, Browsed(number, (), False, reason))
            case Enrol(number):
                return self._calls.answer(peer, Enrolled(number, reason))
            case Entrust(number):
                return self._calls.answer(peer, Entrusted(number, reason))
            case Convey(number):
                nothing = Conveyed(number, EventId(bytes(32)), None, False, False, (), reason)
                return self._calls.answer(peer, nothing)
            case _:
                return []

    def _on_message(self, peer: PeerId, message: FastMessage, now: float) -> list[FastEffect]:
        match message:
            case Post():
                return self._on_post(peer, message, now)
            case Browse():
                return self._on_browse(peer, message, now)
            case Enrol():
                return self.publisher.enrol(peer, message, now)
            case Entrust():
                return self._on_entrust(peer, message, now)
            case Convey():
                return self._on_convey(peer, message, now)
            case Quit():
                return self._on_quit(peer, message, now)
            case Conveyed() if message.waiting:
                task = self._calls.pending(peer, message.number)
                if not isinstance(task, Publishing):
                    raise RemoteError(Reason.MALFORMED, "it serves nobody here")
                return self.publisher.publications.waiting(task, message)
            case _:
                task, cancel = self._calls.answered(peer, message.number)
                return [cancel, *self._on_answer(task, message, now)]

    def _on_answer(
        self,
        task: Task,
        message: Posted | Browsed | Enrolled | Entrusted | Conveyed | Parted,
        now: float,
    ) -> list[FastEffect]:
        match task, message:
            case Advertising(), Posted():
                return self._adverts.answered(task, message)
            case Browsing(), Browsed():
                return self._searches.answered(task, message, now)
            case Entering(), Enrolled():
                return self.memberships.answered(task, message, now)
            case Entrusting(), Entrusted():
                return self.publisher.entrusted(task, message, now)
            case Publishing(), Conveyed():
                return self.publisher.publications.answered(task, message, now)
            case Forwarding(), Conveyed():
                return self._charges.answered(task, message)
            case Leaving(), Parted():
                return []
            case _:
                failed = self._on_failure(task, Reason.PROTOCOL_ERROR, now)
                note = f"{type(message).__name__}: no answer to what was asked"
                return [Record(Kind.REJECTED, reason=Reason.PROTOCOL_ERROR, note=note), *failed]

    def _on_failure(self, task: Task, reason: Reason, now: float) -> list[FastEffect]:
        match task:
            case Advertising():
                return self._adverts.failed(task, reason)
            case Browsing():
                return self._searches.failed(task, reason, now)
            case Entering():
                return self.memberships.failed(task, reason, now)
            case Entrusting():
                return self.publisher.not_entrusted(task, reason, now)
            case Publishing():
                return self.publisher.publications.failed(task, reason, now)
            case Forwarding():
                return self._charges.failed(task)
            case Leaving():
                return []
            case _:
                assert_never(task)

    def _on_post(self, peer: PeerId, message: Post, now: float) -> list[FastEffect]:
        if not is_near(self._context.peer, message.attribute, self._directory):
            raise RemoteError(Reason.NOT_RESPONSIBLE, "others are closer to this attribute")
        attributes, longest = self._content.attributes, 3 * self._config.refresh
        predicate = check_posting(message.posting, self._context, attributes, longest, now)
        self._boards.put(message.attribute, message.posting, predicate)
        return self._calls.answer(peer, Posted(message.number, None))

    def _on_browse(self, peer: PeerId, message: Browse, now: float) -> list[FastEffect]:
        wanted = foreign_predicate(message.predicate, self._content.attributes)
        postings, more = self._boards.page(message.attribute, wanted, message.after, now)
        return self._calls.answer(peer, Browsed(message.number, postings, more, None))

    def _on_entrust(self, peer: PeerId, message: Entrust, now: float) -> list[FastEffect]:
        if self.memberships.publisher(message.group) != peer:
            raise RemoteError(Reason.NOT_A_MEMBER, "no group of its that this node is in")
        predicates = [check_enrolment(each, self._content.attributes, now) for each in message.added]
        promised = self.memberships.promised(message.group)
        effects = self._charges.entrust(message, predicates, promised, now)
        return [*effects, *self._calls.answer(peer, Entrusted(message.number, None))]

    def _on_convey(self, peer: PeerId, message: Convey, now: float) -> list[FastEffect]:
        group = message.unit.topic
        publisher = self.memberships.publisher(group)
        if publisher is None:
            raise RemoteError(Reason.NOT_A_MEMBER, "no group that this node is in")
        if message.card.device_key != publisher:
            raise RemoteError(Reason.NOT_A_PUBLISHER, "an event of somebody else")
        passing = check(message.unit, message.card, self._context, self._content, now)
        if passing.event.time / 1000 + self._config.stale < now:
            raise RemoteError(Reason.STALE, "an old event")
        effects, fresh = self.memberships.take(passing, 1 if peer == publisher else 2)
        given = self.memberships.receipt(group, passing.id)
        answer = Conveyed(message.number, passing.id, given, fresh, False, (), None)
        if message.serve and peer == publisher:
            return [*effects, *self._charges.forward(peer, message, passing, answer, now)]
        return [*effects, *self._calls.answer(peer, answer)]

    def _on_quit(self, peer: PeerId, message: Quit, now: float) -> list[FastEffect]:
        effects = self._calls.answer(peer, Parted(message.number))
        if self.memberships.publisher(message.group) == peer:
            self._charges.release(message.group)
            return [*effects, *self.memberships.closed(message.group)]
        return [*effects, *self.publisher.quit(peer, message.group)]

    # Links and time.

    def link_up(self, event: LinkUp, now: float) -> list[FastEffect]:
        """A link is up."""
        return self._calls.link_up(event.peer, event.hello.listens[:8])

    def link_gone(self, event: LinkDown | DialFailed, now: float) -> list[FastEffect]:
        """A link is down, or none came up."""
        return self._drained(self._calls.gone(event.peer, event.reason), now)

    def located(self, found: Located, now: float) -> list[FastEffect]:
        """A lookup has ended."""
        effects = [*self._adverts.located(found, now), *self._searches.located(found, now)]
        return self._drained(effects, now)

    def fired(self, tick: Tick, now: float) -> list[FastEffect]:
        """A timer has run out."""
        if tick.what == CALL:
            return self._drained(self._calls.fired(tick), now)
        if tick.what == GATHER:
            return self._drained(self._charges.fired(tick), now)
        if tick.what == CONFIRM:
            return self.publisher.publications.fired(tick)
        if tick.what == IDLE:
            return self._drained(self._idle(now), now)
        return self._drained(self._renew(now), now)

    def _idle(self, now: float) -> list[FastEffect]:
        """Let links go, and look again for what was not found: boards, and groups."""
        needed = {**self.publisher.linked, **self._charges.linked, **self.memberships.linked}
        effects = [*self._calls.release_idle(needed), *self.publisher.advertise_again(now)]
        effects += self._subscriptions.look_again(lacking=True)
        return [*effects, SetTimer(self._config.idle, Tick(OWNER, IDLE))]

    def _renew(self, now: float) -> list[FastEffect]:
        """A period is over: renew what we want, and forget what others did not renew."""
        effects = [*self.publisher.renew(now), *self.memberships.renew(now)]
        over = self._boards.expire(now)
        if over:
            effects.append(Record(Kind.EXPIRED, events=over, reason=Reason.RETENTION, note="advertisements"))
        effects += self._subscriptions.look_again(lacking=False)
        return [*effects, SetTimer(self._config.refresh, Tick(OWNER, RENEW))]

    def _drained(self, effects: list[FastEffect], now: float) -> list[FastEffect]:
        """With what comes of it: searches that have ended, and questions without an answer."""
        while self._searches.ended or self._calls.failed or self._calls.silenced:
            ended, self._searches.ended = self._searches.ended, []
            failed, self._calls.failed = self._calls.failed, []
            silenced, self._calls.silenced = self._calls.silenced, []
            for task, reason in failed:
                effects += self._on_failure(task, reason, now)
            for task in silenced:
                if isinstance(task, Publishing):
                    effects += self.publisher.publications.silenced(task)
            for search, listings, unanswered in ended:
                effects += self._subscriptions.found(search, listings, unanswered, now)
        return [*effects, *self.publisher.errands()]
