"""Hostile peers: each is cut off with a named reason, and honest nodes see no loss."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from tests.streams.attackers import Attacker, Lines
from tests.streams.village import STREAM, Village

from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, TopicId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery import chain as chain_module
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.messages import MAX_HOPS, ChainPlace, Data, Heads, Receipt, Resend, Revoked
from linnet.delivery.receipts import sign_receipt
from linnet.event.event import Spot, Unverified
from linnet.event.signing import message_tail, sign_unit
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.peer.config import Identity
from linnet.peer.interface import Connect
from linnet.peer.messages import Needed, Ping
from linnet.streams.commands import Declare, Policy, Published
from linnet.streams.ingest import Governance
from linnet.streams.messages import PolicyIs
from linnet.streams.stream import Stream
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Kind

TOPIC = topic_of(STREAM)


class Siege:
    """A village in which an attacker has a link to p1."""

    def __init__(self, stream: str = STREAM, delivery: DeliveryConfig | None = None) -> None:
        self.stream = stream
        self.village = village = Village(peers=5, delivery=delivery)
        self.subscriptions = {
            name: village.subscribe(name, stream) for name in village.names if name[0] == "p"
        }
        village.run(10)
        village.publish("p0", b"before", stream=stream)
        self.attacker = Attacker(village.peer("p1"), lambda _: ())
        self.identity = village.add("evil", self.attacker)

    def attack(self, lines: Lines, rounds: int = 1, pause: float = 0.1, wait: float = 5.0) -> None:
        self.attacker.lines, self.attacker.rounds, self.attacker.pause = lines, rounds, pause
        victim = Contact(self.village.peer("p1"), ("tls://p1:1",))
        self.village.network.ask(self.identity.peer, Connect(victim))
        self.village.run(wait)

    def unharmed(self) -> None:
        """Everyone got and gets everything, and no two honest nodes fell out."""
        for name in ("p0", "p2"):
            assert isinstance(
                self.village.publish(name, b"after " + name.encode(), stream=self.stream), Published
            )
        self.village.run(10)
        for name, subscription in self.subscriptions.items():
            bodies = self.village.bodies(name, subscription)
            assert sorted(bodies) == [b"after p0", b"after p2", b"before"], name
            assert self.village.missed(name, subscription) == []
        honest = {self.village.peer(name) for name in self.village.names}
        for node, record in self.village.notes.records:
            if record.kind is Kind.LINK_DOWN and record.peer in honest and node in honest:
                assert record.reason is Reason.NOT_NEEDED

    def stream_at(self, name: str) -> Stream:
        machine = self.village.network.machine(self.village.peer(name)).machine  # type: ignore[attr-defined]
        stream = machine.parts.streams._memberships.get(topic_of(self.stream))
        assert isinstance(stream, Stream)
        return stream

    def units(self) -> list[Unverified]:
        """What honest nodes said."""
        return [m.unit for _, m in self.village.heard["p1"] if isinstance(m, Data)]

    def chain(self, name: str) -> tuple[AuthorId, DeviceId]:
        identity = self.village.identity[name]
        return identity.author, identity.card.device


def unit_of(identity: Identity, topic: TopicId = TOPIC, seq: int = 0) -> Unverified:
    card = identity.card
    tails = [message_tail(b"spam", 0)]
    prev = None if seq == 0 else b"p" * 32
    signed = sign_unit(identity.device, Spot(topic, card.person, card.device, seq, prev), tails)  # type: ignore[arg-type]
    return signed.unit


def data(unit: Unverified, siege: Siege, hops: int = 1, age_us: int = 0) -> Data:
    return Data(unit, hops, age_us, 0, siege.identity.card)


def always(*messages: Message) -> Lines:
    return lambda _: messages


def test_who_floods_control_messages_is_cut_off() -> None:
    siege = Siege()
    siege.attack(lambda _: (Ping(n) for n in range(6000)))
    assert siege.attacker.cut == [Reason.FLOODING]
    assert Reason.FLOODING in siege.village.reasons("p1")
    siege.unharmed()


def test_who_floods_slowly_but_for_long_is_cut_off() -> None:
    siege = Siege()
    siege.attack(lambda _: (Ping(n) for n in range(100)), rounds=1000, wait=40)
    assert siege.attacker.cut == [Reason.FLOODING]
    siege.unharmed()


def test_who_asks_for_resends_without_end_is_cut_off() -> None:
    siege = Siege()
    author, device = siege.chain("p0")
    siege.attack(lambda _: (Resend(TOPIC, author, device, 0, n) for n in range(6000)))
    assert siege.attacker.cut == [Reason.FLOODING]
    siege.unharmed()


def test_who_forges_events_is_cut_off_and_nobody_is_handed_one() -> None:
    siege = Siege()
    unit = siege.units()[0]
    forged = [msgspec.structs.replace(unit, seq=number, sig=bytes([number]) * 64) for number in range(1, 40)]
    siege.attack(lambda _: (Data(u, 1, 0, 0, None) for u in forged))
    assert siege.attacker.cut == [Reason.FORGING]
    assert siege.village.reasons("p1").count(Reason.BAD_SIGNATURE) >= 17
    siege.unharmed()


def test_a_few_forgeries_in_the_guise_of_an_honest_node_do_not_silence_it() -> None:
    siege = Siege()
    unit = siege.units()[0]
    forged = msgspec.structs.replace(unit, seq=1, sig=b"x" * 64)
    siege.attack(always(Data(forged, 1, 0, 0, None)))
    assert siege.attacker.cut == []
    siege.unharmed()


def test_who_replays_is_cut_off() -> None:
    siege = Siege()
    old = Data(siege.units()[0], 3, 0, 0, None)
    siege.attack(always(*[old] * 400), rounds=5)
    assert siege.attacker.cut == [Reason.REPLAYING]
    siege.unharmed()


def test_who_sends_units_of_another_topic_is_cut_off() -> None:
    siege = Siege()
    other = unit_of(siege.identity, topic_of("elsewhere"))
    siege.attack(always(*[data(other, siege)] * 3000), rounds=3)
    assert siege.attacker.cut == [Reason.FLOODING]
    assert Reason.NOT_JOINED in siege.village.reasons("p1")
    siege.unharmed()


def test_who_forks_its_own_chain_is_cut_off() -> None:
    siege = Siege()
    card = siege.identity.card

    def fork(number: int) -> Data:
        tails = [message_tail(b"%d" % number, 0), message_tail(b"", 0)]
        spot = Spot(TOPIC, card.person, card.device, number, EventId(b"q" * 32))
        signed = sign_unit(siege.identity.device, spot, tails)
        return data(signed.unit, siege)

    siege.attack(lambda _: (fork(number) for number in range(40)))
    assert siege.attacker.cut == [Reason.FORGING]
    assert Reason.FORKED_CHAIN in siege.village.reasons("p1")


def test_an_author_that_tells_everybody_something_else_sets_no_honest_nodes_against_each_other() -> None:
    """Each honest node passes on the version that it got first, and its neighbours have another one."""
    siege = Siege()
    village, card = siege.village, siege.identity.card

    def version(number: int, body: bytes) -> Data:
        spot = Spot(TOPIC, card.person, card.device, number, EventId(b"q" * 32) if number else None)
        return data(sign_unit(siege.identity.device, spot, [message_tail(body, 0)]).unit, siege)

    other = Attacker(
        village.peer("p2"), lambda _: (version(number, b"mallory") for number in range(1, 200, 2))
    )
    messenger = village.add("messenger", other)
    village.network.ask(messenger.peer, Connect(Contact(village.peer("p2"), ("tls://p2:1",))))
    siege.attack(lambda _: (version(number, b"alice") for number in range(0, 200, 2)))
    assert Reason.FORKED_CHAIN in village.reasons("p1") + village.reasons("p2") + village.reasons("p3")
    honest = {village.peer(name) for name in village.names if name[0] == "p"}
    cut = [each for node, each in village.notes.records if each.kind is Kind.LINK_DOWN and node in honest]
    assert [each for each in cut if each.peer in honest and each.reason is not Reason.NOT_NEEDED] == []


@pytest.mark.parametrize("whose", ["p0", "p2", "evil"])
def test_false_heads_silence_nobody(whose: str) -> None:
    """Word of events that do not exist is asked about and forgotten; the author goes on."""
    siege = Siege()
    author, device = siege.chain(whose)
    place = ChainPlace(author, device, 0, 2**62, True)
    siege.attack(always(Heads(TOPIC, (place,))), wait=60)
    siege.unharmed()


@pytest.mark.parametrize("whose", ["p0", "p2"])
def test_false_heads_that_were_given_up_silence_nobody(whose: str) -> None:
    siege = Siege()
    author, device = siege.chain(whose)
    place = ChainPlace(author, device, 0, 2**62, True)
    siege.attack(always(Heads(TOPIC, (place,))), wait=180)
    victim = siege.village.peer("p1")
    records = [record for node, record in siege.village.notes.records if node == victim]
    assert "hearsay" in [record.note for record in records if record.kind is Kind.DROPPED]
    siege.unharmed()


INVENTED = (AuthorId(b"i" * 32), DeviceId(b"invented"))


@pytest.mark.parametrize("whose", ["p0", "p2", "nobody"])
def test_what_a_peer_alone_claims_is_told_as_its_claim_and_once(whose: str) -> None:
    """Events that do not exist are no loss: a reader hears who says so, and the claimer answers for it."""
    siege = Siege()
    author, device = INVENTED if whose == "nobody" else siege.chain(whose)

    def lies(number: int) -> Iterable[Message]:
        yield Needed(True)
        last = 2**40 + number
        yield Heads(TOPIC, (ChainPlace(author, device, 0, last, True),), 0, (1,))

    siege.attack(lies, rounds=20, pause=20.0, wait=600)
    village = siege.village
    [claimed] = village.missed("p1", siege.subscriptions["p1"])
    assert (claimed.author, claimed.device, claimed.claimed_by) == (author, device, 1)
    assert (claimed.first, claimed.last >= 2**40) == (1, True)
    assert siege.stream_at("p1").gaps.lost == 0
    records = [r for node, r in village.notes.records if node == village.peer("p1") and r.note == "hearsay"]
    assert {(r.peer, r.reason) for r in records} == {(siege.identity.peer, Reason.GAP_UNFILLED)}
    for name in ("p0", "p2", "p3", "p4"):
        assert village.missed(name, siege.subscriptions[name]) == [], "nobody passes it on"
    village.publish("p0", b"after", wait=10)
    village.publish("p2", b"after", wait=10)
    assert village.bodies("p1", siege.subscriptions["p1"]) == [b"before", b"after", b"after"]


def test_what_the_device_itself_says_is_told_as_missed() -> None:
    siege = Siege()
    identity = siege.identity
    first = unit_of(identity)
    place = ChainPlace(identity.author, identity.card.device, 0, 4, False)
    siege.attack(always(data(first, siege), Heads(TOPIC, (place,), 0, (0,))), wait=120)
    [missed] = siege.village.missed("p1", siege.subscriptions["p1"])
    assert (missed.device, missed.first, missed.last, missed.claimed_by) == (identity.card.device, 1, 4, 0)
    assert siege.stream_at("p1").gaps.lost == 4


def test_heads_of_ever_new_chains_keep_no_real_one_out() -> None:
    siege = Siege(delivery=DeliveryConfig(max_chains=64))

    def places(number: int) -> Iterable[Message]:
        for page in range(20):
            invented = tuple(
                ChainPlace(AuthorId(bytes([page]) * 32), DeviceId(n.to_bytes(8, "big")), 0, 5, True)
                for n in range(512)
            )
            yield Heads(TOPIC, invented)

    siege.attack(places, wait=60)
    assert len(siege.stream_at("p1").ingest.chains) <= 64
    siege.unharmed()


def test_a_false_number_of_hops_harms_nobody_who_passes_it_on() -> None:
    siege = Siege()
    siege.attack(always(data(unit_of(siege.identity), siege, hops=MAX_HOPS, age_us=2**63 - 1)))
    for name, subscription in siege.subscriptions.items():
        assert b"spam" in siege.village.bodies(name, subscription), "it is a valid event of its author"
        siege.village.items[name, subscription] = [
            item for item in siege.village.items[name, subscription] if getattr(item, "body", None) != b"spam"
        ]
    siege.unharmed()


def forged_receipt(siege: Siege, number: int) -> Receipt:
    author, device = siege.chain("p0")
    place = ChainPlace(author, device, 0, number, True)
    honest = sign_receipt(siege.identity.device, TOPIC, True, float(number), (place,))
    return msgspec.structs.replace(honest, receiver=siege.village.peer("s0"))


def test_who_forges_receipts_is_cut_off_and_nothing_is_believed() -> None:
    siege = Siege()
    siege.attack(lambda _: (forged_receipt(siege, number) for number in range(30)))
    assert siege.attacker.cut == [Reason.FORGING]
    assert siege.stream_at("p1").publisher.ledger.receivers == {}
    siege.unharmed()


def test_who_forges_revocations_is_cut_off_and_nobody_is_revoked() -> None:
    siege = Siege()
    author, device = siege.chain("p0")

    def forged(number: int) -> Revoked:
        word = revoke(SigningKey(b"f" * 32), device, number)
        return Revoked(TOPIC, msgspec.structs.replace(word, person=author))

    siege.attack(lambda _: (forged(number) for number in range(30)))
    assert siege.attacker.cut == [Reason.FORGING]
    siege.unharmed()


def test_a_policy_that_the_owner_did_not_sign_is_refused() -> None:
    siege = Siege(stream=to_text(Sort.PERSON, Village(peers=1).identity["p0"].author) + "/news")
    topic = topic_of(siege.stream)
    author, device = siege.chain("p0")
    siege.village.ask("p0", Declare(siege.stream, Policy(publishers=(siege.village.identity["p2"].author,))))
    siege.village.run(3)
    evil = siege.identity
    governance = Governance(topic, evil.author, siege.village.stores["p3"].cells)
    tail = governance.tail(Policy(publishers=(evil.author,)), 2**50)
    own = sign_unit(evil.device, Spot(topic, evil.author, evil.card.device, 0, None), [tail]).unit
    disguised = msgspec.structs.replace(own, author=author, device=device)
    card = siege.village.identity["p0"].card
    siege.attack(always(PolicyIs(topic, own, evil.card), *[PolicyIs(topic, disguised, card)] * 30))
    assert siege.attacker.cut == [Reason.FORGING]
    reasons = siege.village.reasons("p1")
    assert Reason.NOT_A_PUBLISHER in reasons
    assert Reason.BAD_SIGNATURE in reasons
    assert evil.author not in (siege.stream_at("p1").governance.policy.publishers or ())
    siege.unharmed()


def test_who_was_cut_off_is_not_dialled_again_at_once() -> None:
    siege = Siege()
    village = siege.village
    village.network.ask(village.peer("p1"), Connect(Contact(siege.identity.peer, ("tls://evil:1",))))
    siege.attack(lambda _: (Ping(n) for n in range(6000)), wait=10)
    assert siege.attacker.cut == [Reason.FLOODING]
    assert siege.identity.peer not in village.network.linked(village.peer("p1"))
    village.network.ask(siege.identity.peer, Connect(Contact(village.peer("p1"), ("tls://p1:1",))))
    village.run(1)
    assert siege.identity.peer not in village.network.linked(village.peer("p1"))


def test_units_that_wait_for_one_that_never_comes_take_no_more_memory_than_their_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever has a key may send a chain without its beginning, as large as it likes."""
    monkeypatch.setattr(chain_module, "EARLY_BYTES", 100_000)
    siege = Siege()
    tails = [message_tail(bytes(20_000), 0)]
    card, units, prev = siege.identity.card, [], None
    for seq in range(40):
        signed = sign_unit(siege.identity.device, Spot(TOPIC, card.person, card.device, seq, prev), tails)
        units.append(signed.unit)
        prev = signed.head
    ingest = siege.stream_at("p1").ingest
    siege.attack(always(*(data(unit, siege) for unit in units[1::2])), wait=0.5)
    chain = ingest.chains[card.person + card.device]
    assert 0 < chain.early <= 4, "more would be over the share"
    assert ingest._early.bytes == chain.early * (len(units[0].tails[0]) + 2 * 512)
    missed = siege.village.missed("p1", siege.subscriptions["p1"])
    assert {each.reason for each in missed} == {Reason.QUEUE_FULL}
    assert missed[0].first == missed[0].last == 0
    heard = len(siege.village.bodies("p1", siege.subscriptions["p1"])) - 1
    assert heard + chain.early == len(units[1::2]), "what waited is handed over, nothing is lost"


def test_claims_that_made_room_for_others_wait_for_no_turn() -> None:
    """Claims come by the thousand, turns of claimed chains by the dozen."""
    siege = Siege(delivery=DeliveryConfig(max_chains=500))

    def claims(number: int) -> list[Heads]:
        keys = ((1000 * number + each).to_bytes(32, "big") for each in range(500))
        places = (ChainPlace(AuthorId(key), DeviceId(bytes(8)), 0, 5, False) for key in keys)
        return [Heads(TOPIC, tuple(places))]

    siege.attack(claims, rounds=8, pause=0.8, wait=7.0)
    stream = siege.stream_at("p1")
    assert len(stream.ingest.chains) == 500
    assert stream.gaps.repairs.keys() <= stream.ingest.chains.keys()
    assert 0 < sum(map(len, stream.gaps._waiting.values())) <= 500
