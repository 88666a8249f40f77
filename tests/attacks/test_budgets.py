"""Every container that a foreign message can enlarge has a budget, and a flood keeps to it."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from msgspec import Struct
from tests.attacks.besieged import SMALL, Besieged, reasons
from tests.attacks.containers import Held, find_containers, measure
from tests.conftest import SOAK

from linnet.net.config import NetConfig
from linnet.peer.config import PeerConfig

TABLE = Path(__file__).parent / "budgets.toml"
KINDS = ("own", "fixed", "passing", "disk", "members", "waits")
LIKE = {"own", "fixed", "members"}
"""What no stranger enlarges. In the flood nobody else is in the rooms and places of the besieged node."""
_NAME = re.compile(r"[A-Za-z_][\w.]*")
MESSAGES = 150_000 if SOAK else 2_000

Key = tuple[str, str]
NOTHING = Held(0, 0, frozenset())


@cache
def budgets() -> dict[Key, str]:
    """The table: for each container what bounds it, without the words for readers."""
    read = tomllib.loads(TABLE.read_text())
    rows = ((module, name, bound) for module, found in read.items() for name, bound in found.items())
    return {(module, name): bound.partition(" - ")[0] for module, name, bound in rows}


@cache
def by_name() -> dict[str, list[Key]]:
    """The containers by their class and attribute."""
    found: dict[str, list[Key]] = {}
    for key in budgets():
        found.setdefault(key[1], []).append(key)
    return found


def resolved(name: str, config: PeerConfig) -> int | None:
    """Return the value of an option or a constant; None if there is none of this name."""
    section, _, option = name.partition(".")
    of = NetConfig() if section == "net" and hasattr(NetConfig(), option) else getattr(config, section, None)
    if isinstance(of, Struct) and hasattr(of, option):
        return int(getattr(of, option))
    module, _, constant = name.rpartition(".")
    try:
        value = getattr(import_module(f"linnet.{module}"), constant)
    except ModuleNotFoundError:  # an option of a class: `net.config.NetConfig.unfinished_bytes`
        module, _, kind = module.rpartition(".")
        value = getattr(getattr(import_module(f"linnet.{module}"), kind)(), constant)
    except AttributeError:
        return None
    return int(value)


def test_every_container_that_can_grow_has_a_budget() -> None:
    found = {each.key for each in find_containers()}
    assert sorted(found - budgets().keys()) == [], "list these in budgets.toml, with what bounds them"
    assert sorted(budgets().keys() - found) == [], "these are not there any more, or nothing enlarges them"
    assert len(found) > 700


def test_containers_are_found_by_type_whatever_their_name() -> None:
    keys = {each.key for each in find_containers()}
    for known in (
        ("peer/links.py", "Links._shunned"),  # `dict`, by annotation
        ("net/handshake.py", "FrameStream._held"),  # `bytearray()`, by what it is made with
        ("net/admission.py", "Admission._shares"),  # `Counter`
        ("peer/peer.py", "Outgoing.looped"),  # `deque`
        ("overlay/tracked_topic.py", "Place.rtts"),  # replaced as a whole
        ("content/filter_backup.py", "_Copy.routes"),  # a field of a struct
        ("overlay/gossip/privacy_budget.py", "PrivacyBudget._addresses"),  # what a method returns
    ):
        assert known in keys


@pytest.mark.parametrize("module", dict.fromkeys(module for module, _ in budgets()))
def test_what_bounds_them_exists(module: str) -> None:
    for key, bound in budgets().items():
        if key[0] != module or bound in KINDS:
            continue
        for name in _NAME.findall(bound):
            if name in by_name():
                assert key[1] != name, f"{name} cannot bound itself"
            elif name != "own":
                value = resolved(name, SMALL)
                assert value is not None, f"{key[1]}: there is no option, constant or container {name}"
                assert value > 0, f"{key[1]}: {name} bounds nothing"


def allowed(key: Key, before: dict[Key, Held], after: dict[Key, Held], config: PeerConfig) -> float:
    """Return how many elements one container may have now."""
    bound, own = budgets()[key], before.get(key, NOTHING).largest
    if bound in ("disk", "waits"):
        return float("inf")
    if bound in LIKE:
        return own
    if bound == "passing":
        return 0

    def value(name: str) -> int:
        if name == "own":
            return own
        if name in by_name():
            return sum(after[each].total for each in by_name()[name] if each in after)
        found = resolved(name, config)
        assert found is not None
        return found

    total = 0
    for term in bound.split("+"):
        product = 1
        for factor in map(str.strip, term.split("*")):
            product *= int(factor) if factor.isdigit() else value(factor)
        total += product
    return total


def excesses(besieged: Besieged, before: dict[Key, Held]) -> list[str]:
    """What holds more than it may."""
    after = measure(besieged.machine)
    listed = frozenset[int]().union(*(held.ids for key, held in after.items() if key in budgets()))
    found = [
        f"{':'.join(key)} holds {held.largest}, and is not listed"
        for key, held in after.items()
        if key not in budgets() and held.total > before.get(key, held).total and not held.ids <= listed
    ]
    for key, held in after.items():
        if key in budgets() and held.largest > (most := allowed(key, before, after, besieged.config)):
            found.append(f"{':'.join(key)} holds {held.largest}, and {budgets()[key]} is {most}")
    return found


@pytest.mark.timeout(1800 if SOAK else 120)
@pytest.mark.parametrize(("seed", "churn"), [(1, 0.01), (2, 0.2)], ids=["the same keys", "ever new keys"])
def test_a_flood_of_every_kind_of_message_stays_within_the_budgets(seed: int, churn: float) -> None:
    besieged = Besieged(seed)
    besieged.settle()
    before = measure(besieged.machine)
    for _ in range(3):
        besieged.flood(MESSAGES // 3, churn=churn)
        assert excesses(besieged, before) == []
    assert besieged.declined == []
    assert len(besieged.sent) == len(besieged.kinds), "every kind was tried"
    assert len(reasons(besieged.records)) > 15, "and not all for one reason in vain"
    besieged.pass_time(600.0)
    assert excesses(besieged, before) == []
    assert besieged.serves(), "the node still does what its user asks"


def test_the_judge_notices_what_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is listed as the user's own and grows, or exceeds its bound, is named."""
    besieged = Besieged(3)
    besieged.settle()
    before = measure(besieged.machine)
    assert excesses(besieged, before) == []
    besieged.machine.parts.links.blocked.update(dict.fromkeys([bytes(32)]))  # type: ignore[list-item]
    links = besieged.machine.parts.links
    links._shunned.update({number.to_bytes(32, "big"): (0.0, "") for number in range(41)})  # type: ignore[misc]
    assert [each.partition(" holds ")[0] for each in sorted(excesses(besieged, before))] == [
        "peer/links.py:Links._shunned",
        "peer/links.py:Links.blocked",
    ]
