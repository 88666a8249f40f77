"""Traffic files: the actions in a room, and how long to wait after each (Schichtholz 2024, section 6.1).

A file is an object ``{"messages": [action, ...]}``; docs/traffic.md lists the actions and their fields.
`play` lets simulated nodes perform a file.

The records of all nodes of a room become the merged log, in the columns in which experiments are published:
``Time [s] | User | Action | Type | Event ID`` (sections 6.1.4 and 6.1.6). Times are relative, and events are
numbered by their first appearance. Rows of a simulation and of live nodes' trace files are the same.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import inf
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Struct

from linnet.core.errors import ConfigError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.peer.interface import AnyCommand
from linnet.rooms.commands import SendToRoom, Sent, SetLevel, SetMembership, SetState
from linnet.rooms.event_types import Membership
from linnet.sim.clock import START
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.report import Progress, tell_nobody
from linnet.sim.rooms.world import RoomsWorld
from linnet.trace.canonical import microseconds, seconds
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind, Row

MOST_PEERS = 64
MOST_RELAYS = 8
MOST_ACTIONS = 100_000
LONGEST_PAUSE = 3600.0
DEFAULT_PAUSE = 1.0
"""Seconds after an action without a pause of its own; the thesis does not state its default."""

_MATRIX = "m.room."
_KINDS = {"m.room.power_levels": "power"}
_TYPES = {kind: name for name, kind in _KINDS.items()} | {
    kind: _MATRIX + kind
    for kind in ("create", "member", "join_rules", "message", "name", "topic", "redaction", "retention")
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_PEER = re.compile(r"peer(0|[1-9]\d{0,2})")
_RELAY = re.compile(r"relay(0|[1-9]\d{0,2})")


class Do(StrEnum):
    """The kind of an action."""

    MESSAGE = "message"
    ONLINE = "online"
    OFFLINE = "offline"
    ONLINE_BATCH = "onlineBatch"
    BAN = "ban"
    POWER_LEVEL_EVENT = "powerLevelEvent"
    POWER_LEVEL_USER = "powerLevelUser"
    STATE = "state"
    RESYNC_RELAY = "resyncRelay"


class Action(Struct, frozen=True, kw_only=True):
    """One action of a user."""

    do: Do
    user: str
    """The user that acts: ``peer0``, ``peer1``…; of a batch the first of its users."""
    users: tuple[str, ...] = ()
    """With a batch: all its users."""
    online: bool = True
    """With a batch: whether they come or go."""
    content: str = ""
    target: str | None = None
    """The user that is banned or gets a level."""
    kind: str | None = None
    """The kind of event that a level or a value is for, in our words: ``name``, not ``m.room.name``."""
    key: str = ""
    level: int | None = None
    relay: str | None = None
    """With `RESYNC_RELAY`: the relay that the user asks from its next return on."""
    pause: float
    """Seconds until the next action."""


class Traffic(Struct, frozen=True, kw_only=True):
    """The actions in a room, and the size of the room."""

    actions: tuple[Action, ...]
    peers: int
    relays: int
    relay_of: dict[str, str]
    """The relay that a peer uses, where the file says so; all others choose by themselves."""
    away: tuple[str, ...] = ()
    """Peers that are offline when the replay begins; the room is set up with all peers online."""

    @property
    def seconds(self) -> float:
        """The duration of the replay."""
        return sum(action.pause for action in self.actions)


def kind_of(name: str) -> str:
    """Return our kind for an event type of Matrix; other names stay as they are."""
    return _KINDS.get(name, name.removeprefix(_MATRIX))


def type_of(kind: str) -> str:
    """Return the event type of Matrix for a kind, where there is one."""
    return _TYPES.get(kind, kind)


def duration(text: str) -> float:
    """Return the seconds of ``3s``, ``1.5s``, ``200ms`` or ``2m``; `ConfigError` for anything else."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text!r} is no duration; write 3s, 1.5s, 200ms or 2m")
    seconds = float(found[1]) * _SECONDS[found[2]]
    if seconds > LONGEST_PAUSE:
        raise ConfigError(f"{text!r} is longer than the {LONGEST_PAUSE:.0f} s that are allowed")
    return seconds


