"""``linnet lan allow`` and ``linnet lan deny``: what may be spoken of on a local network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.lan.status import tell
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say_json
from linnet.core.errors import BadText

if TYPE_CHECKING:
    from pathlib import Path

    from linnet.node.client import ControlClient

ALLOW_EPILOG = examples("linnet lan allow tea", "linnet lan allow me/diary --network 3fa0c2d1")
DENY_EPILOG = examples("linnet lan deny tea", "linnet lan deny me/diary --network 3fa0c2d1")

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="A room, a stream, or a topic's id.")]
Network = Annotated[
    str,
    typer.Option(
        "--network", metavar="ID", help="The network, as linnet lan status shows it.", show_default="this one"
    ),
]


def allow(topic: Topic, network: Network = "", home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Let a room or stream be found on this local network. Nothing is, unless you say so here.

    This device then shows itself on the network, under a key that it has there and today only.
    """
    _switch(topic, network, True, home, as_json)


def deny(topic: Topic, network: Network = "", home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Let a room or stream not be found on this local network any more."""
    _switch(topic, network, False, home, as_json)


def _switch(topic: str, network: str, is_allowed: bool, home: Path | None, as_json: bool) -> None:
    from linnet.cli.running_node import control

    with control(home) as node:
        meant = topic_of(node, topic, home)
        changed = node.allow_on_lan(meant, is_allowed, network_of(node, network))
    if as_json:
        say_json(changed)
    else:
        tell(changed)


def topic_of(node: ControlClient, text: str, home: Path | None) -> str:
    """The id of the topic that is meant: a topic's id, a room of this name, or else a stream."""
    from linnet.cli.running_node import stream_name
    from linnet.identity.text import Sort, from_text, to_text
    from linnet.streams.stream_names import topic_of as stream_topic

    wanted = text.strip()
    if wanted.lower().startswith(Sort.TOPIC):
        return to_text(Sort.TOPIC, from_text(Sort.TOPIC, wanted.lower()))
    rooms = [room.room for room in node.rooms().rooms if room.name == wanted]
    if len(rooms) > 1:
        raise BadText(f"{wanted!r} can be {len(rooms)} rooms; say which by its id: {', '.join(rooms)}")
    return rooms[0] if rooms else to_text(Sort.TOPIC, stream_topic(stream_name(wanted, home)))


def network_of(node: ControlClient, text: str) -> str | None:
    """The network that is meant by the beginning of its id; None: the one that we are on."""
    if not text:
        return None
    wanted = text.strip().lower()
    found = [each.network for each in node.lan().networks if each.network.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    problem = f"{len(found)} networks begin" if found else "no network that is known here begins"
    raise BadText(f"{problem} with {wanted!r}; look at: linnet lan status")
