from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import PeerId
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import Descriptor


def descriptor(number: int, version: int = 1, expires: int = 1000) -> Descriptor:
    return Descriptor(peer(number), version, 1, b"", 0, 1, (), expires, bytes(64))


def peer(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


def test_the_newest_version_wins() -> None:
    known = KnownPeers()
    assert known.learn_descriptor(descriptor(1, version=2), 5.0)
    assert not known.learn_descriptor(descriptor(1, version=2), 6.0)
    assert not known.learn_descriptor(descriptor(1, version=1), 6.0)
    assert known.learn_descriptor(descriptor(1, version=3), 7.0)
    entry = known.get(peer(1))
    assert entry is not None
    assert (entry.descriptor.version, entry.first_seen, entry.contacted) == (3, 5.0, None)
    assert known.descriptor_of(peer(2)) is None


def test_strangers_give_way_first_and_the_oldest_of_them_before_others() -> None:
    known = KnownPeers(limit=3)
    for number in (1, 2, 3):
        known.learn_descriptor(descriptor(number), float(number))
    known.note_contact(peer(1), 4.0)
    assert known.learn_descriptor(descriptor(4), 5.0)
    assert list(known) == [peer(1), peer(3), peer(4)]
    known.note_contact(peer(3), 6.0)
    known.note_contact(peer(4), 7.0)
    known.note_contact(peer(1), 8.0)
    assert known.learn_descriptor(descriptor(5), 9.0)
    assert list(known) == [peer(1), peer(4), peer(5)], "the one not spoken to for longest went"
    assert known.evicted == 2


def test_the_pinned_never_give_way() -> None:
    known = KnownPeers(limit=2)
    for number in (1, 2):
        known.learn_descriptor(descriptor(number), 0.0)
        known.pin_peer(peer(number))
    known.pin_peer(peer(1))
    assert not known.learn_descriptor(descriptor(3), 1.0)
    known.unpin_peer(peer(1))
    assert not known.learn_descriptor(descriptor(3), 1.0), "it is pinned once more"
    known.note_contact(peer(1), 1.0)
    known.unpin_peer(peer(1))
    assert known.learn_descriptor(descriptor(3), 2.0)
    assert list(known) == [peer(2), peer(3)]
    assert known.drop_expired(now=2000.0) == [peer(3)]
    assert list(known) == [peer(2)]


def test_age_counts_rounds_since_it_was_spoken_to() -> None:
    known = KnownPeers()
    known.learn_descriptor(descriptor(1), 0.0)
    known.begin_round()
    known.learn_descriptor(descriptor(2), 1.0)
    known.begin_round()
    assert [known.age_of(each) for each in known] == [2, 1]
    assert known.age_of(peer(9)) == 0
    assert [known.note_failure(peer(1)), known.note_failure(peer(1)), known.note_failure(peer(9))] == [
        1,
        2,
        0,
    ]
    known.note_contact(peer(1), 2.0)
    entry = known.get(peer(1))
    assert entry is not None
    assert (entry.peer, entry.failures, entry.contacted) == (peer(1), 0, 2.0)
    assert known.age_of(peer(1)) == 0


def test_everyone_comes_up_in_turn() -> None:
    known = KnownPeers()
    assert known.take_next(2) == []
    for number in range(5):
        known.learn_descriptor(descriptor(number), 0.0)
    turns = [one for _ in range(5) for one in known.take_next(2)]
    assert turns == [peer(number) for number in (0, 1, 2, 3, 4, 0, 1, 2, 3, 4)]


STEPS = st.lists(
    st.tuples(st.sampled_from(["learn", "contacted", "pin", "unpin", "forget", "failed"]), st.integers(0, 9))
)


@given(STEPS)
def test_it_stays_within_its_limit_and_keeps_the_pinned(steps: list[tuple[str, int]]) -> None:
    known = KnownPeers(limit=4)
    pins: dict[int, int] = {}
    for step, number in steps:
        if step == "learn":
            known.learn_descriptor(descriptor(number), 0.0)
        elif step == "contacted":
            known.note_contact(peer(number), 1.0)
        elif step == "pin":
            known.pin_peer(peer(number))
            if peer(number) in known:
                pins[number] = pins.get(number, 0) + 1
        elif step == "unpin":
            known.unpin_peer(peer(number))
            pins[number] = max(0, pins.get(number, 0) - 1)
        elif step == "forget":
            known.forget_peer(peer(number))
            pins.pop(number, None)
        else:
            known.note_failure(peer(number))
        assert len(known) <= 4
        assert all(peer(number) in known for number, count in pins.items() if count)
