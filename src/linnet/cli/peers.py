"""``linnet peers``: every link of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.status_types import PeerView

EPILOG = examples("linnet peers", "linnet peers --json | jq '.peers[] | select(.up) | .device'")

_LETTERS = 16
_COLUMNS = ("device", "state", "opened by", "round trip", "roles", "needed for", "agent")


def peers(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Every link, open or wanted: to whom, since when, how fast, what for, and why it is down."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.peers()
    if as_json:
        say_json(reply)
    elif reply.peers:
        say_table(_COLUMNS, map(_row, reply.peers))
    else:
        say("no links: nothing is joined yet, or nobody is known to begin with; look at: linnet doctor")


def _row(peer: PeerView) -> tuple[object, ...]:
    state = "up" if peer.up else f"down: {peer.last_failure}" if peer.last_failure else "down"
    trip = None if peer.rtt is None else f"{peer.rtt * 1000:.1f} ms"
    needed = [" ".join(map(_short, name.split(" "))) for name in peer.needed_for]
    if peer.wanted:
        needed.append("the other end")
    return (peer.device, state, "us" if peer.dialed else "them", trip, peer.roles, needed, peer.agent)


def _short(word: str) -> str:
    """A topic that nobody here has a name for, as little of it as tells it apart."""
    is_number = len(word) >= _LETTERS and all(letter in "0123456789abcdef" for letter in word)
    return f"{word[:8]}…" if is_number else word
