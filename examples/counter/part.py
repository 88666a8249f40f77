"""All counters of a node: which it shares, what it tells its neighbours, and what it asks of them.

A new addition is flooded. Whatever a flood misses comes by comparison: neighbours tell each other how far
they have the additions of each device, when they meet and from time to time, and ask for the rest.
"""

from __future__ import annotations

from examples.counter.commands import (
    AddToCounter,
    CloseCounter,
    ExamineCounter,
    ExamineFates,
    OpenCounter,
    Opened,
    ReadCounter,
)
from examples.counter.counter import Counter, topic_of
from examples.counter.messages import DEVICES, Addition, Additions, AskAdditions, CounterReceipt, CountsAre
from msgspec import Struct

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId, TopicId
from linnet.core.inputs import LinkDown
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.messages import Receipt, Resend
from linnet.event.event import Unverified
from linnet.machine.commands import Done
from linnet.machine.part import Part, on_command, on_input, on_message, on_notice, on_timer
from linnet.machine.requests import Failed, Requests, Retry
from linnet.overlay.notices import NeighborDown, NeighborUp
from linnet.peer.config import Surroundings
from linnet.trace.records import Kind, Record

ASKED = 2 * DEVICES
"""Questions that one neighbour is asked at once."""
COUNTERS = 256
"""Counters that one node shares."""
COMPARE_PERIOD = 10.0
"""Seconds between two comparisons with all neighbours: what a lost message costs at most."""
RECEIPT_DELAY = 0.2
"""Seconds that a receipt waits, so that one receipt covers many additions."""
PATIENCE = Retry(timeout=4.0, tries=3)
_SPACE = "counter"
"""The cells that hold which counters are shared."""


class CompareDue(Timer, frozen=True):
    """Neighbours are to be told how far we are."""

    topic: TopicId


class ReceiptDue(Timer, frozen=True):
    """Neighbours are to be told what we have durably."""

    topic: TopicId


class AnswerDue(Timer, frozen=True):
    """A neighbour should have sent additions by now."""

    request: int


class Wanted(Struct, frozen=True):
    """The additions of one device that a neighbour has and we lack."""

    topic: TopicId
    author: AuthorId
    device: DeviceId
    last: int


