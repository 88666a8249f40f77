"""Requests that were acknowledged are there until an application is done with them."""

from __future__ import annotations

import pytest

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.places import guest_requests
from linnet.places.channel.packet import Modifier, Packet
from linnet.places.guest_requests import PendingRequests, items_of
from linnet.store.memory import MemoryStore

PLACE, OTHER = TopicId(b"place..." * 4), TopicId(b"another." * 4)
ANN = AuthorId(b"ann....." * 4)
TEA = Packet((Modifier(":", "_sugar", b"1"),), "_request_tea", b"please")


def test_they_outlive_a_restart_in_their_order_and_go_when_they_are_done() -> None:
    cells = MemoryStore().cells
    kept = PendingRequests(PLACE, cells)
    assert [kept.keep(ANN, request, TEA) for request in (7, 8, 9)] == [1, 2, 3]
    kept.done(2)
    kept.done(2)
    again = PendingRequests(PLACE, cells)
    assert list(again.items()) == [(1, *items_of(PLACE, ANN, 7, TEA)), (3, *items_of(PLACE, ANN, 9, TEA))]
    assert again.keep(ANN, 10, TEA) == 4
    assert (len(again), len(PendingRequests(OTHER, cells))) == (3, 0)


def test_they_are_bounded_by_number_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_requests, "MOST", 2)
    monkeypatch.setattr(guest_requests, "MOST_BYTES", 1000)
    kept = PendingRequests(PLACE, MemoryStore().cells)
    with pytest.raises(Refused) as too_large:
        kept.keep(ANN, 1, Packet((), "_request", bytes(2000)))
    assert [kept.keep(ANN, 1, TEA) for _ in range(2)] == [1, 2]
    with pytest.raises(Refused) as too_many:
        kept.keep(ANN, 1, TEA)
    assert too_large.value.reason is too_many.value.reason is Reason.QUEUE_FULL
    kept.done(1)
    kept.keep(ANN, 1, TEA)
    assert [number for number, *_ in kept.items()] == [2, 3]
