"""Sealed streams through real node machines: who reads what, when, and what carriers hold."""

from __future__ import annotations

import contextlib

from msgspec.structs import replace
from tests.streams.sealed.readership import OWNER, Readership

from linnet.core.errors import RemoteError
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.delivery.config import DeliveryConfig
from linnet.event.signing import decode_unit, recall_unit
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.machine.commands import Declined
from linnet.sim.seeded_random import SeededEntropy
from linnet.streams.commands import Declare, Policy, Published, Revoke
from linnet.streams.sealed.message_format import LONGEST, is_sealed, open_event, read_clear
from linnet.streams.sealed.vault import GRANTED, OWNING, READING, Vault
from linnet.streams.stream_names import topic_of

SPACES = (OWNING, READING, GRANTED, "policy", "card", "cursor")


def everything(store: Store, scene: Readership) -> bytes:
    """All that a store holds of the stream, and all of its cells."""
    entries = store.log.read(topic_of(scene.stream), 0, 10_000)
    cells = [key + value for space in SPACES for key, value in store.cells.scan(space)]
    return b"".join([*(entry.raw for _, entry in entries), *cells])


def test_readers_read_and_nobody_else_does() -> None:
    scene = Readership()
    scene.allow("p1")
    reader, outsider, owner = (scene.subscribe(name) for name in ("p1", "p2", OWNER))
    scene.say(b"one")
    scene.say(b"two", b"three")
    assert scene.read("p1", reader) == [b"one", b"two", b"three"]
    assert scene.read(OWNER, owner) == [b"one", b"two", b"three"]
    assert scene.read("p2", outsider) == []
    assert scene.unread("p2", outsider) == ["not_a_member"] * 3


def test_who_subscribes_later_finds_the_key_that_was_announced_before() -> None:
    """A live subscription begins with what comes; the announcement lies before that."""
    scene = Readership()
    scene.allow("p1")
    scene.say(b"one")
    scene.village.run(120.0)
    reader = scene.subscribe("p1")
    scene.say(b"two", wait=5.0)
    scene.say(b"three")
    assert scene.read("p1", reader) == [b"two", b"three"]
    assert scene.later("p1", reader) == []  # allow took it in; nothing had to be looked for


def test_a_reader_that_was_away_for_several_epochs_walks_back_to_the_last_it_knows() -> None:
    scene = Readership(delivery=DeliveryConfig(epoch_seconds=100.0))
    scene.allow("p1")
    scene.say(b"one")
    scene.village.crash("p1")
    for number in range(5):
        scene.village.run(150.0)
        scene.say(b"away %d" % number)
    scene.allow("p2")
    scene.village.restart("p1")
    reader = scene.subscribe("p1")
    scene.say(b"back", wait=8.0)
    assert scene.read("p1", reader) == [b"back"]
    assert scene.unread("p1", reader) == ["key_missing"]
    assert scene.later("p1", reader) == [b"back"]
    scene.say(b"more")
    assert scene.read("p1", reader) == [b"back", b"more"]


def test_history_is_read_with_the_keys_that_lie_in_it() -> None:
    scene = Readership(delivery=DeliveryConfig(epoch_seconds=100.0))
    scene.allow("p1")
    scene.village.crash("p1")
    said = [b"day %d" % number for number in range(6)]
    for body in said:
        scene.say(body)
        scene.village.run(150.0)
    scene.village.restart("p1")
    reader = scene.subscribe("p1", since=0.0, live=False)
    assert scene.read("p1", reader) == said
    again = scene.subscribe("p1", since=0.0, live=False)
    assert scene.read("p1", again) == said
    scene.village.run(7_200.0)
    late = scene.subscribe("p1", since=0.0, live=False)
    assert scene.read("p1", late) == said[2:]
    assert scene.unread("p1", late) == ["key_spent"] * 2


def test_a_durable_reader_goes_on_where_it_was() -> None:
    scene = Readership(delivery=DeliveryConfig(epoch_seconds=100.0))
    scene.allow("p1")
    reader = scene.subscribe("p1", name="mine")
    scene.say(b"one")
    scene.village.crash("p1")
    scene.village.run(150.0)
    scene.say(b"two")
    scene.village.run(150.0)
    scene.say(b"three")
    scene.village.restart("p1")
    again = scene.subscribe("p1", name="mine")
    scene.village.run(10.0)
    assert scene.read("p1", reader) + scene.read("p1", again) == [b"one", b"two", b"three"]


def test_who_is_let_in_reads_the_present_epoch_and_none_before() -> None:
    scene = Readership(delivery=DeliveryConfig(epoch_seconds=100.0))
    scene.say(b"long ago")
    scene.village.run(150.0)
    scene.say(b"today")
    reader = scene.subscribe("p1", since=0.0)
    assert scene.unread("p1", reader) == ["not_a_member"] * 2
    scene.allow("p1")
    scene.village.run(2.0)
    assert scene.read("p1", reader) == [b"today"]
    again = scene.subscribe("p1", since=0.0, live=False)
    assert scene.read("p1", again) == [b"today"]
    assert scene.unread("p1", again) == ["before_joining"]


