"""A record on its way to those who keep it."""

from __future__ import annotations

from random import Random

from tests.overlay.kademlia.people import contact

from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.overlay.kademlia.part import Placement
from linnet.overlay.kademlia.routing_table import record_key
from linnet.overlay.kademlia.value_records import Placed, sign_record

A, B, C = map(contact, (1, 2, 3))
RECORD = sign_record(SigningKey.generate(Random(1).randbytes), record_key(b"t", b"m"), 1, 2, b"x")


def test_it_ends_when_all_have_answered_and_tells_who_keeps_it() -> None:
    placement = Placement(5, RECORD)
    placement.begin((A, B))
    placement.handle_answer(A.peer, None)
    placement.handle_answer(C.peer, None)
    assert placement.outcome is None
    placement.handle_answer(B.peer, Reason.QUOTA)
    placement.handle_answer(A.peer, Reason.TIMEOUT)
    assert placement.outcome == Placed(5, (A.peer,), ((B.peer, Reason.QUOTA),))


def test_nobody_to_hand_it_to_is_an_end_too() -> None:
    placement = Placement(5, RECORD)
    placement.begin(())
    assert placement.outcome == Placed(5, (), ())
