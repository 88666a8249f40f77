"""``linnet room state``: what holds in a room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import clock_text
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, plain, say, say_json, say_table, size_text
from linnet.cli.room.create import Rule
from linnet.cli.room.options import RoomArgument

if TYPE_CHECKING:
    from linnet.cli.room.names import Names
    from linnet.node.room_types import StateEntryView, StateReply

EPILOG = examples(
    "linnet room state tea",
    "linnet room state tea --set name=coffee",
    "linnet room state tea --set color/wall=green",
    "linnet room state tea --rule public",
)

Set = Annotated[
    str | None,
    typer.Option("--set", metavar="KIND[/KEY]=TEXT", help="Set plain state: name, topic, or any kind."),
]
NewRule = Annotated[Rule | None, typer.Option("--rule", help="Decide who may join.")]


def state(
    room: RoomArgument,
    new: Set = None,
    rule: NewRule = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what holds in a room, as all members with the same events agree on it, or set something.

    The digest is equal where two nodes agree.
    """
    from linnet.cli.room.finding import find_room
    from linnet.cli.room.names import Names
    from linnet.cli.room.outcome import tell_sent
    from linnet.cli.running_node import control
    from linnet.rooms.content import JoinRule

    if new is not None and rule is not None:
        raise Failure("give --set or --rule, one at a time", ExitCode.USAGE)
    with control(home) as node:
        found = find_room(node, room).room
        if rule is not None:
            tell_sent(node.set_rule(found, JoinRule(rule)), f"join by {rule.value}", as_json)
            return
        if new is not None:
            kind, key, text = setting(new)
            tell_sent(node.set_state(found, kind, text, key), f"set     {new}", as_json)
            return
        reply = node.room_state(found)
    if as_json:
        say_json(reply)
    else:
        _show(reply, Names(reply.members))


def setting(text: str) -> tuple[str, str, str]:
    """Kind, key and value of what is to be set."""
    what, equals, value = text.partition("=")
    kind, _, key = what.partition("/")
    if not equals or not kind:
        raise Failure(f"{text[:80]!r} sets nothing: write KIND=TEXT, such as name=tea", ExitCode.USAGE)
    return kind, key, value


def _show(reply: StateReply, names: Names) -> None:
    say(f"room    {reply.room}")
    say(f"join    {reply.rule.value}")
    say(f"digest  {reply.digest}")
    rows = [
        (
            entry.kind,
            names.of(entry.key) if entry.kind == "member" else plain(entry.key),
            value_text(entry, names),
            names.of(entry.author),
            clock_text(entry.time / 1000),
        )
        for entry in reply.entries
    ]
    say_table(("kind", "key", "value", "set by", "at"), rows)


def value_text(entry: StateEntryView, names: Names) -> str:
    """What an entry says, in a cell."""
    content = entry.content
    if content is None:
        return size_text(len(entry.body)) if entry.text is None else plain(entry.text)
    match entry.kind:
        case "member":
            return str(content["membership"])
        case "join_rules":
            return str(content["rule"])
        case "power":
            people = counted(len(content["users"]), "person", "people")
            return f"{people}, {counted(len(content['events']), 'kind')}"
        case "relay":
            return f"{'active' if content['active'] else 'taken out'}, of {names.of(content['person'])}"
        case _:
            return ", ".join(f"{name} {value}" for name, value in content.items() if value not in (None, []))
