"""Who comes first in a search: by bits that are looked for, by what each says, and among equals by lot."""

from __future__ import annotations

from random import Random

from tests.overlay.trackerless.ring_network import peer_of

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.likeliest import ranked

A, B, C, D = (peer_of(name) for name in "abcd")


def first(shown: dict[PeerId, tuple[int, float]], bits: tuple[int, ...], *alike: PeerId) -> list[PeerId]:
    return ranked(list(shown), shown.__getitem__, bits, alike, Random(1))


def test_more_of_the_bits_come_first_and_of_these_the_surer_whatever_else_is_shown() -> None:
    shown = {A: (0b0001, 1.0), B: (0b0101, 1.0), C: (0b0001, 1.5), D: (0b11010, 9.0)}
    assert first(shown, (0, 2)) == [B, C, A, D]


def test_equals_come_by_lot() -> None:
    shown = dict.fromkeys((A, B, C), (1, 1.0))
    orders = {tuple(ranked([A, B, C], shown.__getitem__, (0,), (), Random(seed))) for seed in range(60)}
    assert len(orders) == 6


def test_what_few_of_those_alike_show_counts_for_others_only() -> None:
    like = [peer_of(number) for number in range(10)]
    few = dict.fromkeys(like, (0, 2.0)) | dict.fromkeys(like[:2], (1, 2.0)) | {A: (1, 1.0)}
    assert first(few, (0,), *like)[0] == A
    many = few | dict.fromkeys(like[:3], (1, 2.0))
    assert set(first(many, (0,), *like)[:3]) == set(like[:3])
