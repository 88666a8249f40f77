"""``linnet place announce``: say something to all guests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, size_text
from linnet.cli.place.options import PlaceArgument, VariableOption, changes, values

if TYPE_CHECKING:
    from linnet.node.client import ControlClient
    from linnet.node.place_types import AnnouncedReply

EPILOG = examples(
    'linnet place announce tea "The kettle is on"',
    "linnet place announce tea --set _topic=cake --set _time=16:00",
    "linnet place announce tea --set _list_cakes+=scone --set _amount_cups-=2",
    "linnet place announce tea --file film.mp4",
    "linnet place announce tea --file film.mp4 --resume 17",
    "date | linnet place announce tea - --method _notice_time",
)

CHUNK_BYTES = 480 * 1024
"""Bytes of a file that are read and handed to the node at once."""

Text = Annotated[
    str | None, typer.Argument(metavar="[TEXT]", help="What to say; - reads it from standard input.")
]
Method = Annotated[str, typer.Option("--method", metavar="_NAME", help="What sort of message it is.")]
State = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="_NAME=VALUE",
        help="An object of the place; an empty value removes it. += and -= change lists and numbers.",
    ),
]
File = Annotated[Path | None, typer.Option("--file", metavar="FILE", help="Send a file of any size.")]
Resume = Annotated[
    int | None,
    typer.Option("--resume", metavar="N", min=1, help="Go on with message N, which was interrupted."),
]
Reset = Annotated[bool, typer.Option("--reset", help="Objects that are not set here go.")]


def announce(
    place: PlaceArgument,
    text: Text = None,
    method: Method = "_message",
    state: State = None,
    variable: VariableOption = None,
    file: File = None,
    resume: Resume = None,
    reset: Reset = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say something to all guests of a place, and decorate it with objects that everyone can look at.

    It is durable at the node when this returns. A file is sent while it is read, other messages in between.
    """
    from linnet.cli.place.finding import find_place
    from linnet.cli.running_node import control
    from linnet.node.place_types import AnnounceRequest

    if file is not None and text is not None:
        raise Failure("give a text or --file, one of them", ExitCode.USAGE)
    if resume is not None and file is None:
        raise Failure("--resume goes on with a file: name it with --file", ExitCode.USAGE)
    if text is None and file is None and not state and not reset:
        raise Failure("nothing to say: give a text, --set or --file", ExitCode.USAGE)
    (objects, added, taken), variables = changes(state), values(variable)
    body = None if file is not None else _body(text)
    with control(home) as node:
        found = find_place(node, place)
        if file is None:
            reply = node.announce(
                found,
                AnnounceRequest(method, None, body, objects, variables, reset, added=added, taken=taken),
            )
        else:
            variables = {"_file_name": file.name, **variables}
            request = AnnounceRequest(
                method, None, None, objects, variables, reset, more=True, added=added, taken=taken
            )
            reply = _send(node, found, file, request, resume, as_json)
    if as_json:
        say_json(reply)
    else:
        say(f"message {reply.message} ({size_text(reply.size)})")


def _body(text: str | None) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read()
    return (text or "").encode("utf-8", "surrogateescape")


def _send(
    node: ControlClient, place: str, file: Path, request: object, resume: int | None, quiet: bool
) -> AnnouncedReply:
    from linnet.cli.room.progress import file_bar
    from linnet.node.place_types import AnnounceRequest

    try:
        size, source = file.stat().st_size, file.open("rb")
    except OSError as error:
        raise Failure(f"{file}: {error.strerror or error}", ExitCode.USAGE) from error
    with source, file_bar(file.name, quiet) as progress:
        if resume is not None:
            opened = node.announce_more(place, resume)
        elif isinstance(request, AnnounceRequest):
            opened = node.announce(place, request)
        done = opened.size
        source.seek(done)
        try:
            while chunk := source.read(CHUNK_BYTES):
                done = node.announce_more(place, opened.message, chunk).size
                progress(done, size)
            return node.announce_more(place, opened.message, more=False)
        except KeyboardInterrupt:
            raise Failure(
                f"message {opened.message} has {done} of {size} bytes; go on with: "
                f"linnet place announce {place[:14]} --file {file} --resume {opened.message}",
                ExitCode.INTERRUPTED,
            ) from None
