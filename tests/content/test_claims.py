"""Rendezvous that disagree find each other."""

from __future__ import annotations

from linnet.content.claims import Claims
from linnet.content.config import ContentConfig
from linnet.content.keys import attribute_key, distance
from linnet.content.messages import Before, Claim, Closer
from linnet.content.reach import Reach
from linnet.core.effects import Send
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.overlay.kademlia.ids import NodeId
from linnet.sim.content_world import ContentWorld
from linnet.trace.records import Kind, Record

KEY = attribute_key("stock")
FIRST, SECOND, THIRD = sorted(
    (PeerId(bytes([number]) * 32) for number in range(1, 4)), key=lambda peer: distance(peer, KEY)
)
HINTS = ("tls://a:1",)


class Known:
    """A directory of a few."""

    def __init__(self, *peers: PeerId) -> None:
        self.peers = peers

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        return [Contact(peer) for peer in sorted(self.peers, key=lambda peer: distance(peer, key))[:count]]


def claims(*known: PeerId, config: ContentConfig | None = None) -> Claims:
    chosen = config or ContentConfig()
    reach = Reach(chosen)
    for peer in (FIRST, SECOND, THIRD):
        reach.say(Contact(peer), Claim("held"))
        reach.link_up(peer, HINTS)
    return Claims(chosen, Known(*known), reach)


def test_a_claim_goes_to_the_closest_that_were_found() -> None:
    found = tuple(Contact(peer) for peer in (FIRST, SECOND, THIRD))
    sent = claims(config=ContentConfig(claims=2)).claim("stock", found)
    assert sent == [Send(FIRST, Claim("stock")), Send(SECOND, Claim("stock"))]
    assert claims(config=ContentConfig(claims=0)).claim("stock", found) == []


def test_of_two_who_claim_the_farther_is_told_whoever_came_first() -> None:
    heard = claims()
    assert heard.heard(SECOND, "stock") == []
    assert heard.heard(THIRD, "stock") == [Send(THIRD, Closer("stock", Contact(SECOND, HINTS)))]
    assert heard.heard(FIRST, "stock") == [
        Send(SECOND, Closer("stock", Contact(FIRST, HINTS))),
        Send(FIRST, Before("stock", Contact(SECOND, HINTS))),
    ]
    assert heard.heard(FIRST, "stock") == []
    heard.turn()
    assert heard.claimant("stock") == Contact(FIRST, HINTS)
    heard.turn()
    assert heard.heard(THIRD, "stock") == []


def test_who_is_known_to_be_closer_is_named() -> None:
    assert claims(FIRST).heard(SECOND, "stock") == [Send(SECOND, Closer("stock", Contact(FIRST)))]
    assert claims(THIRD).heard(SECOND, "stock") == []


def test_claims_are_bounded() -> None:
    heard = claims(config=ContentConfig(routes=1))
    assert heard.heard(FIRST, "stock") == []
    record = Record(Kind.REJECTED, peer=SECOND, reason=Reason.TOO_MANY, note="Claim")
    assert heard.heard(SECOND, "other") == [record]


def test_two_who_both_act_as_rendezvous_become_one_and_no_event_is_lost() -> None:
    """One node does not know the closest, nor does anybody whom it can ask; others know both."""
    world = ContentWorld(6, 5)
    ordered = sorted(world.names, key=lambda name: distance(world.identities[name].peer, KEY))
    peers = [world.identities[name].peer for name in ordered]
    best, second, *others = peers
    for peer in others:
        world.tables.know(peer, [each for each in peers if each != peer])
    world.tables.know(best, others[:1])
    world.tables.know(second, others[1:3])
    for peer in others[1:3]:
        world.tables.know(peer, [second, others[1] if peer is others[2] else others[2], others[0]])
    world.tables.know(others[0], [best, others[1], others[2]])
    world.run(0.5)
    world.subscribe(ordered[0], "stock")
    world.subscribe(ordered[1], "stock")
    world.run(1.0)
    world.publish(ordered[1], "stock", b"x")
    world.run(10.0)
    assert (world.bodies(ordered[0]), world.bodies(ordered[1])) == ([b"x"], [b"x"])
    held = [name for name in ordered if "stock" in world.scouts[name].elections.held]
    assert held == ordered[:1]
