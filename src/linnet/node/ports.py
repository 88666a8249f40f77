"""The ports of a home: a port that the system chose is used again at every start.

Others remember this node by its addresses: members of its rooms, guests of its places, configurations that
list it as a tracker. Port 0 means "any free one", which is chosen once, at the first start, and written to
``ports`` in the home. If another program has it at a later start, a new one is chosen, reported, and kept
instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from linnet.core.errors import Refused
from linnet.net.address import Address, parse_address
from linnet.node.keyfiles import KeyFileError, read_private, write_private

if TYPE_CHECKING:
    from linnet.net.transport import Transport, TransportListener

_Port = Annotated[int, Meta(ge=1, le=65_535)]
_decoder = msgspec.json.Decoder(dict[str, list[_Port]])


class KeptPorts:
    """The ports that the system chose for a home, by configured address."""

    def __init__(self, path: Path | None) -> None:
        """Without a path no ports are kept: the node has no home."""
        self._path = path
        self.moved: list[str] = []
        """Messages for users: ports that were in use or could not be kept."""
        self._told = 0
        self._kept: dict[str, list[int]] = {} if path is None else self._read(path)

    def listen(self, addresses: Sequence[str], transports: Sequence[Transport]) -> list[TransportListener]:
        """Listen at these addresses; where they ask for any port, at that of the last start.

        `Refused` names an address that is not free; then none is held.
        """
        from linnet.net.transport import listen  # Only who runs a node pays for it.

        listeners: list[TransportListener] = []
        chosen: dict[str, list[int]] = {}
        try:
            for text in addresses:
                asked = parse_address(text)
                if asked.port:
                    listeners += listen([text], transports)
                    continue
                ports = chosen.setdefault(text, [])
                listener = self._take(text, asked, len(ports), transports)
                listeners.append(listener)
                ports.append(parse_address(listener.hint).port)
        except Refused:
            for listener in listeners:
                listener.close()
            raise
        self._write({**self._kept, **chosen})
        return listeners

    def wanted(self, addresses: Sequence[str]) -> tuple[str, ...]:
        """Return the addresses with the ports of the last start, if there are any; holds no port."""
        seen: dict[str, int] = {}
        found: list[str] = []
        for text in addresses:
            asked = parse_address(text)
            port = asked.port or self._kept_port(text, seen.get(text, 0))
            seen[text] = seen.get(text, 0) + 1
            found.append(str(Address(asked.scheme, asked.host, port)))
        return tuple(found)

    def port(self, address: str) -> int:
        """Return the last start's port for another kind of address with any port; 0 if there is none."""
        return self._kept_port(address, 0)

    def keep(self, address: str, port: int) -> None:
        """Keep the port that the system chose for another kind of address with any port."""
        self._write({**self._kept, address: [port]})

    def _take(
        self, text: str, asked: Address, number: int, transports: Sequence[Transport]
    ) -> TransportListener:
        from linnet.net.transport import listen

        port = self._kept_port(text, number)
        if not port:
            return listen([text], transports)[0]
        kept = Address(asked.scheme, asked.host, port)
        try:
            return listen([str(kept)], transports)[0]
        except Refused:
            other = listen([text], transports)[0]
            self.tell_moved(str(kept), other.hint)
            return other

    def tell_moved(self, old: str, new: str) -> None:
        """Note that a port of the last start is used by another program."""
        self.moved.append(f"{old} is in use by another program: this node is at {new} from now on")

    def untold(self) -> list[str]:
        """Return the messages that were added since the last call."""
        fresh, self._told = self.moved[self._told :], len(self.moved)
        return fresh

    def _kept_port(self, address: str, number: int) -> int:
        ports = self._kept.get(address, ())
        return ports[number] if number < len(ports) else 0

    def _read(self, path: Path) -> dict[str, list[int]]:
        if not path.exists():
            return {}
        try:
            return _decoder.decode(read_private(path))
        except (msgspec.DecodeError, UnicodeDecodeError, KeyFileError) as error:
            self.moved.append(f"{path}: the ports of the last start cannot be read: {error}")
            return {}

    def _write(self, kept: dict[str, list[int]]) -> None:
        if self._path is None or kept == self._kept:
            return
        self._kept = kept
        try:
            write_private(self._path, msgspec.json.encode(kept) + b"\n", replace=True)
        except OSError as error:
            self.moved.append(f"{self._path}: ports could not be kept: {error.strerror or error}")
