"""Which topics are allowed on which network. On a network where it is not allowed, a topic does not exist.

Topics are denied by default on every network, known or not. The internet is one more network (`CORE`), where
a topic is allowed unless it was denied: so a topic may be kept to local networks.
"""

from __future__ import annotations

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.edge.announcement import CORE, NETWORK_BYTES

MOST_SWITCHES = 4096
_SPACE = "lan policy"
_NAMES = "lan names"
_ON, _OFF = b"1", b"0"


class LanPolicy:
    """The switches of topics on networks, kept over restarts."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._switches: dict[bytes, dict[TopicId, bool]] = {}
        for key, value in cells.scan(_SPACE):
            network, topic = key[:NETWORK_BYTES], TopicId(key[NETWORK_BYTES:])
            self._switches.setdefault(network, {})[topic] = value == _ON
        self._names = {key: value.decode() for key, value in cells.scan(_NAMES)}

    def allow_topic(self, topic: TopicId, network: bytes, name: str = "") -> None:
        """Allow this topic on this network; `name` is the network's name for people."""
        self._set_switch(topic, network, True, name)

    def deny_topic(self, topic: TopicId, network: bytes) -> None:
        """Deny this topic on this network."""
        if network == CORE:
            self._set_switch(topic, network, False, "")
            return
        switches = self._switches.get(network, {})
        if switches.pop(topic, None) is None:
            return
        self._cells.delete(_SPACE, network + topic)
        if not switches:
            del self._switches[network]
            self._names.pop(network, None)
            self._cells.delete(_NAMES, network)

    def is_allowed(self, topic: TopicId, network: bytes) -> bool:
        """Return whether this topic is allowed on this network."""
        return self._switches.get(network, {}).get(topic, network == CORE)

    def allowed_topics(self, network: bytes) -> tuple[TopicId, ...]:
        """Return exactly the topics that were allowed on a network."""
        switches = self._switches.get(network, {})
        return tuple(topic for topic, is_on in switches.items() if is_on)

    def denied_topics(self, network: bytes) -> tuple[TopicId, ...]:
        """Return the topics that were denied on a network: only the internet has such topics."""
        switches = self._switches.get(network, {})
        return tuple(topic for topic, is_on in switches.items() if not is_on)

    @property
    def networks(self) -> dict[bytes, str]:
        """The local networks on which a topic is allowed, with their names."""
        return {network: self._names.get(network, "") for network in self._switches if network != CORE}

    def _set_switch(self, topic: TopicId, network: bytes, is_on: bool, name: str) -> None:
        switches = self._switches.get(network, {})
        if topic not in switches and sum(map(len, self._switches.values())) >= MOST_SWITCHES:
            raise Refused(Reason.TOO_MANY, f"{MOST_SWITCHES} switches are set already; deny some first")
        self._switches.setdefault(network, switches)[topic] = is_on
        self._cells.put(_SPACE, network + topic, _ON if is_on else _OFF)
        if name and self._names.get(network) != name:
            self._names[network] = name
            self._cells.put(_NAMES, network, name.encode())
