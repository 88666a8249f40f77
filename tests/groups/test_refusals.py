"""Whatever a member makes up is refused with its reason, and the state is the same to the byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.groups import forgeries
from tests.groups.group_world import GROUP, GroupWorld

from linnet.core.errors import RemoteError, StoreError
from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.reasons import Reason
from linnet.groups import agreement, message_crypto
from linnet.groups.additions import _bound, open_blob, seal_blob
from linnet.groups.agreement import Step
from linnet.groups.bodies import Acks, Add, Body, Create, Head, Item, Remove, decode_body, encode_body
from linnet.groups.labels import Device, MemberId
from linnet.groups.notes import Ignored, Lack, Waits
from linnet.groups.primitives import NONCE_BYTES, open_sealed, seal
from linnet.groups.state import GroupConfig, decode_state, encode_state
from linnet.groups.work import Work

OP = EventId(b"e" * 32)


def world_of(members: str = "ABMZ", others: str = "DE", config: GroupConfig | None = None) -> GroupWorld:
    """M does not keep to the rules, and Z is away, so that acknowledgements are outstanding."""
    world = GroupWorld(members + others, config=config)
    world.create("A", members.replace("A", ""))
    world.settle()
    world.update("M")
    for name in "AB":
        world.deliver("M", name)
        world.acks(name)
    world.update("A")
    here = [(one, other) for one in "ABM" for other in "ABM" if one != other]
    while ready := [ends for ends in here if world.links[ends]]:
        world.deliver(*ready[0])
        world.acks(ready[0][1])
    return world


WORLD = world_of()
FORGER, VICTIM = WORLD.peers["M"], WORLD.peers["B"]
FORGED = forgeries.refused(FORGER.state, WORLD.directory, FORGER.entropy, WORLD.now)
BEFORE = encode_state(VICTIM.state)
HEAD = forgeries.head_of(FORGER.state)


def give(world: GroupWorld, name: str, body: bytes | Body, by: str = "M", op: EventId = OP) -> Step:
    data = body if isinstance(body, bytes) else encode_body(body)
    state = world.peers[name].state
    return agreement.receive(state, world.peers[by].device, op, data, world.now)


@pytest.mark.parametrize("name", sorted(FORGED))
def test_it_is_refused_with_its_reason_and_leaves_no_trace(name: str) -> None:
    body, reason = FORGED[name]
    with pytest.raises(RemoteError) as caught:
        give(WORLD, "B", body)
    assert caught.value.reason is reason
    assert encode_state(VICTIM.state) == BEFORE


def test_the_same_without_its_fault_is_taken() -> None:
    good = forgeries.update_of(FORGER.state, WORLD.directory, FORGER.entropy, WORLD.now)
    step = give(WORLD, "B", good)
    assert not any(isinstance(note, Waits | Ignored) for note in step.notes)
    assert len(step.state.owed) == 1


def test_what_comes_from_no_member_waits_and_changes_nothing() -> None:
    """Nobody outside can acknowledge: it is not known who that would be, and an id is of its device alone."""
    op = next(iter(VICTIM.state.ops))
    stranger = replace(HEAD, sender=MemberId(b"x" * 16))
    step = give(WORLD, "B", Acks(stranger, (Item(False, op, ()),)), by="D")
    assert step.notes == (Waits(Lack.MEMBER, b"x" * 16),)
    assert step.state is VICTIM.state
    with pytest.raises(RemoteError, match=Reason.UNKNOWN_MEMBER):
        give(WORLD, "B", Acks(HEAD, (Item(False, op, ()),)), by="D")


def test_who_is_removed_does_not_acknowledge_it() -> None:
    world = world_of()
    removal = world.remove("A", "M").id
    world.deliver("A", "B")
    before = encode_state(world.peers["B"].state)
    with pytest.raises(RemoteError, match=Reason.MALFORMED):
        give(world, "B", Acks(HEAD, (Item(False, removal, ()),)))
    assert encode_state(world.peers["B"].state) == before


def test_numbers_that_are_ahead_wait_and_change_nothing() -> None:
    good = forgeries.update_of(FORGER.state, WORLD.directory, FORGER.entropy, WORLD.now)
    for ahead in (2, 1000, 2**31):
        step = give(WORLD, "B", replace(good, head=forgeries.head_of(FORGER.state, ahead)))
        assert step == Step(VICTIM.state, (Waits(Lack.EARLIER, FORGER.id),))


def test_acknowledgements_of_what_never_was_fill_nothing() -> None:
    world = world_of()
    for number in range(600):
        op = EventId(number.to_bytes(32, "big"))
        step = give(world, "B", Acks(HEAD, (Item(False, op, ()),)))
        assert step.notes == (Waits(Lack.ACKED, op),)
        world.peers["B"].state = step.state
    assert len(step.state.wanted) == 256
    assert encode_state(replace(step.state, wanted=())) == BEFORE


@pytest.mark.parametrize("replayed", ["to its newcomer", "to a member", "to who is out again", "to another"])
def test_a_welcome_again(replayed: str) -> None:
    world = world_of()
    packet = world.add("M", "D")
    world.settle()
    content = decode_body(packet.body)
    assert isinstance(content, Add)
    to = {"to a member": "B", "to another": "E"}.get(replayed, "D")
    if replayed == "to who is out again":
        world.remove("A", "D")
        world.settle()
        assert not agreement.is_member(world.peers["D"].state)
        world.publish_keys("D")
    before = encode_state(world.peers[to].state)
    if replayed == "to another":
        peer = world.peers["E"]
        other = replace(content, device=peer.device, identity=peer.state.prekeys.identity.public)
        with pytest.raises(RemoteError, match=Reason.UNDECRYPTABLE):
            give(world, "E", other, op=packet.id)
    else:
        step = give(world, to, packet.body, op=packet.id)
        assert step.notes == ((Waits(Lack.WELCOME),) if replayed == "to who is out again" else ())
        assert encode_state(step.state) == before
    assert encode_state(world.peers[to].state) == before


def test_a_flood_of_additions_ends_at_the_limit() -> None:
    """Each is done with, for everybody alike, and nothing is kept of it but that it was the last."""
    world = world_of(config=GroupConfig(members=5, one_time=8))
    world.add("M", "D")
    world.settle()
    forger, victim = world.peers["M"], world.peers["B"]
    size, members = len(encode_state(victim.state)), agreement.members(victim.state)
    state, ops = victim.state, victim.state.ops
    for number in range(1, 101):
        device = Device(AuthorId(number.to_bytes(32, "big")), DeviceId(b"flooding"))
        welcome = b"\x01" + bytes(180)
        head = forgeries.head_of(forger.state, number)
        body = Add(head, forgeries.KEY, device, forgeries.KEY, bytes(16), OP, welcome, bytes(64))
        op = EventId(number.to_bytes(32, "big"))
        step = agreement.receive(state, forger.device, op, encode_body(body), world.now)
        assert step.notes == (Ignored(Reason.GROUP_FULL, "an addition beyond the limit"),)
        state = step.state
    assert agreement.members(state) == members
    assert state.ops == ops
    assert not state.owed
    assert len(encode_state(state)) == size


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (Create(HEAD, forgeries.KEY, bytes(16), ((FORGER.device, forgeries.KEY),), ()), Reason.DUPLICATE),
        (Remove(HEAD, forgeries.KEY, (FORGER.id,), ()), Reason.MALFORMED),
        (Remove(HEAD, forgeries.KEY, (MemberId(b"x" * 16),), ()), Reason.UNKNOWN_MEMBER),
    ],
    ids=["a second creation", "a removal of oneself", "a removal of a stranger"],
)
def test_what_is_in_form_and_means_nothing_is_done_with(body: Body, reason: Reason) -> None:
    step = give(WORLD, "B", body)
    assert [note.reason for note in step.notes if isinstance(note, Ignored)] == [reason]
    done = replace(step.state, clock=VICTIM.state.clock, last=VICTIM.state.last, tended=VICTIM.state.tended)
    assert encode_state(done) == BEFORE


# Messages.


def message(epoch: int, index: int, version: int = 1) -> bytes:
    numbers = epoch.to_bytes(4, "big") + index.to_bytes(4, "big")
    return bytes((version,)) + FORGER.id + numbers + b"salt"


NEWEST = VICTIM.state.chains[FORGER.id].chains[-1].epoch


@pytest.mark.parametrize(
    ("clear", "reason"),
    [
        (message(NEWEST + 1, 0), Reason.KEY_MISSING),
        (message(NEWEST, 100_000), Reason.KEY_MISSING),
        (message(0, 0), Reason.BEFORE_JOINING),
        (message(1, 0), Reason.KEY_SPENT),
        (message(NEWEST, 0), Reason.UNDECRYPTABLE),
        (message(NEWEST, 0, version=2), Reason.UNSUPPORTED),
        (message(NEWEST, 0)[:-1], Reason.MALFORMED),
        (message(NEWEST, 0) + b"\x00", Reason.MALFORMED),
        (b"", Reason.MALFORMED),
    ],
    ids=[
        "to come",
        "far ahead",
        "no epoch",
        "that is over",
        "of nothing",
        "version",
        "short",
        "long",
        "none",
    ],
)
def test_messages_of_wrong_epochs_and_forms(clear: bytes, reason: Reason) -> None:
    with pytest.raises(RemoteError) as caught:
        message_crypto.open_message(VICTIM.state, FORGER.device, clear, b"bound", bytes(80))
    assert caught.value.reason is reason
    assert encode_state(VICTIM.state) == BEFORE


def test_no_message_comes_after_the_end_of_its_epoch() -> None:
    world = world_of()
    world.say("M", "one")
    world.say("M", "two")
    world.update("M")
    (one, _), (ends, *_) = (
        [packet for packet in world.links["M", "B"] if packet.clear],
        [packet for packet in world.links["M", "B"] if not packet.clear],
    )
    step = give(world, "B", ends.body, op=ends.id)
    past = one.clear[:21] + (2).to_bytes(4, "big") + one.clear[25:]
    with pytest.raises(RemoteError, match=Reason.WRONG_EPOCH):
        message_crypto.open_message(step.state, one.device, past, b"bound", one.body)


# Anything at all.


_tails = st.binary(min_size=12, max_size=12)


@given(st.binary(max_size=40) | _tails.map(lambda tail: b"\x01" + FORGER.id + tail), st.binary(max_size=99))
def test_any_clear_bytes_are_refused_by_name(clear: bytes, sealed: bytes) -> None:
    with pytest.raises(RemoteError):
        message_crypto.open_message(VICTIM.state, FORGER.device, clear, b"bound", sealed)
    assert encode_state(VICTIM.state) == BEFORE


STATE = encode_state(WORLD.peers["A"].state)


@given(st.integers(0, 2**20), st.integers(1, 255), st.booleans())
def test_a_changed_state_is_read_as_another_or_not_at_all(place: int, change: int, cut: bool) -> None:
    data = bytearray(STATE)
    data[place % len(data)] ^= change
    try:
        state = decode_state(bytes(data[: place % len(data)] if cut else data))
    except StoreError:
        return
    assert encode_state(state) != STATE


@given(st.binary(max_size=300))
def test_any_bytes_are_no_state(data: bytes) -> None:
    with pytest.raises(StoreError):
        decode_state(data)


def blob_of(world: GroupWorld) -> bytes:
    """What an adder would tell D, in the clear."""
    work = Work(world.peers["A"].state)
    newcomer = world.peers["Z"].id
    sealed = seal_blob(work, forgeries.KEY, newcomer)
    bound = _bound(GROUP, work.self, newcomer, work.cseq)
    return open_sealed(forgeries.KEY, bytes(NONCE_BYTES), sealed, bound)


BLOB = blob_of(WORLD)
_changes = st.lists(st.tuples(st.integers(0, 2**16), st.integers(1, 255)), min_size=1, max_size=3)


def told(plain: bytes) -> Work:
    """What D makes of it, who has the key."""
    adder, newcomer = WORLD.peers["A"], WORLD.peers["Z"].id
    work = Work(WORLD.peers["D"].state)
    work.me = newcomer
    bound = _bound(GROUP, adder.id, newcomer, adder.state.cseq)
    sealed = seal(forgeries.KEY, bytes(NONCE_BYTES), plain, bound)
    open_blob(work, forgeries.KEY, Head(adder.id, adder.state.cseq, 0), sealed, WORLD.now)
    return work


@given(_changes | st.none(), st.integers(0, 2**16))
def test_whatever_an_adder_tells_makes_sense_or_is_refused(
    changes: list[tuple[int, int]] | None, cut: int
) -> None:
    data = bytearray(BLOB)
    for place, change in changes or ():
        data[place % len(data)] ^= change
    try:
        work = told(bytes(data if changes else data[: cut % len(data)]))
    except RemoteError:
        return
    assert decode_state(encode_state(work.state())) == work.state()


@given(st.binary(max_size=400))
def test_a_blob_of_anything_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteError):
        told(data)


def test_what_an_adder_tells_is_taken_as_it_is() -> None:
    assert told(BLOB).history == WORLD.peers["A"].state.history
