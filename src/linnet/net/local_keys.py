"""The keys of local networks for the driver: our own to show, those of others to dial."""

from __future__ import annotations

import ssl
from collections.abc import Iterable

from linnet.core.ids import PeerId
from linnet.edge.announcement import is_lan_hint, lan_key, node_secret
from linnet.identity.keys import SigningKey
from linnet.net.address import parse_address
from linnet.net.failure import LinkFailure
from linnet.net.tls import choosing_context, server_context, server_name

_KNOWN = 4096
"""The most keys of others whose network is remembered."""


class OwnKey:
    """Our key on one network on one day."""

    __slots__ = ("context", "day", "key", "network")

    def __init__(self, network: bytes, day: int, key: SigningKey) -> None:
        self.network = network
        self.day = day
        self.key = key
        self.context = server_context(key)


class LocalKeys:
    """Chooses the key to show on each network. A key that nobody announced here is not dialled."""

    def __init__(self, device: SigningKey) -> None:
        self._secret = node_secret(device)
        self._own: dict[str, OwnKey] = {}
        """Our keys by the name that a client asks for; the newest are last."""
        self._by_context: dict[ssl.SSLContext, OwnKey] = {}
        self._known: dict[bytes, bytes] = {}
        """The networks of the keys of others, by key."""
        self.context = choosing_context(self._choose)
        """The TLS context for accepting links from local networks."""

    def enter(self, network: bytes, day: int) -> OwnKey:
        """Make a key for this network and day, and answer to it."""
        own = OwnKey(network, day, lan_key(self._secret, network, day))
        self._own[server_name(own.key.public)] = own
        self._by_context[own.context] = own
        return own

    def leave(self, own: OwnKey) -> None:
        """Stop answering to a key."""
        self._own.pop(server_name(own.key.public), None)
        self._by_context.pop(own.context, None)

    def own(self, network: bytes) -> OwnKey | None:
        """Return our present key on this network; None if there is none."""
        return next((own for own in reversed(self._own.values()) if own.network == network), None)

    def shown_key(self, context: ssl.SSLContext) -> PeerId | None:
        """Return the key that a client asked for and was shown; None if it is no longer ours."""
        own = self._by_context.get(context)
        return None if own is None else PeerId(own.key.public)

    def own_key(self, shown: bytes) -> OwnKey | None:
        """Return our key with these bytes; None if it is no longer ours."""
        return self._own.get(server_name(shown))

    def learn(self, lan: bytes, network: bytes) -> None:
        """Remember that this key was announced on this network."""
        self._known.pop(lan, None)
        self._known[lan] = network
        if len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]

    def own_for(self, lan: bytes) -> OwnKey | None:
        """Return our present key on the network where this key was announced; None if we are not there."""
        network = self._known.get(lan)
        return None if network is None else self.own(network)

    def dialable(self, hints: Iterable[str]) -> tuple[str, ...]:
        """Return the hints without those of local networks whose key was not heard on one of our networks."""
        return tuple(hint for hint in hints if not is_lan_hint(hint) or self._is_here(hint))

    def _is_here(self, hint: str) -> bool:
        try:
            return self.own_for(parse_address(hint).lan) is not None
        except LinkFailure:
            return False

    def _choose(self, name: str | None) -> ssl.SSLContext | None:
        own = None if name is None else self._own.get(name)
        return None if own is None else own.context
