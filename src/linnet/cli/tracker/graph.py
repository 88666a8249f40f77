"""``linnet tracker graph``: how the nodes of a topic are linked, as the tracker of this home has it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, plain, say, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.client import ControlClient
    from linnet.node.control_types import GraphReply

EPILOG = examples(
    "linnet tracker graph",
    "linnet tracker graph weather",
    "linnet tracker graph weather --format dot | dot -Tsvg > weather.svg",
    "linnet tracker graph weather --json | jq '.nodes | length'",
)
SHOWN = 14
"""Letters of a device that tell it apart in a picture."""


class Format(StrEnum):
    """How a graph is printed."""

    TEXT = "text"
    DOT = "dot"


TopicArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[STREAM]", help="Name of a stream, or a topic (lt1…); none: all that are tracked here."
    ),
]
FormatOption = Annotated[
    Format, typer.Option("--format", help="text: a line for each node; dot: for graphviz.")
]


def graph(
    stream: TopicArgument = None,
    form: FormatOption = Format.TEXT,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Which node has which neighbours in a stream that this node tracks, and how far they are apart.

    Nodes report their links; what they measured last is shown in milliseconds.
    """
    from linnet.cli.running_node import control

    with control(home) as node:
        if stream is None:
            _say_topics(node, as_json)
            return
        reply = node.graph(topic_id(stream, home))
    if as_json:
        say_json(reply)
    elif form is Format.DOT:
        for line in dot_lines(reply):
            say(line)
    else:
        _say_graph(reply)


def topic_id(stream: str, home: Path | None) -> str:
    """The topic of a stream, or what is one already."""
    from linnet.cli.running_node import stream_name
    from linnet.identity.text import Sort, from_text, to_text
    from linnet.streams.stream_names import topic_of

    if stream.startswith(Sort.TOPIC):
        return to_text(Sort.TOPIC, from_text(Sort.TOPIC, stream))
    return to_text(Sort.TOPIC, topic_of(stream_name(stream, home)))


def _say_topics(node: ControlClient, as_json: bool) -> None:
    status = node.status()
    names = {stream.topic: stream.stream for stream in status.streams}
    names |= {room.room: room.name for room in status.rooms if room.name}
    if as_json:
        say_json({"topics": [{"topic": topic, "name": names.get(topic)} for topic in status.tracked]})
    elif status.tracked:
        say_table(("topic", "name"), ((topic, names.get(topic)) for topic in status.tracked))
    else:
        say("this node tracks nothing: a tracker runs with linnet up --role tracker, and topics come to it")


def _say_graph(reply: GraphReply) -> None:
    links = sum(len(each.neighbors) for each in reply.nodes) // 2
    say(f"{counted(len(reply.nodes), 'node')}, {counted(links, 'link')}, degree {reply.degree}")
    if reply.nodes:
        say_table(("node", "neighbours"), graph_rows(reply))


def graph_rows(reply: GraphReply) -> list[tuple[str, list[str]]]:
    """Every node, and its neighbours with how far they are."""
    times = {(each.reporter, each.neighbor): f" ({each.rtt * 1000:.1f} ms)" for each in reply.rtts}
    return [
        (node.device, [f"{other[:SHOWN]}…{times.get((node.device, other), '')}" for other in node.neighbors])
        for node in reply.nodes
    ]


def dot_lines(reply: GraphReply) -> list[str]:
    """The graph in the language of graphviz, each link once."""
    times = {frozenset((each.reporter, each.neighbor)): each.rtt for each in reply.rtts}
    lines = [f'graph "{plain(reply.topic)}" {{']
    lines += [f'  "{each.device}" [label="{each.device[:SHOWN]}…"];' for each in reply.nodes]
    drawn: dict[frozenset[str], None] = {}
    for each in reply.nodes:
        for other in each.neighbors:
            link = frozenset((each.device, other))
            if link in drawn:
                continue
            drawn[link] = None
            label = f' [label="{times[link] * 1000:.1f} ms"]' if link in times else ""
            lines.append(f'  "{each.device}" -- "{other}"{label};')
    return [*lines, "}"]
