"""Random runs, random thefts: what is safe is never read, and without a hardening it is (S16 to S18).

The counts here are small; ``LINNET_SOAK=1`` runs thousands. Each test also shows that the attacker can read:
one that found nothing at all would find no leak either.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from linnet.core.ids import EventId
from linnet.groups.labels import Purpose
from linnet.groups.message_crypto import read_clear
from linnet.groups.state import GroupState, Hardening, encode_state
from linnet.sim.attacks.group_attacker import Attacker
from linnet.sim.groups.ledger import Ledger
from linnet.sim.groups.safety import Burglar
from linnet.sim.groups.scenario import Course, GroupScenario, GroupsReport, leaks_to_removed, run_groups
from linnet.sim.groups.world import GROUP, GroupNet, Machine

SOAK = bool(os.environ.get("LINNET_SOAK"))
RUNS = 5_000 if SOAK else 9
SHARDS = 20 if SOAK else 3


def scenario(seed: int, hardening: Hardening | None = None, ops: int = 30) -> GroupScenario:
    """Sixty steps: as many operations as messages."""
    return GroupScenario(
        members=5,
        ops=ops,
        messages=1.0,
        partitions=2,
        thefts=3,
        seed=seed,
        hardening=hardening or Hardening(),
    )


def finished(seed: int, hardening: Hardening | None = None, ops: int = 30) -> GroupNet:
    course = Course(scenario(seed, hardening, ops), keep_all=True)
    course.run(lambda done, what: None)
    return course.net


@pytest.mark.timeout(3_600 if SOAK else 120)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_s16_s17_nothing_that_is_safe_is_read(
    shard: int, record_property: Callable[[str, object], None]
) -> None:
    """Thieves of random states, and all removed members together with every state that they ever had."""
    reports: list[GroupsReport] = []
    for seed in range(shard * RUNS // SHARDS, (shard + 1) * RUNS // SHARDS):
        report = run_groups(scenario(seed), keep_all=True)
        assert report.ok, (seed, report)
        reports.append(report)
    safe, read = sum(report.safe for report in reports), sum(report.read for report in reports)
    unread = sum(report.unread for report in reports)
    for name, count in (("safe", safe), ("read", read), ("unread", unread)):
        record_property(name, count)
    assert safe > 50 * len(reports)
    assert read > unread  # The rule is tight, and the attacker real.


def test_without_healing_the_removed_read() -> None:
    early = leaks = 0
    for seed in range(60 if SOAK else 3):
        net = finished(seed, Hardening(heal_before_sending=False))
        watch = Burglar(GROUP, net.overheard)
        early += leaks_to_removed(net, watch, early=True)
        leaks += leaks_to_removed(net, watch)
    assert early > 0
    assert leaks == 0


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    ("hardening", "first"),
    [
        (Hardening(withhold_from_outsiders=False), 0),
        (Hardening(inband_prekeys=False), 36),
        (Hardening(renewed_one_time=False), 382),
    ],
    ids=["outsiders are told", "prekeys of the directory alone", "one-time prekeys older than a heal"],
)
def test_without_a_hardening_random_runs_leak(hardening: Hardening, first: int) -> None:
    """One run in ten leaks, one in thirty-five, one in hundreds: the search begins where one is near."""
    for seed in range(first, first + 1_000):
        if run_groups(scenario(seed, hardening), keep_all=True).leaked:
            return
    pytest.fail("nothing was found")


@pytest.mark.parametrize("seed", range(20 if SOAK else 2))
def test_whoever_has_every_state_of_all_reads_everything(seed: int) -> None:
    """The attacker misses nothing that it could know."""
    net = finished(seed)
    attacker = Attacker(Ledger(GROUP, net.overheard))
    for machine in net.machines:
        for state in machine.kept:
            attacker.steal(encode_state(state))
    read = attacker.read()
    assert {id: text.decode() for id, text in read.items()} == {
        id: said.text for id, said in net.said.items()
    }


@pytest.mark.parametrize("seed", range(20 if SOAK else 2))
def test_hints_as_to_which_key_is_for_what_hide_nothing(seed: int) -> None:
    course = Course(scenario(seed, ops=12))
    course.run(lambda done, what: None)
    ledger = Ledger(GROUP, course.net.overheard)
    found = []
    for thorough in (False, True):
        attacker = Attacker(ledger, thorough)
        for robbery in course.robberies:
            attacker.steal(robbery.theft.state)
        found.append((attacker.read(), attacker.opened))
    assert found[0] == found[1]
    assert found[0][1]


def told(attacker: Attacker, machine: Machine, done: frozenset[EventId]) -> Iterator[tuple[str, bytes]]:
    """Seeds and keys of welcomes, which nobody keeps, and keys by which direct messages were opened."""
    for place, direct in enumerate(attacker.ledger.directs):
        if place not in attacker.opened:
            continue
        if direct.purpose is Purpose.SEED:
            yield "seed", attacker.opened[place]
        if direct.purpose is Purpose.WELCOME:
            yield "key of a welcome", attacker.opened[place][32:]
        if direct.recipient == machine.state.me and direct.op in done and place in attacker.used:
            yield "key of a direct message", attacker.used[place]


def turned(attacker: Attacker, done: frozenset[EventId]) -> Iterator[tuple[str, bytes]]:
    """Ratchets that were turned, and what they took."""
    for member, turns in attacker.ledger.turns.items():
        own = attacker.ledger.by_member.get(member, {})
        last = max((cseq for cseq, op in own.items() if op.id in done), default=0)
        for place, turn in enumerate(turns[: attacker.ledger.turned.get((member, last), 0)]):
            for ratchet in attacker.ratchets.get((member, place), {}) if place else ():
                yield "ratchet", ratchet
            if (turn.op, member) in attacker.shares:
                yield "share", attacker.shares[turn.op, member]


def opened(attacker: Attacker, done: frozenset[EventId]) -> Iterator[tuple[str, bytes]]:
    """Keys of messages that were opened or sent."""
    for message in attacker.ledger.messages:
        if message.id in done:
            for key in attacker.keys_of(*read_clear(message.clear)):
                yield "key of a message", key


@pytest.mark.parametrize("seed", range(40 if SOAK else 2))
def test_s18_no_state_holds_a_secret_that_was_used_up(seed: int) -> None:
    net = finished(seed)
    attacker = Attacker(Ledger(GROUP, net.overheard))
    for machine in net.machines:
        for state in machine.kept:
            attacker.steal(encode_state(state))
    attacker.read()
    looked = 0
    for machine in net.machines:
        places = range(0, len(machine.kept), 1 if SOAK else 7)
        for place in (*places, len(machine.kept) - 1):
            state = machine.kept[place]
            if state.me is None or state.me != machine.state.me:
                continue
            data, done = encode_state(state), frozenset(machine.log[: place + 1])
            assert any(ratchet in data for ratchet in attacker.ratchets[state.me, turns_of(attacker, state)])
            for what, secret in (
                *told(attacker, machine, done),
                *turned(attacker, done),
                *opened(attacker, done),
            ):
                assert secret not in data, (seed, machine.name, place, what)
                looked += 1
    assert looked > 1_000


def turns_of(attacker: Attacker, state: GroupState) -> int:
    """How many steps the ratchet of a state's own member has made: that one is there, in plain bytes."""
    assert state.me is not None
    return attacker.ledger.turned.get((state.me, state.cseq), 0)
