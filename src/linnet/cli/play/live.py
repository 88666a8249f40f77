"""Playing traffic on real nodes, through their control APIs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from linnet.cli.exits import Failure
from linnet.cli.moments import wall_clock
from linnet.cli.play.nodes import LiveNode, LiveWorld
from linnet.identity.text import Sort, from_text
from linnet.node.client import ControlError, NodeUnreachable
from linnet.node.room_types import SentReply
from linnet.rooms.content import Membership
from linnet.sim.merged_log import merge
from linnet.sim.play import Outcome, Played
from linnet.sim.traffic import Action, Do, Traffic

SETTLE = 2.0
"""Seconds between the set-up and the first action."""

QUIET = 3.0
"""Seconds after the last action."""

Tell = Callable[[float, str], None]


def play_live(traffic: Traffic, directory: Path, tell: Tell) -> Played:
    """Play traffic on processes of this machine, with their homes in this directory."""
    with LiveWorld(directory, traffic.peers, traffic.relays) as world:
        tell(0.0, "nodes start, and meet in a room")
        world.set_up()
        for name, relay in traffic.relay_of.items():
            world.prefer(name, relay)
            world.nodes[name].stop()
            world.nodes[name].start()
        for name in traffic.away:
            world.nodes[name].stop()
        time.sleep(SETTLE)
        began = wall_clock()
        outcomes = _perform_all(traffic, world, began, tell)
        time.sleep(QUIET)
        end = wall_clock()
    names = {node.peer: name for name, node in world.nodes.items()}
    rows = [row for node in world.nodes.values() for row in node.rows()]
    relays = [node.peer for node in world.relays]
    log = merge(rows, names, relays, topic=world.topic, begin=began, end=end)
    return Played(traffic, outcomes, log, None)


def _perform_all(traffic: Traffic, world: LiveWorld, began: float, tell: Tell) -> tuple[Outcome, ...]:
    outcomes: list[Outcome] = []
    for number, action in enumerate(traffic.actions):
        tell(number / len(traffic.actions), f"{action.do} {action.user}")
        at = wall_clock() - began
        events, refused = _perform(world, action)
        outcomes.append(Outcome(number, action.do, action.user, at, events, refused))
        time.sleep(action.pause)
    return tuple(outcomes)


def _perform(world: LiveWorld, action: Action) -> tuple[tuple[str, ...], str | None]:
    """Do it; the events that it made, or why it was declined."""
    node = world.nodes[action.user]
    match action.do:
        case Do.ONLINE | Do.OFFLINE:
            _turn(node, action.do is Do.ONLINE)
        case Do.ONLINE_BATCH:
            for name in action.users:
                _turn(world.nodes[name], action.online)
        case Do.RESYNC_RELAY:
            world.prefer(action.user, action.relay or "")
        case _:
            if not node.is_up:
                return (), "crashed"
            try:
                sent = _said(world, node, action)
            except ControlError as error:
                return (), error.reason
            except NodeUnreachable as error:
                raise Failure(f"{action.user}: {error}") from error
            return tuple(from_text(Sort.EVENT, event).hex() for event in sent.ids), None
    return (), None


def _turn(node: LiveNode, on: bool) -> None:
    if on:
        node.start()
    else:
        node.stop()


def _said(world: LiveWorld, node: LiveNode, action: Action) -> SentReply:
    control, room = node.control, world.room
    person = None if action.target is None else world.nodes[action.target].person
    match action.do:
        case Do.MESSAGE:
            return control.send_to_room(room, [action.content.encode()])
        case Do.BAN if person is not None:
            return control.set_membership(room, person, Membership.BAN)
        case Do.POWER_LEVEL_EVENT:
            return control.set_level(room, action.level, kind=action.kind)
        case Do.POWER_LEVEL_USER:
            return control.set_level(room, action.level, person=person)
        case Do.STATE:
            return control.set_state(room, action.kind or "", action.content, action.key)
        case _:
            raise ValueError(f"{action.do} is no command")
