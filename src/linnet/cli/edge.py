"""``linnet edge``: proxies of a node on the edge, clients of a proxy, and sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.moments import clock_text
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, say, say_json, size_text

if TYPE_CHECKING:
    from linnet.node.edge_types import EdgeClientView, EdgeProxyView, EdgeReply

STATUS_EPILOG = examples("linnet edge status", "linnet edge status --json | jq '.proxies[].up'")
SLEEP_EPILOG = examples("linnet edge sleep")
WAKE_EPILOG = examples("linnet edge wake")


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """The proxies of this node, those whom it serves as theirs, and what a proxy sees."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.edge()
    if as_json:
        say_json(reply)
        return
    for line in lines(reply):
        say(line)


def sleep(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Let go of all links until `linnet edge wake`; what is said meanwhile waits at the proxies."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.sleep()
    if as_json:
        say_json(reply)
    else:
        say("asleep; linnet edge wake ends it")


def wake(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Turn to the proxies again, after `linnet edge sleep` or before battery mode does."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.wake()
    if as_json:
        say_json(reply)
    else:
        say("awake")


def lines(reply: EdgeReply) -> list[str]:
    """The whole of it, for people."""
    if not reply.edge and not reply.proxy:
        return [
            "this node is not on the edge and is no proxy: "
            "linnet up --proxy KEY@HOST:PORT, or linnet up --role proxy"
        ]
    told: list[str] = []
    if reply.edge:
        told.append("on the edge, asleep" if reply.asleep else "on the edge")
        for proxy in reply.proxies:
            told += _proxy_lines(proxy)
        told.append("proxies see its address, when it is there, and which streams it wants; nobody else does")
    if reply.proxy:
        told.append(f"a proxy of {counted(len(reply.clients), 'client')}")
        for client in reply.clients:
            told += _client_lines(client)
    return told


def _proxy_lines(proxy: EdgeProxyView) -> list[str]:
    state = "up" if proxy.up else "turned to" if proxy.used else "spare"
    failure = "" if proxy.last_failure is None or proxy.up else f": {proxy.last_failure}"
    told = [f"  {proxy.proxy}  {state}{failure}"]
    if proxy.up:
        kept = f"{size_text(proxy.kept_bytes)} of {size_text(proxy.most_bytes)}"
        told.append(f"    serves {counted(proxy.served, 'stream')}, keeps {kept}")
    told += [f"    does not serve {each.stream}: {each.reason}" for each in proxy.refusals]
    return told


def _client_lines(client: EdgeClientView) -> list[str]:
    state = "here" if client.up else f"last here {clock_text(client.last_here)}"
    kept = f"{size_text(client.kept_bytes)} of {size_text(client.most_bytes)}"
    return [f"  {client.client}  {state}", f"    {counted(len(client.streams), 'stream')}, {kept} kept"]
