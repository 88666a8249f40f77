"""Who asks for the voice: in the deed, itself, for this place and term."""

from __future__ import annotations

import msgspec
import pytest

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.places.deed import Policy, sign_deed
from linnet.places.host_terms import check_yield, sign_yield
from linnet.places.messages import Yield
from linnet.sim.clock import START
from linnet.testing.identities import known_identity

ANNA, EVE = known_identity("anna"), known_identity("eve")
DEED = sign_deed(SigningKey(b"p" * 32), 1, Policy.PUBLIC, known_identity("bob").author, (ANNA.author,))


def refused(asked: Yield, link: PeerId = ANNA.peer) -> Reason:
    with pytest.raises(RemoteError) as raised:
        check_yield(asked, DEED, link, START)
    return raised.value.reason


def test_a_co_host_may_ask() -> None:
    check_yield(sign_yield(ANNA.device, ANNA.card, DEED.place, 3), DEED, ANNA.peer, START)


def test_others_may_not_and_nobody_for_somebody_else() -> None:
    asked = sign_yield(ANNA.device, ANNA.card, DEED.place, 3)
    assert refused(asked, EVE.peer) is Reason.REPLAYING
    assert refused(sign_yield(EVE.device, EVE.card, DEED.place, 3), EVE.peer) is Reason.NOT_A_PUBLISHER
    assert refused(sign_yield(EVE.device, ANNA.card, DEED.place, 3)) is Reason.BAD_SIGNATURE
    assert refused(msgspec.structs.replace(asked, term=4)) is Reason.BAD_SIGNATURE
    assert refused(msgspec.structs.replace(asked, place=ANNA.author)) is Reason.UNKNOWN
