"""Reports for operators of trackers and relays."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.moments import claimed_text, clock_text, wall_clock
from linnet.cli.options import with_examples
from linnet.cli.output import counted, say, say_table, size_text
from linnet.cli.running_node import Session
from linnet.event.times import is_ahead
from linnet.identity.text import device_text, person_text, topic_text

if TYPE_CHECKING:
    from linnet.api.node_commands import GraphReport
    from linnet.core.ids import PeerId, TopicId
    from linnet.rooms.commands import RelayKnowledge, RelayReport, RelayRoomReport

SHOWN = 14
"""Letters of a device that distinguish it in a picture."""


class GraphFormat(StrEnum):
    """The forms in which a graph is printed."""

    TEXT = "text"
    DOT = "dot"


TopicArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[STREAM]", help="Name of a stream, or a topic (lt1…); none: all that are tracked here."
    ),
]
FormatOption = Annotated[
    GraphFormat, typer.Option("--format", help="text: a line for each node; dot: for graphviz.")
]


@with_examples(
    "linnet tracker graph",
    "linnet tracker graph weather",
    "linnet tracker graph weather --format dot | dot -Tsvg > weather.svg",
    "linnet tracker graph weather --json | jq '.nodes | length'",
)
def graph(stream: TopicArgument = None, form: FormatOption = GraphFormat.TEXT, *, session: Session) -> None:
    """Show which nodes are neighbours in a stream that this node tracks, and how far apart they are.

    Nodes report their links; the latest measurements are shown in milliseconds.
    """
    from linnet.api.node_commands import ExamineGraph

    if stream is None:
        _say_topics(session)
        return
    reply = session.ask(ExamineGraph(_topic_id(stream, session)))
    if session.as_json or form is GraphFormat.DOT:
        session.say(reply, dot_lines(reply))
    else:
        _say_graph(reply)


def _topic_id(stream: str, session: Session) -> TopicId:
    """Return a topic given by its id, or the topic of a stream."""
    from linnet.core.ids import TopicId
    from linnet.identity.text import Sort, from_text
    from linnet.streams.stream_names import topic_of

    if stream.startswith(Sort.TOPIC):
        return TopicId(from_text(Sort.TOPIC, stream))
    return topic_of(session.stream_name(stream))


def _say_topics(session: Session) -> None:
    from linnet.api.node_commands import ReportStatus

    status = session.ask(ReportStatus())
    names = {stream.topic: stream.stream for stream in status.streams}
    names |= {room.room: room.name for room in status.rooms if room.name}
    rows = [(topic_text(topic), names.get(topic)) for topic in status.tracked]
    result = {"topics": [{"topic": topic, "name": name} for topic, name in rows]}
    otherwise = (
        "this node tracks nothing: a tracker runs with linnet up --role tracker, and topics come to it"
    )
    session.say_table(result, ("topic", "name"), rows, otherwise)


def _say_graph(reply: GraphReport) -> None:
    links = sum(len(each.neighbors) for each in reply.nodes) // 2
    say(f"{counted(len(reply.nodes), 'node')}, {counted(links, 'link')}, degree {reply.degree}")
    if reply.nodes:
        say_table(("node", "neighbours"), graph_rows(reply))


def graph_rows(reply: GraphReport) -> list[tuple[str, list[str]]]:
    """Return a row for every node, with its neighbours and their distances."""
    times = {(each.reporter, each.neighbor): f" ({each.rtt * 1000:.1f} ms)" for each in reply.rtts}
    return [
        (
            device_text(node.device),
            [f"{_short(other)}{times.get((node.device, other), '')}" for other in node.neighbors],
        )
        for node in reply.nodes
    ]


def dot_lines(reply: GraphReport) -> list[str]:
    """Return the graph in the language of graphviz, each link once."""
    times = {frozenset((each.reporter, each.neighbor)): each.rtt for each in reply.rtts}
    lines = [f'graph "{topic_text(reply.topic)}" {{']
    lines += [f'  "{device_text(each.device)}" [label="{_short(each.device)}"];' for each in reply.nodes]
    drawn: dict[frozenset[PeerId], None] = {}
    for each in reply.nodes:
        for other in each.neighbors:
            link = frozenset((each.device, other))
            if link in drawn:
                continue
            drawn[link] = None
            label = f' [label="{times[link] * 1000:.1f} ms"]' if link in times else ""
            lines.append(f'  "{device_text(each.device)}" -- "{device_text(other)}"{label};')
    return [*lines, "}"]


def _short(device: PeerId) -> str:
    return f"{device_text(device)[:SHOWN]}…"


MEMBERSHIPS = {
    "join": "is a member",
    "invite": "is invited",
    "knock": "has knocked",
    "leave": "has left",
    "ban": "is banned",
}


@with_examples("linnet relay report", "linnet relay report --json | jq '.rooms[].people'")
def report(session: Session) -> None:
    """Show what this node knows as a relay, of each room and of each person.

    It also holds the content of the events that it keeps, which it can read unless the room encrypts it.
    """
    from linnet.rooms.commands import ExamineRelay

    reply = session.ask(ExamineRelay())
    session.say(reply, report_lines(reply))


def report_lines(reply: RelayReport) -> Iterator[str]:
    """Return the lines of the report."""
    if not reply.rooms:
        yield "This relay serves no room, and knows nothing of anyone."
        return
    yield f"This relay serves {counted(len(reply.rooms), 'room')}."
    for room in reply.rooms:
        yield ""
        yield from room_lines(room)


def room_lines(room: RelayRoomReport) -> Iterator[str]:
    """Report what is known of one room."""
    yield f"Room {topic_text(room.room)}"
    yield (
        f"  It keeps {counted(room.kept_events, 'event')} ({size_text(room.kept_bytes)}) for those "
        f"who are away{'' if room.oldest is None else f', the oldest since {clock_text(room.oldest)}'}."
    )
    yield f"  It knows who may do what from {counted(room.control_events, 'control event')}, kept for good."
    if room.plain_state_events:
        yield f"  {counted(room.plain_state_events, 'event')} of those kept set names or other plain state."
    if room.group_events:
        size = size_text(room.group_bytes)
        yield f"  {counted(room.group_events, 'event')} ({size}) of those kept are about the room's keys."
    if room.chunk_bytes:
        yield f"  It keeps {size_text(room.chunk_bytes)} of attachments."
    if room.expired or room.evicted:
        yield f"  It let go of {room.expired:,} whose time was over and {room.evicted:,} for want of space."
    for person in room.people:
        yield from person_lines(person)


def person_lines(person: RelayKnowledge) -> Iterator[str]:
    """Report what is known of one person in one room."""
    yield f"  {person_text(person.person)} {MEMBERSHIPS[person.membership.value]}"
    yield (
        f"    {counted(person.devices, 'device')}, {counted(person.control_events, 'control event')}, "
        f"{counted(person.kept_events, 'event')} kept ({size_text(person.kept_bytes)})"
    )
    if person.last_event_ms is not None:
        said = claimed_text(person.last_event_ms, is_ahead(person.last_event_ms, wall_clock()))
        yield f"    the last event kept was said at {said}"
    seen = (
        "never asked for anything"
        if person.last_seen is None
        else f"last asked {clock_text(person.last_seen)}"
    )
    told = counted(person.receipts, "receipt") if person.receipts else "no receipt"
    yield f"    {seen}; {told} of what has arrived there"
    if person.key_devices:
        yield f"    it keeps how far {counted(person.key_devices, 'device')} of theirs has read"