def parse_traffic(text: str | bytes, origin: str) -> Traffic:
    """Read a traffic file; `ConfigError` names the entry and the field that is wrong."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{origin}: no JSON: {error}") from error
    top = _Fields(value, origin)
    pause = top.duration("defaultPause", DEFAULT_PAUSE)
    entries = top.list("messages")
    if len(entries) > MOST_ACTIONS:
        raise ConfigError(f"{origin}: {len(entries)} messages; at most {MOST_ACTIONS} are allowed")
    actions = tuple(
        _action(_Fields(entry, f"{origin}: messages[{number}]"), pause)
        for number, entry in enumerate(entries)
    )
    relay_of = _relay_of(top)
    peers = top.count("peers", MOST_PEERS, _needed(_PEER, actions, relay_of), least=1)
    relays = top.count("relays", MOST_RELAYS, _needed(_RELAY, actions, relay_of))
    top.finish()
    traffic = Traffic(actions=actions, peers=peers, relays=relays, relay_of=relay_of)
    _check_names(traffic, origin)
    return traffic


class _Fields:
    """The fields of one object: each is read once, and any field left at the end is unknown."""

    def __init__(self, value: Any, where: str) -> None:  # noqa: ANN401 - whatever the file has
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: not an object")
        self._left: dict[str, Any] = dict(value)
        self._where = where

    def wrong(self, field: str, what: str) -> ConfigError:
        return ConfigError(f"{self._where}: {field}: {what}")

    def finish(self) -> None:
        for field in self._left:
            raise self.wrong(field, "there is no such field here")

    def take(self, field: str) -> Any:  # noqa: ANN401 - whatever the file has
        if field not in self._left:
            raise self.wrong(field, "is missing")
        return self._left.pop(field)

    def text(self, field: str, default: str | None = None) -> str:
        if default is not None and field not in self._left:
            return default
        value = self.take(field)
        if not isinstance(value, str):
            raise self.wrong(field, f"{value!r} is no text")
        return value

    def list(self, field: str) -> list[Any]:
        value = self.take(field)
        if not isinstance(value, list):
            raise self.wrong(field, "is no list")
        return value

    def table(self, field: str) -> dict[str, Any]:
        value = self._left.pop(field, {})
        if not isinstance(value, dict):
            raise self.wrong(field, "is no object")
        return value

    def whole(self, field: str) -> int:
        value = self.take(field)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(field, f"{value!r} is no whole number")
        return value

    def flag(self, field: str) -> bool:
        value = self.take(field)
        if not isinstance(value, bool):
            raise self.wrong(field, f"{value!r} is neither true nor false")
        return value

    def count(self, field: str, most: int, default: int, least: int = 0) -> int:
        if field not in self._left:
            return max(least, default)
        value = self.whole(field)
        if not least <= value <= most:
            raise self.wrong(field, f"{value} is not from {least} to {most}")
        return value

    def duration(self, field: str, default: float) -> float:
        if field not in self._left:
            return default
        try:
            return duration(self.text(field))
        except ConfigError as error:
            raise self.wrong(field, str(error)) from error

    def name(self, field: str, pattern: re.Pattern[str]) -> str:
        return self.named(field, self.text(field), pattern)

    def named(self, field: str, value: object, pattern: re.Pattern[str]) -> str:
        if not isinstance(value, str) or pattern.fullmatch(value) is None:
            shown = "relay0, relay1…" if pattern is _RELAY else "peer0, peer1…"
            raise self.wrong(field, f"{value!r} is none of {shown}")
        return value


def _action(fields: _Fields, default_pause: float) -> Action:
    word = fields.text("action")
    try:
        do = Do(word)
    except ValueError:
        known = ", ".join(Do)
        raise fields.wrong("action", f"{word!r} is none of {known}") from None
    given: dict[str, Any] = {"do": do, "pause": fields.duration("pauseAfter", default_pause)}
    if do is Do.ONLINE_BATCH:
        users = tuple(fields.named("users", each, _PEER) for each in fields.list("users"))
        if not users or len(set(users)) != len(users):
            raise fields.wrong("users", "is empty or names somebody twice")
        given |= {"users": users, "user": fields.text("user", users[0]), "online": fields.flag("online")}
        fields.named("user", given["user"], _PEER)
    else:
        given["user"] = fields.name("user", _PEER)
    given |= _particulars(fields, do)
    fields.finish()
    return Action(**given)


def _particulars(fields: _Fields, do: Do) -> dict[str, Any]:
    """Read the fields that only this action has."""
    match do:
        case Do.MESSAGE:
            return {"content": fields.text("content")}
        case Do.BAN:
            return {"target": fields.name("targetUser", _PEER)}
        case Do.POWER_LEVEL_USER:
            return {"target": fields.name("targetUser", _PEER), "level": fields.whole("level")}
        case Do.POWER_LEVEL_EVENT:
            return {"kind": kind_of(fields.text("eventType")), "level": fields.whole("level")}
        case Do.STATE:
            kind, key = kind_of(fields.text("eventType")), fields.text("stateKey", "")
            return {"kind": kind, "key": key, "content": fields.text("content")}
        case Do.RESYNC_RELAY:
            return {"relay": fields.name("relay", _RELAY)}
        case _:
            return {}


def _relay_of(top: _Fields) -> dict[str, str]:
    return {
        top.named("relayOf", peer, _PEER): top.named(f"relayOf.{peer}", relay, _RELAY)
        for peer, relay in top.table("relayOf").items()
    }


def _needed(pattern: re.Pattern[str], actions: tuple[Action, ...], relay_of: dict[str, str]) -> int:
    """Return how many peers, or relays, a file with these names needs."""
    found = [pattern.fullmatch(name) for name in _names(actions, relay_of)]
    return max((int(match[1]) + 1 for match in found if match is not None), default=0)


def _names(actions: tuple[Action, ...], relay_of: dict[str, str]) -> list[str]:
    names = [*relay_of, *relay_of.values()]
    for action in actions:
        names += [action.user, *action.users, action.target or "", action.relay or ""]
    return names


def _check_names(traffic: Traffic, origin: str) -> None:
    for pattern, there, word in ((_PEER, traffic.peers, "peer"), (_RELAY, traffic.relays, "relay")):
        needed = _needed(pattern, traffic.actions, traffic.relay_of)
        most = MOST_PEERS if pattern is _PEER else MOST_RELAYS
        if needed > there or there > most:
            have = f"there are {there} {word}s" if needed > there else f"at most {most} {word}s are allowed"
            raise ConfigError(f"{origin}: {word}{needed - 1} is named, and {have}")


SEND = "send"
RECEIVE = "receive"
CACHE = "cache-event"
RESYNC = "resync"
RECEIVE_RESYNC = "receive-resync"
REPLY_RESYNC = "reply-resync"
REJECT_RESYNC = "reject-resync"
RESYNC_RESPONSE = "resync-response"
TURN_AWAY = "turn-away"
"""Not in the published log: a relay refuses even the greeting. A peer that learns so that it is banned asks
no more."""
ONLINE = "online"
OFFLINE = "offline"

COLUMNS = ("Time [s]", "User", "Action", "Type", "Event ID")
_RESYNCS = frozenset({RESYNC, RECEIVE_RESYNC, REPLY_RESYNC, REJECT_RESYNC, RESYNC_RESPONSE})


class Entry(Struct, frozen=True):
    """One line of the log."""

    time: float
    """Seconds since the log begins."""
    user: str
    action: str
    type: str | None = None
    """The type of the event, as Matrix names it where it does."""
    event: int | None = None
    """The number of the event."""

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return the line as text."""
        event = "" if self.event is None else str(self.event)
        return f"{self.time:.4f}", self.user, self.action, self.type or "", event


