"""Commands about the links of the node: list them, connect, block."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode
from linnet.cli.options import with_examples
from linnet.cli.output import warn
from linnet.cli.running_node import Session
from linnet.identity.text import device_text

if TYPE_CHECKING:
    from linnet.core.ids import PeerId
    from linnet.node.client import ControlClient
    from linnet.peer.interface import PeerStatus

_LETTERS = 16
_COLUMNS = ("device", "state", "opened by", "round trip", "roles", "needed for", "agent")


@with_examples("linnet peers", "linnet peers --json | jq '.peers[] | select(.up) | .device'")
def peers(session: Session) -> None:
    """List every link, open or wanted: its peer, its round trip, its purpose, and why it is down."""
    from linnet.api.node_commands import ListPeers

    reply = session.ask(ListPeers())
    otherwise = "no links: nothing is joined yet, or nobody is known to begin with; look at: linnet doctor"
    session.say_table(reply, _COLUMNS, [_peer_row(each) for each in reply.peers], otherwise)


def _peer_row(peer: PeerStatus) -> tuple[object, ...]:
    state = "up" if peer.up else f"down: {peer.last_failure}" if peer.last_failure else "down"
    trip = None if peer.rtt is None else f"{peer.rtt * 1000:.1f} ms"
    needed = [" ".join(map(_short, name.split(" "))) for name in peer.needed_for]
    if peer.wanted:
        needed.append("the other end")
    return (
        device_text(peer.peer),
        state,
        "us" if peer.dialed else "them",
        trip,
        peer.roles,
        needed,
        peer.agent,
    )


def _short(word: str) -> str:
    """Return a short form of a topic without a known name."""
    is_number = len(word) >= _LETTERS and all(letter in "0123456789abcdef" for letter in word)
    return f"{word[:8]}…" if is_number else word


_LOOKS = 0.1
"""Seconds between checks whether the link is open."""

Address = Annotated[
    str,
    typer.Argument(
        metavar="KEY@HOST:PORT", help="The device and its address, as linnet up prints them there."
    ),
]
Patience = Annotated[float, typer.Option("--patience", min=0.0, help="Seconds to wait for the link.")]


@with_examples(
    "linnet connect ld1…@192.0.2.7:7700",
    "linnet connect ld1…@192.0.2.7:7700 --patience 30 --json",
)
def connect(address: Address, patience: Patience = 10.0, *, session: Session) -> None:
    """Dial a device at once, and keep the link while this node runs.

    Two nodes whose addresses have changed find each other again in this way: rooms and places that they share
    go on over the link, and both remember the new address. Streams do not use it: who is a neighbour in a
    stream is told by a tracker, or found by linnet up --overlay ring.
    """
    from linnet.identity.addresses import parse_contact
    from linnet.peer.interface import Connect

    contact = parse_contact(address)
    device = device_text(contact.peer)
    with session.open_node() as node:
        node.ask(Connect(contact))
        link = _await_link(node, contact.peer, patience)
    is_up = link is not None and link.up
    reason = None if link is None or is_up else link.last_failure
    session.say({"device": device, "up": is_up, "reason": reason}, [f"linked  {device}"] if is_up else [])
    if is_up:
        return
    if not session.as_json:
        warn(f"no link to {device} yet: {reason or 'no answer'}; the node goes on trying")
        warn(f"next    linnet doctor {address}")
    raise typer.Exit(ExitCode.FAILED)


def _await_link(node: ControlClient, device: PeerId, patience: float) -> PeerStatus | None:
    """Return the link once it is open, or in its present state when the time is over."""
    from linnet.api.node_commands import ListPeers

    end = time.monotonic() + patience
    while True:
        link = next((each for each in node.ask(ListPeers()).peers if each.peer == device), None)
        if (link is not None and link.up) or time.monotonic() >= end:
            return link
        time.sleep(_LOOKS)


Key = Annotated[str, typer.Argument(metavar="KEY", help="The device's id, ld1…, as linnet peers shows it.")]
Unblock = Annotated[bool, typer.Option("--unblock", help="Accept the device again.")]


@with_examples("linnet block ld1…", "linnet block --unblock ld1…")
def block(key: Key, unblock: Unblock = False, *, session: Session) -> None:
    """Close the link to a device and refuse it from now on; kept over restarts."""
    from linnet.identity.addresses import parse_device
    from linnet.peer.interface import Block

    # A copied address may have its host after the key.
    peer = parse_device(key.partition("@")[0])
    device = device_text(peer)
    session.ask(Block(peer, not unblock))
    session.say(
        {"device": device, "blocked": not unblock}, f"{'unblocked' if unblock else 'blocked'} {device}"
    )
