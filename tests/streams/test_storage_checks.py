"""Storage nodes are held to what they have signed: a publisher asks them to show it, now or much later."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.delivery.voices import asked
from tests.streams.attackers import Attacker
from tests.streams.stage import NOW, Staged, context_of
from tests.streams.village import STREAM, Eavesdropped, Village

from linnet.core.effects import AfterCommit, Blame, Send
from linnet.core.hello import Hello
from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId
from linnet.core.inputs import LinkUp
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import AskNumber, ChainPlace, Contradiction, Kept, Receipt, Shown
from linnet.delivery.storage_statements import sign_kept, sign_shown
from linnet.identity.keys import SigningKey
from linnet.peer.interface import Connect, Effect, Input, NodeMachine
from linnet.store.memory import MemoryStore
from linnet.streams.commands import (
    CheckStorage,
    Publish,
    Published,
    StorageCheck,
    StorageChecked,
    StorageOutcome,
)
from linnet.streams.config import StorageRule, StreamOptions
from linnet.streams.storage_checks import CHECK_PAUSE, CHECK_PERIOD
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Kind, Record

Twist = Callable[[Message, SigningKey], Message | None]


class Twisted:
    """A node that says something else than it should; None: it says nothing."""

    def __init__(self, machine: NodeMachine, key: SigningKey, twist: Twist) -> None:
        self._machine = machine
        self._key = key
        self._twist = twist

    @property
    def hello(self) -> Hello:
        return self._machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        return [each for effect in self._machine.handle(event, now) for each in self._say(effect)]

    def _say(self, effect: Effect) -> list[Effect]:
        if isinstance(effect, AfterCommit):
            inner = [each for one in effect.effects for each in self._say(one)]
            return [AfterCommit(tuple(inner))]  # type: ignore[arg-type]
        if not isinstance(effect, Send):
            return [effect]
        said = self._twist(effect.message, self._key)
        return [] if said is None else [Send(effect.peer, said)]


class Older:
    """A node whose links seem to lead to peers of an older version, and that seems to be one itself."""

    def __init__(self, machine: NodeMachine) -> None:
        self._machine = machine

    @property
    def hello(self) -> Hello:
        return _without_keeping(self._machine.hello)

    def handle(self, event: Input, now: float) -> list[Effect]:
        if isinstance(event, LinkUp):
            event = replace(event, hello=_without_keeping(event.hello))
        return self._machine.handle(event, now)


def _without_keeping(hello: Hello) -> Hello:
    spoken = {name: version for name, version in hello.protocols.items() if name != "keeping"}
    return replace(hello, protocols=spoken)


class Town(Village):
    """A village in which s1 may say something else, or be of an older version."""

    twist: Twist | None = None
    is_old = False

    def noted(self, name: str) -> NodeMachine:
        machine = Eavesdropped(self, name)
        if name != "s1":
            return machine
        if self.is_old:
            return Older(machine)
        if self.twist is not None:
            return Twisted(machine, self.identity[name].device, self.twist)
        return machine


def town(twist: Twist | None = None, *, is_old: bool = False, rule: StorageRule | None = None) -> Town:
    class Made(Town):
        pass

    Made.twist = None if twist is None else staticmethod(twist)
    Made.is_old = is_old
    names = Village(storage=2, peers=1)
    contacts = tuple(Contact(names.peer(name), (f"tls://{name}:1",)) for name in ("s0", "s1"))
    options = {STREAM: StreamOptions(storage=contacts)}
    made = Made(storage=2, peers=4, options=options, rules=(rule or StorageRule(STREAM),))
    made.run(5)
    return made


def publish_some(village: Village, count: int = 20, confirm: float = 5.0) -> Published:
    for number in range(count - 1):
        village.publish("p0", b"%d" % number, wait=0.3)
    outcome = village.ask("p0", Publish(STREAM, (b"last",), confirm=confirm), wait=confirm + 1)
    assert isinstance(outcome, Published)
    return outcome


def check(village: Village, wait: float = 10.0) -> dict[str, StorageCheck]:
    answer = village.ask("p0", CheckStorage(STREAM), wait=wait)
    assert isinstance(answer, StorageChecked)
    return {village.name(each.node): each for each in answer.checks}


def outcomes(village: Village) -> dict[str, tuple[StorageOutcome, Reason | None]]:
    return {name: (each.outcome, each.reason) for name, each in check(village).items()}


KEPT = (StorageOutcome.KEPT, None)


def lack(reason: Reason) -> Twist:
    def twist(message: Message, key: SigningKey) -> Message:
        if isinstance(message, Shown):
            return sign_shown(key, replace(message, id=None, reason=reason, unit=None, card=None))
        return message

    return twist


def test_honest_storage_nodes_show_what_they_have_confirmed() -> None:
    village = town()
    publish_some(village)
    found = check(village)
    assert {name: (each.outcome, each.number) for name, each in found.items()} == {
        "s0": (StorageOutcome.KEPT, 19),
        "s1": (StorageOutcome.KEPT, 19),
    }
    asked = [message for sender, message in village.heard["s0"] if isinstance(message, AskNumber)]
    assert 19 in {message.number for message in asked}
    assert len({message.number for message in asked}) == 2, "the last and one by chance"


def test_a_statement_replaces_the_receipt_and_costs_no_more_messages() -> None:
    village = town()
    publish_some(village)
    heard = [message for sender, message in village.heard["p0"] if sender in ("s0", "s1")]
    assert not [message for message in heard if isinstance(message, Receipt)]
    stated = [message for message in heard if isinstance(message, Kept)]
    assert 2 <= len(stated) <= 2 * 21


def test_what_was_confirmed_is_checked_after_a_restart() -> None:
    """The statement is there though the storage node, which now lies, never repeats it."""
    since: list[bool] = []

    def twist(message: Message, key: SigningKey) -> Message | None:
        if not since:
            return message
        return None if isinstance(message, Kept) else lack(Reason.NOT_HELD)(message, key)

    village = town(twist)
    publish_some(village)
    assert outcomes(village) == {"s0": KEPT, "s1": KEPT}
    village.crash("p0")
    village.run(2)
    since.append(True)
    village.restart("p0")
    found = check(village)
    assert {name: each.outcome for name, each in found.items()} == {
        "s0": StorageOutcome.KEPT,
        "s1": StorageOutcome.WRONG,
    }
    assert found["s1"].number == 19, "the latest statement is kept, not the first"


def test_who_signs_that_it_lacks_what_it_confirmed_is_proved_wrong_to_all() -> None:
    village = town(lack(Reason.NOT_HELD))
    for name in ("p1", "p2"):
        village.subscribe(name)
    outcome = publish_some(village)
    assert outcome.unconfirmed is None
    assert outcomes(village) == {"s0": KEPT, "s1": (StorageOutcome.WRONG, Reason.EQUIVOCATION)}
    liar = village.peer("s1")
    told = {
        village.name(node)
        for node, record in village.notes.records
        if (record.kind, record.peer, record.reason) == (Kind.REJECTED, liar, Reason.EQUIVOCATION)
    }
    assert {"p0", "p1", "p2"} <= told
    assert [m for _, m in village.heard["p1"] if isinstance(m, Contradiction)]
    # It counts no more, also after a restart.
    for _ in range(2):
        after = village.ask("p0", Publish(STREAM, (b"after",), confirm=5.0), wait=6.0)
        assert isinstance(after, Published)
        assert {village.name(each.receiver) for each in after.fates if each.storage} == {"s0"}
        assert after.unconfirmed is None
        village.crash("p0")
        village.run(1)
        village.restart("p0")
        village.run(5)


def test_who_comes_later_is_shown_the_proof() -> None:
    village = town(lack(Reason.NOT_HELD))
    village.subscribe("p1")
    publish_some(village)
    assert outcomes(village)["s1"][0] is StorageOutcome.WRONG
    village.crash("p0")
    village.run(5)
    late = village.ask("p3", Publish(STREAM, (b"late",), confirm=5.0), wait=6.0)
    later = village.ask("p3", Publish(STREAM, (b"later",), confirm=5.0), wait=6.0)
    assert isinstance(late, Published)
    assert isinstance(later, Published)
    assert {village.name(each.receiver) for each in later.fates if each.storage} == {"s0"}


def test_proofs_against_keys_that_keep_nothing_here_go_no_further() -> None:
    """Keys are free, and so are proofs against keys of one's own."""
    village = town()
    village.subscribe("p1")
    village.subscribe("p2")
    publish_some(village, 3)
    topic = topic_of(STREAM)

    def statement(key: SigningKey, last: int, position: int) -> Kept:
        place = ChainPlace(AuthorId(b"a" * 32), DeviceId(b"d" * 8), 0, last, True)
        return sign_kept(key, topic, b"store no", position, 1.0, (place,), (EventId(bytes(32)),))

    keys = [SigningKey(bytes([number]) * 32) for number in range(1, 21)]
    proofs = [Contradiction(statement(key, 50, 100), statement(key, 12, 101)) for key in keys]
    attacker = Attacker(village.peer("p1"), lambda _: proofs)
    peer = village.add("slanderer", attacker).peer
    village.network.ask(peer, Connect(Contact(village.peer("p1"), ("tls://p1:1",))))
    village.run(5)
    heard = [
        (name, m) for name, said in village.heard.items() for _, m in said if isinstance(m, Contradiction)
    ]
    assert {name for name, _ in heard} == {"p1"}
    assert [*village.stores["p1"].cells.scan("contradiction")] == []
    # A false one against a storage node costs its sender.
    false = statement(keys[0], 12, 101)
    slander = Contradiction(statement(keys[0], 50, 100), replace(false, keeper=village.peer("s0")))
    slander = replace(slander, kept=replace(slander.kept, keeper=village.peer("s0")))
    liar = Attacker(village.peer("p1"), lambda _: [slander] * 20)
    peer = village.add("liar", liar).peer
    village.network.ask(peer, Connect(Contact(village.peer("p1"), ("tls://p1:1",))))
    village.run(5)
    assert liar.cut == ["forging"]
    assert outcomes(village) == {"s0": KEPT, "s1": KEPT}