class MergedLog(Struct, frozen=True):
    """The merged log of one run."""

    entries: tuple[Entry, ...]
    ids: tuple[bytes, ...]
    """The event of each number; numbers begin with 1."""
    begin: float
    """Unix time at which the log begins."""

    def number(self, event: bytes) -> int | None:
        """Return the number of an event of the log."""
        return self.ids.index(event) + 1 if event in self.ids else None

    def find(
        self, action: str | None = None, user: str | None = None, event: int | None = None
    ) -> list[Entry]:
        """Return the lines of this action, user and event; None stands for any."""
        return [
            entry
            for entry in self.entries
            if action in (None, entry.action) and user in (None, entry.user) and event in (None, entry.event)
        ]

    def to_csv(self) -> str:
        """Return the log as CSV with a header."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(entry.cells() for entry in self.entries)
        return out.getvalue()

    def to_builtins(self) -> list[dict[str, Any]]:
        """Return the log for JSON, with full ids."""
        return [
            {
                "time": round(entry.time, 6),
                "user": entry.user,
                "action": entry.action,
                "type": entry.type,
                "event": entry.event,
                "id": None if entry.event is None else self.ids[entry.event - 1].hex(),
            }
            for entry in self.entries
        ]


def merge(
    rows: Iterable[Row],
    names: Mapping[PeerId, str],
    relays: Iterable[bytes] = (),
    *,
    topic: bytes | None = None,
    begin: float | None = None,
    end: float = inf,
) -> MergedLog:
    """Merge rows of these nodes, in any order, into a log.

    `names` gives the users' names; rows of other nodes are left out. Rows before `begin`, such as the set-up
    of the room, and rows after `end` are left out, too; without a beginning the log begins with its first
    line. With a `topic` only rows of this room are taken.
    """
    keeping = frozenset(relays)
    ordered = sorted(rows, key=itemgetter(0, 1, 2))
    numbers: dict[bytes, int] = {}
    entries: list[Entry] = []
    for row in ordered:
        action = _action_name(row, keeping)
        user = names.get(PeerId(row.node))
        if action is None or user is None or row.time > end or (begin is not None and row.time < begin):
            continue
        if topic is not None and row.topic not in (None, topic):
            continue
        begin = row.time if begin is None else begin
        number = None if row.event is None else numbers.setdefault(row.event, len(numbers) + 1)
        kind = row.note if number is not None and row.note not in _RESYNCS else None
        entries.append(Entry(row.time - begin, user, action, kind and type_of(kind), number))
    return MergedLog(tuple(entries), tuple(numbers), begin or 0.0)


def _action_name(row: Row, relays: frozenset[bytes]) -> str | None:
    """Return the log's name for a record; None if the log leaves it out."""
    match row.kind:
        case Kind.PUBLISHED:
            return SEND
        case Kind.RECEIVED if row.event is not None:
            return RECEIVE
        case Kind.STORED if row.node in relays and row.event is not None:
            return CACHE
        case Kind.RESYNC:
            return row.note if row.note in _RESYNCS else None
        case Kind.REJECTED if row.node in relays and row.note == "greet":
            return TURN_AWAY
        case Kind.ONLINE:
            return ONLINE
        case Kind.OFFLINE:
            return OFFLINE
        case _:
            return None


