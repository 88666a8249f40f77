"""Advertisements of this node's groups: at the closest nodes, renewed, withdrawn, never given up."""

from __future__ import annotations

from tests.content.audience import Audience
from tests.content.fast_node import HINTS, FastNode, complaints, replies, sent

from linnet.content.attribute_keys import Locate, attribute_key, distance
from linnet.content.commands import Ended
from linnet.content.config import FastConfig
from linnet.content.fast.commands import CloseGroup, OpenGroup
from linnet.content.fast.fast_delivery import IdleDue, RenewDue
from linnet.content.fast.messages import Post, Posted
from linnet.core.effects import SetTimer
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.testing.identities import known_identity
from linnet.testing.lone_part import Said

KEY = attribute_key("stock")
NAMES = sorted("abcdef", key=lambda name: distance(known_identity(name).peer, KEY))


class Advertiser(FastNode):
    """A node that is far from the board, and has a group."""

    def __init__(self) -> None:
        super().__init__("far")
        for name in NAMES:
            self.up(name)
        assert Locate(KEY) in self.ask(OpenGroup("stock"))
        self.posts = self.located()

    def located(self) -> dict[str, Post]:
        contacts = tuple(Contact(known_identity(name).peer, HINTS) for name in NAMES)
        return posts(self.find(KEY, *contacts))

    @property
    def boards(self) -> int:
        return self.machine.publisher.status()[0].boards


def posts(effects: Said) -> dict[str, Post]:
    return {name: each for name in NAMES for each in sent(effects, name, Post)}


def test_a_group_is_put_on_the_three_closest_boards() -> None:
    node = Advertiser()
    assert list(node.posts) == NAMES[:3]
    assert node.boards == 0
    for place, (name, post) in enumerate(node.posts.items(), 1):
        node.hear(name, Posted(post.number, None))
        assert node.boards == place


def test_where_one_refuses_or_is_gone_the_next_closest_is_asked() -> None:
    node = Advertiser()
    refused = node.hear(NAMES[0], Posted(node.posts[NAMES[0]].number, Reason.TOO_MANY))
    assert list(posts(refused)) == [NAMES[3]]
    assert complaints(refused) == [(known_identity(NAMES[0]).peer, Reason.TOO_MANY)]
    assert list(posts(node.down(NAMES[1]))) == [NAMES[4]]


def test_what_stands_is_renewed_with_a_later_word() -> None:
    node = Advertiser()
    for name, post in node.posts.items():
        node.hear(name, Posted(post.number, None))
    node.now += node.config.refresh
    effects = node.fire(RenewDue())
    assert Locate(KEY) in effects
    assert SetTimer(node.config.refresh, RenewDue()) in effects
    later = node.located()
    assert list(later) == NAMES[:3]
    before, after = node.posts[NAMES[0]].posting, later[NAMES[0]].posting
    assert after.issued > before.issued
    assert after.expires > before.expires


def test_a_group_that_is_closed_is_withdrawn_from_its_boards() -> None:
    node = Advertiser()
    node.hear(NAMES[0], Posted(node.posts[NAMES[0]].number, None))
    effects = node.ask(CloseGroup("stock"))
    assert replies(effects) == [Ended()]
    assert {name: each.posting.open for name, each in posts(effects).items()} == dict.fromkeys(
        NAMES[:3], False
    )
    assert list(posts(node.hear(NAMES[0], Posted(posts(effects)[NAMES[0]].number, Reason.STALE)))) == []


def test_in_a_network_boards_do_not_fill_with_the_same_group() -> None:
    world = Audience(20, "stock/price[0,9]", listed=True, config=FastConfig(refresh=20.0))
    world.run(100.0)
    assert world.standing.boards == 6, "three for each attribute"
    assert sum(world.status(name).postings for name in world.names) == 6
    world.crash(world.publisher)
    world.run(100.0)
    assert sum(world.status(name).postings for name in world.names[1:]) == 0, "nobody renews them"


def test_a_node_that_found_nobody_looks_again_soon() -> None:
    node = FastNode("far")
    assert Locate(KEY) in node.ask(OpenGroup("stock"))
    node.find(KEY)
    effects = node.fire(IdleDue())
    assert Locate(KEY) in effects
    node.up("a")
    (post,) = sent(node.find(KEY, Contact(known_identity("a").peer, HINTS)), "a", Post)
    node.hear("a", Posted(post.number, None))
    assert Locate(KEY) not in node.fire(IdleDue())
