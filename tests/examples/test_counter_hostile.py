"""What a neighbour that shares a counter cannot do: count for others, count twice, or fill our memory."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from examples.counter import COUNTER, AddToCounter, ExamineCounter, ExamineFates, OpenCounter
from examples.counter.commands import LARGEST_AMOUNT, CounterIs
from examples.counter.counter import ADDITION, topic_of
from examples.counter.messages import DEVICES, Addition, Additions, AskAdditions, CounterReceipt, CountsAre
from examples.counter.part import ASKED

from linnet.core.effects import AfterCommit, HangUp, Reply, Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import DeviceId, EventId, TopicId
from linnet.core.inputs import Asked, LinkUp, Received
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import ChainPlace
from linnet.delivery.receipts import sign_receipt
from linnet.event.event import Spot, Tail, Unverified
from linnet.event.signing import sign_unit
from linnet.machine.commands import Declined
from linnet.overlay.notices import NeighborUp
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import AnyCommand, Effect
from linnet.peer.messages import PROTOCOLS
from linnet.peer.peer import Peer
from linnet.sim.clock import START
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Record

NAME = "visitors"
TOPIC = topic_of(NAME)
NOW = START + 10.0
ANN, BOB, EVE = (known_identity(name) for name in ("ann", "bob", "eve"))
SPOKEN = {**PROTOCOLS, "counter": 1}


class Shared:
    """Ann's node, which shares the counter with Eve's."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.peer = Peer(PeerConfig(protocols=(COUNTER,)), ANN, self.store, Random(1))
        self.peer.handle(LinkUp(EVE.peer, Hello(WIRE_VERSION, WIRE_VERSION, SPOKEN), True, None), NOW)
        self.ask(OpenCounter(NAME))
        parts = self.peer.parts
        parts.out.notify(NeighborUp(TOPIC, EVE.peer))
        parts.router.pass_on_notices(NOW)
        parts.out.take()

    def ask(self, command: AnyCommand) -> object:
        effects = _flat(self.peer.handle(Asked(1, command), NOW))
        [reply] = [each for each in effects if isinstance(each, Reply)]
        return reply.result

    def hear(self, message: Message, of: Identity = EVE) -> list[Effect]:
        return _flat(self.peer.handle(Received(of.peer, message), NOW))

    def reasons(self, message: Message, of: Identity = EVE) -> list[Reason | None]:
        return [each.reason for each in self.hear(message, of) if isinstance(each, Record) and each.reason]

    @property
    def status(self) -> CounterIs:
        told = self.ask(ExamineCounter(NAME))
        assert isinstance(told, CounterIs)
        return told


def _flat(effects: list[Effect]) -> list[Effect]:
    return [one for each in effects for one in (each.effects if isinstance(each, AfterCommit) else (each,))]


@pytest.fixture
def shared() -> Shared:
    return Shared()


def addition(
    of: Identity,
    number: int = 0,
    prev: EventId | None = None,
    amount: object = 1,
    topic: TopicId = TOPIC,
    kind: str = ADDITION,
) -> Unverified:
    body = amount if isinstance(amount, bytes) else msgspec.msgpack.encode(amount)
    tail = Tail(None, None, None, None, kind, None, 1, None, body)
    return sign_unit(of.device, Spot(topic, of.author, of.card.device, number, prev), (tail,)).unit


def test_an_addition_counts_once_however_often_it_comes(shared: Shared) -> None:
    first = Addition(addition(EVE, amount=5), EVE.card)
    for _ in range(3):
        assert shared.reasons(first) == []
    assert shared.status.value == 5


def test_nobody_counts_for_another(shared: Shared) -> None:
    forged = msgspec.structs.replace(addition(EVE), author=BOB.author, device=BOB.card.device)
    assert shared.reasons(Addition(forged, BOB.card)) == [Reason.BAD_SIGNATURE]
    assert shared.reasons(Addition(addition(EVE), BOB.card)) == [Reason.UNKNOWN_DEVICE]
    signed = addition(BOB)
    changed = msgspec.structs.replace(signed, tails=addition(BOB, amount=1000).tails)
    assert shared.reasons(Addition(changed, BOB.card)) == [Reason.BAD_SIGNATURE]
    assert shared.status == CounterIs(TOPIC, 0, ())


@pytest.mark.parametrize("amount", [0, -1, LARGEST_AMOUNT + 1, 2**63, 1.5, "7", b"", b"\xc1"])
def test_a_wrong_amount_is_refused(shared: Shared, amount: object) -> None:
    assert shared.reasons(Addition(addition(EVE, amount=amount), EVE.card)) == [Reason.MALFORMED]
    assert shared.status.value == 0
    assert Shared(shared.store).status.value == 0  # Nothing of it was written down.


def test_an_event_of_another_kind_is_no_addition(shared: Shared) -> None:
    assert shared.reasons(Addition(addition(EVE, kind="message"), EVE.card)) == [Reason.MALFORMED]


