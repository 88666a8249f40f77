"""The checks of the experiments, on the logs that Schichtholz 2024 printed (tables 8 to 15)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from linnet.core.errors import ConfigError
from linnet.sim.rooms.experiments import SIZES, Experiment, experiment, in_order, names, round_robin
from linnet.sim.rooms.traffic import Do, Entry, MergedLog, Outcome, Played, Traffic

A, B, R0, R1 = "peer0", "peer1", "relay0", "relay1"
MESSAGE, MEMBER, LEVELS, NAME = "m.room.message", "m.room.member", "m.room.power_levels", "m.room.name"
Line = tuple[float, str, str] | tuple[float, str, str, str, int]

FE1: list[Line] = [
    (0, B, "offline"),
    (2.8931, A, "send", MESSAGE, 1),
    (3.081, R0, "receive", MESSAGE, 1),
    (3.3298, R0, "cache-event", MESSAGE, 1),
    (3.3865, R1, "receive", MESSAGE, 1),
    (4.0112, R1, "cache-event", MESSAGE, 1),
    (7.03, A, "offline"),
    (10.5163, B, "online"),
    (11.8194, B, "resync"),
    (11.8245, R1, "receive-resync"),
    (11.8247, R1, "reply-resync"),
    (11.8255, B, "resync-response"),
    (11.8263, B, "receive", MESSAGE, 1),
]
FE3: list[Line] = [
    (0, B, "offline"),
    (3.3694, A, "send", MESSAGE, 1),
    (7.5357, A, "offline"),
    (11.0178, B, "online"),
    (11.4486, B, "resync"),
    (11.4556, B, "receive", MESSAGE, 1),
    (12.0232, B, "offline"),
    (19.0319, B, "online"),
]
FE4: list[Line] = [
    (0, A, "offline"),
    (3.6956, B, "send", MESSAGE, 1),
    (7.9685, B, "offline"),
    (11.0332, A, "online"),
    (12.5473, A, "resync"),
    (12.5544, A, "receive", MESSAGE, 1),
    (16.5459, A, "offline"),
    (23.9915, B, "online"),
    (28.8353, B, "send", MESSAGE, 2),
    (33.0557, B, "offline"),
    (35.5785, A, "online"),
    (36.546, A, "resync"),
    (36.5518, A, "receive", MESSAGE, 2),
]


def fe5(second: str) -> list[Line]:
    return [
        (0, A, "offline"),
        (3, B, "send", MESSAGE, 1),
        (7, B, "offline"),
        (11.0174, A, "online"),
        (11.659, A, "resync"),
        (11.6604, R0, "receive-resync"),
        (11.6607, R0, "reply-resync"),
        (11.6616, A, "resync-response"),
        (11.6624, A, "receive", MESSAGE, 1),
        (15, A, "offline"),
        (20, B, "online"),
        (25, B, "send", MESSAGE, 2),
        (30, B, "offline"),
        (49.5103, A, "online"),
        (50.343, A, "resync"),
        (50.348, second, "receive-resync"),
        (50.3483, second, "reply-resync"),
        (50.3492, A, "resync-response"),
        (50.3501, A, "receive", MESSAGE, 2),
    ]


FE6A: list[Line] = [
    (9.1567, A, "send", MEMBER, 1),
    (9.3109, B, "receive", MEMBER, 1),
    (9.3115, R0, "receive", MEMBER, 1),
    (9.7782, R0, "cache-event", MEMBER, 1),
    (14.6742, B, "offline"),
    (17.1787, B, "online"),
    (18.7587, B, "resync"),
    (18.7634, R0, "reject-resync"),
]
FE6B: list[Line] = [
    (8.2266, A, "send", MEMBER, 1),
    (8.2676, B, "receive", MEMBER, 1),
    (8.2681, R0, "receive", MEMBER, 1),
    (8.9696, R0, "cache-event", MEMBER, 1),
    (10.4409, A, "send", MESSAGE, 2),
    (10.7431, R0, "receive", MESSAGE, 2),
    (10.9828, R0, "cache-event", MESSAGE, 2),
    (12.6924, B, "send", MESSAGE, 3),
    (12.7957, A, "receive", MESSAGE, 3),
    (12.7992, R0, "receive", MESSAGE, 3),
]
FE6C: list[Line] = [
    (1, A, "send", LEVELS, 1),
    (1.1, R0, "receive", LEVELS, 1),
    (1.2, R0, "cache-event", LEVELS, 1),
    (13.3725, A, "send", LEVELS, 2),
    (13.556, R0, "receive", LEVELS, 2),
    (14.1243, R0, "cache-event", LEVELS, 2),
    (15.5638, A, "send", LEVELS, 3),
    (15.5887, R0, "receive", LEVELS, 3),
    (16.2004, R0, "cache-event", LEVELS, 3),
    (21.0904, A, "offline"),
    (24.01, B, "send", NAME, 4),
    (24.2674, R0, "receive", NAME, 4),
]
# While he is there his own node knows, other than in the prints: it asks for nothing and says nothing.
FE6A_THERE: list[Line] = [
    *FE6A[:5],
    (15.0, A, "send", MESSAGE, 2),
    (15.1, R0, "receive", MESSAGE, 2),
    (15.2, R0, "cache-event", MESSAGE, 2),
    FE6A[5],
]
FE6B_THERE = FE6B[:7]
FE6C_THERE: list[Line] = [*FE6C[:10], (15.5886, B, "receive", LEVELS, 3)]
DECLINED = {"fe6b": "banned", "fe6c": "no_power"}
PRINTED = {
    "fe1": [FE1],
    "fe3": [FE3],
    "fe4": [FE4],
    "fe5": [fe5(R0), fe5(R1)],
    "fe6a": [FE6A_THERE, FE6A],
    "fe6b": [FE6B_THERE, FE6B],
    "fe6c": [FE6C_THERE, FE6C],
}


def played(traffic: Traffic, lines: Iterable[Line], declined: str | None = None) -> Played:
    """A run of which only the log is known; every event in it was asked for by one action."""
    entries = tuple(Entry(*line) for line in sorted(lines, key=lambda line: line[0]))
    sent = [entry for entry in entries if entry.action == "send"]
    ids = tuple(bytes([number]) * 32 for number in range(1, 1 + max((e.event or 0 for e in sent), default=0)))
    outcomes = tuple(
        Outcome(number, "message", entry.user, entry.time, (ids[(entry.event or 1) - 1].hex(),))
        for number, entry in enumerate(sent)
    )
    if declined is not None:
        outcomes += (Outcome(len(outcomes), "message", B, 90.0, refused=declined),)
    return Played(traffic, outcomes, MergedLog(entries, ids, 0.0), None)


def verdict(name: str, logs: list[list[Line]], declined: str | None = None) -> list[bool]:
    found = experiment(name)
    why = DECLINED.get(name) if declined is None else declined
    runs = [
        played(traffic, log, why if number == 0 else None)
        for number, (traffic, log) in enumerate(zip(found.runs, logs, strict=True))
    ]
    return [each.holds for each in found.check(runs)]


@pytest.mark.parametrize("name", PRINTED)
def test_the_printed_log_passes(name: str) -> None:
    assert all(verdict(name, PRINTED[name]))


@pytest.mark.parametrize("name", PRINTED)
def test_an_empty_log_does_not(name: str) -> None:
    assert not all(verdict(name, [[] for _ in PRINTED[name]]))


def without(log: list[Line], index: int) -> list[Line]:
    return [*log[:index], *log[index + 1 :]]


@pytest.mark.parametrize(
    ("name", "log"),
    [
        ("fe1", without(FE1, 5)),
        ("fe1", without(FE1, 12)),
        ("fe3", [*without(FE3, 5), (19.5, B, "receive", MESSAGE, 1)]),
        ("fe3", [*FE3, (19.5, B, "receive", MESSAGE, 1)]),
        ("fe4", [*FE4, (36.6, A, "receive", MESSAGE, 1)]),
        ("fe4", without(FE4, 5)),
    ],
)
def test_a_log_that_says_otherwise_fails(name: str, log: list[Line]) -> None:
    assert not all(verdict(name, [log]))


@pytest.mark.parametrize(
    ("name", "there", "away"),
    [
        ("fe6a", FE6A_THERE, [*FE6A, (18.8, R0, "reply-resync")]),
        ("fe6a", FE6A_THERE, without(FE6A, 7)),
        ("fe6a", FE6A_THERE, without(FE6A, 1)),
        ("fe6a", without(FE6A_THERE, 1), FE6A),
        ("fe6a", [*FE6A_THERE, (17.3, B, "receive", MESSAGE, 2)], FE6A),
        ("fe6a", without(FE6A_THERE, 7), FE6A),
        ("fe6b", FE6B_THERE, [*FE6B, (12.9, R0, "cache-event", MESSAGE, 3)]),
        ("fe6b", FE6B_THERE, without(FE6B, 9)),
        ("fe6b", FE6B_THERE, without(FE6B, 7)),
        ("fe6b", FE6B, FE6B),
        ("fe6b", without(FE6B_THERE, 1), FE6B),
        ("fe6c", FE6C_THERE, without(FE6C, 11)),
        ("fe6c", FE6C_THERE, [*FE6C, (24.3, R0, "cache-event", NAME, 4)]),
        ("fe6c", without(FE6C_THERE, 10), FE6C),
        ("fe6c", FE6C, FE6C),
    ],
)
def test_access_that_is_not_controlled_fails(name: str, there: list[Line], away: list[Line]) -> None:
    assert not all(verdict(name, [there, away]))


@pytest.mark.parametrize("name", ["fe6b", "fe6c"])
@pytest.mark.parametrize("declined", ["timeout", "not_a_member", ""])
def test_to_be_declined_for_another_reason_does_not_count(name: str, declined: str) -> None:
    assert not all(verdict(name, PRINTED[name], declined))


@pytest.mark.parametrize("is_away", [True, False])
def test_who_hears_of_it_before_his_word_was_away_when_it_was_decided(is_away: bool) -> None:
    """Among real nodes he may hear of it right after his return; had he never left, that proves nothing."""
    found = experiment("fe6b")
    around: list[Line] = [(0.5, B, "offline"), (11.1, B, "online")] if is_away else []
    late = [*around, *(line for line in FE6B[:7] if line[1] != B), (11.2, B, "receive", MEMBER, 1)]
    runs = [
        played(traffic, log, "banned") for traffic, log in zip(found.runs, [FE6B_THERE, late], strict=True)
    ]
    assert all(each.holds for each in found.check(runs)) is is_away


def test_two_relays_that_differ_fail() -> None:
    assert not all(verdict("fe5", [fe5(R0), [*fe5(R1), (50.4, A, "receive", MESSAGE, 1)]]))
    assert not all(verdict("fe5", [fe5(R0), fe5(R0)]))
    assert experiment("fe5").runs[0] != experiment("fe5").runs[1]


def turns(peers: int, early: bool) -> list[Line]:
    """Round robin, with what was said before received at one's own turn or not before the end."""
    lines: list[Line] = [(0, f"peer{n}", "offline") for n in range(peers)]
    last = 100.0
    for n in range(peers):
        name, at = f"peer{n}", 10.0 * (n + 1)
        lines += [(at, name, "online"), (at + 5, name, "send", MESSAGE, n + 1), (at + 8, name, "offline")]
        lines += [(last, name, "online")]
        heard = [(at + 1 if early and m < n else last + 1, m + 1) for m in range(peers) if m != n]
        lines += [(time, name, "receive", MESSAGE, event) for time, event in heard]
        if n:
            lines.append((last + 9, name, "receive", MESSAGE, peers + 1))
    return [*lines, (last + 8, A, "send", MESSAGE, peers + 1)]


