"""``linnet place history``: messages of the past."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, size_text
from linnet.cli.place.options import PlaceArgument

EPILOG = examples(
    "linnet place history tea",
    "linnet place history tea --first 20 --last 40",
    "linnet place history films --save 17 --to film.mp4",
)

First = Annotated[
    int | None,
    typer.Option(
        "--first", metavar="N", min=1, help="The first message.", show_default="the first that is open to you"
    ),
]
Last = Annotated[
    int | None, typer.Option("--last", metavar="N", min=1, help="The last one.", show_default="the newest")
]
Save = Annotated[
    int | None, typer.Option("--save", metavar="N", min=1, help="Put the body of message N into a file.")
]
To = Annotated[
    Path | None, typer.Option("--to", metavar="FILE", help="Which.", show_default="as its sender called it")
]


def history(
    place: PlaceArgument,
    first: First = None,
    last: Last = None,
    save: Save = None,
    to: To = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print messages of the past in their order, then end. What is not here is asked of others who are in.

    A file that was interrupted is gone on with; it has its name only when it is whole.
    """
    from linnet.cli.place.finding import find_place
    from linnet.cli.place.printing import PlacePrinter, file_name, save_body, speakers
    from linnet.cli.running_node import control
    from linnet.node.place_types import MessageView, PastQuery

    if to is not None and save is None:
        raise Failure("--to names the file of one message: say which with --save N", ExitCode.USAGE)
    with control(home) as node:
        found = find_place(node, place)
        if save is None:
            PlacePrinter(as_json, speakers=speakers(node.place(found).place.deed)).run(
                node.place_history(found, PastQuery(first, last))
            )
            return
        items = list(node.place_history(found, PastQuery(save, save, 0)))
        message = next((item for item in items if isinstance(item, MessageView)), None)
        if message is None:
            raise Failure(f"there is no message {save} to be had; look at: linnet place history {place}")
        path = save_body(node, found, message, to or Path(file_name(message)), as_json)
    if as_json:
        say_json({"path": str(path), "size": message.size, "message": save})
    else:
        say(f"saved   {path} ({size_text(message.size)})")
