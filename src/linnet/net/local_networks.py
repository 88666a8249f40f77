"""The local networks of this machine, for the driver: watches, announces and listens on them.

Interfaces are checked every few seconds. Each network and day has a port and a key of its own: a port that
stayed the same would reveal what the key does not. Sockets send to all nodes on one network and hear what
they send, one socket for each version of IP.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from linnet.core.effects import Announce, Meet
from linnet.core.inputs import Heard, LocalNetwork, NetworkIs
from linnet.core.reasons import Reason
from linnet.edge.announcement import MOST_BYTES, day_of, network_id
from linnet.net.config import LanConfig, NetConfig
from linnet.net.interfaces import Interface, NetworkFacts, interfaces
from linnet.net.link_table import LinkTable
from linnet.net.local_keys import LocalKeys, OwnKey
from linnet.net.tls_transport import TlsListener, listen_anywhere
from linnet.peer.interface import Input
from linnet.trace.records import Kind, Record

_AT_ONCE = 64
"""The most datagrams that are read in one loop turn."""
_PAUSE = 0.05
"""Seconds for which a socket with more than that is left alone: a flood takes a bounded share of our time."""
_ONLY_OURS_4 = 49
"""IP_MULTICAST_ALL of Linux; if off, a socket hears its own interface's groups only."""
_ONLY_OURS_6 = 29

OnDatagram = Callable[[str, bytes], None]
"""Called with the IP address that a datagram came from, and its bytes."""


class Multicast:
    """The multicast sockets of one interface."""

    def __init__(self, interface: Interface, config: LanConfig) -> None:
        """Open the sockets; `OSError` if neither version of IP works."""
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
        """Pass every datagram on to `heard`, until `close`."""
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        for each in self._sockets:
            self._resume(each)

    def send(self, datagram: bytes) -> None:
        """Send to all nodes on this network; `OSError` if that fails for every version of IP."""
        failures: list[OSError] = []
        for each, group in self._sockets.items():
            try:
                each.sendto(datagram, group)
            except OSError as error:
                failures.append(error)
        if len(failures) == len(self._sockets):
            raise failures[0]

    def close(self) -> None:
        """Leave the groups and free the ports."""
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
                # One byte more than is allowed, so that a longer datagram is noticed.
                datagram, place = each.recvfrom(MOST_BYTES + 1)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                # A network error, reported here for an earlier send, which has raised its own.
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


_COMPLAINTS = 64
"""The most complaints that are remembered, so as not to be repeated."""


class LocalNetworksOwner(Protocol):
    """The owner of the local networks: a driver."""

    def put(self, event: Input) -> None:
        """Handle an input."""

    def now(self) -> float:
        """Return the clock's time."""

    def record(self, record: Record) -> None:
        """Write a record."""


class _Face:
    """Our key and port on one network on one day."""

    __slots__ = ("listener", "local", "own")

    def __init__(self, local: LocalNetwork, own: OwnKey, listener: TlsListener) -> None:
        self.local = local
        self.own = own
        self.listener = listener


class LocalNetworks:
    """All local networks that this machine is on."""

    def __init__(
        self, owner: LocalNetworksOwner, links: LinkTable, keys: LocalKeys, config: LanConfig, net: NetConfig
    ) -> None:
        self._owner = owner
        self._links = links
        self._keys = keys
        self._config = config
        self._net = net
        self._facts = NetworkFacts()
        self._sockets: dict[Interface, Multicast] = {}
        self._networks: dict[Interface, bytes] = {}
        self._faces: dict[bytes, _Face] = {}
        self._leaving: dict[_Face, asyncio.TimerHandle] = {}
        """Our former keys and ports that are still answered to, with the timers of their end."""
        self._told: tuple[LocalNetwork, ...] = ()
        self._complaints: dict[str, None] = {}
        self._is_closed = False

    async def run(self) -> None:
        """Check the interfaces periodically, until closed."""
        while not self._is_closed:
            self.look()
            await asyncio.sleep(self._config.scan_period)

    def look(self) -> None:
        """Find the present networks, and report them if they changed."""
        try:
            found = [each for each in interfaces() if self._is_watched(each)]
        except OSError as error:
            self._complain(f"the interfaces cannot be read: {error}")
            return
        for gone in [each for each in self._sockets if each not in found]:
            self._sockets.pop(gone).close()
            del self._networks[gone]
        for interface in found:
            self._watch(interface)
        self._face_networks()
        told = tuple(face.local for face in self._faces.values())
        if told != self._told:
            self._told = told
            self._owner.put(NetworkIs(told))

    def perform(self, effect: Announce | Meet) -> None:
        """Perform an effect of the machine on local networks."""
        if isinstance(effect, Meet):
            self._links.meet(effect)
            return
        sockets = [each for at, each in self._sockets.items() if self._networks[at] == effect.network]
        for each in sockets:
            try:
                each.send(effect.datagram)
            except OSError as error:
                note = f"announcement on {each.interface.name}: {error}"
                self._owner.record(Record(Kind.DROPPED, reason=Reason.UNREACHABLE, note=note[:200]))

    def close(self) -> None:
        """Leave all networks, and stop watching for more."""
        self._is_closed = True
        for each in self._sockets.values():
            each.close()
        self._sockets.clear()
        for face in [*self._faces.values(), *self._leaving]:
            self._retire(face)
        self._faces.clear()

    def _is_watched(self, interface: Interface) -> bool:
        named = self._config.interfaces
        has_address = bool(interface.addresses)
        return has_address and (interface.name in named if named else interface.is_local_network)

    def _watch(self, interface: Interface) -> None:
        network = network_id(self._facts.of(interface))
        if interface not in self._sockets:
            try:
                opened = Multicast(interface, self._config)
            except OSError as error:
                self._complain(f"no multicast on {interface.name}: {error}")
                return
            self._sockets[interface] = opened
            opened.start(partial(self._heard, interface))
        self._networks[interface] = network

    def _heard(self, interface: Interface, source: str, datagram: bytes) -> None:
        network = self._networks.get(interface)
        if network is not None:
            self._owner.put(Heard(network, source, datagram))

    def _face_networks(self) -> None:
        """Have a key and a port of today for each network, and for no other."""
        day = day_of(self._owner.now())
        named: dict[bytes, Interface] = {}
        for interface, network in self._networks.items():
            named.setdefault(network, interface)
        for network, face in list(self._faces.items()):
            if network not in named or face.local.day != day:
                del self._faces[network]
                loop = asyncio.get_running_loop()
                self._leaving[face] = loop.call_later(self._config.grace, self._retire, face)
        for network, interface in named.items():
            if network not in self._faces:
                self._show(network, day, self._facts.name(interface))

    def _show(self, network: bytes, day: int, name: str) -> None:
        try:
            listener = listen_anywhere(self._keys.context, self._keys.shown_key, self._net)
        except OSError as error:
            self._complain(f"no port for {name}: {error}")
            return
        own = self._keys.enter(network, day)
        local = LocalNetwork(network, day, listener.address.port, name)
        self._faces[network] = _Face(local, own, listener)
        self._links.serve(listener)

    def _retire(self, face: _Face) -> None:
        timer = self._leaving.pop(face, None)
        if timer is not None:
            timer.cancel()
        self._keys.leave(face.own)
        self._links.retire(face.listener)

    def _complain(self, note: str) -> None:
        """Record a problem once: it is met again every few seconds."""
        if note not in self._complaints:
            if len(self._complaints) >= _COMPLAINTS:
                self._complaints.clear()
            self._complaints[note] = None
            self._owner.record(Record(Kind.CONTROL, reason=Reason.UNREACHABLE, note=note[:200]))