@pytest.mark.parametrize(("relays", "early"), [(0, False), (1, True)])
def test_larger_rooms(relays: int, early: bool) -> None:
    name = f"fe2-5-{relays}"
    assert all(verdict(name, [turns(5, early)]))
    assert not all(verdict(name, [turns(5, not early)]))
    missing = [line for line in turns(5, early) if line[1:] != ("peer3", "receive", MESSAGE, 2)]
    assert not all(verdict(name, [missing]))


@pytest.mark.parametrize(("peers", "relays"), SIZES)
def test_round_robin_is_one_at_a_time(peers: int, relays: int) -> None:
    traffic = round_robin(peers, relays)
    assert (traffic.peers, traffic.relays) == (peers, relays)
    online = {f"peer{number}" for number in range(peers)}
    for action in traffic.actions:
        if action.do is Do.ONLINE_BATCH:
            online = set(action.users) if action.online else set()
        elif action.do is Do.ONLINE:
            online.add(action.user)
        elif action.do is Do.OFFLINE:
            online.discard(action.user)
        else:
            assert online == {action.user} or len(online) == peers
    assert len(online) == peers


def test_every_experiment_is_there() -> None:
    found: list[Experiment] = [experiment(name) for name in names()]
    assert [each.name for each in found] == names()
    assert len(set(names())) == 7 + len(SIZES)
    with pytest.raises(ConfigError, match="is no experiment; there are fe1, fe2-5-0"):
        experiment("fe2-5-7")


def test_order_is_that_of_the_log() -> None:
    entries = [Entry(0, A, "send", MESSAGE, 1), Entry(1, B, "receive", MESSAGE, 1)]
    assert in_order(entries, [(A, "send", 1), (B, "receive", 1)]) is None
    assert in_order(entries, [(B, "receive", 1), (A, "send", 1)]) == "peer0 send 1"
    assert in_order(entries, [(B, "online", None)]) == "peer1 online"
