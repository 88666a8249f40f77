"""What every way to subscribe shares at a node."""

from __future__ import annotations

from tests.streams.stage import context_of


def test_it_knows_who_we_are() -> None:
    context = context_of("us")
    assert context.cards.find(context.author, context.device) == context.card
    assert context.peer in context.links
