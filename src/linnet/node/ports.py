"""The ports of a home: where the system chose one, the same is taken at every start.

Others remember this node by its addresses: members of its rooms, guests of its places, whoever has it in a
list of trackers. Port 0 means "any free one", which is chosen once, at the first start, and written to
``ports`` in the home. If somebody else has it at a later start, another is taken, said, and kept instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from linnet.core.errors import Refused
from linnet.identity.keys import SigningKey
from linnet.net.address import Address, parse_address
from linnet.node.keyfiles import KeyFileError, read_private, write_private

if TYPE_CHECKING:
    from linnet.net.listener import Listener

_Port = Annotated[int, Meta(ge=1, le=65_535)]
_decoder = msgspec.json.Decoder(dict[str, list[_Port]])


class KeptPorts:
    """The ports that the system chose for a home, by the address that asked for them."""

    def __init__(self, path: Path | None) -> None:
        """Without a path nothing is kept: the node has no home."""
        self._path = path
        self.moved: list[str] = []
        """What people should know: a port that could not be had again, or could not be kept."""
        self._told = 0
        self._kept: dict[str, list[int]] = {} if path is None else self._read(path)

    def listen(self, addresses: Sequence[str], key: SigningKey) -> list[Listener]:
        """Take these ports for this device, where they ask for any the ones of the last start.

        `Refused` names an address that cannot be had; none is held then.
        """
        from linnet.net.listener import listen  # Only who runs a node pays for it.

        listeners: list[Listener] = []
        chosen: dict[str, list[int]] = {}
        try:
            for text in addresses:
                asked = parse_address(text)
                if asked.port:
                    listeners += listen([text], key)
                    continue
                ports = chosen.setdefault(text, [])
                listener = self._take(text, asked, len(ports), key)
                listeners.append(listener)
                ports.append(listener.address.port)
        except Refused:
            for listener in listeners:
                listener.close()
            raise
        self._write({**self._kept, **chosen})
        return listeners

    def wanted(self, addresses: Sequence[str]) -> tuple[str, ...]:
        """The same addresses with the ports of the last start, where there are any; nothing is taken."""
        seen: dict[str, int] = {}
        found: list[str] = []
        for text in addresses:
            asked = parse_address(text)
            port = asked.port or self._kept_port(text, seen.get(text, 0))
            seen[text] = seen.get(text, 0) + 1
            found.append(str(Address(asked.scheme, asked.host, port)))
        return tuple(found)

    def port(self, address: str, asked: int) -> int:
        """The port to try for an address of another sort: as asked, or of the last start."""
        return asked or self._kept_port(address, 0)

    def keep(self, address: str, port: int) -> None:
        """The system gave this port to an address of another sort that asked for any."""
        self._write({**self._kept, address: [port]})

    def _take(self, text: str, asked: Address, number: int, key: SigningKey) -> Listener:
        from linnet.net.listener import listen

        port = self._kept_port(text, number)
        if not port:
            return listen([text], key)[0]
        kept = Address(asked.scheme, asked.host, port)
        try:
            return listen([str(kept)], key)[0]
        except Refused:
            other = listen([text], key)[0]
            self.tell_moved(str(kept), other.hint)
            return other

    def tell_moved(self, old: str, new: str) -> None:
        """A port of the last start is in use by somebody else."""
        self.moved.append(f"{old} is in use by another program: this node is at {new} from now on")

    def untold(self) -> list[str]:
        """What was said since this was last asked."""
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
