"""The local application's subscriptions and publications, and the outcome of each published event."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from msgspec import Struct

from linnet.content.attribute_keys import nearest_name
from linnet.content.branch_ledger import Count
from linnet.content.commands import AttributeFate, Match, Outcome, PublishContent
from linnet.content.config import ContentConfig
from linnet.content.matching_index import Index
from linnet.content.messages import SoFar
from linnet.content.passing import EventSigner, Passing
from linnet.content.predicate import Predicate, read_attributes, read_predicate
from linnet.content.routes import Promise
from linnet.core.counts import counted
from linnet.core.errors import Refused
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

TOPIC = TopicId(sha256(b"linnet/content/1").digest())
"""The topic of all content events."""
Hand = Callable[[list[int], Match], None]
"""Hands an event to all subscriptions of the application that accept it."""


class ConfirmDue(Timer, frozen=True, gc=False):
    """The publisher's `confirm` seconds are over: answer it even if some nodes are silent."""

    event: EventId


class _Publication(Struct, eq=False):
    """A published event of this node, and the answers so far."""

    request: int | None
    """The application's request that waits for the outcome; None once it was answered."""
    names: tuple[str, ...]
    confirms: bool
    """Whether silent nodes are waited for."""
    fates: dict[str, AttributeFate] = {}
    """What is known so far, by attribute: final, or preliminary."""

    @property
    def is_settled(self) -> bool:
        """Whether the outcome is final for every attribute."""
        return len(self.fates) == len(self.names) and all(fate.settled for fate in self.fates.values())

    @property
    def is_answered(self) -> bool:
        """Whether every rendezvous has reported on the nodes that are alive."""
        return len(self.fates) == len(self.names)

    def outcome(self, event: EventId) -> Outcome:
        """Return the outcome as far as it is known."""
        unheard = {name: AttributeFate(name, 0, 0, None, settled=False) for name in self.names}
        return Outcome(event, tuple({**unheard, **self.fates}[name] for name in self.names))


