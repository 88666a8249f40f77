"""What all streams of a node share."""

from __future__ import annotations

from tests.streams.stage import context_of

from linnet.identity.text import Sort, to_text


def test_it_knows_who_we_are() -> None:
    context = context_of("us")
    assert context.cards.find(context.author, context.device) == context.card
    assert context.peer in context.links


def test_me_stands_for_the_person() -> None:
    context = context_of("us")
    person = to_text(Sort.PERSON, context.author)
    assert context.own_name("me/diary") == f"{person}/diary"
    assert context.own_name("weather") == "weather"
    assert context.own_name("me") == "me"
