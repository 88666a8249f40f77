"""A record on its way to those who keep it."""

from __future__ import annotations

from random import Random

from tests.overlay.kademlia.people import contact

from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.overlay.kademlia.ids import record_key
from linnet.overlay.kademlia.outcomes import Placed
from linnet.overlay.kademlia.placing import Placing
from linnet.overlay.kademlia.records import sign_record

A, B, C = map(contact, (1, 2, 3))
RECORD = sign_record(SigningKey.generate(Random(1).randbytes), record_key(b"t", b"m"), 1, 2, b"x")


def test_it_ends_when_all_have_answered_and_tells_who_keeps_it() -> None:
    placing = Placing(5, RECORD)
    assert placing.hand_to((A, B)) == (A, B)
    placing.settle(A.peer, None)
    placing.settle(C.peer, None)
    assert placing.outcome is None
    placing.settle(B.peer, Reason.QUOTA)
    placing.settle(A.peer, Reason.TIMEOUT)
    assert placing.outcome == Placed(5, (A.peer,), ((B.peer, Reason.QUOTA),))


def test_nobody_to_hand_it_to_is_an_end_too() -> None:
    placing = Placing(5, RECORD)
    placing.hand_to(())
    assert placing.outcome == Placed(5, (), ())
