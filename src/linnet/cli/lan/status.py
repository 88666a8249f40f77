"""``linnet lan status``: the local networks of this device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, say, say_json

if TYPE_CHECKING:
    from linnet.node.lan_types import LanNetworkView

EPILOG = examples("linnet lan status", "linnet lan status --json | jq '.networks[].peers'")

SHORT = 8
"""Letters of a network's id that are shown and may be typed."""


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """The local networks that this device is on or knows: who else is there, and what may be said there.

    A network's id is made here from its gateway and addresses, and is told to nobody.
    """
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.lan()
    if as_json:
        say_json(reply)
        return
    if not reply.enabled:
        say("local networks are left alone; to use them, set enabled = true under [lan] in linnet.toml")
    elif not reply.networks:
        say("this device is on no local network")
    for network in reply.networks:
        tell(network)


def tell(network: LanNetworkView) -> None:
    """One network, for people."""
    state = "here, and seen" if network.announced else "here, and silent" if network.here else "elsewhere"
    say(f"{network.network[:SHORT]}  {network.name or 'a network not seen lately'}: {state}")
    for topic in network.topics:
        say(f"  allowed: {topic}")
    if network.here and not network.topics:
        say("  nothing is allowed here, so this device does not show itself: linnet lan allow TOPIC")
    if network.announced:
        say(f"  {counted(len(network.peers), 'device')} met, {network.heard} heard")
    for peer in network.peers:
        say(f"  {peer.device}")