SETTLE = 5.0
"""Virtual seconds between the set-up and the first action."""

QUIET = 10.0
"""Virtual seconds after the last action."""


class Outcome(Struct, frozen=True):
    """The outcome of one action."""

    number: int
    """Its place in the file."""
    action: str
    user: str
    at: float
    """Seconds since the replay began."""
    events: tuple[str, ...] = ()
    """Ids of the events that it sent, in hex."""
    refused: str | None = None
    """The reason why the user's own node declined it, if it did."""


class Played(Struct, frozen=True):
    """A run: its traffic, the outcomes, and the merged log."""

    traffic: Traffic
    outcomes: tuple[Outcome, ...]
    log: MergedLog
    trace_sha256: str | None
    """The hash of the trace, for simulations, where it is the same each time."""

    def event(self, action: int) -> int | None:
        """Return the number in the log of the first event that the action at this place sent."""
        for outcome in self.outcomes:
            if outcome.number == action and outcome.events:
                return self.log.number(bytes.fromhex(outcome.events[0]))
        return None


class Player:
    """Plays one traffic file in a world that is set up."""

    def __init__(self, traffic: Traffic, world: RoomsWorld) -> None:
        self._traffic = traffic
        self._world = world
        self._asked: dict[int, int] = {}
        """Requests by the place of their action."""
        self._began = 0.0
        self._times: dict[int, float] = {}

    def run(self, progress: Progress) -> tuple[Outcome, ...]:
        """Perform all actions, and wait a while."""
        world, network = self._world, self._world.network
        for name in self._traffic.away:
            world.offline(name)
        network.run(network.elapsed + SETTLE)
        self._began = at = network.elapsed
        for number, action in enumerate(self._traffic.actions):
            network.run(at)
            progress(number / len(self._traffic.actions), f"{action.do} {action.user}")
            self._times[number] = at - self._began
            self._perform(number, action)
            at += action.pause
        network.run(at + QUIET)
        return tuple(self._outcome(number, action) for number, action in enumerate(self._traffic.actions))

    @property
    def began(self) -> float:
        """The Unix time of the first action, as in the trace."""
        return seconds(microseconds(START + self._began))

    def _perform(self, number: int, action: Action) -> None:
        world = self._world
        match action.do:
            case Do.ONLINE:
                world.online(action.user)
            case Do.OFFLINE:
                world.offline(action.user)
            case Do.ONLINE_BATCH:
                for name in action.users:
                    (world.online if action.online else world.offline)(name)
            case Do.RESYNC_RELAY:
                world.prefer(action.user, action.relay or "")
            case _:
                self._asked[number] = world.ask(action.user, self._command(action))

    def _command(self, action: Action) -> AnyCommand:
        room, people = self._world.room, self._world.identities
        target = None if action.target is None else people[action.target].author
        match action.do:
            case Do.MESSAGE:
                return SendToRoom(room, (action.content.encode(),))
            case Do.BAN if target is not None:
                return SetMembership(room, target, Membership.BAN)
            case Do.POWER_LEVEL_EVENT:
                return SetLevel(room, action.level, kind=action.kind)
            case Do.POWER_LEVEL_USER:
                return SetLevel(room, action.level, person=target)
            case Do.STATE:
                return SetState(room, action.kind or "", action.key, action.content.encode())
            case _:
                raise ValueError(f"{action.do} is no command")

    def _outcome(self, number: int, action: Action) -> Outcome:
        at, answers = self._times[number], self._world.network.answers
        request = self._asked.get(number)
        if request is None:
            return Outcome(number, action.do, action.user, at)
        match answers.get(request):
            case Sent(_, ids):
                return Outcome(number, action.do, action.user, at, tuple(id.hex() for id in ids))
            case Declined(reason):
                return Outcome(number, action.do, action.user, at, refused=str(reason))
            case _:
                return Outcome(number, action.do, action.user, at, refused=str(Reason.TIMEOUT))


def play(
    traffic: Traffic,
    seed: int = 1,
    latency: str = "constant:20",
    progress: Progress = tell_nobody,
) -> Played:
    """Play traffic in simulation. Equal seeds give equal runs."""
    trace = ColumnTrace()
    world = RoomsWorld(seed, traffic.peers, traffic.relays, LinkModel(named_latency(latency)), trace)
    world.set_up()
    for name, relay in traffic.relay_of.items():
        world.prefer(name, relay)
        world.offline(name)
        world.online(name)
    player = Player(traffic, world)
    outcomes = player.run(progress)
    relays = [world.peer(name) for name in world.relays]
    log = merge(trace.rows(), world.names, relays, topic=world.room, begin=player.began)
    return Played(traffic, outcomes, log, trace.sha256())
