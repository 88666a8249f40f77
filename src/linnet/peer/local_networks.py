"""Local networks, as the node machine has them: the policy always, presence where it is configured."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from linnet.core.errors import Refused
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import Heard, Met, NetworkIs, NotMet
from linnet.core.reasons import Reason
from linnet.delivery.commands import Done
from linnet.delivery.context import Context
from linnet.edge.commands import AllowOnNetwork, ExamineLan, LanStatus
from linnet.edge.config import PresenceConfig
from linnet.edge.lan_keys import CORE, node_secret
from linnet.edge.notices import LanChange, LanChanged
from linnet.edge.policy import LanPolicy
from linnet.edge.presence import AnnounceDue, ExpireDue, MeetDue, Presence, RefusalsDue
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_input, on_timer

LanInput = NetworkIs | Heard | Met | NotMet


class LocalNetworks(Part):
    """The switches of topics on networks, and who is on those that this device is on."""

    def __init__(
        self,
        config: PresenceConfig | None,
        context: Context,
        out: Outbox,
        announced: Callable[[bytes, float], None],
    ) -> None:
        """`announced` is called for each network that is told that we are there, with the time."""
        self._out = out
        self._announced = announced
        self.policy = LanPolicy(context.store.cells)
        self.presence: Presence | None = None
        if config is not None:
            secret = node_secret(context.key)
            self.presence = Presence(secret, self.policy, config, context.rng, context.entropy, out)

    @on_input(NetworkIs)
    def handle_network(self, event: NetworkIs, now: float) -> None:
        """This device came to a network, or left it."""
        self._handle(event, now)

    @on_input(Heard)
    def handle_datagram(self, event: Heard, now: float) -> None:
        """Somebody on a network says that it is there."""
        self._handle(event, now)

    @on_input(Met)
    def handle_meeting(self, event: Met, now: float) -> None:
        """Somebody on a network has shown who it is."""
        self._handle(event, now)

    @on_input(NotMet)
    def handle_no_meeting(self, event: NotMet, now: float) -> None:
        """Somebody on a network did not show who it is."""
        self._handle(event, now)

    def _handle(self, event: LanInput, now: float) -> None:
        if self.presence is not None:
            self._tell(self.presence.handle(event, now))

    @on_timer(AnnounceDue)
    def announce(self, timer: AnnounceDue, now: float) -> None:
        """It is our turn on a network."""
        if self.presence is not None and self.presence.announce(timer.network, now):
            self._announced(timer.network, now)

    @on_timer(ExpireDue)
    def expire(self, timer: ExpireDue, now: float) -> None:
        """Somebody on a network may be gone."""
        if self.presence is not None:
            self._tell(self.presence.expire(timer.network, now))

    @on_timer(MeetDue)
    def meet(self, timer: MeetDue, now: float) -> None:
        """Somebody on a network is to be met."""
        if self.presence is not None:
            self.presence.meet(timer.network, now)

    @on_timer(RefusalsDue)
    def end_refusals(self, timer: RefusalsDue, now: float) -> None:
        """What was refused lately is counted."""
        if self.presence is not None:
            self.presence.end_refusals()

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

    @on_command(ExamineLan)
    def tell_status(self, request: int, command: ExamineLan, now: float) -> None:
        """How things stand on local networks."""
        status = LanStatus((), is_enabled=False) if self.presence is None else self.presence.status()
        self._out.reply(request, status)

    @on_command(AllowOnNetwork)
    def set_switch(self, request: int, command: AllowOnNetwork, now: float) -> None:
        """Let a topic be spoken of on a network, or not."""
        topic, network, is_allowed = command.topic, command.network, command.is_allowed
        changes: list[LanChange] = []
        if self.presence is not None:
            changes = self.presence.allow(topic, network, is_allowed, now)
        elif is_allowed and network != CORE:
            raise Refused(Reason.UNSUPPORTED, "this node leaves local networks alone: [lan] enabled = false")
        else:
            switch = self.policy.allow if is_allowed else self.policy.deny
            switch(topic, network)
        self._out.committed.reply(request, Done())
        self._tell(changes)

    def _tell(self, changes: Iterable[LanChange]) -> None:
        """Also if nobody came or left: other topics may be spoken of now."""
        self._out.notify(LanChanged(tuple(changes)))
