"""Who is told the state: guests; not strangers, not keepers, and not by keepers."""

from __future__ import annotations

import random

from tests.places.sealed.scene import Node

from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.places.catch_up import tell_state
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy, sign_deed
from linnet.places.messages import AskState
from linnet.places.multicast.fragmentation import Change
from linnet.places.place_setup import Parts
from linnet.testing.identities import known_identity

HOST, ANN, KEEPER = (known_identity(name) for name in ("host", "ann", "keeper"))
KEY = SigningKey.generate(random.Random(1).randbytes)
DEED = sign_deed(KEY, 1, Policy.PRIVATE, HOST.author, (), (Contact(KEEPER.peer),))
ASK = AskState(DEED.place, 7, 0)


def parts(name: str, keeps: bool = False) -> Parts:
    made = Parts(DEED, Node(name).context, PlacesConfig(), Outbox(), keeps)
    made.membership.store(Change(ANN.author, True, 0), 1, 0)
    made.tree.connect_down(Contact(ANN.peer), ANN.author)
    return made


def test_a_guest_who_is_connected_is_told() -> None:
    (page,) = tell_state(parts("host"), ANN.peer, ASK)
    assert (page.request, page.reason, page.done) == (7, None, True)


def test_a_keeper_is_told_nothing_though_it_gets_every_fragment() -> None:
    here = parts("host")
    here.relay_filter.keep(KEEPER.peer)
    (page,) = tell_state(here, KEEPER.peer, ASK)
    assert (page.data, page.replay, page.reason) == (b"", (), Reason.NOT_A_MEMBER)


def test_who_is_out_is_told_nothing() -> None:
    here = parts("host")
    here.membership.store(Change(ANN.author, False, 0), 2, 0)
    (page,) = tell_state(here, ANN.peer, ASK)
    assert page.reason is Reason.NOT_A_MEMBER


def test_a_keeper_says_that_it_has_none() -> None:
    (page,) = tell_state(parts("keeper", keeps=True), ANN.peer, ASK)
    assert page.reason is Reason.UNSUPPORTED
