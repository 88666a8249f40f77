"""Keys are free, and so are storage nodes: only those count that the owner or our configuration names."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace
from tests.streams.village import STREAM, Eavesdropped, Village

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import RemoteError
from linnet.core.hello import Hello
from linnet.core.ids import AuthorId, Contact, DeviceId
from linnet.core.reasons import Reason
from linnet.delivery import receipts
from linnet.delivery.messages import ChainPlace, Heads, HistoryPage, Resent
from linnet.delivery.receipts import Ledger, ReceiverFate, sign_receipt
from linnet.identity.keys import SigningKey
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.streams.commands import Declare, Policy, Publish, Published
from linnet.streams.config import StorageRule, StreamOptions
from linnet.streams.ingest import Governance, _decoder
from linnet.streams.stream_names import topic_of


class Liar:
    """A node that confirms all that it is sent, and has nothing to show for it."""

    def __init__(self, machine: NodeMachine) -> None:
        self._machine = machine

    @property
    def hello(self) -> Hello:
        return self._machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        return [self._hide(effect) for effect in self._machine.handle(event, now)]

    def _hide(self, effect: Effect) -> Effect:
        if isinstance(effect, AfterCommit):
            return AfterCommit(tuple(map(self._hide, effect.effects)))  # type: ignore[arg-type]
        if not isinstance(effect, Send):
            return effect
        match effect.message:
            case Heads() as heads:
                return Send(effect.peer, replace(heads, chains=(), due=None if heads.due is None else ()))
            case HistoryPage() as page:
                return Send(effect.peer, replace(page, units=(), cards=(), done=True))
            case Resent() as resent:
                return Send(effect.peer, replace(resent, units=(), cards=(), ages_ms=(), done=True))
            case _:
                return effect


class Swindled(Village):
    """A village in which all storage nodes but the first lie."""

    def noted(self, name: str) -> NodeMachine:
        machine = Eavesdropped(self, name)
        return Liar(machine) if name[0] == "s" and name != "s0" else machine


def swindled(named: bool, liars: int = 3, stream: str = STREAM) -> Swindled:
    first = Swindled(storage=1, peers=0).peer("s0")
    contact = Contact(first, ("tls://s0:1",))
    options = {stream: StreamOptions(storage=(contact,))} if named else {}
    rules = (StorageRule(stream),)
    return Swindled(storage=1 + liars, peers=3, options=options, rules=rules)


def published(village: Village, name: str, body: bytes, stream: str = STREAM) -> Published:
    outcome = village.ask(name, Publish(stream, (body,), confirm=5.0), wait=6.0)
    assert isinstance(outcome, Published)
    return outcome


def fates(village: Village, outcome: Published) -> dict[str, tuple[bool, bool, bool]]:
    """For each receiver whether it counts, whether it is a volunteer, and whether it confirmed."""
    found = {village.name(each.receiver): each for each in outcome.fates}
    return {
        name: (each.storage, each.volunteer, each.delivered_at is not None) for name, each in found.items()
    }


def test_only_the_receipts_of_named_storage_nodes_count() -> None:
    village = swindled(named=True)
    village.run(5)
    outcome = published(village, "p0", b"one")
    assert fates(village, outcome) == {"s0": (True, False, True)}
    assert outcome.unconfirmed is None
    village.crash("s0")
    village.run(1)
    outcome = published(village, "p0", b"two")
    assert fates(village, outcome)["s0"] == (True, False, False)
    assert not any(counts for name, (counts, _, _) in fates(village, outcome).items() if name != "s0")
    assert outcome.unconfirmed is Reason.TIMEOUT


def test_without_names_all_who_confirm_are_volunteers() -> None:
    village = swindled(named=False)
    village.run(5)
    outcome = published(village, "p0", b"one")
    assert fates(village, outcome) == dict.fromkeys(("s0", "s1", "s2", "s3"), (True, True, True))


@pytest.mark.parametrize("seed", range(4))
def test_liars_hide_nothing_from_who_asks_named_storage_nodes(seed: int) -> None:
    village = swindled(named=True)
    village.run(5 + seed)
    for number in range(20):
        village.publish("p0", b"%d" % number, wait=0.5)
    village.crash("p0")
    village.run(10)
    late = village.subscribe("p2", since=0.0, live=False, wait=20)
    assert village.bodies("p2", late) == [b"%d" % number for number in range(20)]


def test_the_owner_names_storage_nodes_for_all() -> None:
    """Publishers and readers that configure nothing follow the policy, also one that comes late."""
    village = Swindled(storage=1, peers=1)
    stream = f"{owner_of(village)}/news"
    village = Swindled(storage=4, peers=3, rules=(StorageRule(stream),))
    for name in ("p0", "p1"):
        village.subscribe(name, stream)
    village.run(5)
    before = published(village, "p0", b"before", stream)
    assert {volunteer for _, volunteer, _ in fates(village, before).values()} == {True}
    contact = Contact(village.peer("s0"), ("tls://s0:1",))
    village.ask("p0", Declare(stream, Policy(storage=(contact,))), wait=3)
    for name in ("p0", "p1"):
        outcome = published(village, name, b"after", stream)
        counted = {each for each, (counts, _, _) in fates(village, outcome).items() if counts}
        assert counted == {"s0"}, name
    village.crash("p0", "p1")
    village.run(10)
    late = village.subscribe("p2", stream, since=0.0, live=False, wait=20)
    assert sorted(village.bodies("p2", late))[:2] == [b"after", b"after"]
    # The owner takes the names back: whoever offers to keep it is asked again.
    village.restart("p0")
    village.run(5)
    village.ask("p0", Declare(stream, Policy()), wait=3)
    outcome = published(village, "p0", b"at last", stream)
    assert sum(counts for counts, _, _ in fates(village, outcome).values()) == 4


def owner_of(village: Village) -> str:
    from linnet.identity.text import person_text

    return person_text(village.identity["p0"].author)


def test_a_policy_without_new_fields_reads_in_old_versions() -> None:
    governance = Governance(topic_of("a/b"), None, Village(peers=0, storage=0).stores["t0"].cells)
    contact = Contact(Village(peers=1).peer("p0"), ("tls://p0:1",))
    device = DeviceId(b"d" * 8)
    cases: dict[Policy, int] = {
        Policy(): 4,
        Policy(degree=4, near=True): 4,
        Policy(sealer=device): 5,
        Policy(storage=(contact,)): 6,
        Policy(sealer=device, storage=(contact,)): 6,
    }
    for policy, fields in cases.items():
        body = governance.tail(policy, 1).body
        assert len(msgspec.msgpack.decode(body)) == fields
        assert _decoder.decode(body) == policy


def test_a_named_storage_node_counts_though_receivers_without_end_were_there_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receipts, "MAX_RECEIVERS", 3)
    ledger, keys = Ledger(), [SigningKey.generate(_entropy(number)) for number in range(5)]
    places = (ChainPlace(AuthorId(b"a" * 32), DeviceId(b"d" * 8), 0, 5, True),)
    made = [sign_receipt(key, topic_of("x"), True, 1.0, places) for key in keys]
    for receipt in made[:3]:
        assert ledger.learn(receipt, 1.0)
    with pytest.raises(RemoteError):
        ledger.learn(made[3], 1.0)
    assert ledger.learn(made[4], 1.0, counts=True)
    assert ledger.find_last(made[4].receiver, b"a" * 32 + b"d" * 8) == 5


def _entropy(number: int) -> Callable[[int], bytes]:
    return lambda count: bytes([number + 1]) * count


def test_a_fate_of_an_older_answer_is_of_no_volunteer() -> None:
    assert not ReceiverFate(Village(peers=1).peer("p0"), True, None).volunteer
