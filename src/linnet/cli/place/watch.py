"""``linnet place watch``: print what is said in a place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.place.options import PlaceArgument

EPILOG = examples(
    "linnet place watch tea",
    "linnet place watch tea --from 1 --count 10",
    "linnet place watch tea --method _message --method _notice_time",
    "linnet place watch tea --objects _profile",
    "linnet place watch films --save-to ~/films --name films",
)

From = Annotated[
    int | None, typer.Option("--from", metavar="N", min=1, help="Begin with message N.", show_default="now")
]
Count = Annotated[int | None, typer.Option("--count", metavar="N", min=1, help="End after N.")]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Durable: go on after the last message that was printed."),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="_NAME",
        help="Share the place with other programs: what no other one names more exactly; once for each.",
    ),
]
Objects = Annotated[
    str | None,
    typer.Option("--objects", metavar="_NAME", help="Changes of objects whose names begin so, too."),
]
SaveTo = Annotated[
    Path | None, typer.Option("--save-to", metavar="DIR", help="Put each body into a file there.")
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0.001, help="End after so long; 1 if --count is not reached."
    ),
]


def watch(
    place: PlaceArgument,
    since: From = None,
    count: Count = None,
    name: Name = None,
    method: Methods = None,
    objects: Objects = None,
    save_to: SaveTo = None,
    timeout: Timeout = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what is said in a place, a message per line, until Ctrl-C or as many as asked for.

    At the host, what guests say to it is among them; who knocks is told on standard error.
    """
    from linnet.cli.place.finding import find_place
    from linnet.cli.place.printing import PlacePrinter, Saving, file_name, save_body, speakers
    from linnet.cli.running_node import control
    from linnet.node.place_types import INLINE_BYTES, ListenQuery, MessageView

    if save_to is not None and not save_to.is_dir():
        raise Failure(f"{save_to}: is no directory; make it first", ExitCode.USAGE)
    with control(home) as node, control(home) as other:
        found = find_place(node, place)
        saving: Saving | None = None
        if save_to is not None:

            def saving(message: MessageView) -> Path:
                return save_body(other, found, message, save_to / file_name(message), as_json)

        query = ListenQuery(
            since,
            name,
            None if method is None else ",".join(method),
            objects,
            0 if save_to is not None else INLINE_BYTES,
            "auto" if name is None else "manual",
        )
        said_by = speakers(other.place(found).place.deed)
        printer = PlacePrinter(as_json, count, None if name is None else other, saving, said_by)
        printer.run(node.listen(found, query), timeout)
