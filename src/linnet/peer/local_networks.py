"""Local networks, as the node machine has them: the policy always, presence where it is configured."""

from __future__ import annotations

from random import Random

from linnet.core.effects import AfterCommit, Announce, CancelTimer, Meet, Reply, SetTimer
from linnet.core.errors import Refused
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import Heard, Met, NetworkIs, NotMet
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined, Done
from linnet.edge.commands import AllowOnNetwork, ExamineLan, LanCommand, LanStatus
from linnet.edge.lan_keys import CORE, node_secret
from linnet.edge.notices import LanNotice
from linnet.edge.policy import LanPolicy
from linnet.edge.presence import Presence, PresenceEffect
from linnet.peer.config import Identity, PeerConfig
from linnet.trace.records import Record

LanReply = Reply[Done] | Reply[Declined] | Reply[LanStatus] | AfterCommit[Reply[Done]]
LanEffect = Announce | Meet | SetTimer[Tick] | CancelTimer[Tick] | Record
LanInput = NetworkIs | Heard | Met | NotMet


class LocalNetworks:
    """The switches of topics on networks, and who is on those that this device is on."""

    def __init__(
        self, config: PeerConfig, identity: Identity, cells: Cells, rng: Random, entropy: Entropy
    ) -> None:
        self.policy = LanPolicy(cells)
        self.presence: Presence | None = None
        if config.lan is not None:
            secret = node_secret(identity.device)
            self.presence = Presence(secret, self.policy, config.lan, rng, entropy)

    def handle(self, event: LanInput, now: float) -> list[PresenceEffect]:
        """Something happened on a local network."""
        return [] if self.presence is None else self.presence.handle(event, now)

    def fired(self, tick: Tick, now: float) -> list[PresenceEffect]:
        """A timer of presence has run out."""
        return [] if self.presence is None else self.presence.fired(tick, now)

    def is_here(self, peer: PeerId) -> bool:
        """Whether a device is on some local network with us."""
        return self.presence is not None and bool(self.presence.networks_of(peer))

    def allowed_with(self, peer: PeerId) -> tuple[TopicId, ...]:
        """Topics that a device may learn of: those allowed on any network that we share with it."""
        shared = () if self.presence is None else self.presence.networks_of(peer)
        return tuple(dict.fromkeys(topic for network in shared for topic in self.policy.allowed(network)))

    @property
    def spoken(self) -> tuple[TopicId, ...]:
        """Topics that are allowed on any of the networks that this device is on."""
        here = () if self.presence is None else self.presence.here
        return tuple(dict.fromkeys(topic for network in here for topic in self.policy.allowed(network)))

    def ask(
        self, request: int, command: LanCommand, now: float
    ) -> tuple[list[PresenceEffect], list[LanReply]]:
        """What a command about local networks brings about, and its answer."""
        if isinstance(command, ExamineLan):
            return [], [Reply(request, self._status())]
        try:
            changed = self._switch(command, now)
        except Refused as error:
            return [], [Reply(request, Declined(error.reason, error.detail))]
        return changed, [AfterCommit((Reply(request, Done()),))]

    def _switch(self, command: AllowOnNetwork, now: float) -> list[PresenceEffect]:
        if self.presence is not None:
            return self.presence.allow(command.topic, command.network, command.is_allowed, now)
        if command.is_allowed and command.network != CORE:
            raise Refused(Reason.UNSUPPORTED, "this node leaves local networks alone: [lan] enabled = false")
        switch = self.policy.allow if command.is_allowed else self.policy.deny
        switch(command.topic, command.network)
        return []

    def _status(self) -> LanStatus:
        return LanStatus((), is_enabled=False) if self.presence is None else self.presence.status()


def parted(effects: list[PresenceEffect]) -> tuple[list[LanEffect], list[LanNotice]]:
    """What is for the driver, and what is for the machine above."""
    asked: list[LanEffect] = []
    notices: list[LanNotice] = []
    for effect in effects:
        if isinstance(effect, LanNotice):
            notices.append(effect)
        else:
            asked.append(effect)
    return asked, notices