@pytest.mark.parametrize("reason", [Reason.RETENTION, Reason.QUOTA, Reason.DAMAGED])
def test_who_says_why_it_lacks_something_is_not_proved_wrong(reason: Reason) -> None:
    village = town(lack(reason))
    publish_some(village)
    assert outcomes(village) == {"s0": KEPT, "s1": (StorageOutcome.GONE, reason)}
    proved = [m for heard in village.heard.values() for _, m in heard if isinstance(m, Contradiction)]
    assert proved == []


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (StorageRule(STREAM, retention=5.0), Reason.RETENTION),
        (StorageRule(STREAM, quota=600), Reason.QUOTA),
    ],
)
def test_honest_eviction_is_never_a_proof(rule: StorageRule, reason: Reason) -> None:
    village = town(rule=rule)
    for number in range(60):
        village.publish("p0", b"%d" % number, wait=1.0)
        if number % 20 == 19:
            assert {each.outcome for each in check(village).values()} <= {
                StorageOutcome.KEPT,
                StorageOutcome.GONE,
            }
    village.run(30)
    found = outcomes(village)
    assert all(each in (KEPT, (StorageOutcome.GONE, reason)) for each in found.values())
    if reason is Reason.RETENTION:
        assert found == dict.fromkeys(("s0", "s1"), (StorageOutcome.GONE, reason)), "all is too old by now"
    assert not [m for heard in village.heard.values() for _, m in heard if isinstance(m, Contradiction)]
    evicted = [r for _, r in village.notes.records if r.kind is Kind.EVICTED]
    assert evicted


