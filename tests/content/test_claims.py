"""Rendezvous that disagree find each other."""

from __future__ import annotations

from tests.content.chains import nearest_first
from tests.content.directories import Known

from linnet.content.attribute_keys import attribute_key, distance
from linnet.content.config import ContentConfig
from linnet.content.messages import Before, Claim, Closer
from linnet.content.rendezvous import Claims
from linnet.content.routes import Reach
from linnet.core.effects import Send
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Effect, Outbox
from linnet.sim.content.world import ContentWorld
from linnet.trace.records import Kind, Record

KEY = attribute_key("stock")
FIRST, SECOND, THIRD = sorted(
    (PeerId(bytes([number]) * 32) for number in range(1, 4)), key=lambda peer: distance(peer, KEY)
)
HINTS = ("tls://a:1",)


class LoneClaims(Claims):
    """Claims with an outbox of their own."""

    def __init__(self, config: ContentConfig, *known: PeerId) -> None:
        self.out = Outbox()
        reach = Reach(config, self.out)
        for peer in (FIRST, SECOND, THIRD):
            reach.send(Contact(peer), Claim("held"))
            reach.handle_link_up(peer, HINTS)
        self.out.clear()
        super().__init__(config, Known(*known), reach, self.out)

    def after_claim(self, peer: PeerId, attribute: str) -> list[Effect]:
        """What comes of a claim of a peer."""
        self.handle_claim(peer, attribute)
        return self.out.take()


def claims(*known: PeerId, config: ContentConfig | None = None) -> LoneClaims:
    return LoneClaims(config or ContentConfig(), *known)


def test_a_claim_goes_to_the_closest_that_were_found() -> None:
    found = tuple(Contact(peer) for peer in (FIRST, SECOND, THIRD))
    some, none = claims(config=ContentConfig(claims=2)), claims(config=ContentConfig(claims=0))
    some.claim("stock", found)
    assert some.out.take() == [Send(FIRST, Claim("stock")), Send(SECOND, Claim("stock"))]
    none.claim("stock", found)
    assert none.out.take() == []


def test_of_two_who_claim_the_farther_is_told_whoever_came_first() -> None:
    heard = claims()
    assert heard.after_claim(SECOND, "stock") == []
    assert heard.after_claim(THIRD, "stock") == [Send(THIRD, Closer("stock", Contact(SECOND, HINTS)))]
    assert heard.after_claim(FIRST, "stock") == [
        Send(SECOND, Closer("stock", Contact(FIRST, HINTS))),
        Send(FIRST, Before("stock", Contact(SECOND, HINTS))),
    ]
    assert heard.after_claim(FIRST, "stock") == []
    heard.begin_period()
    assert heard.claimant("stock") == Contact(FIRST, HINTS)
    heard.begin_period()
    assert heard.after_claim(THIRD, "stock") == []


def test_who_is_known_to_be_closer_is_named() -> None:
    assert claims(FIRST).after_claim(SECOND, "stock") == [Send(SECOND, Closer("stock", Contact(FIRST)))]
    assert claims(THIRD).after_claim(SECOND, "stock") == []


def test_claims_are_bounded() -> None:
    heard = claims(config=ContentConfig(routes=1))
    assert heard.after_claim(FIRST, "stock") == []
    record = Record(Kind.REJECTED, peer=SECOND, reason=Reason.TOO_MANY, note="Claim")
    assert heard.after_claim(SECOND, "other") == [record]


def test_two_who_both_act_as_rendezvous_become_one_and_no_event_is_lost() -> None:
    """One node does not know the closest, nor does anybody whom it can ask; others know both."""
    world = ContentWorld(6, 5)
    ordered = nearest_first(world)
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
