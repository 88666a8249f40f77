"""Subscriptions on their way up: whoever is the next hop was told all that is asked for."""

from __future__ import annotations

from tests.content.directories import Known
from tests.content.one_scout import FAR, IDENTITIES, NEAR, OWN, LoneScout

from linnet.content.messages import Replace, Subscribe
from linnet.core.effects import Send
from linnet.core.ids import PeerId


def told(effects: list[object]) -> list[tuple[PeerId, str | tuple[str, ...], bool]]:
    """Who was told what, and whether as something that another was told before."""
    found: list[tuple[PeerId, str | tuple[str, ...], bool]] = []
    for effect in effects:
        if isinstance(effect, Send) and isinstance(effect.message, Subscribe):
            found.append((effect.peer, effect.message.predicate, effect.message.moved))
        elif isinstance(effect, Send) and isinstance(effect.message, Replace):
            found.append((effect.peer, effect.message.predicates, False))
    return found


def test_a_next_hop_that_was_another_before_is_told_all_that_is_asked_for() -> None:
    """The one before is told that nothing counts any more: not only what is news has to be told."""
    near, between = NEAR, OWN
    assert IDENTITIES[2].peer == FAR
    directory = Known(between, hints=("tls://few:1",))
    machine = LoneScout(2, directory)
    for peer in (near, between):
        machine.up(peer)
    first = machine.subscribe(1, 'stock="a"')
    assert told([*first]) == [(between, 'stock="a"', False)]
    directory.peers.append(near)
    second = machine.subscribe(2, 'stock="b"')
    assert told([*second]) == [(between, (), False), (near, 'stock="b"', True), (near, 'stock="a"', True)]
