"""A simulated circle with an edge: mobiles behind relays that are their proxies."""

from __future__ import annotations

from random import Random

from tests.rooms.circle import Circle

from linnet.core.effects import AfterCommit, Send
from linnet.core.hello import Hello
from linnet.core.inputs import LinkUp, Received
from linnet.edge.config import EdgeConfig, PresenceConfig, ProxyConfig
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Effect, Input
from linnet.peer.messages import CODEC
from linnet.peer.peer import Peer


class Met(Peer):
    """A node machine that notes whom it had links to, and all that it heard and said, as bytes."""

    met: list[bytes]
    wire: list[bytes]

    def handle(self, event: Input, now: float) -> list[Effect]:
        if type(event) is LinkUp:
            self.met.append(event.peer)
        if type(event) is Received:
            self.wire.append(CODEC.encode(event.message))
        effects = super().handle(event, now)
        for effect in effects:
            promised = effect.effects if isinstance(effect, AfterCommit) else (effect,)
            self.wire += [CODEC.encode(each.message) for each in promised if isinstance(each, Send)]
        return effects

    @property
    def hello(self) -> Hello:
        return super().hello


class Shore(Circle):
    """A circle where ``m…`` are mobiles behind the relays ``r…``; ``x…`` are relays that are no proxies."""

    def _machine(self, name: str) -> Peer:
        life = self._lives[name] = self._lives.get(name, -1) + 1
        is_relay = name[0] in "rx"
        proxies = tuple(self.contact(each) for each in self.identity if each[0] == "r")
        config = PeerConfig(
            listens=() if name[0] == "m" else (f"tls://{name}:1",),
            rooms=self.config,
            relay=self.relay_config if is_relay else None,
            proxy=ProxyConfig(open=True) if name[0] == "r" else None,
            edge=EdgeConfig(proxies=proxies) if name[0] == "m" else EdgeConfig(),
            lan=PresenceConfig() if name[0] == "m" else None,
        )
        luck = Random(f"{self.seed}/{name}/{life}")
        machine = Met(config, self.identity[name], self.stores[name], luck, self._verifier, self._card_check)
        machine.met, machine.wire = [], []
        return machine

    def _met(self, name: str) -> Met:
        machine = self.network.machine(self.peer(name))
        assert isinstance(machine, Met)
        return machine

    def met(self, name: str) -> set[str]:
        return {self.name(peer) for peer in self._met(name).met}  # type: ignore[arg-type]

    def wire(self, name: str) -> list[bytes]:
        """Every message that a node heard or said since it is up."""
        return self._met(name).wire

    def kept(self, name: str) -> list[bytes]:
        """Every value and every entry of the log in the store of a node."""
        store = self.stores[name]
        cells = [each for space in store.cells._spaces.values() for pair in space.items() for each in pair]
        return [*cells, *(entry.raw for _, entry in store.log._units.values())]

    def logged(self, name: str) -> list[bytes]:
        """Every record that a node made."""
        return [repr(record).encode() for _, node, record in self.notes.rows if node == self.peer(name)]
