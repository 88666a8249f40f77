"""Who is at the other end of a link."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.relay.scenes import NOW, Station, card_of, peer_of

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.identity.cards import revoke
from linnet.rooms.relay.access_control import Caller, Visitors
from linnet.testing.rooms import person, person_key

ANN = Caller(peer_of("ann"), person("ann").author)


def test_the_card_of_the_links_own_key_is_remembered_while_the_link_lasts() -> None:
    visitors = Visitors(Station("r0").context)
    assert visitors.caller(ANN.peer, (), NOW) is None
    assert visitors.identify(ANN.peer, card_of("ann"), NOW) == ANN
    assert visitors.caller(ANN.peer, (), NOW) == ANN
    visitors.down(ANN.peer)
    assert visitors.caller(ANN.peer, (), NOW) is None
    assert visitors.caller(ANN.peer, (card_of("ben"), card_of("ann")), NOW) == ANN


def test_cards_that_are_no_good() -> None:
    station = Station("r0")
    visitors = Visitors(station.context)
    card = card_of("ann")
    cases = [
        (card_of("ben"), NOW, Reason.UNKNOWN_DEVICE),
        (replace(card, person=person("ben").author), NOW, Reason.BAD_SIGNATURE),
        (card, card.not_after + 1000.0, Reason.CARD_EXPIRED),
        (card, card.not_before - 1000.0, Reason.CARD_NOT_YET_VALID),
    ]
    station.context.cards.learn(card)
    for wrong, now, reason in cases:
        with pytest.raises(RemoteError) as error:
            visitors.identify(ANN.peer, wrong, now)
        assert error.value.reason is reason
    station.context.cards.revoke(revoke(person_key("ann"), card.device, 1))
    with pytest.raises(RemoteError) as error:
        visitors.identify(ANN.peer, card, NOW)
    assert error.value.reason is Reason.CARD_REVOKED
    assert visitors.caller(ANN.peer, (card,), NOW) is None
