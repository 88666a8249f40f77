from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.harness import TOPIC, hints, peer_id, said

from linnet.core.effects import Hold, Release, Send
from linnet.core.ids import Contact, PeerId
from linnet.machine.outbox import Outbox
from linnet.overlay.edges import Edges
from linnet.overlay.messages import EdgeClose, EdgeOpen
from linnet.overlay.notices import Adjacency, NeighborDown, NeighborUp

A = peer_id("a")
CONTACT = Contact(A, hints(A))
PURPOSE = TOPIC.hex()
OPEN, CLOSE = Send(A, EdgeOpen(TOPIC)), Send(A, EdgeClose(TOPIC))


def edges_of(links: dict[PeerId, None]) -> tuple[Edges, Outbox]:
    out = Outbox()
    return Edges(TOPIC, links, out, Adjacency(out)), out


def test_an_edge_is_up_when_both_ends_have_opened_it() -> None:
    links: dict[PeerId, None] = {}
    edges, out = edges_of(links)
    assert said(out, edges.want_edge, CONTACT) == [Hold(A, hints(A), PURPOSE)]
    assert said(out, edges.want_edge, CONTACT) == []
    links[A] = None
    assert said(out, edges.handle_link_up, A) == [OPEN]
    assert said(out, edges.handle_open, A) == [NeighborUp(TOPIC, A)]
    assert said(out, edges.handle_open, A) == []
    assert said(out, edges.drop_edge, A) == [NeighborDown(TOPIC, A), CLOSE, Release(A, PURPOSE)]
    assert said(out, edges.drop_edge, A) == []


def test_an_offer_that_came_first_counts_as_soon_as_we_want_it() -> None:
    edges, out = edges_of({A: None})
    assert said(out, edges.handle_open, A) == []
    assert edges.up == {}
    assert said(out, edges.want_edge, CONTACT) == [Hold(A, hints(A), PURPOSE), OPEN, NeighborUp(TOPIC, A)]


def test_a_new_link_has_to_be_opened_anew() -> None:
    links: dict[PeerId, None] = {A: None}
    edges, out = edges_of(links)
    edges.handle_open(A)
    edges.want_edge(CONTACT)
    del links[A]
    assert said(out, edges.handle_link_down, A) == [NeighborDown(TOPIC, A)]
    assert said(out, edges.retry_edge, CONTACT) == [Hold(A, hints(A), PURPOSE)]
    links[A] = None
    assert said(out, edges.handle_link_up, A) == [OPEN]
    assert said(out, edges.retry_edge, CONTACT) == [OPEN]
    assert said(out, edges.handle_open, A) == [NeighborUp(TOPIC, A)]
    assert said(out, edges.handle_close, A) == [NeighborDown(TOPIC, A)]
    assert said(out, edges.handle_close, A) == []


def test_who_was_told_is_not_told_back() -> None:
    edges, out = edges_of({A: None})
    edges.want_edge(CONTACT)
    edges.handle_open(A)
    edges.handle_close(A)
    assert said(out, edges.drop_edge, A, tell=False) == [Release(A, PURPOSE)]


@given(
    st.lists(
        st.tuples(st.sampled_from(["want", "drop", "link", "unlink", "opened", "closed"]), st.integers(0, 3)),
        max_size=60,
    )
)
def test_notices_holds_and_links_always_agree(steps: list[tuple[str, int]]) -> None:
    links: dict[PeerId, None] = {}
    edges, out = edges_of(links)
    up: set[PeerId] = set()
    held: set[PeerId] = set()
    for what, number in steps:
        for effect in said(out, apply, edges, links, what, peer_id(number)):
            match effect:
                case NeighborUp(_, peer):
                    assert peer not in up
                    up.add(peer)
                case NeighborDown(_, peer):
                    up.remove(peer)
                case Hold(peer):
                    held.add(peer)
                case Release(peer):
                    held.remove(peer)
                case Send(peer):
                    assert peer in links
        assert up == set(edges.up)
        assert held == set(edges.wanted)
        assert up <= held & set(links) & set(edges.offered)


def apply(edges: Edges, links: dict[PeerId, None], what: str, peer: PeerId) -> None:
    if what == "want":
        edges.want_edge(Contact(peer))
    elif what == "drop":
        edges.drop_edge(peer)
    elif what == "link" and peer not in links:
        links[peer] = None
        edges.handle_link_up(peer)
    elif peer not in links:
        return
    elif what == "unlink":
        del links[peer]
        edges.handle_link_down(peer)
    elif what == "opened":
        edges.handle_open(peer)
    else:
        edges.handle_close(peer)
