"""A keeper's own side: whose places it takes, what it is shown, and what it lets go."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from tests.places.sealed.scene import Node

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Effect, Outbox
from linnet.places.config import KeeperConfig, PlacesConfig
from linnet.places.deed import Deed, Policy, sign_deed
from linnet.places.keepers import KeptPlaces
from linnet.places.messages import Keep, Kept
from linnet.places.place_setup import Parts
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record

HOST, ANN, KEEPER = (known_identity(name) for name in ("host", "ann", "keeper"))
OPEN = KeeperConfig(None)
BEGUN = int(HOST.card.not_before) + 10.0
"""When cards are good."""


def deed(seed: int = 1, keeper: PeerId = KEEPER.peer, cohosts: tuple[AuthorId, ...] = ()) -> Deed:
    key = SigningKey.generate(random.Random(seed).randbytes)
    return sign_deed(key, 1, Policy.PRIVATE, HOST.author, cohosts, (Contact(keeper),))


def taken(config: KeeperConfig | None, keep: Keep, peer: PeerId = HOST.peer) -> Reason | None:
    return KeptPlaces(Node("keeper").context, config, Outbox()).take(peer, keep, BEGUN)


def test_it_takes_what_names_it_from_those_who_may_speak() -> None:
    assert taken(OPEN, Keep(deed(), HOST.card)) is None
    assert taken(KeeperConfig((HOST.author,)), Keep(deed(), HOST.card)) is None
    by_cohost = Keep(deed(cohosts=(ANN.author,)), ANN.card)
    assert taken(OPEN, by_cohost, ANN.peer) is None


def test_it_says_no_with_a_reason() -> None:
    good = Keep(deed(), HOST.card)
    assert taken(None, good) is Reason.UNSUPPORTED
    assert taken(KeeperConfig((ANN.author,)), good) is Reason.NOT_ALLOWED
    assert taken(OPEN, Keep(deed(keeper=ANN.peer), HOST.card)) is Reason.NOT_ALLOWED, "it names another"
    assert taken(OPEN, Keep(deed(), ANN.card), ANN.peer) is Reason.NOT_ALLOWED, "no voice there"
    assert taken(KeeperConfig(None, max_places=0), good) is Reason.QUOTA
    assert taken(KeeperConfig(None, total_bytes=0), good) is Reason.QUOTA


@pytest.mark.parametrize(
    "keep",
    [
        Keep(replace(deed(), version=2), HOST.card),
        Keep(deed(), None),
        Keep(deed(), ANN.card),
        Keep(deed(), replace(HOST.card, label="another")),
    ],
    ids=["deed", "no card", "another's card", "card"],
)
def test_what_is_forged_or_of_another_device_is_named(keep: Keep) -> None:
    with pytest.raises(RemoteError):
        taken(OPEN, keep)


def test_what_is_kept_stays_kept_and_room_for_others_ends() -> None:
    node = Node("keeper")
    keeping = KeptPlaces(node.context, KeeperConfig(None, max_places=1), Outbox())
    first, second = Keep(deed(1), HOST.card), Keep(deed(2), HOST.card)
    assert keeping.take(HOST.peer, first, BEGUN) is None
    assert keeping.take(HOST.peer, first, BEGUN) is None, "again"
    assert keeping.take(HOST.peer, second, BEGUN) is Reason.QUOTA
    assert KeptPlaces(node.context, None, Outbox()).places == (first.deed.place,)


def test_the_answer_goes_out_behind_the_commit_and_a_place_of_ours_is_not_kept() -> None:
    node = Node("keeper")
    out = Outbox()
    keeping = KeptPlaces(node.context, OPEN, out)
    keep = Keep(deed(), HOST.card)
    place = keep.deed.place

    def opened(signed: Deed) -> Parts:
        return Parts(signed, node.context, PlacesConfig(), out, keeping.keeps(signed.place))

    def record(reason: Reason | None) -> Record:
        note = "a keeper of it from now on" if reason is None else "no keeper of it"
        kind = Kind.CONTROL if reason is None else Kind.REJECTED
        return Record(kind, place, peer=HOST.peer, reason=reason, note=note)

    def answer(reason: Reason | None) -> list[Effect]:
        return [record(reason), AfterCommit((Send(HOST.peer, Kept(place, reason)),))]

    keeping.handle_keep(HOST.peer, keep, None, opened, BEGUN)
    assert out.take() == answer(None)
    visited = Parts(keep.deed, node.context, PlacesConfig(), out)
    keeping.handle_keep(HOST.peer, keep, visited, opened, BEGUN)
    assert out.take() == answer(Reason.IN_USE)
    keeping.handle_keep(HOST.peer, Keep(deed(), None), None, opened, BEGUN)
    assert out.take() == answer(Reason.NOT_ALLOWED)
