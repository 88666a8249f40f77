"""The account of what a node has revealed of its interests, and the user's commands about it."""

from __future__ import annotations

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.edge.notices import ServiceAsked
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_notice
from linnet.overlay.gossip.commands import (
    NO_PART,
    ExamineOverlay,
    ExaminePrivacy,
    ListTrust,
    SetTrust,
    Trusted,
    TrustIs,
)
from linnet.overlay.gossip.part import GossipOverlay
from linnet.overlay.gossip.privacy_budget import PrivacyBudget


class Account(Part):
    """The account of a node; an overlay without trackers enters filters and intersections itself."""

    def __init__(self, gossip: GossipOverlay | None, cells: Cells, out: Outbox) -> None:
        self._gossip = gossip
        self._out = out
        self.budget = PrivacyBudget(cells) if gossip is None else gossip.peers.budget

    @on_command(SetTrust)
    def set_trust(self, request: int, command: SetTrust, now: float) -> None:
        """Set or remove the user's trust in a device; answered once it is written."""
        trust = self._overlay.peers.trust
        if command.value is not None:
            trust.set_trust(command.peer, command.value)
        elif not trust.remove_trust(command.peer):
            raise Refused(Reason.UNKNOWN, "no trust was set in this device")
        self._out.committed.reply(request, self._trust_is())

    @on_command(ListTrust)
    def list_trust(self, request: int, command: ListTrust, now: float) -> None:
        """List the devices that the user trusts."""
        self._out.reply(request, self._trust_is())

    @on_command(ExaminePrivacy)
    def examine_privacy(self, request: int, command: ExaminePrivacy, now: float) -> None:
        """Report what others were told. Every node can: proxies and local networks learn things too."""
        self._out.reply(request, self.budget.report())

    @on_command(ExamineOverlay)
    def examine_overlay(self, request: int, command: ExamineOverlay, now: float) -> None:
        """Report the state of the overlay without trackers."""
        self._out.reply(request, self._overlay.status(now))

    @on_notice(ServiceAsked)
    def note_service(self, notice: ServiceAsked, now: float) -> None:
        """Enter the topics that a proxy knows from now on."""
        for topic in notice.topics:
            self.budget.enter_service(notice.proxy, topic, now)

    def stop(self, now: float) -> None:
        """Write the account to the store."""
        self.budget.flush()

    @property
    def _overlay(self) -> GossipOverlay:
        if self._gossip is None:
            raise Refused(Reason.UNSUPPORTED, NO_PART)
        return self._gossip

    def _trust_is(self) -> TrustIs:
        """Return the trusted devices, the most trusted first."""
        known = sorted(self._overlay.peers.trust.known.items(), key=lambda each: (-each[1], each[0]))
        return TrustIs(tuple(Trusted(*each) for each in known))