def test_a_statement_says_from_where_on_a_chain_is_kept_after_an_eviction() -> None:
    village = town(rule=StorageRule(STREAM, retention=8.0))
    for number in range(40):
        village.publish("p0", b"%d" % number, wait=1.0)
    stated = [message.chains for _, message in village.heard["p0"] if isinstance(message, Kept)]
    firsts = [place.first for chains in stated for place in chains]
    assert firsts[0] == 0
    assert firsts[-1] > 10


def test_who_does_not_answer_is_said_not_to() -> None:
    village = town(lambda message, key: None if isinstance(message, Shown) else message)
    publish_some(village)
    assert outcomes(village) == {"s0": KEPT, "s1": (StorageOutcome.SILENT, Reason.TIMEOUT)}


def test_receipts_of_an_older_version_count_and_cannot_be_checked() -> None:
    village = town(is_old=True)
    outcome = publish_some(village)
    assert outcome.unconfirmed is None
    assert outcomes(village) == {"s0": KEPT, "s1": (StorageOutcome.UNCHECKED, Reason.UNSUPPORTED)}


def test_an_id_that_is_not_that_of_our_event_does_not_count() -> None:
    def twist(message: Message, key: SigningKey) -> Message:
        if not isinstance(message, Kept) or not message.chains:
            return message
        heads = (EventId(bytes(32)),) * len(message.heads)
        fields = (message.topic, message.store, message.position, message.at_ms / 1000, message.chains, heads)
        return sign_kept(key, *fields)

    village = town(twist)
    outcome = publish_some(village, 3)
    assert {village.name(each.receiver) for each in outcome.fates if each.storage} == {"s0"}
    assert outcome.unconfirmed is None
    status = village.status("p0")
    (stream,) = (each for each in status.streams if each.stream == STREAM)
    assert {village.name(each.node): each.outcome for each in stream.storage_checks} == {
        "s1": StorageOutcome.WRONG
    }


