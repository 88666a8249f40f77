"""The functional experiments of Schichtholz 2024, section 6.4, as traffic with expected outcomes.

Each expects an outcome and, where a log is published, its shape: the order of users' actions on events.
``peer0`` is Alice there, ``peer1`` is Bob.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import ConfigError
from linnet.core.reasons import Reason
from linnet.sim.rooms.oracle import Interval, asap_delivered, async_delivered, online_intervals
from linnet.sim.rooms.traffic import (
    CACHE,
    OFFLINE,
    ONLINE,
    RECEIVE,
    RECEIVE_RESYNC,
    REJECT_RESYNC,
    REPLY_RESYNC,
    RESYNC,
    RESYNC_RESPONSE,
    SEND,
    Action,
    Do,
    Entry,
    Played,
    Traffic,
    parse_traffic,
)

ALICE, BOB = "peer0", "peer1"
SIZES = ((5, 0), (5, 1), (10, 0), (10, 1), (20, 0), (20, 2))
"""Peers and relays of the second experiment."""

Step = tuple[str, str, int | None]
"""User, action and event of a log line."""


class Expectation(Struct, frozen=True):
    """A statement that must hold of a run."""

    what: str
    holds: bool


class Experiment(Struct, frozen=True):
    """The traffic of an experiment, and the check of its outcome."""

    name: str
    title: str
    runs: tuple[Traffic, ...]
    check: Callable[[Sequence[Played]], list[Expectation]]


def experiment(name: str) -> Experiment:
    """Return the experiment of this name; `ConfigError` names the existing ones."""
    sized = re.fullmatch(r"fe2-(\d+)-(\d+)", name)
    if sized is not None and (int(sized[1]), int(sized[2])) in SIZES:
        return _larger_rooms(int(sized[1]), int(sized[2]))
    if name not in _EXPERIMENTS:
        raise ConfigError(f"{name!r} is no experiment; there are {', '.join(names())}")
    title, check = _EXPERIMENTS[name]
    traffic = shipped(name)
    runs: tuple[Traffic, ...] = (traffic,)
    if name == "fe5":
        staying = tuple(action for action in traffic.actions if action.do is not Do.RESYNC_RELAY)
        runs = (replace(traffic, actions=staying), traffic)
    elif name.startswith("fe6"):
        runs = (traffic, shipped(f"{name}-away"))
    return Experiment(name, title, runs, check)


def names() -> list[str]:
    """Return the names of all experiments, in order."""
    sizes = [f"fe2-{peers}-{relays}" for peers, relays in SIZES]
    first, *rest = _EXPERIMENTS
    return [first, *sizes, *rest]


def shipped(name: str) -> Traffic:
    """Read a traffic file that comes with the program."""
    file = f"data/traffic/{name}.json"
    return parse_traffic(files("linnet.sim").joinpath(file).read_bytes(), f"{name}.json")


def round_robin(peers: int, relays: int) -> Traffic:
    """Make traffic in which each peer in turn comes, speaks and goes alone; at last all come, and one
    speaks."""
    everybody = tuple(f"peer{number}" for number in range(peers))
    actions = [Action(do=Do.ONLINE_BATCH, user=ALICE, users=everybody, online=False, pause=3.0)]
    for name in everybody:
        actions += [
            Action(do=Do.ONLINE, user=name, pause=3.0),
            Action(do=Do.MESSAGE, user=name, content=f"{name} was here", pause=2.0),
            Action(do=Do.OFFLINE, user=name, pause=2.0),
        ]
    actions += [
        Action(do=Do.ONLINE_BATCH, user=ALICE, users=everybody, online=True, pause=10.0),
        Action(do=Do.MESSAGE, user=ALICE, content="all are here", pause=10.0),
    ]
    return Traffic(actions=tuple(actions), peers=peers, relays=relays, relay_of={})


def in_order(entries: Sequence[Entry], steps: Sequence[Step]) -> str | None:
    """Return the first step that is not in the log after those before it, in words; None if all are."""
    lines = iter(entries)
    for user, action, event in steps:
        if not any((line.user, line.action, line.event) == (user, action, event) for line in lines):
            return f"{user} {action}" + ("" if event is None else f" {event}")
    return None


def _shape(played: Played, steps: Sequence[Step]) -> Expectation:
    missing = in_order(played.log.entries, steps)
    what = "the log has the published order"
    return Expectation(what if missing is None else f"{what} (no {missing} in its place)", missing is None)


def _said(played: Played, number: int) -> int:
    """Return the event of the message or change of this number, from 0 on; 0 if it was never sent."""
    spoken = [outcome.number for outcome in played.outcomes if outcome.events]
    event = played.event(spoken[number]) if number < len(spoken) else None
    return event or 0


def _turn(played: Played, event: int) -> int | None:
    """Return the place of an event among messages and changes, from 0 on: numbers in the log depend on the
    run."""
    spoken = sum(bool(outcome.events) for outcome in played.outcomes)
    return next((number for number in range(spoken) if _said(played, number) == event), None)


def _periods(played: Played, user: str) -> list[Interval]:
    """Return when a user was online, from the first return on."""
    return [each for each in online_intervals(played.log.entries, user) if each.start > -inf]


def _received(played: Played, user: str, period: Interval) -> list[int]:
    """Return the messages that reached a user in a period, by number."""
    return sorted(
        {
            entry.event
            for entry in played.log.find(RECEIVE, user)
            if entry.event is not None and entry.type == "m.room.message" and period.holds(entry.time)
        }
    )


def _resync(user: str, relay: str) -> list[Step]:
    return [
        (user, RESYNC, None),
        (relay, RECEIVE_RESYNC, None),
        (relay, REPLY_RESYNC, None),
        (user, RESYNC_RESPONSE, None),
    ]


def _check_minimal(runs: Sequence[Played]) -> list[Expectation]:
    (played,) = runs
    log, event = played.log.entries, _said(played, 0)
    return [
        Expectation(
            "Bob gets it though they were never online together", async_delivered(log, event, ALICE, BOB)
        ),
        # A relay passes an event on while it is still being written, so both kinds of lines may interleave.
        _shape(played, [("relay0", RECEIVE, event), ("relay0", CACHE, event), (ALICE, OFFLINE, None)]),
        _shape(
            played,
            [
                (ALICE, SEND, event),
                ("relay0", RECEIVE, event),
                ("relay1", RECEIVE, event),
                ("relay1", CACHE, event),
                (ALICE, OFFLINE, None),
                (BOB, ONLINE, None),
                *_resync(BOB, "relay1"),
                (BOB, RECEIVE, event),
            ],
        ),
    ]


def _check_asap(runs: Sequence[Played]) -> list[Expectation]:
    (played,) = runs
    log, event = played.log.entries, _said(played, 0)
    times = [entry.time for entry in played.log.find(RECEIVE, BOB, event)]
    return [
        Expectation("Bob gets it in the first time that he is there", asap_delivered(log, event, ALICE, BOB)),
        Expectation("he gets it once", len(times) == 1),
        _shape(
            played,
            [
                (BOB, OFFLINE, None),
                (ALICE, SEND, event),
                (ALICE, OFFLINE, None),
                (BOB, ONLINE, None),
                (BOB, RESYNC, None),
                (BOB, RECEIVE, event),
                (BOB, OFFLINE, None),
                (BOB, ONLINE, None),
            ],
        ),
    ]


def _check_since(runs: Sequence[Played]) -> list[Expectation]:
    (played,) = runs
    first, second = _said(played, 0), _said(played, 1)
    received = [_received(played, ALICE, period) for period in _periods(played, ALICE)]
    return [
        Expectation("the first return brings the first message", received[:1] == [[first]]),
        Expectation("the second return brings only the second message", received[1:2] == [[second]]),
        _shape(
            played,
            [
                (BOB, SEND, first),
                (BOB, OFFLINE, None),
                (ALICE, ONLINE, None),
                (ALICE, RESYNC, None),
                (ALICE, RECEIVE, first),
                (ALICE, OFFLINE, None),
                (BOB, ONLINE, None),
                (BOB, SEND, second),
                (BOB, OFFLINE, None),
                (ALICE, ONLINE, None),
                (ALICE, RESYNC, None),
                (ALICE, RECEIVE, second),
            ],
        ),
    ]


def _check_other_relay(runs: Sequence[Played]) -> list[Expectation]:
    staying, switching = runs
    received = [
        [[_turn(run, each) for each in _received(run, ALICE, period)] for period in _periods(run, ALICE)]
        for run in runs
    ]
    return [
        Expectation("both runs bring the same messages in each return", received[0] == received[1]),
        Expectation("each return brings one message", [len(each) for each in received[0]] == [1, 1]),
        _shape(staying, [*_return("relay0", _said(staying, 0)), *_return("relay0", _said(staying, 1))]),
        _shape(switching, [*_return("relay0", _said(switching, 0)), *_return("relay1", _said(switching, 1))]),
    ]


def _return(relay: str, event: int) -> list[Step]:
    return [(ALICE, ONLINE, None), *_resync(ALICE, relay), (ALICE, RECEIVE, event)]


def _kept(event: int) -> list[Step]:
    """Return the steps of a message of Alice that the relay keeps."""
    return [(ALICE, SEND, event), ("relay0", RECEIVE, event), ("relay0", CACHE, event)]


def _hears(played: Played, event: int) -> Expectation:
    heard = event > 0 and bool(played.log.find(RECEIVE, BOB, event))
    return Expectation("Bob hears of what was decided", heard)


def _check_banned_resync(runs: Sequence[Played]) -> list[Expectation]:
    """Check: a user who is online learns of the ban and gets nothing after it; one who was away asks in
    vain."""
    there, away = runs
    ban, later = _said(there, 0), _said(there, 1)
    unknown = _said(away, 0)
    replies, back = away.log.find(REPLY_RESYNC, "relay0"), away.log.find(ONLINE, BOB)
    return [
        _shape(there, [*_kept(ban), (BOB, OFFLINE, None), *_kept(later), (BOB, ONLINE, None)]),
        _hears(there, ban),
        Expectation("nothing that was said since reaches him", not there.log.find(RECEIVE, BOB, later)),
        _hears(away, unknown),
        Expectation(
            "the relay gives a banned member nothing",
            bool(back) and not any(entry.time >= back[0].time for entry in replies),
        ),
        _shape(
            away,
            [*_kept(unknown), (BOB, ONLINE, None), (BOB, RESYNC, None), ("relay0", REJECT_RESYNC, None)],
        ),
    ]


def _check_not_kept(
    changes: int, decisive: int, reason: Reason
) -> Callable[[Sequence[Played]], list[Expectation]]:
    """Check runs in which one of so many changes takes a right from Bob.

    A user who is online knows: his own node declines the message. One who was away does not: the message
    reaches the relay, which keeps all before it and not this one.
    """

    def check(runs: Sequence[Played]) -> list[Expectation]:
        there, away = runs
        refused = [each.refused for each in there.outcomes if each.user == BOB and not each.events]
        last = _said(away, changes)
        return [
            _shape(there, _all_kept(there, changes)),
            _hears(there, _said(there, decisive)),
            Expectation(f"his own node declines it: {reason}", refused[-1:] == [str(reason)]),
            Expectation("he has said nothing", not there.log.find(SEND, BOB)),
            *_turned_down(away, changes, decisive, last, reason),
        ]

    return check


def _all_kept(played: Played, changes: int) -> list[Step]:
    return [step for number in range(changes) for step in _kept(_said(played, number))]


def _turned_down(played: Played, changes: int, decisive: int, last: int, reason: Reason) -> list[Expectation]:
    steps = _all_kept(played, changes)
    refused = [each.refused for each in played.outcomes if each.user == BOB and each.refused is not None]
    if refused and not last:
        # Among real nodes he may learn of it between his return and his message.
        heard = [entry for entry in played.log.find(RECEIVE, BOB) if entry.type != "m.room.message"]
        why = f"he has heard of it before, and his own node declines it: {reason}"
        away = [(BOB, OFFLINE, None), *_kept(_said(played, decisive)), (BOB, ONLINE, None)]
        return [
            _shape(played, steps),
            Expectation(why, bool(heard) and refused[-1] == str(reason)),
            Expectation("he was away when it was decided", in_order(played.log.entries, away) is None),
        ]
    return [
        _shape(played, [*steps, (BOB, SEND, last), ("relay0", RECEIVE, last)]),
        Expectation("the relay does not keep it", last > 0 and not played.log.find(CACHE, event=last)),
    ]


def _larger_rooms(peers: int, relays: int) -> Experiment:
    title = f"Asynchronous delivery among {peers} peers with {relays} relays"
    return Experiment(f"fe2-{peers}-{relays}", title, (round_robin(peers, relays),), _check_round_robin)


def _check_round_robin(runs: Sequence[Played]) -> list[Expectation]:
    """Check: with relays every peer gets all earlier messages at its own turn; without, none before the
    end."""
    (played,) = runs
    peers = played.traffic.peers
    said = [_said(played, number) for number in range(peers + 1)]
    names = [f"peer{number}" for number in range(peers)]
    turns = {name: _periods(played, name) for name in names}
    early = {name: _received(played, name, turns[name][0]) if turns[name] else [] for name in names}
    late = {
        name: sorted({*early[name], *(_received(played, name, turns[name][-1]) if turns[name] else [])})
        for name in names
    }
    expected = [
        Expectation(
            "at the end everybody has everything",
            all(
                late[name] == sorted(event for number, event in enumerate(said) if number % peers != own)
                for own, name in enumerate(names)
            ),
        )
    ]
    if played.traffic.relays:
        got = all(early[name] == sorted(said[:own]) for own, name in enumerate(names))
        expected.append(Expectation("everybody gets what was said before at their own turn", got))
    else:
        expected.append(Expectation("nobody gets anything before all are there", not any(early.values())))
    return expected


_EXPERIMENTS: dict[str, tuple[str, Callable[[Sequence[Played]], list[Expectation]]]] = {
    "fe1": ("Asynchronous delivery, minimal", _check_minimal),
    "fe3": ("Delivery as soon as possible", _check_asap),
    "fe4": ("A relay returns only what is new", _check_since),
    "fe5": ("Two relays return the same", _check_other_relay),
    "fe6a": ("A relay refuses a banned member", _check_banned_resync),
    "fe6b": ("A relay does not keep what a banned member says", _check_not_kept(2, 0, Reason.BANNED)),
    "fe6c": (
        "A relay does not keep what a member lacks the level for",
        _check_not_kept(3, 2, Reason.NO_POWER),
    ),
}
