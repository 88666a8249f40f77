"""``linnet room power``: who may do what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say_json, say_table
from linnet.cli.room.options import RoomArgument

if TYPE_CHECKING:
    from linnet.cli.room.names import Names
    from linnet.node.room_types import StateReply

EPILOG = examples(
    "linnet room power tea",
    "linnet room power tea 50 --person bea",
    "linnet room power tea 0 --kind name",
    "linnet room power tea --kind ban 60",
    "linnet room power tea --person bea --default",
)

Level = Annotated[int | None, typer.Argument(metavar="[LEVEL]", help="The new level; 100 may do anything.")]
Person = Annotated[
    str | None, typer.Option("--person", metavar="PERSON", help="Whose level: lp1…, or a device's name.")
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind", metavar="KIND", help="What it asks for: a kind of event, or ban, kick, invite, redact."
    ),
]
Default = Annotated[bool, typer.Option("--default", help="Take the entry out: the default holds again.")]


def power(
    room: RoomArgument,
    level: Level = None,
    person: Person = None,
    kind: Kind = None,
    default: Default = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the power levels of a room, or change one: of a person, or the one that an act asks for.

    Whoever has at least the level that an act asks for may do it. Creators may do everything.
    """
    from linnet.cli.room.finding import find_person, find_room
    from linnet.cli.room.names import Names
    from linnet.cli.room.outcome import tell_sent
    from linnet.cli.running_node import control

    changes = person is not None or kind is not None
    if (person is not None and kind is not None) or changes != (default or level is not None):
        raise Failure("give a LEVEL (or --default) with --person or --kind, or neither", ExitCode.USAGE)
    with control(home) as node:
        found = find_room(node, room).room
        if not changes:
            state = node.room_state(found)
            _show(state, Names(state.members), as_json)
            return
        whom = None if person is None else find_person(node, found, person)
        reply = node.set_level(found, None if default else level, whom, kind)
    words = "the default" if default else str(level)
    tell_sent(reply, f"level of {whom or kind} is {words}", as_json)


def _show(state: StateReply, names: Names, as_json: bool) -> None:
    if as_json:
        say_json(state.power)
        return
    people = [
        (names.of(member.person), "all (creator)" if member.level is None else member.level, member.person)
        for member in state.members
        if member.membership == "join"
    ]
    say_table(("person", "level", "id"), people)
    asked = {name: level for name, level in state.power.items() if name not in ("users", "events")}
    say_table(("act or kind", "needs level "), [*asked.items(), *state.power["events"].items()])