def test_a_publisher_checks_by_itself_but_rarely() -> None:
    village = town()

    def asked() -> int:
        return sum(isinstance(message, AskNumber) for _, message in village.heard["s0"])

    publish_some(village)
    assert asked() == 0
    village.run(CHECK_PAUSE)
    first = asked()
    assert 1 <= first <= 2, "soon after the first statement, though nobody reads here"
    # It leaves the stream, comes back often, and checks no more often for that.
    for _ in range(5):
        village.run(600)
        village.publish("p0", b"again")
        village.run(CHECK_PAUSE + 5)
    village.crash("p0")
    village.run(1)
    village.restart("p0")
    village.publish("p0", b"again")
    village.run(CHECK_PAUSE + 5)
    assert asked() == first
    village.run(CHECK_PERIOD)
    assert asked() == first
    village.publish("p0", b"again")
    village.run(CHECK_PAUSE + 5)
    assert first < asked() <= first + 2


@pytest.mark.parametrize("is_marked", [True, False], ids=["with its mark", "without it"])
def test_a_store_that_was_put_back_from_a_copy_is_no_proof(is_marked: bool) -> None:
    """The copy ends earlier: what is signed by it passes as older, and what it lacks is fetched again."""
    village = town()
    for name in ("p1", "p2"):
        village.subscribe(name)
    publish_some(village, 10)
    copy = MemoryStore()
    store = village.stores["s1"]
    for _, entry in store.log.read(topic_of(STREAM), 0, 1000):
        copy.log.append(entry)
    for space in ("card", "keeping", "policy", f"passed {topic_of(STREAM).hex()}"):
        for key, value in store.cells.scan(space):
            if is_marked or space != "keeping":
                copy.cells.put(space, key, value)
    copy.commit(lambda: None)
    publish_some(village, 10)
    village.crash("s1")
    village.run(1)
    assert isinstance(store, MemoryStore)
    store.log, store.cells, store._journal = copy.log, copy.cells, copy._journal
    village.restart("s1")
    early = outcomes(village)
    assert early["s0"] == KEPT
    assert early["s1"] in (KEPT, (StorageOutcome.GONE, Reason.LOST))
    village.run(60)
    publish_some(village, 3)
    assert outcomes(village) == {"s0": KEPT, "s1": KEPT}
    assert not [m for heard in village.heard.values() for _, m in heard if isinstance(m, Contradiction)]
    ((first, last),) = [(head.first, head.last) for head in copy.log.heads(topic_of(STREAM))]
    assert (first, last) == (0, 22)