class Counters(Part):
    """The counters that a node shares."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._context = around.context
        self._out = around.out
        self._counters: dict[TopicId, Counter] = {}
        self._read: dict[int, Counter] = {}
        """By subscription."""
        self.own_topics, self.own_subscriptions = self._counters, self._read
        self._requests: Requests[Wanted] = Requests("counter", AnswerDue, around.out)
        self._asked: dict[PeerId, dict[Wanted, None]] = {}
        """What each neighbour is asked for. It may withhold that, so others are asked for the same."""

    def start(self, now: float) -> None:
        """Share again what was shared before."""
        for _, name in self._context.store.cells.scan(_SPACE):
            self._open(name.decode(), now)

    # What applications ask.

    @on_command(OpenCounter)
    def open_counter(self, request: int, command: OpenCounter, now: float) -> None:
        """Share a counter."""
        counter = self._open(command.counter, now)
        self._context.store.cells.put(_SPACE, counter.topic, command.counter.encode())
        self._out.committed.reply(request, counter.status())

    @on_command(CloseCounter)
    def close_counter(self, request: int, command: CloseCounter, now: float) -> None:
        """Share a counter no longer."""
        counter = self._find(command.counter)
        for subscription in list(counter.readers):
            del self._read[subscription]
            counter.close_reader(subscription, Reason.NOT_JOINED)
        for timer in (CompareDue(counter.topic), ReceiptDue(counter.topic)):
            self._out.cancel_timer(timer)
        del self._counters[counter.topic]
        self._around.leave(counter.topic, now)
        self._context.store.cells.delete(_SPACE, counter.topic)
        self._out.committed.reply(request, Done())

    @on_command(AddToCounter)
    def add(self, request: int, command: AddToCounter, now: float) -> None:
        """Add to a counter, and tell neighbours once the addition is durable: nobody may see it undone."""
        counter = self._find(command.counter)
        verified, added = counter.add(command.amount, now)
        for peer in counter.neighbors:
            self._out.committed.send(peer, Addition(verified.unit, self._context.card))
        self._out.committed.reply(request, added)

    @on_command(ExamineCounter)
    def examine(self, request: int, command: ExamineCounter, now: float) -> None:
        """Say how a counter stands."""
        self._out.reply(request, self._find(command.counter).status())

    @on_command(ExamineFates)
    def examine_fates(self, request: int, command: ExamineFates, now: float) -> None:
        """Say where an addition of ours has arrived."""
        self._out.reply(request, self._find(command.counter).fates(command.number))

    @on_command(ReadCounter)
    def read(self, request: int, command: ReadCounter, now: float) -> None:
        """Hand every addition to a subscription, those that are here first."""
        counter = self._find(command.counter)
        resumed = counter.open_reader(command.subscription, command.name)
        self._read[command.subscription] = counter
        self._out.committed.reply(request, Opened(resumed))
        counter.hand_log(command.subscription)

    @on_command(Consumed)
    def handle_consumed(self, request: int, command: Consumed, now: float) -> None:
        """Move a durable subscription on, and hand over more."""
        self._read[command.subscription].handle_consumed(command.subscription, command.items)
        self._out.committed.reply(request, Done())

    @on_command(Unsubscribe)
    def unsubscribe(self, request: int, command: Unsubscribe, now: float) -> None:
        """Hand a subscription no more."""
        self._read.pop(command.subscription).close_reader(command.subscription)
        self._out.committed.reply(request, Done())

    def _open(self, name: str, now: float) -> Counter:
        topic = topic_of(name)
        counter = self._counters.get(topic)
        if counter is None:
            if len(self._counters) >= COUNTERS:
                raise Refused(Reason.TOO_MANY, f"{COUNTERS} counters are shared already; close one first")
            counter = self._counters[topic] = Counter(name, self._context, self._out)
            self._out.set_timer(COMPARE_PERIOD, CompareDue(topic))
            self._around.join(topic, now)
        return counter

    def _find(self, name: str) -> Counter:
        counter = self._counters.get(topic_of(name))
        if counter is None:
            raise Refused(Reason.NOT_JOINED, f"the counter {name!r} is not shared here; open it first")
        return counter

    # Neighbours.

    @on_notice(NeighborUp)
    def handle_neighbor_up(self, notice: NeighborUp, now: float) -> None:
        """Compare counts with a new neighbour, and tell it who has what."""
        counter = self._counters[notice.topic]
        counter.neighbors[notice.peer] = None
        self._out.committed.send(notice.peer, CountsAre(counter.topic, counter.places))
        known = (receipt for receipt in counter.ledger.latest.values() if isinstance(receipt, Receipt))
        for receipt in (counter.sign_receipt(now), *known):
            self._out.committed.send(notice.peer, CounterReceipt(receipt))

    @on_notice(NeighborDown)
    def handle_neighbor_down(self, notice: NeighborDown, now: float) -> None:
        """Forget a neighbour."""
        self._counters[notice.topic].neighbors.pop(notice.peer, None)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Give up what a peer was asked for."""
        for failed in self._requests.handle_link_down(event.peer, event.reason):
            self._give_up(failed)

    @on_timer(CompareDue)
    def compare_counts(self, timer: CompareDue, now: float) -> None:
        """Tell neighbours how far we are: a message may have been lost."""
        self._tell_counts(self._counters[timer.topic], None)
        self._out.set_timer(COMPARE_PERIOD, timer)

    @on_message(CountsAre)
    def handle_counts(self, peer: PeerId, message: CountsAre, now: float) -> None:
        """Ask a neighbour for what it has and we lack."""
        counter = self._shared_with(peer, message.topic, message)
        if counter is not None:
            for place in message.chains:
                wanted = Wanted(counter.topic, place.author, place.device, place.last)
                self._ask(peer, counter, wanted)

    @on_message(Addition)
    def handle_addition(self, peer: PeerId, message: Addition, now: float) -> None:
        """Count an addition and pass it on; ask for those before it if they are missing."""
        counter, unit = self._shared_with(peer, message.topic, message), message.unit
        if counter is None or counter.is_counted(unit):
            return
        try:
            is_next = counter.take(unit, message.card, now)
        except RemoteError as error:
            self._reject(peer, counter.topic, error.reason, error.detail, unit)
            return
        if not is_next:
            self._ask(peer, counter, Wanted(counter.topic, unit.author, unit.device, unit.seq or 0))
            return
        for other in counter.neighbors:
            if other != peer:
                self._out.committed.send(other, message)
        self._out.set_timer(RECEIPT_DELAY, ReceiptDue(counter.topic))

    @on_message(AskAdditions)
    def send_additions(self, peer: PeerId, message: AskAdditions, now: float) -> None:
        """Send a neighbour what it lacks."""
        counter = self._shared_with(peer, message.topic, message)
        if counter is not None:
            asked = Resend(message.topic, message.author, message.device, message.first, message.last)
            page = counter.read_range(asked)
            answer = Additions(message.topic, message.request, page.units, page.cards)
            self._out.committed.send(peer, answer)

    @on_message(Additions)
    def handle_additions(self, peer: PeerId, message: Additions, now: float) -> None:
        """Count what was asked for; ask on while there is more."""
        wanted = self._requests.handle_answer(peer, message.request)
        if wanted is None:
            self._reject(peer, message.topic, Reason.UNKNOWN, "additions that were not asked for")
            return
        self._forget(peer, wanted)
        counter = self._counters.get(wanted.topic)
        if counter is None:
            return
        before = counter.next_of(wanted.author + wanted.device)
        cards = {card.person + card.device: card for card in message.cards}
        for unit in message.units:
            if counter.is_counted(unit):
                continue
            try:
                counter.take(unit, cards.get(unit.author + unit.device), now)
            except RemoteError as error:
                self._reject(peer, counter.topic, error.reason, error.detail, unit)
                break
        if counter.next_of(wanted.author + wanted.device) > before:
            self._out.set_timer(RECEIPT_DELAY, ReceiptDue(counter.topic))
            self._tell_counts(counter, peer)
            self._ask(peer, counter, wanted)

    @on_timer(AnswerDue)
    def handle_timeout(self, timer: AnswerDue, now: float) -> None:
        """Ask again, or leave the rest to the next comparison."""
        failed = self._requests.handle_timeout(timer.request)
        if failed is not None:
            self._give_up(failed)

    # Receipts.

    @on_timer(ReceiptDue)
    def send_receipt(self, timer: ReceiptDue, now: float) -> None:
        """Tell neighbours what we have, once it is durable."""
        counter = self._counters[timer.topic]
        receipt = CounterReceipt(counter.sign_receipt(now))
        for peer in counter.neighbors:
            self._out.committed.send(peer, receipt)

    @on_message(CounterReceipt)
    def handle_receipt(self, peer: PeerId, message: CounterReceipt, now: float) -> None:
        """Learn what a device has, and pass that on if it is news."""
        counter = self._shared_with(peer, message.receipt.topic, message)
        if counter is None:
            return
        try:
            is_news = counter.learn_receipt(message.receipt, now)
        except RemoteError as error:
            self._reject(peer, counter.topic, error.reason, error.detail)
            return
        for other in counter.neighbors if is_news else ():
            if other != peer:
                self._out.send(other, message)

    # What all of this needs.

    def _shared_with(self, peer: PeerId, topic: TopicId, message: Message) -> Counter | None:
        """The counter that a message is about; who is no neighbour in it has nothing to say of it."""
        counter = self._counters.get(topic)
        if counter is None or peer not in counter.neighbors:
            self._reject(peer, topic, Reason.NOT_IN_TOPIC, type(message).__name__)
            return None
        return counter

    def _reject(
        self, peer: PeerId, topic: TopicId, reason: Reason, note: str, unit: Unverified | None = None
    ) -> None:
        self._out.record(Record(Kind.REJECTED, topic, peer=peer, reason=reason, note=note))
        fault = reason if unit is None else self._context.cards.fault_of(peer, unit, reason)
        self._out.blame(peer, fault)

    def _tell_counts(self, counter: Counter, but: PeerId | None) -> None:
        for peer in counter.neighbors:
            if peer != but:
                self._out.committed.send(peer, CountsAre(counter.topic, counter.places))

    def _ask(self, peer: PeerId, counter: Counter, wanted: Wanted) -> None:
        """Ask a neighbour for additions, unless we have them or ask it for them already."""
        first = counter.next_of(wanted.author + wanted.device)
        asked = self._asked.get(peer, {})
        if first > wanted.last or wanted in asked:
            return
        if len(asked) >= ASKED:
            note = "one neighbour tells of more than it can be asked for at once"
            self._out.record(
                Record(Kind.DROPPED, counter.topic, peer=peer, reason=Reason.TOO_MANY, note=note)
            )
            return
        self._asked.setdefault(peer, asked)[wanted] = None
        number = self._requests.next_number()
        question = AskAdditions(counter.topic, number, wanted.author, wanted.device, first, wanted.last)
        self._requests.ask(number, Contact(peer), question, wanted, PATIENCE, is_linked=True)

    def _forget(self, peer: PeerId, wanted: Wanted) -> None:
        asked = self._asked[peer]
        del asked[wanted]
        if not asked:
            del self._asked[peer]

    def _give_up(self, failed: Failed[Wanted]) -> None:
        wanted = failed.context
        self._forget(failed.peer, wanted)
        note = f"additions that {type(failed.message).__name__} asked for; the next comparison asks again"
        self._out.record(
            Record(Kind.EXPIRED, wanted.topic, peer=failed.peer, reason=failed.reason, note=note)
        )
