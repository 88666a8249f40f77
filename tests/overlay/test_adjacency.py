"""A neighbour is told once, however many overlays have it, and gone with the last."""

from __future__ import annotations

from tests.overlay.harness import TOPIC, peer_id, said

from linnet.machine.outbox import Outbox
from linnet.overlay.config import Overlay
from linnet.overlay.notices import Adjacency, NeighborDown, NeighborUp, NewOverlayMet

A, B = peer_id("a"), peer_id("b")


def test_the_first_overlay_announces_and_the_last_takes_back() -> None:
    out = Outbox()
    adjacency = Adjacency(out)
    assert said(out, adjacency.add_neighbor, Overlay.TRACKER, TOPIC, A) == [NeighborUp(TOPIC, A)]
    assert said(out, adjacency.add_neighbor, Overlay.RING, TOPIC, A) == []
    assert adjacency.has_neighbors(TOPIC, Overlay.RING)
    assert said(out, adjacency.remove_neighbor, Overlay.TRACKER, TOPIC, A) == []
    assert not adjacency.has_neighbors(TOPIC, Overlay.TRACKER)
    assert said(out, adjacency.remove_neighbor, Overlay.RING, TOPIC, A) == [NeighborDown(TOPIC, A)]
    assert not adjacency.has_neighbors(TOPIC, Overlay.RING)
    assert said(out, adjacency.add_neighbor, Overlay.RING, TOPIC, A) == [NeighborUp(TOPIC, A)]


def test_the_first_neighbour_in_the_overlay_that_is_changed_over_to_is_told_once() -> None:
    out = Outbox()
    adjacency = Adjacency(out)
    adjacency.add_neighbor(Overlay.TRACKER, TOPIC, A)
    adjacency.awaited[TOPIC] = Overlay.RING
    assert said(out, adjacency.add_neighbor, Overlay.TRACKER, TOPIC, B) == [NeighborUp(TOPIC, B)]
    assert said(out, adjacency.add_neighbor, Overlay.RING, TOPIC, A) == [NewOverlayMet(TOPIC)]
    assert said(out, adjacency.add_neighbor, Overlay.RING, TOPIC, B) == []