def test_who_is_let_in_from_now_reads_nothing_of_before() -> None:
    scene = Readership()
    scene.say(b"before")
    scene.allow("p1", from_now=True)
    reader = scene.subscribe("p1", since=0.0)
    scene.say(b"after")
    assert scene.read("p1", reader) == [b"after"]
    assert scene.unread("p1", reader) == ["before_joining"]


def test_who_is_put_out_reads_on_no_more_and_comes_back_only_anew() -> None:
    scene = Readership()
    scene.allow("p1")
    scene.allow("p2")
    one, two = scene.subscribe("p1"), scene.subscribe("p2")
    scene.say(b"both")
    assert [reader.person for reader in scene.disallow("p1").changed] == [scene.village.identity["p1"].author]
    scene.say(b"one alone")
    assert scene.read("p1", one) == [b"both"]
    assert scene.unread("p1", one) == ["not_a_member"]
    assert scene.read("p2", two) == [b"both", b"one alone"]
    scene.allow("p1", from_now=True)
    scene.say(b"again")
    assert scene.read("p1", one) == [b"both", b"again"]
    assert scene.later("p1", one) == []
    assert scene.read("p2", two) == [b"both", b"one alone", b"again"]


def test_a_revoked_device_is_put_out_before_the_next_message() -> None:
    scene = Readership()
    scene.allow("p1")
    reader = scene.subscribe("p1")
    scene.say(b"one")
    person = SigningKey.generate(SeededEntropy(scene.village.seed, "identity/p1"))
    scene.village.ask(OWNER, Revoke(revoke(person, scene.device("p1"), int(scene.village.network.now))))
    scene.say(b"two")
    assert scene.readers().readers == ()
    assert scene.read("p1", reader) == [b"one"]


def test_a_crash_between_any_two_steps_loses_no_key_and_repeats_none() -> None:
    scene = Readership(delivery=DeliveryConfig(epoch_seconds=5.0))
    scene.allow("p1")
    reader = scene.subscribe("p1", name="mine")
    said: list[bytes] = []
    got: list[bytes] = []
    for number in range(6):
        said.append(b"%d" % number)
        scene.say(said[-1], wait=6.0)
        for name in (OWNER, "p1") if number % 2 else ("p1",):
            scene.village.crash(name)
            scene.village.restart(name)
        got += scene.read("p1", reader)
        scene.village.run(5.0)
        reader = scene.subscribe("p1", name="mine")
        scene.village.run(5.0)
    got += scene.read("p1", reader)
    assert sorted(set(got)) == said


def test_nothing_that_was_said_lies_in_the_stores_of_those_who_carry_it() -> None:
    scene = Readership()
    scene.allow("p1")
    reader = scene.subscribe("p1")
    scene.subscribe("p2", name="outsider")
    secret = b"the treasure lies under the third tree"
    scene.say(secret)
    assert scene.read("p1", reader) == [secret]
    for name in ("s0", "p2", "p1", OWNER):
        held = everything(scene.village.stores[name], scene)
        assert held
        assert secret not in held, name


def test_only_the_device_that_seals_publishes() -> None:
    scene = Readership()
    assert isinstance(scene.village.publish("p1", b"no", stream=scene.stream), Declined)
    refused = scene.seal(policy=Policy(publishers=(scene.village.identity["p1"].author,)))
    assert isinstance(refused, Declined)
    assert refused.reason is Reason.UNSUPPORTED
    open_again = scene.village.ask(OWNER, Declare(scene.stream, Policy()))
    assert isinstance(open_again, Declined)
    assert "stays so" in open_again.detail
    largest = scene.village.publish(OWNER, b"x" * BODY_BYTES, stream=scene.stream)
    assert isinstance(largest, Declined)
    assert largest.reason is Reason.TOO_LARGE
    assert isinstance(scene.village.publish(OWNER, b"x" * LONGEST, stream=scene.stream), Published)


def test_storage_with_the_whole_state_of_who_was_put_out_reads_nothing_of_after() -> None:
    """Every key that the thief has, tried on every message, whatever epoch either claims."""
    scene = Readership()
    scene.say(b"before")
    scene.allow("p1", from_now=True)
    scene.allow("p2")
    scene.say(b"during")
    scene.disallow("p1")
    scene.say(b"after")
    scene.allow("p3", from_now=True)
    scene.say(b"long after")
    store = scene.village.stores["s0"]
    units = [decode_unit(entry.raw) for _, entry in store.log.read(topic_of(scene.stream), 0, 1_000)]
    events = [event for unit in units for event in recall_unit(unit).events if is_sealed(event)]
    assert len(events) == 4

    def opened(thief: str) -> list[bytes]:
        cells = scene.village.stores[thief].cells
        stolen = Vault(topic_of(scene.stream), cells, DeliveryConfig())
        states = (stolen.reading, stolen.owning)
        held = [key for state in states if state is not None for key in state.keys]
        bodies = []
        for event in events:
            clear = read_clear(event.tail.clear or b"")
            for key in held:
                with contextlib.suppress(RemoteError):
                    bodies.append(open_event(event, clear, replace(key, epoch=clear.epoch)).body)
        return bodies

    assert opened("p1") == [b"during"]
    assert opened("p2") == [b"during", b"after", b"long after"]
    assert opened("p3") == [b"long after"]
    assert opened("s0") == []
    assert opened(OWNER) == [b"before", b"during", b"after", b"long after"], "the harness can read"
