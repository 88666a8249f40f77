"""Traffic files: who does what in a room, and how long to wait afterwards (Schichtholz 2024, section 6.1).

A file is an object ``{"messages": [action, ...]}``; docs/traffic.md lists the actions and their fields. This
module reads and checks it, and does nothing else: what plays it is `linnet.sim.play` and ``linnet play``.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from linnet.core.errors import ConfigError

MOST_PEERS = 64
MOST_RELAYS = 8
MOST_ACTIONS = 100_000
LONGEST_PAUSE = 3600.0
DEFAULT_PAUSE = 1.0
"""Seconds after an action that says nothing of its own; the thesis does not state its default."""

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
    """What an action is."""

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
    """One thing that is done."""

    do: Do
    user: str
    """Who does it: ``peer0``, ``peer1``…; of a batch the first of its users."""
    users: tuple[str, ...] = ()
    """With a batch: all of them."""
    online: bool = True
    """With a batch: whether they come or go."""
    content: str = ""
    target: str | None = None
    """Who is banned or gets a level."""
    kind: str | None = None
    """The kind of event that a level or a value is for, in our words: ``name``, not ``m.room.name``."""
    key: str = ""
    level: int | None = None
    relay: str | None = None
    """With `RESYNC_RELAY`: the relay that the user turns to from its next return on."""
    pause: float
    """Seconds until the next action."""


class Traffic(Struct, frozen=True, kw_only=True):
    """What is done in a room, by whom, and how large the room is."""

    actions: tuple[Action, ...]
    peers: int
    relays: int
    relay_of: dict[str, str]
    """The relay that a peer uses, where the file says so; all others choose by themselves."""
    away: tuple[str, ...] = ()
    """Peers that are offline when the replay begins; the room is set up with everybody online."""

    @property
    def seconds(self) -> float:
        """How long the replay takes."""
        return sum(action.pause for action in self.actions)


def kind_of(name: str) -> str:
    """The kind that a name of Matrix means; a name that is none of Matrix's means itself."""
    return _KINDS.get(name, name.removeprefix(_MATRIX))


def type_of(kind: str) -> str:
    """The name of Matrix for a kind, where there is one."""
    return _TYPES.get(kind, kind)


def duration(text: str) -> float:
    """Seconds that ``3s``, ``1.5s``, ``200ms`` or ``2m`` mean; `ConfigError` for anything else."""
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
    """The fields of one object: each is asked for once, and what is left at the end is unknown."""

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
    """The fields that only this action has."""
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
    """How many peers, or relays, there have to be if a file names these."""
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
