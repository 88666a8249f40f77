"""The keys of local networks, as the driver needs them: ours to show, others' to dial."""

from __future__ import annotations

import ssl
from collections.abc import Iterable

from linnet.edge.hints import is_lan_hint
from linnet.edge.lan_keys import lan_key, node_secret
from linnet.identity.keys import SigningKey
from linnet.net.address import parse_address
from linnet.net.channel import Channel
from linnet.net.failure import LinkFailure
from linnet.net.tls import choosing_context, server_context, server_name

_KNOWN = 4096
"""Keys of others whose network is remembered."""


class OwnKey:
    """What we are called on one network on one day."""

    __slots__ = ("context", "day", "key", "network")

    def __init__(self, network: bytes, day: int, key: SigningKey) -> None:
        self.network = network
        self.day = day
        self.key = key
        self.context = server_context(key)


class LocalBook:
    """Which key is shown to whom on which network. A key that nobody announced here is not dialled."""

    def __init__(self, device: SigningKey) -> None:
        self._secret = node_secret(device)
        self._own: dict[str, OwnKey] = {}
        """By the name that a client asks for; the newest are last."""
        self._by_context: dict[ssl.SSLContext, OwnKey] = {}
        self._known: dict[bytes, bytes] = {}
        """Networks by the keys that were announced there."""
        self.context = choosing_context(self._choose)
        """For accepting links from local networks."""

    def enter(self, network: bytes, day: int) -> OwnKey:
        """Be called something on this network on this day."""
        own = OwnKey(network, day, lan_key(self._secret, network, day))
        self._own[server_name(own.key.public)] = own
        self._by_context[own.context] = own
        return own

    def leave(self, own: OwnKey) -> None:
        """Be called so no longer."""
        self._own.pop(server_name(own.key.public), None)
        self._by_context.pop(own.context, None)

    def own(self, network: bytes) -> OwnKey | None:
        """What we are called on this network now."""
        return next((own for own in reversed(self._own.values()) if own.network == network), None)

    def shown(self, channel: Channel) -> OwnKey | None:
        """The key that the other end of an accepted connection asked for."""
        return self._by_context.get(channel.tls.context)

    def learn(self, lan: bytes, network: bytes) -> None:
        """This key was announced on this network."""
        self._known.pop(lan, None)
        self._known[lan] = network
        if len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]

    def own_for(self, lan: bytes) -> OwnKey | None:
        """What we are called where this key was announced, if we are still there."""
        network = self._known.get(lan)
        return None if network is None else self.own(network)

    def dialable(self, hints: Iterable[str]) -> tuple[str, ...]:
        """These hints without those of local networks that were not heard on a network that we are on."""
        return tuple(hint for hint in hints if not is_lan_hint(hint) or self._is_here(hint))

    def _is_here(self, hint: str) -> bool:
        try:
            return self.own_for(parse_address(hint).lan) is not None
        except LinkFailure:
            return False

    def _choose(self, name: str | None) -> ssl.SSLContext | None:
        own = None if name is None else self._own.get(name)
        return None if own is None else own.context
