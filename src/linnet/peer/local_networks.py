"""The node's part for local networks: the policy is always there, presence only where it is configured."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from linnet.core.errors import Refused
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import Heard, Met, NetworkIs, NotMet
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.edge.announcement import CORE, node_secret
from linnet.edge.commands import AllowOnNetwork, ExamineLan, LanStatus
from linnet.edge.config import PresenceConfig
from linnet.edge.lan_policy import LanPolicy
from linnet.edge.notices import LanChange, LanChanged
from linnet.edge.presence import AnnounceDue, ExpireDue, MeetDue, Presence, RefusalsDue
from linnet.machine.commands import Done
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_input, on_timer

LanInput = NetworkIs | Heard | Met | NotMet


class LocalNetworks(Part):
    """Holds the switches of topics on networks, and tracks the devices on our local networks."""

    def __init__(
        self,
        config: PresenceConfig | None,
        context: Context,
        out: Outbox,
        announced: Callable[[bytes, float], None],
    ) -> None:
        """`announced` is called with each network and time at which we announce ourselves."""
        self._out = out
        self._announced = announced
        self.policy = LanPolicy(context.store.cells)
        self.presence: Presence | None = None
        if config is not None:
            secret = node_secret(context.key)
            self.presence = Presence(secret, self.policy, config, context.rng, context.entropy, out)

    @on_input(NetworkIs)
    def handle_network(self, event: NetworkIs, now: float) -> None:
        """Handle that this device joined or left networks."""
        self._handle(event, now)

    @on_input(Heard)
    def handle_datagram(self, event: Heard, now: float) -> None:
        """Handle an announcement that was heard on a network."""
        self._handle(event, now)

    @on_input(Met)
    def handle_meeting(self, event: Met, now: float) -> None:
        """Handle that a node on a network has proved its identity."""
        self._handle(event, now)

    @on_input(NotMet)
    def handle_no_meeting(self, event: NotMet, now: float) -> None:
        """Handle that a node on a network did not prove its identity."""
        self._handle(event, now)

    def _handle(self, event: LanInput, now: float) -> None:
        if self.presence is not None:
            self._tell(self.presence.handle(event, now))

    @on_timer(AnnounceDue)
    def announce(self, timer: AnnounceDue, now: float) -> None:
        """Announce ourselves on a network when our turn comes."""
        if self.presence is not None and self.presence.announce_node(timer.network, now):
            self._announced(timer.network, now)

    @on_timer(ExpireDue)
    def expire(self, timer: ExpireDue, now: float) -> None:
        """Drop the nodes on a network whose announcements have stopped."""
        if self.presence is not None:
            self._tell(self.presence.drop_expired(timer.network, now))

    @on_timer(MeetDue)
    def meet(self, timer: MeetDue, now: float) -> None:
        """Meet the nodes on a network whose time has come."""
        if self.presence is not None:
            self.presence.meet_nodes(timer.network, now)

    @on_timer(RefusalsDue)
    def end_refusals(self, timer: RefusalsDue, now: float) -> None:
        """Record the refusals that were counted in the window."""
        if self.presence is not None:
            self.presence.refusals.end_window()

    def is_here(self, peer: PeerId) -> bool:
        """Return whether a device is on some local network with us."""
        return self.presence is not None and bool(self.presence.networks_of(peer))

    def allowed_with(self, peer: PeerId) -> tuple[TopicId, ...]:
        """Return the topics that a device may learn of: those allowed on any network we share with it."""
        shared = () if self.presence is None else self.presence.networks_of(peer)
        return tuple(
            dict.fromkeys(topic for network in shared for topic in self.policy.allowed_topics(network))
        )

    @property
    def spoken(self) -> tuple[TopicId, ...]:
        """Topics that are allowed on any of this device's networks."""
        here = () if self.presence is None else self.presence.networks
        return tuple(
            dict.fromkeys(topic for network in here for topic in self.policy.allowed_topics(network))
        )

    @on_command(ExamineLan)
    def tell_status(self, request: int, command: ExamineLan, now: float) -> None:
        """Describe the state of local networks."""
        status = LanStatus((), is_enabled=False) if self.presence is None else self.presence.status()
        self._out.reply(request, status)

    @on_command(AllowOnNetwork)
    def set_switch(self, request: int, command: AllowOnNetwork, now: float) -> None:
        """Allow or deny a topic on a network."""
        topic, network, is_allowed = command.topic, command.network, command.is_allowed
        changes: list[LanChange] = []
        if self.presence is not None:
            changes = self.presence.set_switch(topic, network, is_allowed, now)
        elif is_allowed and network != CORE:
            raise Refused(Reason.UNSUPPORTED, "this node leaves local networks alone: [lan] enabled = false")
        else:
            switch = self.policy.allow_topic if is_allowed else self.policy.deny_topic
            switch(topic, network)
        self._out.committed.reply(request, Done())
        self._tell(changes)

    def _tell(self, changes: Iterable[LanChange]) -> None:
        """Notify other parts, even if no node came or left: other topics may be allowed now."""
        self._out.notify(LanChanged(tuple(changes)))
