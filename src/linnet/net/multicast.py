"""Sockets that send to all on one local network, and hear what others send: one for each version of IP.

Datagrams do not leave the link: they are sent with a hop limit of one. What comes over another
interface is not heard here.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from collections.abc import Callable, Iterator

from linnet.edge.announcement import MOST_BYTES
from linnet.net.config import LanConfig
from linnet.net.interfaces import Interface

_AT_ONCE = 64
"""Datagrams that are read in one loop turn."""
_PAUSE = 0.05
"""Seconds for which a socket that had more than that is left alone: a flood costs a bounded share of us."""
_ONLY_OURS_4 = 49
"""IP_MULTICAST_ALL of Linux; if off, a socket hears its own interface's groups only."""
_ONLY_OURS_6 = 29

OnDatagram = Callable[[str, bytes], None]
"""Told of the IP address from which a datagram came, and of its bytes."""


class Multicast:
    """One interface's sockets."""

    def __init__(self, interface: Interface, config: LanConfig) -> None:
        """`OSError` if neither version of IP will do."""
        self.interface = interface
        self._config = config
        self._sockets: dict[socket.socket, tuple[object, ...]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        failures: list[OSError] = []
        for version, opener in ((4, self._open4), (6, self._open6)):
            if interface.of(version):
                try:
                    opener()
                except OSError as error:
                    failures.append(error)
        if not self._sockets:
            raise failures[0] if failures else OSError(f"{interface.name} has no address")

    def start(self, heard: OnDatagram) -> None:
        """Tell of every datagram, until `close`."""
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        for each in self._sockets:
            self._resume(each)

    def send(self, datagram: bytes) -> None:
        """Send to all on this network; `OSError` if that fails for every version of IP."""
        failures: list[OSError] = []
        for each, group in self._sockets.items():
            try:
                each.sendto(datagram, group)
            except OSError as error:
                failures.append(error)
        if len(failures) == len(self._sockets):
            raise failures[0]

    def close(self) -> None:
        """Leave the groups and give the ports back."""
        for each in self._sockets:
            if self._loop is not None:
                self._loop.remove_reader(each.fileno())
            each.close()
        self._sockets.clear()

    def _resume(self, each: socket.socket) -> None:
        if self._loop is not None and each.fileno() >= 0:
            self._loop.add_reader(each.fileno(), self._read, each)

    def _read(self, each: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                # One byte more than is allowed: what is longer is seen to be.
                datagram, place = each.recvfrom(MOST_BYTES + 1)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                # An error of the network, reported here for something that was sent; that was told then.
                continue
            self._heard(self._source(place), datagram)
            if each.fileno() < 0:
                return
        if self._loop is not None:
            self._loop.remove_reader(each.fileno())
            self._loop.call_later(_PAUSE, self._resume, each)

    def _source(self, place: tuple[object, ...]) -> str:
        host = str(place[0]).partition("%")[0]
        is_link_local = len(place) > 2 and host.startswith("fe8")
        return f"{host}%{self.interface.name}" if is_link_local else host

    def _open4(self) -> None:
        config, index = self._config, self.interface.index
        group = socket.inet_aton(config.group4)
        with _closing_on_error(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as opened:
            _share(opened)
            opened.bind((config.group4, config.port))
            request = struct.pack("=4s4si", group, bytes(4), index)
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            with contextlib.suppress(OSError):
                opened.setsockopt(socket.IPPROTO_IP, _ONLY_OURS_4, 0)
            self._sockets[opened] = (config.group4, config.port)

    def _open6(self) -> None:
        config, index = self._config, self.interface.index
        group = socket.inet_pton(socket.AF_INET6, config.group6)
        with _closing_on_error(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)) as opened:
            _share(opened)
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened.bind((config.group6, config.port, 0, index))
            request = struct.pack("=16sI", group, index)
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 1)
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
            with contextlib.suppress(OSError):
                opened.setsockopt(socket.IPPROTO_IPV6, _ONLY_OURS_6, 0)
            self._sockets[opened] = (config.group6, config.port, 0, index)


@contextlib.contextmanager
def _closing_on_error(opened: socket.socket) -> Iterator[socket.socket]:
    try:
        yield opened
    except BaseException:
        opened.close()
        raise


def _share(opened: socket.socket) -> None:
    """Let other nodes of this machine hear the same group."""
    opened.setblocking(False)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if not sys.platform.startswith("linux"):
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
