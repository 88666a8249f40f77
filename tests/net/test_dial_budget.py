"""Dials to addresses that others name: few where nobody answers, as many as are wanted where one does."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
from collections.abc import Callable
from typing import cast

import pytest
from tests.net.live import named_key

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.net.config import NetConfig
from linnet.net.dial_budget import _REMEMBERED, DialBudget, Turn
from linnet.net.dialer import Dialer
from linnet.net.failure import LinkFailure, WrongKey
from linnet.net.link import Link
from linnet.net.link_table import LinkTable, LinkTableOwner
from linnet.net.local_keys import LocalKeys
from linnet.net.probes import may_lead_inside
from linnet.net.transport import Connection, TransportListener

HOUR = 3600.0
GO, WAIT, REFUSED = Turn.GO, Turn.WAIT, Turn.REFUSED


def key(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


def knock(budget: DialBudget, number: int, place: str, now: float = 0.0, answered: bool = False) -> Turn:
    turn = budget.take(key(number), place, now)
    if turn is GO:
        budget.give_back(key(number), place, answered, now)
    return turn


def knocks(budget: DialBudget, places: Callable[[int], str], count: int = 500, now: float = 0.0) -> int:
    """How many of so many keys are dialled, each at a place of its own choice where nobody answers."""
    return sum(knock(budget, number, places(number), now) is GO for number in range(count))


@pytest.mark.parametrize(
    ("places", "at_once", "in_an_hour"),
    [
        (lambda n: "tls://203.0.113.9:443", 20, 12),
        (lambda n: f"tls://203.0.113.9:{n + 1}", 40, 24),
        (lambda n: f"tls://203.0.113.{n % 250}:443", 160, 96),
        (lambda n: f"{('tls', 'wss')[n % 2]}://[2600:db8::{n % 2 + 1}]:443", 40, 24),
        (lambda n: f"tls://[2600:db8:0:{n}::1]:443", 160, 96),
        (lambda n: f"tls://[::ffff:203.0.113.9]:{n + 1}", 40, 24),
    ],
)
def test_who_never_answers_is_dialled_seldom_however_many_name_it(
    places: Callable[[int], str], at_once: int, in_an_hour: int
) -> None:
    budget = DialBudget()
    assert knocks(budget, places) == at_once
    assert knocks(budget, places, now=HOUR) == in_an_hour
    assert knock(budget, 1, "tls://198.51.100.1:443") is GO, "others are dialled as ever"


@pytest.mark.parametrize(
    "place", ["tls://127.0.0.1:{}", "tls://[::1]:{}", "pipe://bob:{}", "lan://{}@192.168.1.5:1"]
)
def test_this_machine_and_what_leads_to_no_machine_is_free(place: str) -> None:
    budget = DialBudget()
    lan = "ab" * 32
    assert knocks(budget, lambda n: place.format(lan if place[:3] == "lan" else n + 1)) == 500


def test_of_many_honest_peers_behind_one_address_all_are_dialled_and_so_are_new_ones() -> None:
    budget = DialBudget()
    for number in range(200):
        assert knock(budget, number, f"tls://203.0.113.9:{number + 1}", answered=True) is GO
    # A hundred of its peers are away, and each is tried a few times.
    for _ in range(10):
        assert knocks(budget, lambda n: f"tls://203.0.113.9:{n + 1000}", count=100) == 100


def test_while_attempts_are_under_way_others_wait_for_what_becomes_of_them() -> None:
    budget = DialBudget()
    places = [f"tls://203.0.113.9:{number + 1}" for number in range(41)]
    turns = [budget.take(key(number), place, 0.0) for number, place in enumerate(places)]
    assert turns == [GO] * 40 + [WAIT]
    for number, place in enumerate(places[:39]):
        budget.give_back(key(number), place, False, 0.0)
    assert budget.take(key(40), places[40], 0.0) is WAIT
    budget.give_back(key(39), places[39], False, 0.0)
    assert budget.take(key(40), places[40], 0.0) is REFUSED
    assert budget.take(key(40), places[40], HOUR / 24 + 1) is GO


def test_who_answered_is_dialled_without_end_and_others_at_its_address_are_not() -> None:
    budget = DialBudget()
    assert knock(budget, 1, "tls://203.0.113.9:443", answered=True) is GO
    assert knocks(budget, lambda n: "tls://203.0.113.9:443" if n != 1 else "pipe://x:1") == 20 + 1
    assert [knock(budget, 1, "tls://203.0.113.9:443") for _ in range(100)] == [GO] * 100


def test_nobody_uses_up_the_attempts_of_whom_was_found_there() -> None:
    budget = DialBudget()
    place = "tls://203.0.113.9:443"
    knock(budget, 7, place)
    budget.note_found(key(1), place)
    assert knocks(budget, lambda _: place) == 19 + 1, "the last one is its real owner"
    assert knock(budget, 1, place) is GO


def test_an_attempt_during_which_its_peer_is_found_there_is_over_when_it_ends() -> None:
    """Another dial, meant for who had the address before, finds out who has it now."""
    budget = DialBudget()
    for number in range(40):
        place = f"tls://203.0.113.9:{number + 1}"
        assert budget.take(key(number), place, 0.0) is GO
        budget.note_found(key(number), place)
        budget.give_back(key(number), place, True, 0.0)
    assert [purse.under_way for purse in budget._purses.values()] == [0] * 42
    assert knocks(budget, lambda n: f"tls://203.0.113.9:{n + 1000}", count=100) == 100, "all have answered"


def test_a_dial_for_our_user_ends_no_attempt_of_another() -> None:
    budget = DialBudget()
    assert budget.take(key(1), "tls://203.0.113.9:1", 0.0) is GO
    budget.give_back(key(2), "tls://203.0.113.9:2", True, 0.0)
    assert {name: purse.under_way for name, purse in budget._purses.items()} == {
        "203.0.113.9 1": 1,
        "203.0.113.9 2": 0,
        "203.0.113.9": 1,
        "203.0.113.0/24": 1,
    }


def test_names_of_one_owner_share_what_there_is() -> None:
    budget = DialBudget()
    assert sum(budget.may_look_up(f"n{n}.victim.example.", 0.0) for n in range(500)) == 160
    assert not budget.may_look_up("www.VICTIM.example", 0.0)
    assert budget.may_look_up("elsewhere.example", 0.0)


def test_what_is_remembered_is_bounded() -> None:
    budget = DialBudget()
    for number in range(2 * _REMEMBERED):
        knock(budget, number, f"tls://[2600:{number:x}::1]:1", answered=True)
    assert len(budget._purses) == len(budget._answered) == _REMEMBERED


PUBLIC, PRIVATE, LOCAL = "203.0.115.7:4001", "192.168.1.5:4001", "127.0.0.1:4001"
SHARED = "100.64.0.7:4001"
"""An address that a provider, or a private network over the internet, gives to many."""


@pytest.mark.parametrize(
    ("linked", "own", "place", "may"),
    [
        ([PUBLIC], [], "tls://198.51.101.1:22", True),
        ([PUBLIC], [], "tls://127.0.0.1:22", False),
        ([PUBLIC], ["127.0.0.1"], "tls://[::ffff:127.0.0.1]:22", False),
        ([PUBLIC], ["192.168.1.7"], "tls://127.0.0.1:22", False),
        ([PUBLIC], ["203.0.115.99"], "tls://192.168.1.5:4001", False),
        ([PUBLIC], ["192.168.1.7"], "tls://192.168.1.5:4001", True),
        ([PUBLIC, PRIVATE], [], "tls://10.0.0.1:4001", True),
        ([PUBLIC, PRIVATE], ["192.168.1.7"], "tls://127.0.0.1:22", False),
        ([PUBLIC], ["192.168.1.7"], "tls://169.254.169.254:80", False),
        ([PUBLIC, LOCAL], [], "tls://127.0.0.1:4001", True),
        ([], [], "tls://127.0.0.1:4001", True),
        ([], [], "tls://224.0.0.1:4001", False),
        ([], [], "tls://0.0.0.0:4001", False),
        ([LOCAL], [], "tls://[ff0e::1]:22", False),
        ([PUBLIC], [], "pipe://ann:1", True),
        (["", PUBLIC], [], "tls://[fd00::1]:22", False),
        ([SHARED], [], "tls://100.127.9.9:4001", True),
        ([PUBLIC], ["100.64.0.7"], "tls://100.127.9.9:4001", True),
        ([PUBLIC], ["192.168.1.7"], "tls://100.64.0.9:4001", False),
        ([SHARED], [], "tls://192.168.1.5:4001", False),
        (["192.168.1.7:5000"], ["192.168.1.7"], "tls://127.0.0.1:22", True),
        (["192.168.1.8:5000"], ["192.168.1.7"], "tls://127.0.0.1:22", False),
    ],
)
def test_what_is_inside_is_dialled_only_from_inside(
    linked: list[str], own: list[str], place: str, may: bool
) -> None:
    assert may_lead_inside(place, linked, lambda: map(ipaddress.ip_address, own)) is may


class Door:
    """A connection to whom it was wanted to."""

    def close(self) -> None:
        pass


class Streets:
    """A transport on which some keys live at some places; counts who knocked where."""

    schemes = ("tls",)
    is_cut = False
    """Whether this machine has no network."""

    def __init__(self, homes: dict[str, PeerId], names: dict[str, list[str]] | None = None) -> None:
        self._homes = homes
        self._names = names or {}
        self.knocked: list[str] = []
        self.looked_up: list[str] = []

    async def resolve(self, hint: str) -> list[str]:
        if hint in self._names:
            self.looked_up.append(hint)
            return self._names[hint]
        return [hint]

    async def dial(self, hint: str, expected: PeerId) -> Connection:
        self.knocked.append(hint)
        await asyncio.sleep(0.001)
        if self.is_cut:
            raise LinkFailure(Reason.UNREACHABLE, "no way there") from OSError(
                errno.ENETUNREACH, "no network"
            )
        at_home = self._homes.get(hint)
        if at_home is None:
            raise LinkFailure(Reason.CONNECTION_REFUSED, "nobody lives here")
        if at_home != expected:
            raise WrongKey(at_home)
        return cast("Connection", Door())

    def listen(self, hint: str) -> TransportListener:
        raise NotImplementedError


async def reached(dialer: Dialer, number: int, *hints: str, is_free: bool = False) -> Reason | None:
    try:
        await dialer.reach(key(number), hints, is_free=is_free)
    except LinkFailure as failure:
        return failure.reason
    return None


def dialer_on(streets: Streets) -> Dialer:
    return Dialer([streets], NetConfig(dial_stagger=0.01), asyncio.get_running_loop().time)


async def test_two_hundred_honest_peers_behind_one_address_are_all_dialled_at_once() -> None:
    homes = {f"tls://203.0.113.9:{number + 1}": key(number) for number in range(200)}
    streets = Streets(homes)
    dialer = dialer_on(streets)
    async with asyncio.timeout(20):
        ends = await asyncio.gather(*(reached(dialer, n, place) for n, place in enumerate(homes)))
    assert ends == [None] * 200
    assert len(streets.knocked) == 200


async def test_many_keys_at_one_address_have_it_dialled_as_often_as_one() -> None:
    streets = Streets({})
    dialer = dialer_on(streets)
    ends = [await reached(dialer, number, "tls://203.0.113.9:443") for number in range(50)]
    assert ends == [Reason.CONNECTION_REFUSED] * 20 + [Reason.UNREACHABLE] * 30
    assert len(streets.knocked) == 20
    assert await reached(dialer, 1, "tls://203.0.113.9:443", is_free=True) is Reason.CONNECTION_REFUSED


async def test_whose_address_others_claim_is_dialled_all_the_same() -> None:
    place = "tls://203.0.113.9:443"
    streets = Streets({place: key(1)})
    dialer = dialer_on(streets)
    for number in range(2, 52):
        await reached(dialer, number, place)
    assert len(streets.knocked) == 20
    assert await reached(dialer, 1, place) is None


async def test_one_dial_tries_eight_addresses_at_most() -> None:
    names = {f"tls://n{n}.example:1": [f"tls://198.51.{n}.{m}:1" for m in range(1, 5)] for n in range(8)}
    streets = Streets({}, names)
    await reached(dialer_on(streets), 1, *names)
    assert len(streets.knocked) == 8


async def test_a_name_is_looked_up_once_for_many_keys() -> None:
    name = "tls://bob.example:1"
    streets = Streets({"tls://203.0.113.9:1": key(1)}, {name: ["tls://203.0.113.9:1"]})
    dialer = dialer_on(streets)
    for number in range(1, 10):
        await reached(dialer, number, name)
    assert streets.looked_up == [name]


async def test_a_name_that_led_to_its_peer_is_looked_up_whatever_others_name() -> None:
    name = "tls://bob.many.example:1"
    streets = Streets({"tls://203.0.113.9:1": key(1)}, {name: ["tls://203.0.113.9:1"]})
    now = 0.0
    dialer = Dialer([streets], NetConfig(dial_stagger=0.01), lambda: now)
    assert await reached(dialer, 1, name) is None
    ends = [await reached(dialer, 2, f"tls://n{n}.many.example:1") for n in range(300)]
    assert Reason.UNREACHABLE in ends, "those of one owner were looked up often enough"
    now = 30.0
    assert await reached(dialer, 1, name) is None
    assert streets.looked_up == [name, name]


async def test_while_this_machine_has_no_network_dials_cost_nothing() -> None:
    """A laptop that starts before it has a network must reach everybody at once when it has one."""
    place = "tls://203.0.113.9:443"
    streets = Streets({place: key(1)})
    streets.is_cut = True
    dialer = dialer_on(streets)
    assert [await reached(dialer, 1, place) for _ in range(50)] == [Reason.UNREACHABLE] * 50
    assert len(streets.knocked) == 50
    streets.is_cut = False
    assert await reached(dialer, 1, place) is None


class Outside:
    """A link to somebody outside, as far as dialling looks at it."""

    class connection:
        remote_address = "203.0.115.7:4001"


async def test_for_peers_outside_a_node_dials_nothing_on_its_own_machine_unless_its_user_says_so() -> None:
    streets, own = Streets({}), named_key("ann")
    table = LinkTable(own, cast("LinkTableOwner", None), [streets], NetConfig(), LocalKeys(own))
    table._links[key(1)] = cast("Link", Outside())
    place = "tls://127.0.0.1:22"
    with pytest.raises(LinkFailure, match="not tried for others"):
        await table._reach(key(2), (place,), is_ours=False)
    assert streets.knocked == []
    with pytest.raises(LinkFailure, match="nobody lives here"):
        await table._reach(key(2), (place,), is_ours=True)
    assert streets.knocked == [place]
