"""One piece after the other: predicates, then the events that go by. With Spark: test_job.py."""

from __future__ import annotations

from linnet.lab.matching.pieces import Piece


def test_events_are_asked_of_their_own_piece_alone() -> None:
    piece = Piece()
    first = [
        (0, 0, 7, "stock"),
        (0, 0, 3, "price[1,5]"),
        (0, 1, 100, "price=2/stock"),
        (0, 1, 101, "price=9"),
    ]
    assert list(piece.pass_by(first)) == [(100, 0, [3, 7])]
    later = [(0, 1, 102, "stock"), (2, 0, 8, "stock"), (2, 1, 102, "stock"), (3, 1, 102, "stock")]
    assert list(piece.pass_by(later)) == [(102, 0, [7]), (102, 2, [8])]
