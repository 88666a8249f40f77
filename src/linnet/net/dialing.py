"""Reaching a peer by its key: every address that it may have, until one shows the right key.

Addresses are tried in their order, each a moment after the one before (RFC 8305's way). Only
encryption and the server's key are raced; who we are is told to the winner alone.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Iterable

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.net.address import Address, Scheme, parse_address, resolve
from linnet.net.channel import Channel
from linnet.net.config import NetConfig
from linnet.net.failure import LinkFailure
from linnet.net.greeting import check_server
from linnet.net.tls import cut_short, server_name
from linnet.net.websocket import WebSocket

_TELLING = (
    Reason.WRONG_KEY,
    Reason.TLS_FAILED,
    Reason.PROTOCOL_ERROR,
    Reason.CONNECTION_REFUSED,
    Reason.DIAL_TIMEOUT,
    Reason.UNREACHABLE,
    Reason.NO_ADDRESS,
)
"""When addresses fail for different reasons, the one that got furthest tells most."""


async def open_socket(address: Address) -> socket.socket:
    """A TCP connection to an IP address."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(opened, _place(address))
    except BaseException as error:
        opened.close()
        if isinstance(error, ConnectionRefusedError):
            raise LinkFailure(Reason.CONNECTION_REFUSED, f"nothing listens at {address}") from error
        if isinstance(error, TimeoutError):
            raise LinkFailure(Reason.DIAL_TIMEOUT, f"{address} does not answer") from error
        # An event loop has errors of its own about descriptors that are just being given away.
        if isinstance(error, OSError | OverflowError | RuntimeError):
            raise LinkFailure(Reason.UNREACHABLE, f"{address}: {error}") from error
        raise
    return opened


async def encrypt(
    opened: socket.socket, address: Address, context: ssl.SSLContext, config: NetConfig
) -> Channel:
    """TLS, and whatever the scheme wants beside, on a TCP connection that we opened."""
    loop = asyncio.get_running_loop()
    try:
        channel = Channel(WebSocket(address) if address.scheme is Scheme.WSS else None, config.write_bytes)
        await loop.create_connection(
            lambda: channel,
            sock=opened,
            ssl=context,
            # No name: it would tell every listener on the way whom we look for. On a local network
            # everyone has heard the key that is looked for.
            server_hostname=server_name(address.lan) if address.lan else "",
            ssl_handshake_timeout=config.dial_timeout,
        )
    except BaseException as error:
        cut_short(opened, error)
        if isinstance(error, OSError | RuntimeError):
            raise LinkFailure(Reason.TLS_FAILED, f"{address} did not finish TLS: {error!r}") from error
        raise
    return channel


async def reach(peer: PeerId, hints: Iterable[str], context: ssl.SSLContext, config: NetConfig) -> Channel:
    """An encrypted channel to whoever holds this key, at the first address that shows it.

    At an address of a local network the key in that address is shown instead; `channel.lan` is that key.

    `LinkFailure` carries the reason of the address that got furthest.
    """
    failures: list[LinkFailure] = []
    try:
        async with asyncio.timeout(config.dial_timeout):
            places = await _places(hints, failures)
            channel = await _race(peer, places, context, config, failures)
    except TimeoutError:
        failures.append(LinkFailure(Reason.DIAL_TIMEOUT, "no address answered in time"))
    else:
        if channel is not None:
            return channel
    if not failures:
        raise LinkFailure(Reason.NO_ADDRESS, "no address of this peer is known")
    raise min(failures, key=_rank)


async def _places(hints: Iterable[str], failures: list[LinkFailure]) -> deque[Address]:
    places: dict[Address, None] = {}
    for hint in hints:
        try:
            for address in await resolve(parse_address(hint)):
                places[address] = None
        except LinkFailure as failure:
            failures.append(failure)
    return deque(places)


async def _race(
    peer: PeerId,
    places: deque[Address],
    context: ssl.SSLContext,
    config: NetConfig,
    failures: list[LinkFailure],
) -> Channel | None:
    tasks: list[asyncio.Task[Channel | LinkFailure]] = []
    winner: Channel | None = None
    try:
        async with asyncio.TaskGroup() as group:
            while winner is None and (places or not all(task.done() for task in tasks)):
                if places:
                    place = places.popleft()
                    tasks.append(
                        group.create_task(_attempt(peer, place, context, config), name=f"dial {place}")
                    )
                running = [task for task in tasks if not task.done()]
                wait = config.dial_stagger if places else None
                done, _ = await asyncio.wait(running, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    result = task.result()
                    if isinstance(result, LinkFailure):
                        failures.append(result)
                    elif winner is None:
                        winner = result
            for task in tasks:
                task.cancel()
    finally:
        _close_losers(tasks, winner)
    return winner


async def _attempt(
    peer: PeerId, place: Address, context: ssl.SSLContext, config: NetConfig
) -> Channel | LinkFailure:
    try:
        channel = await encrypt(await open_socket(place), place, context, config)
    except LinkFailure as failure:
        return failure
    try:
        check_server(channel, PeerId(place.lan) if place.lan else peer)
    except LinkFailure as failure:
        channel.close()
        return failure
    channel.lan = place.lan
    return channel


def _place(address: Address) -> tuple[str, int] | tuple[str, int, int, int]:
    host, _, zone = address.host.partition("%")
    return (host, address.port, 0, socket.if_nametoindex(zone)) if zone else (host, address.port)


def _close_losers(tasks: list[asyncio.Task[Channel | LinkFailure]], winner: Channel | None) -> None:
    for task in tasks:
        if task.done() and not task.cancelled() and task.exception() is None:
            result = task.result()
            if isinstance(result, Channel) and result is not winner:
                result.close()


def _rank(failure: LinkFailure) -> int:
    return _TELLING.index(failure.reason) if failure.reason in _TELLING else len(_TELLING)
