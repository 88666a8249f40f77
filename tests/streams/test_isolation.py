"""Isolation: readers are told that they may be cut off, as long as nobody hands over what others claim."""

from __future__ import annotations

from hashlib import sha256

from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import CutOff
from linnet.machine.outbox import Outbox
from linnet.streams.isolation import PATIENCE, QUIET, Isolation
from linnet.trace.records import Kind, Record

TOPIC = TopicId(b"t" * 32)
ANN, BEN = b"ann" * 12, b"ben" * 12
PEERS = [PeerId(sha256(b"%d" % number).digest()) for number in range(40)]
NOW = 1_000_000.0


class Scene:
    """What readers are told, and what is recorded."""

    def __init__(self) -> None:
        self.out = Outbox()
        self.told: list[CutOff] = []
        self.isolation = Isolation(TOPIC, self.told.append, self.out)

    def claim(self, *peers: PeerId, key: bytes = ANN) -> None:
        for peer in peers:
            self.isolation.note_claim(peer, key)

    def unfilled(self, seconds: float, missing: int = 7, key: bytes = ANN) -> None:
        self.isolation.note_unfilled(key, missing, NOW + seconds)


def test_after_a_while_readers_are_told_once_what_is_claimed_and_by_how_many() -> None:
    scene = Scene()
    scene.claim(*PEERS[:3])
    scene.unfilled(0.0)
    scene.unfilled(PATIENCE - 0.1)
    assert scene.told == []
    scene.unfilled(PATIENCE)
    scene.unfilled(PATIENCE + 5.0)
    assert scene.told == [CutOff(TOPIC, 7, 3)]
    assert scene.isolation.is_cut_off
    (record,) = [each for each in scene.out.take() if isinstance(each, Record)]
    assert (record.kind, record.topic, record.events, record.reason) == (
        Kind.CONTROL,
        TOPIC,
        7,
        Reason.SILENT,
    )


def test_they_are_told_when_it_is_over() -> None:
    scene = Scene()
    scene.claim(PEERS[0])
    scene.claim(PEERS[1], key=BEN)
    scene.unfilled(0.0)
    scene.unfilled(0.0, key=BEN)
    scene.unfilled(PATIENCE)
    scene.isolation.note_unit(ANN, is_whole=False)
    scene.isolation.note_unit(ANN, is_whole=True)
    assert len(scene.told) == 1, "something of the other chain is missing still"
    scene.isolation.note_unit(BEN, is_whole=True)
    assert scene.told[1:] == [CutOff(TOPIC, 0, 0)]
    scene.isolation.note_unit(BEN, is_whole=True)
    assert len(scene.told) == 2


def test_what_is_missing_without_a_claim_of_others_is_no_sign() -> None:
    scene = Scene()
    scene.unfilled(0.0)
    scene.unfilled(100.0)
    assert scene.told == []


def test_what_came_after_all_is_forgotten() -> None:
    scene = Scene()
    scene.claim(PEERS[0])
    scene.unfilled(0.0)
    scene.isolation.note_unit(ANN, is_whole=True)
    scene.claim(PEERS[0])
    scene.unfilled(PATIENCE)
    assert scene.told == [], "the time begins anew"
    scene.unfilled(2 * PATIENCE)
    assert len(scene.told) == 1


def test_false_claims_do_not_flood_readers_with_warnings() -> None:
    scene = Scene()
    for number in range(20):
        at = number * 2 * PATIENCE
        scene.claim(PEERS[0])
        scene.unfilled(at)
        scene.unfilled(at + PATIENCE)
        scene.isolation.give_up(ANN)
        scene.isolation.note_unit(BEN, is_whole=True)
    warnings = [each for each in scene.told if each.events]
    assert len(warnings) == 1 + int(19 * 2 * PATIENCE / QUIET)


def test_claims_are_bounded() -> None:
    scene = Scene()
    scene.claim(*PEERS)
    scene.unfilled(0.0)
    scene.unfilled(PATIENCE)
    assert scene.told == [CutOff(TOPIC, 7, 16)]
    for number in range(3000):
        scene.claim(PEERS[0], key=b"%036d" % number)
    assert len(scene.isolation._claims) == 1024


def test_a_clock_that_is_set_back_delays_the_warning_only_a_little() -> None:
    scene = Scene()
    scene.claim(PEERS[0])
    scene.unfilled(0.0)
    scene.unfilled(-3600.0)
    scene.unfilled(PATIENCE - 3600.1)
    assert scene.told == []
    scene.unfilled(PATIENCE - 3600.0)
    assert len(scene.told) == 1


def test_many_false_claims_hide_no_true_one() -> None:
    scene = Scene()
    for second in range(20):
        scene.claim(PEERS[0])
        scene.unfilled(float(second))
        for number in range(1100):
            scene.claim(PEERS[1], key=b"%036d" % (second * 1100 + number))
    assert scene.told == [CutOff(TOPIC, 7, 1)]
    assert len(scene.isolation._claims) == 1024