def test_a_proof_that_comes_before_the_tracker_names_the_storage_node_counts() -> None:
    stream = Staged("tea", context_of())
    key, neighbor = SigningKey(b"s" * 32), PeerId(b"n" * 32)
    place = ChainPlace(AuthorId(b"a" * 32), DeviceId(b"d" * 8), 0, 50, True)
    made = [
        sign_kept(key, stream.topic, b"store no", 7, 1.0, (place,), (EventId(bytes([number]) * 32),))
        for number in range(2)
    ]
    stream.handle_contradiction(neighbor, Contradiction(*made), NOW)
    honest, wrong = Contact(PeerId(b"h" * 32)), Contact(PeerId(key.public))
    assert not stream.checks.is_wrong(wrong.peer)
    stream.set_storage((honest, wrong), NOW)
    assert list(stream.storage) == [honest.peer]
    assert stream.checks.is_wrong(wrong.peer)


def test_what_readers_were_told_is_passed_on_to_publishers_but_not_without_end() -> None:
    stream, key = Staged("tea", context_of()), SigningKey(b"s" * 32)
    reader, publisher = PeerId(b"r" * 32), PeerId(b"p" * 32)
    stream.keep(StorageRule("tea"))
    stream.set_storage((Contact(PeerId(key.public)),), NOW)
    stream._context.keeping[publisher] = None
    stream.keeper.add_watcher(publisher, stream.publisher.ledger, {}, NOW)
    place = ChainPlace(AuthorId(b"a" * 32), DeviceId(b"d" * 8), 0, 50, True)
    kept = sign_kept(key, stream.topic, b"store no", 7, 1.0, (place,), (EventId(bytes(32)),), request=3)
    passed = [asked(stream.out, stream.handle_kept, reader, kept, NOW + after) for after in (0.0, 0.5, 1.5)]
    sent = Send(publisher, kept)
    dropped = Record(Kind.DROPPED, stream.topic, peer=reader, reason=Reason.TOO_MANY, note="statement")
    assert passed == [[sent], [dropped], [sent]]
    forged = replace(kept, position=8)
    _, blame = asked(stream.out, stream.handle_kept, reader, forged, NOW + 5.0)
    assert blame == Blame(reader, Reason.BAD_SIGNATURE)


def test_a_chain_of_which_nothing_is_kept_any_more_can_be_checked() -> None:
    """A publisher that reads the stream is told that all was evicted, and asks for the last event alone."""
    village = town(rule=StorageRule(STREAM, retention=5.0))
    publish_some(village, 5)
    village.run(60)
    village.subscribe("p0", since=0.0, wait=30)
    gone = (StorageOutcome.GONE, Reason.RETENTION)
    assert outcomes(village) == {"s0": gone, "s1": gone}


def test_a_statement_whose_range_runs_backwards_ends_no_publisher() -> None:
    def twist(message: Message, key: SigningKey) -> Message:
        if not isinstance(message, Kept) or not message.chains:
            return message
        places = tuple(replace(place, first=place.last + 5) for place in message.chains)
        said = (message.topic, message.store, message.position, message.at_ms / 1000, places, message.heads)
        return sign_kept(key, *said, request=message.request, since_ms=message.since_ms, done=message.done)

    village = town(twist)
    publish_some(village)
    assert outcomes(village) == {"s0": KEPT, "s1": KEPT}