class Application:
    """The subscriptions and publications of the local application."""

    def __init__(
        self, context: Context, config: ContentConfig, out: Outbox, hand: Hand, promise: Promise
    ) -> None:
        self._ours = context.peer
        self._config = config
        self._out = out
        self._hand = hand
        self._promise = promise
        self.own: dict[int, tuple[str, Predicate]] = {}
        """The application's subscriptions, each with the attribute whose rendezvous it goes to."""
        self._index: Index[int] = Index()
        self._handed: dict[EventId, float] = {}
        self._accepted: list[tuple[list[int], Match]] = []
        """Events that subscriptions accept and that were not handed over yet."""
        self._publications: dict[EventId, _Publication] = {}
        self._signer = EventSigner(context)

    def __len__(self) -> int:
        return len(self._handed) + len(self._publications)

    def subscribe(self, number: int, text: str) -> str:
        """Keep a subscription and return the attribute whose rendezvous it goes to."""
        if number in self.own:
            raise Refused(Reason.IN_USE, f"there is a subscription {number} already")
        if len(self.own) >= self._config.subscriptions:
            raise Refused(Reason.TOO_MANY, f"at most {self._config.subscriptions} subscriptions")
        predicate = read_predicate(text, self._config.attributes)
        attribute = nearest_name(self._ours, predicate.names)
        self.own[number] = (attribute, predicate)
        self._index.add(number, predicate)
        return attribute

    def unsubscribe(self, subscription: int) -> tuple[str, tuple[Predicate, ...]]:
        """Forget a subscription; return its attribute, and the predicates still wanted under that one."""
        if subscription not in self.own:
            raise Refused(Reason.UNKNOWN, f"there is no subscription {subscription}")
        attribute, _ = self.own.pop(subscription)
        self._index.remove(subscription)
        left = (predicate for name, predicate in self.own.values() if name == attribute)
        return attribute, tuple(piece for predicate in left for piece in predicate.pieces)

    def sign(self, command: PublishContent, now: float) -> Passing:
        """Sign the application's publication as an event."""
        attributes = read_attributes(command.attributes, self._config.attributes)
        return self._signer.sign(TOPIC, attributes, command.body, now)

    def note_published(self, request: int, passing: Passing, confirm: float) -> None:
        """Wait for the outcome of an event that sets out; without acknowledgements answer at once."""
        size = len(passing.event.body)
        self._out.record(Record(Kind.PUBLISHED, topic=TOPIC, event=passing.id, bytes=size))
        if not self._config.reliable:
            self._promise().reply(request, Outcome(passing.id, ()))
            return
        publication = _Publication(request, passing.attributes.names, confirm > 0)
        self._publications[passing.id] = publication
        if confirm > 0:
            self._out.set_timer(confirm, ConfirmDue(passing.id))

    def note_end(self, event: EventId, attribute: str, count: Count, reason: Reason | None) -> None:
        """Note the final outcome of an event at one rendezvous; answer the publisher once all are known."""
        publication = self._publications.get(event)
        if publication is None:
            return
        delivered, missed, again, matches = count
        publication.fates[attribute] = AttributeFate(attribute, delivered, missed, reason, again, matches)
        if publication.is_settled:
            del self._publications[event]
        if publication.request is None:
            self._out.record(_later(event, publication.fates[attribute]))
            return
        self._answer_if_known(event, publication)

    def note_stall(self, event: EventId, attribute: str, so_far: SoFar) -> None:
        """Note the preliminary outcome at one rendezvous, where only silent nodes are left.

        Answer the publisher if it does not wait for silent nodes and every rendezvous has reported.
        """
        publication = self._publications.get(event)
        if publication is None or ((known := publication.fates.get(attribute)) is not None and known.settled):
            return
        publication.fates[attribute] = AttributeFate(
            attribute,
            so_far.delivered,
            so_far.missed,
            None,
            so_far.again,
            so_far.matches,
            settled=False,
            silent=so_far.silent,
            more_silent=so_far.more,
        )
        self._answer_if_known(event, publication)

    def end_confirmation(self, timer: ConfirmDue) -> None:
        """Answer a publisher although some nodes have not answered for its event."""
        publication = self._publications.get(timer.event)
        if publication is not None:
            self._answer(timer.event, publication)

    def _answer_if_known(self, event: EventId, publication: _Publication) -> None:
        if not (publication.is_settled if publication.confirms else publication.is_answered):
            return
        if publication.confirms:
            self._out.cancel_timer(ConfirmDue(event))
        self._answer(event, publication)

    def _answer(self, event: EventId, publication: _Publication) -> None:
        request, publication.request = publication.request, None
        if request is not None:
            self._promise().reply(request, publication.outcome(event))

    def tidy(self, now: float) -> None:
        """Forget events that were handed over so long ago that a copy would be refused as too old."""
        old = now - self._config.taken_for
        self._handed = {event: at for event, at in self._handed.items() if at >= old}

    def take(self, passing: Passing, hops: int, now: float) -> Count:
        """Note which subscriptions accept an event, and return what this node counts for it.

        A node counts once, with all its subscriptions; an event that comes again by another attribute counts
        as `again`.
        """
        event = passing.event
        if event.id in self._handed:
            return Count(0, 0, again=1)
        numbers = self._index.matching(passing.attributes)
        if not numbers:
            return Count(0, 0)
        # One whose clock is ahead is taken for longer, so it is recognised for longer.
        self._handed[event.id] = max(now, event.time / 1000)
        if len(self._handed) > self._config.remembered:
            del self._handed[next(iter(self._handed))]
        item = Match(
            event.id,
            event.author,
            passing.attributes.text,
            event.time,
            event.body,
            hops,
            doubtful=event.doubtful,
        )
        self._accepted.append((sorted(numbers), item))
        return Count(1, 0, matches=len(numbers))

    def hand_over(self) -> None:
        """Hand over the events that subscriptions have accepted."""
        for numbers, item in self._accepted:
            self._out.record(Record(Kind.DELIVERED, topic=TOPIC, event=item.event, hops=item.hops))
            self._hand(numbers, item)
        self._accepted.clear()


def _later(event: EventId, fate: AttributeFate) -> Record:
    """Return a record of the final outcome of an event whose publisher was answered before."""
    reached = f"{counted(fate.delivered, 'node')}, {counted(fate.matches, 'subscription')}"
    told = f"{reached}, {counted(fate.missed, 'branch', 'branches')} without an answer"
    note = f"content, at {fate.attribute}, after its publisher was answered: {told}"[:200]
    if fate.reason is None and not fate.missed:
        return Record(Kind.ACKED, topic=TOPIC, event=event, note=note)
    return Record(Kind.DROPPED, topic=TOPIC, event=event, reason=fate.reason or Reason.TIMEOUT, note=note)