def test_a_chain_that_forks_stops_counting(shared: Shared) -> None:
    first = addition(EVE, amount=1)
    shared.hear(Addition(first, EVE.card))
    other = addition(EVE, 1, EventId(b"\x01" * 32), amount=100)
    assert shared.reasons(Addition(other, EVE.card)) == [Reason.FORKED_CHAIN]
    assert shared.status.value == 1


@pytest.mark.parametrize(("author", "is_cut"), [(EVE, True), (BOB, False)])
def test_a_fork_is_the_fault_of_its_author_and_not_of_who_passes_it_on(
    shared: Shared, author: Identity, is_cut: bool
) -> None:
    shared.hear(Addition(addition(author, amount=1), author.card))
    forks = [addition(author, 1, EventId(bytes([number]) * 32)) for number in range(40)]
    effects = [each for fork in forks for each in shared.hear(Addition(fork, author.card))]
    assert any(isinstance(each, HangUp) for each in effects) is is_cut


def test_one_that_shares_another_counter_is_not_heard_in_this(shared: Shared) -> None:
    elsewhere = addition(EVE, topic=topic_of("another"))
    assert shared.reasons(Addition(elsewhere, EVE.card)) == [Reason.NOT_IN_TOPIC]
    for message in (
        Addition(addition(BOB), BOB.card),
        CountsAre(TOPIC, ()),
        AskAdditions(TOPIC, 1, BOB.author, BOB.card.device, 0, 9),
        CounterReceipt(sign_receipt(BOB.device, TOPIC, False, NOW, ())),
    ):
        assert shared.reasons(message, BOB) == [Reason.NOT_IN_TOPIC]


def test_what_was_not_asked_for_is_not_taken(shared: Shared) -> None:
    unasked = Additions(TOPIC, 7, (addition(EVE),), (EVE.card,))
    assert shared.reasons(unasked) == [Reason.UNKNOWN]
    assert shared.status.value == 0


def test_what_was_asked_for_is_checked_as_well(shared: Shared) -> None:
    [question] = questions(shared.hear(CountsAre(TOPIC, (place(BOB, 1),))))
    forged = msgspec.structs.replace(addition(EVE), author=BOB.author, device=BOB.card.device)
    answer = Additions(TOPIC, question.request, (forged,), (BOB.card,))
    assert shared.reasons(answer) == [Reason.BAD_SIGNATURE]
    assert shared.status.value == 0


def test_a_false_receipt_is_refused(shared: Shared) -> None:
    shared.ask(AddToCounter(NAME, 3))
    ours = ChainPlace(ANN.author, ANN.card.device, 0, 0, True)
    false = msgspec.structs.replace(sign_receipt(EVE.device, TOPIC, False, NOW, (ours,)), receiver=BOB.peer)
    assert shared.reasons(CounterReceipt(false)) == [Reason.BAD_SIGNATURE]
    told = shared.ask(ExamineFates(NAME))
    assert told.fates == ()  # type: ignore[attr-defined] # it is a FatesAre


def test_inventing_devices_fills_no_memory(shared: Shared) -> None:
    def invented(page: int) -> CountsAre:
        keys = (DeviceId((page * DEVICES + number).to_bytes(8, "big")) for number in range(DEVICES))
        return CountsAre(TOPIC, tuple(ChainPlace(EVE.author, key, 0, 2**40, True) for key in keys))

    asked = [len(questions(shared.hear(invented(page)))) for page in range(4)]
    assert asked == [DEVICES, ASKED - DEVICES, 0, 0]
    assert set(shared.reasons(invented(4))) == {Reason.TOO_MANY}


def test_more_devices_than_may_add_are_refused(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.counter.counter.DEVICES", 1)
    assert shared.reasons(Addition(addition(BOB), BOB.card)) == []
    assert shared.reasons(Addition(addition(EVE), EVE.card)) == [Reason.TOO_MANY]
    assert shared.status.value == 1


@pytest.mark.parametrize("amount", [0, -1, LARGEST_AMOUNT + 1])
def test_our_own_wrong_amounts_are_refused(shared: Shared, amount: int) -> None:
    declined = shared.ask(AddToCounter(NAME, amount))
    assert isinstance(declined, Declined)
    assert declined.reason is Reason.MALFORMED


def test_a_counter_that_is_not_shared_here_is_refused(shared: Shared) -> None:
    declined = shared.ask(AddToCounter("another"))
    assert declined == Declined(Reason.NOT_JOINED, "the counter 'another' is not shared here; open it first")


def place(of: Identity, last: int) -> ChainPlace:
    return ChainPlace(of.author, of.card.device, 0, last, True)


def questions(effects: list[Effect]) -> list[AskAdditions]:
    said = [each.message for each in effects if isinstance(each, Send)]
    return [message for message in said if isinstance(message, AskAdditions)]
