"""``linnet stream disallow``: put readers out of a sealed stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, StreamArgument, examples
from linnet.cli.output import counted, plain, say, say_json

if TYPE_CHECKING:
    from linnet.node.sealed_types import DisallowRequest

EPILOG = examples(
    "linnet stream disallow me/diary lp1…",
    "linnet stream disallow me/diary 5268357e181c9bc5",
    "linnet stream readers me/diary",
)

_SHORT_CHARS = 16

Who = Annotated[
    str,
    typer.Argument(
        metavar="PERSON|DEVICE",
        help="lp1… for all devices of a person; ld1… or the 16 letters that linnet stream readers shows.",
    ),
]


def disallow(stream: StreamArgument, who: Who, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Put a person or a device out of a sealed stream of yours.

    What is said from now on has a new key, which they are not told. What they could read they can still read.
    """
    from linnet.cli.running_node import control, stream_name

    name = stream_name(stream, home)
    asked = meant(name, who)
    with control(home) as node:
        reply = node.disallow_reader(asked)
    if as_json:
        say_json(reply)
        return
    for reader in reply.changed:
        say(f"put out {plain(reader.label) or 'a device'} ({reader.device}) of {reader.person}")
    say(f"{counted(len(reply.readers), 'device')} may read {name}")


def meant(stream: str, who: str) -> DisallowRequest:
    """Who is to be put out. `BadText` if this names nobody."""
    from linnet.identity.keys import device_id
    from linnet.identity.text import Sort, from_text
    from linnet.node.sealed_types import DisallowRequest

    given = who.strip().lower()
    if len(given) == _SHORT_CHARS and all(letter in "0123456789abcdef" for letter in given):
        return DisallowRequest(stream, device=given)
    if given.startswith(Sort.DEVICE):
        return DisallowRequest(stream, device=device_id(from_text(Sort.DEVICE, given)).hex())
    from_text(Sort.PERSON, given)
    return DisallowRequest(stream, person=given)
