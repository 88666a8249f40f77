"""Commands about proxies and their clients, sleep, and local networks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.moments import clock_text
from linnet.cli.options import with_examples
from linnet.cli.output import counted, size_text
from linnet.cli.running_node import Session
from linnet.core.errors import BadText
from linnet.identity.text import device_text, topic_text

if TYPE_CHECKING:
    from linnet.core.ids import TopicId
    from linnet.edge.commands import ClientStatus, EdgeStatus, NetworkStatus, ProxyStatus
    from linnet.node.client import ControlClient


@with_examples("linnet edge status", "linnet edge status --json | jq '.proxies[].up'")
def show_edge(session: Session) -> None:
    """Show the proxies of this node, the clients that it serves, and what a proxy learns."""
    from linnet.edge.commands import ExamineEdge

    reply = session.ask(ExamineEdge())
    session.say(reply, edge_lines(reply))


@with_examples("linnet edge sleep")
def sleep(session: Session) -> None:
    """Close all links until `linnet edge wake`; meanwhile the proxies keep what is published."""
    from linnet.edge.commands import Sleep

    session.say(session.ask(Sleep()), "asleep; linnet edge wake ends it")


@with_examples("linnet edge wake")
def wake(session: Session) -> None:
    """Connect to the proxies again, after `linnet edge sleep` or before battery mode does so."""
    from linnet.edge.commands import Wake

    session.say(session.ask(Wake()), "awake")


def edge_lines(reply: EdgeStatus) -> list[str]:
    """Describe the state of the edge in lines for people."""
    if not reply.is_edge and not reply.is_proxy:
        return [
            "this node is not on the edge and is no proxy: "
            "linnet up --proxy KEY@HOST:PORT, or linnet up --role proxy"
        ]
    told: list[str] = []
    if reply.is_edge:
        told.append("on the edge, asleep" if reply.asleep else "on the edge")
        for proxy in reply.proxies:
            told += _proxy_lines(proxy)
        told.append("proxies see its address, when it is there, and which streams it wants; nobody else does")
    if reply.is_proxy:
        told.append(f"a proxy of {counted(len(reply.clients), 'client')}")
        for client in reply.clients:
            told += _client_lines(client)
    return told


def _proxy_lines(proxy: ProxyStatus) -> list[str]:
    state = "up" if proxy.up else "turned to" if proxy.used else "spare"
    failure = "" if proxy.last_failure is None or proxy.up else f": {proxy.last_failure}"
    told = [f"  {device_text(proxy.peer)}  {state}{failure}"]
    if proxy.up:
        kept = f"{size_text(proxy.kept_bytes)} of {size_text(proxy.most_bytes)}"
        told.append(f"    serves {counted(proxy.served, 'stream')}, keeps {kept}")
    told += [f"    does not serve {each.stream}: {each.reason}" for each in proxy.refusals]
    return told


def _client_lines(client: ClientStatus) -> list[str]:
    state = "here" if client.up else f"last here {clock_text(client.last_here)}"
    kept = f"{size_text(client.kept_bytes)} of {size_text(client.most_bytes)}"
    return [
        f"  {device_text(client.peer)}  {state}",
        f"    {counted(len(client.streams), 'stream')}, {kept} kept",
    ]


SHORT = 8
"""The letters of a network's id that are shown and accepted."""


@with_examples("linnet lan status", "linnet lan status --json | jq '.networks[].peers'")
def show_networks(session: Session) -> None:
    """Show the local networks that this device knows: who else is there, and which topics are allowed.

    The id of a network is derived here from its gateway and addresses, and is told to nobody.
    """
    from linnet.edge.commands import ExamineLan

    reply = session.ask(ExamineLan())
    lines = [line for network in reply.networks for line in network_lines(network)]
    if not reply.is_enabled:
        off = "local networks are left alone; to use them, set enabled = true under [lan] in linnet.toml"
        lines.insert(0, off)
    elif not reply.networks:
        lines.append("this device is on no local network")
    session.say(reply, lines)


def network_lines(network: NetworkStatus) -> Iterator[str]:
    """Describe a local network in lines for people."""
    state = (
        "here, and seen" if network.is_announced else "here, and silent" if network.is_here else "elsewhere"
    )
    yield (f"{network.network.hex()[:SHORT]}  {network.name or 'a network not seen lately'}: {state}")
    for topic in network.topics:
        yield (f"  allowed: {topic_text(topic)}")
    if network.is_here and not network.topics:
        yield ("  nothing is allowed here, so this device does not show itself: linnet lan allow TOPIC")
    if network.is_announced:
        yield (f"  {counted(len(network.peers), 'device')} met, {network.heard} heard")
    for peer in network.peers:
        yield (f"  {device_text(peer.device)}")


Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="A room, a stream, or a topic's id.")]
Network = Annotated[
    str,
    typer.Option(
        "--network", metavar="ID", help="The network, as linnet lan status shows it.", show_default="this one"
    ),
]


@with_examples("linnet lan allow tea", "linnet lan allow me/diary --network 3fa0c2d1")
def allow_topic(topic: Topic, network: Network = "", *, session: Session) -> None:
    """Let a room or stream be found on this local network. None can be, unless you allow it here.

    This device then shows itself on the network, under a key that it uses there and on that day only.
    """
    _switch(topic, network, True, session)


@with_examples("linnet lan deny tea", "linnet lan deny me/diary --network 3fa0c2d1")
def deny_topic(topic: Topic, network: Network = "", *, session: Session) -> None:
    """Stop a room or stream from being found on this local network."""
    _switch(topic, network, False, session)


def _switch(topic: str, network: str, is_allowed: bool, session: Session) -> None:
    from linnet.api.node_commands import AllowOnLan

    with session.open_node() as node:
        meant = topic_of(node, topic, session)
        changed = node.ask(AllowOnLan(meant, is_allowed, network_of(node, network)))
    session.say(changed, network_lines(changed))


def topic_of(node: ControlClient, text: str, session: Session) -> TopicId:
    """Return the topic that is meant: by a topic's id, the name of a room, or else of a stream."""
    from linnet.core.ids import TopicId
    from linnet.identity.text import Sort, from_text, topic_text
    from linnet.rooms.commands import ExamineRooms
    from linnet.streams.stream_names import topic_of as stream_topic

    wanted = text.strip()
    if wanted.lower().startswith(Sort.TOPIC):
        return TopicId(from_text(Sort.TOPIC, wanted.lower()))
    rooms = [room.room for room in node.ask(ExamineRooms()).rooms if room.name == wanted]
    if len(rooms) > 1:
        raise BadText(
            f"{wanted!r} can be {len(rooms)} rooms; say which by its id: {', '.join(map(topic_text, rooms))}"
        )
    return rooms[0] if rooms else stream_topic(session.stream_name(wanted))


def network_of(node: ControlClient, text: str) -> bytes | None:
    """Return the network whose id begins with this text; None: the one that we are on."""
    from linnet.edge.commands import ExamineLan

    if not text:
        return None
    wanted = text.strip().lower()
    known = node.ask(ExamineLan()).networks
    found = [each.network for each in known if each.network.hex().startswith(wanted)]
    if len(found) == 1:
        return found[0]
    problem = f"{len(found)} networks begin" if found else "no network that is known here begins"
    raise BadText(f"{problem} with {wanted!r}; look at: linnet lan status")
