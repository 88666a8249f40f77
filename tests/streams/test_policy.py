"""Who may publish: what the owner signed."""

from __future__ import annotations

import pytest
from tests.delivery.voices import TOPIC, Voice

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.event.event import Tail
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Policy
from linnet.streams.ingest import POLICY, Governance

ANN, BEN, EVE = Voice("ann"), Voice("ben"), Voice("eve")


def author(voice: Voice) -> AuthorId:
    return voice.identity.author


def governance(store: MemoryStore | None = None, owned: bool = True) -> Governance:
    return Governance(TOPIC, author(ANN) if owned else None, (store or MemoryStore()).cells)


def allowed(one: Governance) -> list[str]:
    names = []
    for name, voice in (("ann", ANN), ("ben", BEN), ("eve", EVE)):
        try:
            one.admit(author(voice))
        except InvalidEvent as error:
            if error.reason is Reason.NOT_A_PUBLISHER:
                continue
            raise
        names.append(name)
    return names


def declares(one: Governance, policy: Policy, time: int, voice: Voice | None = None) -> bool:
    return one.read((voice or Voice("ann")).sign([one.tail(policy, time)]))


def test_without_an_owner_everyone_may() -> None:
    one = governance(owned=False)
    assert allowed(one) == ["ann", "ben", "eve"]
    assert not declares(one, Policy(publishers=()), 1)
    assert allowed(one) == ["ann", "ben", "eve"]


def test_with_an_owner_only_the_owner_until_a_policy_is_known() -> None:
    assert allowed(governance()) == ["ann"]


def test_the_owner_lists_publishers_and_stays_one() -> None:
    one = governance()
    assert declares(one, Policy(publishers=(author(BEN),)), 1)
    assert allowed(one) == ["ann", "ben"]
    assert declares(one, Policy(publishers=None, degree=6), 2)
    assert allowed(one) == ["ann", "ben", "eve"]
    assert one.policy.degree == 6


def test_the_newer_one_wins_in_whatever_order_they_come() -> None:
    first, second = Policy(publishers=()), Policy(publishers=(author(BEN),))
    for order in ((1, 2), (2, 1)):
        one = governance()
        for time in order:
            declares(one, first if time == 1 else second, time)
        assert allowed(one) == ["ann", "ben"]
    one = governance()
    assert declares(one, second, 2)
    assert not declares(one, first, 2), "and an equal one is no news"


def test_nobody_else_can_set_it() -> None:
    one = governance()
    assert not declares(one, Policy(publishers=(author(EVE),)), 1, Voice("eve"))
    assert allowed(one) == ["ann"]
    assert one.unit is None


def test_whom_the_owner_lists_may_publish_and_not_list_others() -> None:
    one = governance()
    declares(one, Policy(publishers=(author(BEN),)), 1)
    set_by_owner = one.unit
    assert not declares(one, Policy(publishers=(author(EVE),)), 2, Voice("ben"))
    assert allowed(one) == ["ann", "ben"]
    assert one.unit == set_by_owner


@pytest.mark.parametrize("body", [b"", b"\xff", b"nonsense", b"\x94\x91\x00\xc0\xc2\x90"])
def test_a_body_that_is_no_policy_changes_nothing(body: bytes) -> None:
    one = governance()
    declares(one, Policy(publishers=(author(BEN),)), 1)
    bad = Tail(None, None, None, None, POLICY, "", 2, None, body)
    assert not one.read(Voice("ann").sign([bad]))
    assert allowed(one) == ["ann", "ben"]


def test_messages_of_the_owner_are_no_policies() -> None:
    assert not governance().read(Voice("ann").say(b"hello"))


def test_it_survives_a_restart() -> None:
    store = MemoryStore()
    one = governance(store)
    declares(one, Policy(publishers=(author(BEN),), degree=8), 5)
    again = governance(store)
    assert allowed(again) == ["ann", "ben"]
    assert again.policy == one.policy
    assert again.unit == one.unit
    assert not declares(again, Policy(), 4)
