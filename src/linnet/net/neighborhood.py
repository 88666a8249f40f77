"""The local networks of this machine, for the driver: watched, spoken on, and answered on.

Interfaces are looked at every few seconds. For each network and day there is a port of its own
and a key of its own: a port that stayed would tell what the key does not.
"""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Protocol

from linnet.core.effects import Announce, Meet
from linnet.core.inputs import Heard, LocalNetwork, NetworkIs
from linnet.core.reasons import Reason
from linnet.edge.lan_keys import day_of, network_id
from linnet.net.address import Address, Scheme
from linnet.net.config import LanConfig
from linnet.net.interfaces import Interface, interfaces
from linnet.net.listener import Listener
from linnet.net.local_book import LocalBook, OwnKey
from linnet.net.multicast import Multicast
from linnet.net.surroundings import Surroundings
from linnet.net.switchboard import Switchboard
from linnet.peer.interface import Input
from linnet.trace.records import Kind, Record

_COMPLAINTS = 64
"""Complaints that are remembered, so as not to be made again."""


class NeighborhoodOwner(Protocol):
    """Whom it serves: a driver."""

    def put(self, event: Input) -> None:
        """This happened."""

    def now(self) -> float:
        """The clock's time."""

    def record(self, record: Record) -> None:
        """Write this down."""


class _Face:
    """What we show on one network on one day."""

    __slots__ = ("listener", "local", "own")

    def __init__(self, local: LocalNetwork, own: OwnKey, listener: Listener) -> None:
        self.local = local
        self.own = own
        self.listener = listener


class Neighborhood:
    """All local networks that this machine is on."""

    def __init__(
        self, owner: NeighborhoodOwner, switchboard: Switchboard, book: LocalBook, config: LanConfig
    ) -> None:
        self._owner = owner
        self._switchboard = switchboard
        self._book = book
        self._config = config
        self._surroundings = Surroundings()
        self._sockets: dict[Interface, Multicast] = {}
        self._networks: dict[Interface, bytes] = {}
        self._faces: dict[bytes, _Face] = {}
        self._leaving: dict[_Face, asyncio.TimerHandle] = {}
        """What we showed until lately, and when that ends."""
        self._told: tuple[LocalNetwork, ...] = ()
        self._complaints: dict[str, None] = {}
        self._is_closed = False

    async def run(self) -> None:
        """Look at the interfaces again and again."""
        while not self._is_closed:
            self.look()
            await asyncio.sleep(self._config.scan_period)

    def look(self) -> None:
        """See which networks there are now, and tell if they changed."""
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
        """What the machine asks of local networks."""
        if isinstance(effect, Meet):
            self._switchboard.meet(effect)
            return
        sockets = [each for at, each in self._sockets.items() if self._networks[at] == effect.network]
        for each in sockets:
            try:
                each.send(effect.datagram)
            except OSError as error:
                note = f"announcement on {each.interface.name}: {error}"
                self._owner.record(Record(Kind.DROPPED, reason=Reason.UNREACHABLE, note=note[:200]))

    def close(self) -> None:
        """Leave all networks, and look for none any more."""
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
        network = network_id(self._surroundings.facts(interface))
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
                self._show(network, day, self._surroundings.name(interface))

    def _show(self, network: bytes, day: int, name: str) -> None:
        try:
            listener = listen_anywhere(self._book)
        except OSError as error:
            self._complain(f"no port for {name}: {error}")
            return
        own = self._book.enter(network, day)
        local = LocalNetwork(network, day, listener.address.port, name)
        self._faces[network] = _Face(local, own, listener)
        self._switchboard.serve(listener)

    def _retire(self, face: _Face) -> None:
        timer = self._leaving.pop(face, None)
        if timer is not None:
            timer.cancel()
        self._book.leave(face.own)
        self._switchboard.retire(face.listener)

    def _complain(self, note: str) -> None:
        """Say once what is wrong: it is looked at again every few seconds."""
        if note not in self._complaints:
            if len(self._complaints) >= _COMPLAINTS:
                self._complaints.clear()
            self._complaints[note] = None
            self._owner.record(Record(Kind.CONTROL, reason=Reason.UNREACHABLE, note=note[:200]))


def listen_anywhere(book: LocalBook) -> Listener:
    """A free port, for both versions of IP where this machine has both."""
    try:
        bound = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        host = "::"
    except OSError:
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        host = "0.0.0.0"  # noqa: S104 - it answers to none but those who heard its key
    try:
        bound.setblocking(False)
        if host == "::":
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind((host, 0))
    except OSError:
        bound.close()
        raise
    return Listener(Address(Scheme.LAN, host, int(bound.getsockname()[1])), bound, book.context)
