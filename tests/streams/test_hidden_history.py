"""Readers compare storage nodes: one honest node among liars is enough, and they are told who differs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.streams.test_named_storage import Liar, Swindled
from tests.streams.test_storage_checks import Older
from tests.streams.village import STREAM, Eavesdropped, Village

from linnet.core.effects import AfterCommit, Send
from linnet.core.hello import Hello
from linnet.core.ids import Contact
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import CaughtUp, Missed, StorageDiffers
from linnet.delivery.messages import AskKept, ChainPlace, History, HistoryPage, Kept
from linnet.delivery.storage_statements import sign_kept
from linnet.identity.keys import SigningKey
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.peer.peer import Peer
from linnet.streams.commands import StorageOutcome
from linnet.streams.config import StorageRule, StreamOptions
from linnet.streams.stream_names import topic_of

ALL = [b"%d" % number for number in range(50)]


class Hider(Liar):
    """A storage node that confirms all, and tells readers that every chain ends at `last`; -1: none is there.

    It signs whatever it says.
    """

    last = 12
    first = 0
    says: int | None = None
    """How far it says that it keeps the chains, if it then shows less."""

    def __init__(self, machine: NodeMachine, key: SigningKey) -> None:
        super().__init__(machine)
        self._key = key

    def _hide(self, effect: Effect) -> Effect:
        if isinstance(effect, AfterCommit):
            return AfterCommit(tuple(map(self._hide, effect.effects)))  # type: ignore[arg-type]
        if isinstance(effect, Send) and isinstance(effect.message, Kept) and effect.message.request:
            return Send(effect.peer, self._restate(effect.message))
        if isinstance(effect, Send) and isinstance(effect.message, HistoryPage):
            page = effect.message
            units = tuple(unit for unit in page.units if self.first <= (unit.seq or 0) <= self.last)
            return Send(effect.peer, replace(page, units=units))
        return super()._hide(effect)

    def _restate(self, kept: Kept) -> Kept:
        last = self.last if self.says is None else self.says
        chains = tuple(
            ChainPlace(
                each.author,
                each.device,
                each.first,
                min(last, each.last) if self.says is None else last,
                True,
            )
            for each in kept.chains
            if last >= 0
        )
        return sign_kept(
            self._key,
            *(kept.topic, kept.store, kept.position, kept.at_ms / 1000, chains, kept.heads[: len(chains)]),
            request=kept.request,
            since_ms=kept.since_ms,
            done=kept.done,
        )


class Town(Swindled):
    """A village in which the storage nodes of these names hide events."""

    hiders: tuple[str, ...] = ()
    kind: type[Hider] = Hider

    def noted(self, name: str) -> NodeMachine:
        machine = Eavesdropped(self, name)
        return self.kind(machine, self.identity[name].device) if name in self.hiders else machine


def town(
    *hidden: str,
    storage: int = 4,
    named: bool = False,
    seed: int = 1,
    degree: int | None = None,
    delivery: DeliveryConfig | None = None,
    **how: int,
) -> Town:
    class Kind(Hider):
        pass

    class Made(Town):
        hiders = hidden
        kind = Kind

    for field, value in how.items():
        setattr(Kind, field, value)
    first = Village(seed, storage=storage, peers=0)
    contacts = tuple(Contact(first.peer(f"s{n}"), (f"tls://s{n}:1",)) for n in range(storage))
    options = {STREAM: StreamOptions(storage=contacts)} if named else {}
    if degree is not None:
        options = {STREAM: StreamOptions(degree=degree)}
    made = Made(
        seed, storage=storage, peers=3, options=options, rules=(StorageRule(STREAM),), delivery=delivery
    )
    made.run(5)
    for body in ALL:
        made.publish("p0", body, wait=0.2)
    made.run(10)
    made.crash("p0")
    made.run(5)
    return made


class Slow:
    """A storage node that takes three seconds to say how far it keeps the chains."""

    def __init__(self, machine: NodeMachine) -> None:
        self._machine = machine
        self._waiting: list[tuple[float, Effect]] = []

    @property
    def hello(self) -> Hello:
        return self._machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for effect in self._machine.handle(event, now):
            inner = effect.effects if isinstance(effect, AfterCommit) else ()
            if any(isinstance(each, Send) and isinstance(each.message, Kept) for each in inner):
                self._waiting.append((now + 3.0, effect))
            else:
                effects.append(effect)
        due = [effect for at, effect in self._waiting if at <= now]
        self._waiting = [(at, effect) for at, effect in self._waiting if at > now]
        return [*effects, *due]


def read(village: Village, wait: float = 30.0, since: float = 0.0, live: bool = False) -> int:
    return village.subscribe("p2", since=since, live=live, wait=wait)


def told(village: Village, reader: int) -> list[dict[str, int | None]]:
    items = village.items["p2", reader]
    return [
        {village.name(each.node): each.last for each in item.told}
        for item in items
        if isinstance(item, StorageDiffers)
    ]


@pytest.mark.parametrize("named", [False, True], ids=["volunteers", "named"])
@pytest.mark.parametrize("last", [-1, 12], ids=["nothing", "12"])
@pytest.mark.parametrize("seed", range(3))
def test_one_honest_node_among_three_liars_is_enough(seed: int, last: int, named: bool) -> None:
    village = town("s0", "s1", "s2", named=named, seed=seed, last=last)
    reader = read(village)
    assert village.bodies("p2", reader) == ALL
    lasts = None if last < 0 else last
    assert told(village, reader) == [{"s0": lasts, "s1": lasts, "s2": lasts, "s3": 49}]
    assert next(item for item in village.items["p2", reader] if isinstance(item, CaughtUp)).reason is None
    assert village.missed("p2", reader) == []


def test_where_all_agree_nothing_is_told_and_nothing_is_read_twice() -> None:
    village = town(storage=3)
    reader = read(village)
    assert village.bodies("p2", reader) == ALL
    assert told(village, reader) == []
    asked = {
        name: [m for _, m in village.heard[name] if isinstance(m, History)] for name in ("s0", "s1", "s2")
    }
    assert sorted(len(each) for each in asked.values()) == [0, 0, 1]


def test_with_a_single_storage_node_nothing_is_asked_or_told() -> None:
    village = town("s0", storage=1)
    reader = read(village)
    assert village.bodies("p2", reader) == ALL[:13]
    assert told(village, reader) == []
    assert not [m for _, m in village.heard["s0"] if isinstance(m, AskKept)]


@pytest.mark.parametrize("since", [0.0, 5.0])
def test_of_two_storage_nodes_one_that_hides_events_is_told_of(since: float) -> None:
    village = town("s0", storage=2, named=True, last=12)
    begin = since and village.network.now - 20.0
    reader = read(village, since=begin)
    bodies = village.bodies("p2", reader)
    assert bodies == ALL[-len(bodies) :]
    assert len(bodies) == 50 if not since else 10 <= len(bodies) < 50
    assert told(village, reader) == [{"s0": 12, "s1": 49}]


def test_who_claims_more_than_it_shows_delays_but_hides_nothing() -> None:
    village = town("s0", "s1", storage=3, last=12, says=10**9)
    reader = read(village)
    assert village.bodies("p2", reader) == ALL
    assert told(village, reader) == [{"s0": 10**9, "s1": 10**9, "s2": 49}]


def test_who_hides_the_beginning_is_passed_over() -> None:
    village = town("s0", "s1", storage=3, first=30, last=49, says=49)
    reader = read(village)
    assert village.bodies("p2", reader) == ALL
    assert [i for i in village.items["p2", reader] if isinstance(i, Missed)] == []


def test_who_puts_nothing_but_claims_before_what_honest_nodes_keep_breaks_nothing() -> None:
    """A live reader goes on with what is published after its history."""
    village = town("s0", "s1", storage=3, last=12, says=10**6)
    reader = read(village, live=True)
    village.restart("p0")
    village.run(5)
    village.publish("p0", b"live", wait=5)
    assert village.bodies("p2", reader) == [*ALL, b"live"]


@pytest.mark.parametrize("seed", range(4))
def test_an_honest_node_that_is_slow_to_answer_is_waited_for(seed: int) -> None:
    config = DeliveryConfig(history_timeout=20.0)
    village = town("s0", "s1", "s2", seed=seed, last=12, delivery=config)
    village.crash("s3")
    village.run(1)
    village.begin("s3", Slow(Eavesdropped(village, "s3")))
    village.run(20)
    reader = read(village, wait=60)
    assert village.bodies("p2", reader) == ALL


def test_who_tells_readers_less_than_its_publisher_is_proved_wrong() -> None:
    """A reader shows what it was told to the storage node that it read, and that one to the publisher."""
    village = town("s0", storage=2, named=True, last=12)
    village.restart("p0")
    village.subscribe("p0")
    village.publish("p0", b"more", wait=5.0)
    reader = read(village)
    assert village.bodies("p2", reader) == [*ALL, b"more"]
    (status,) = village.status("p0").streams
    wrong = [
        village.name(each.node) for each in status.storage_checks if each.outcome is StorageOutcome.WRONG
    ]
    assert wrong == ["s0"]
    assert [village.name(peer) for peer in status.storage_nodes] == ["s1"]


def test_a_storage_node_that_is_down_only_delays() -> None:
    village = town(storage=3)
    village.crash("s1")
    reader = read(village)
    assert village.bodies("p2", reader) == ALL
    assert told(village, reader) == []


def test_an_honest_node_of_an_older_version_is_read_as_well() -> None:
    class Mixed(Town):
        hiders = ("s0", "s2")

        def noted(self, name: str) -> NodeMachine:
            made = super().noted(name)
            return Older(made) if name == "s1" else made

    village = Mixed(storage=3, peers=3, rules=(StorageRule(STREAM),))
    village.run(5)
    for body in ALL:
        village.publish("p0", body, wait=0.2)
    village.crash("p0")
    village.run(10)
    reader = read(village, wait=60)
    assert village.bodies("p2", reader) == ALL


class Forgetful(Village):
    """A village whose first storage node keeps events for five seconds only."""

    def machine(self, name: str) -> Peer:
        rules = self._rules
        self._rules = (StorageRule(STREAM, retention=5.0),) if name == "s0" else rules
        made = super().machine(name)
        self._rules = rules
        return made


@pytest.mark.parametrize("storage", [2, 3])
def test_who_has_evicted_events_is_not_told_of(storage: int) -> None:
    village = Forgetful(storage=storage, peers=3)
    village.run(5)
    for body in ALL:
        village.publish("p0", body, wait=0.2)
    village.run(40)
    assert village.stores["s0"].log.kept(topic_of(STREAM)).events == 0
    village.crash("p0")
    village.run(5)
    reader = read(village)
    assert village.bodies("p2", reader) == ALL
    assert told(village, reader) == []


def test_those_that_keep_less_because_they_began_later_are_not_told_of() -> None:
    """A short lead of one storage node over another is no difference: it is asked again."""
    village = town(storage=2)
    village.restart("p0")
    village.run(5)
    for number in range(20):
        village.publish("p0", b"more %d" % number, wait=0.05)
        if number == 10:
            reader = read(village, wait=0.0)
    village.run(30)
    assert told(village, reader) == []
    assert village.bodies("p2", reader)[:50] == ALL


@pytest.mark.parametrize("seed", range(10))
def test_a_durable_subscription_gets_all_though_three_of_four_hide_it(seed: int) -> None:
    village = town("s0", "s1", "s2", seed=seed, last=-1, degree=2)
    durable = village.subscribe("p2", name="mine", since=0.0, wait=90.0)
    assert village.bodies("p2", durable) == ALL


@pytest.mark.parametrize("since", [0.0, 12.0])
def test_who_has_events_in_its_own_log_is_told_of_no_difference(since: float) -> None:
    village = town(storage=3)
    village.restart("p0")
    village.run(5)
    begin = since and village.network.now - since
    reader = village.subscribe("p0", since=begin, live=False, wait=30.0)
    assert [item for item in village.items["p0", reader] if isinstance(item, StorageDiffers)] == []
    if not since:
        assert village.bodies("p0", reader) == ALL
