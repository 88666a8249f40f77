"""``linnet stream request``: ask to read a sealed stream."""

from __future__ import annotations

from linnet.cli.options import HomeOption, JsonOption, StreamArgument, examples
from linnet.cli.output import say, say_json, warn

EPILOG = examples(
    "linnet stream request lp1…/news",
    "linnet stream request lp1…/news | mail -s 'let me in' owner@example.org",
)


def request(stream: StreamArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Print a line by which this device asks the owner of a sealed stream to be let in.

    Hand it to the owner by any way there is: it holds no secret, but the owner should know that it comes from
    you. It is good for four weeks and for one admission.
    """
    from linnet.cli.running_node import control, stream_name

    name = stream_name(stream, home)
    with control(home) as node:
        reply = node.request_reading(name)
    if as_json:
        say_json(reply)
        return
    say(reply.request)
    warn(f"hand this line to the owner, who types: linnet stream allow {_short(name)} LINE")


def _short(name: str) -> str:
    """How the owner may call the stream."""
    return f"me/{name.partition('/')[2]}"
