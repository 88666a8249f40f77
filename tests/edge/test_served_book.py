"""Whom a proxy serves, over restarts."""

from __future__ import annotations

from linnet.core.ids import PeerId, TopicId
from linnet.edge.proxy import ServedBook
from linnet.store.memory import MemoryStore

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)
TEA, RAIN = TopicId(b"1" * 32), TopicId(b"2" * 32)


def test_wishes_are_written_down_and_forgotten() -> None:
    cells = MemoryStore().cells
    book = ServedBook(cells)
    assert book.is_empty
    assert book.note_wish(A, TEA, "tea", 10.0)
    assert book.note_wish(B, TEA, "tea", 11.0)
    assert book.note_wish(B, RAIN, "rain", 12.0)
    again = ServedBook(cells)
    assert {peer: list(wishes) for peer, wishes in again.wishes.items()} == {A: [TEA], B: [TEA, RAIN]}
    assert again.streams == {TEA: "tea", RAIN: "rain"}
    assert not again.forget_wish(A, TEA, 100.0)
    assert not again.forget_wish(A, TEA, 100.0)
    assert again.forget_wish(B, TEA, 100.0)
    assert again.forget_wish(B, RAIN, 200.0)
    assert (again.wishes, again.ending) == ({}, {TEA: ("tea", 100.0), RAIN: ("rain", 200.0)})
    third = ServedBook(cells)
    assert third.is_kept(TEA)
    assert third.take_ended(150.0) == [(TEA, "tea")]
    assert not third.is_kept(TEA)
    assert ServedBook(cells).streams == {RAIN: "rain"}


def test_a_stream_that_somebody_wants_again_does_not_end() -> None:
    cells = MemoryStore().cells
    book = ServedBook(cells)
    book.note_wish(A, TEA, "tea", 10.0)
    book.forget_wish(A, TEA, 100.0)
    assert book.note_wish(B, TEA, "tea", 20.0)
    assert book.take_ended(1000.0) == []
    assert ServedBook(cells).ending == {}


def test_who_comes_often_is_written_seldom() -> None:
    cells = MemoryStore().cells
    book = ServedBook(cells)
    assert book.note_wish(A, TEA, "tea", 0.0)
    assert not book.note_wish(A, TEA, "tea", 3599.0)
    assert book.note_wish(A, TEA, "tea", 3600.0)
    assert ServedBook(cells).wishes[A][TEA].asked_at == 3600.0
