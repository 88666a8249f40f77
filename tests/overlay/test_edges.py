from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.harness import TOPIC, hints, peer_id

from linnet.core.effects import Hold, Release, Send
from linnet.core.ids import Contact, PeerId
from linnet.overlay.edges import Edges
from linnet.overlay.effects import MemberEffect
from linnet.overlay.messages import EdgeClose, EdgeOpen
from linnet.overlay.notices import NeighborDown, NeighborUp

A = peer_id("a")
CONTACT = Contact(A, hints(A))
PURPOSE = TOPIC.hex()
OPEN, CLOSE = Send(A, EdgeOpen(TOPIC)), Send(A, EdgeClose(TOPIC))


def test_an_edge_is_up_when_both_ends_have_opened_it() -> None:
    links: dict[PeerId, None] = {}
    edges = Edges(TOPIC, links)
    assert edges.want(CONTACT) == [Hold(A, hints(A), PURPOSE)]
    assert edges.want(CONTACT) == []
    links[A] = None
    assert edges.linked(A) == [OPEN]
    assert edges.opened(A) == [NeighborUp(TOPIC, A)]
    assert edges.opened(A) == []
    assert edges.drop(A) == [NeighborDown(TOPIC, A), CLOSE, Release(A, PURPOSE)]
    assert edges.drop(A) == []


def test_an_offer_that_came_first_counts_as_soon_as_we_want_it() -> None:
    edges = Edges(TOPIC, {A: None})
    assert edges.opened(A) == []
    assert edges.up == {}
    assert edges.want(CONTACT) == [Hold(A, hints(A), PURPOSE), OPEN, NeighborUp(TOPIC, A)]


def test_a_new_link_has_to_be_opened_anew() -> None:
    links: dict[PeerId, None] = {A: None}
    edges = Edges(TOPIC, links)
    edges.opened(A)
    edges.want(CONTACT)
    del links[A]
    assert edges.unlinked(A) == [NeighborDown(TOPIC, A)]
    assert edges.retry(CONTACT) == [Hold(A, hints(A), PURPOSE)]
    links[A] = None
    assert edges.linked(A) == [OPEN]
    assert edges.retry(CONTACT) == [OPEN]
    assert edges.opened(A) == [NeighborUp(TOPIC, A)]
    assert edges.closed(A) == [NeighborDown(TOPIC, A)]
    assert edges.closed(A) == []


def test_who_was_told_is_not_told_back() -> None:
    edges = Edges(TOPIC, {A: None})
    edges.want(CONTACT)
    edges.opened(A)
    edges.closed(A)
    assert edges.drop(A, tell=False) == [Release(A, PURPOSE)]


@given(
    st.lists(
        st.tuples(st.sampled_from(["want", "drop", "link", "unlink", "opened", "closed"]), st.integers(0, 3)),
        max_size=60,
    )
)
def test_notices_holds_and_links_always_agree(steps: list[tuple[str, int]]) -> None:
    links: dict[PeerId, None] = {}
    edges = Edges(TOPIC, links)
    up: set[PeerId] = set()
    held: set[PeerId] = set()
    for what, number in steps:
        for effect in applied(edges, links, what, peer_id(number)):
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


def applied(edges: Edges, links: dict[PeerId, None], what: str, peer: PeerId) -> list[MemberEffect]:
    if what == "want":
        return edges.want(Contact(peer))
    if what == "drop":
        return edges.drop(peer)
    if what == "link" and peer not in links:
        links[peer] = None
        return edges.linked(peer)
    if peer not in links:
        return []
    if what == "unlink":
        del links[peer]
        return edges.unlinked(peer)
    return edges.opened(peer) if what == "opened" else edges.closed(peer)
