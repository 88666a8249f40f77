"""What a node has told others of its interests, kept in one account, and what its user asks about it."""

from __future__ import annotations

from linnet.core.stores import Cells
from linnet.edge.notices import ServiceAsked
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_notice
from linnet.overlay.trackerless.asking import answer
from linnet.overlay.trackerless.commands import ExamineOverlay, ExaminePrivacy, ListTrust, SetTrust
from linnet.overlay.trackerless.privacy import Budget
from linnet.overlay.trackerless.trackerless import Trackerless


class Account(Part):
    """The account, which a node without trackers enters filters and intersections into by itself."""

    def __init__(self, trackerless: Trackerless | None, cells: Cells, out: Outbox) -> None:
        self._trackerless = trackerless
        self._out = out
        self.budget = Budget(cells) if trackerless is None else trackerless.gossip.budget

    @on_command(SetTrust)
    def set_trust(self, request: int, command: SetTrust, now: float) -> None:
        """Trust a device more or less, from when it is written down."""
        self._out.committed.reply(request, answer(self._trackerless, self.budget, command, now))

    @on_command(ListTrust)
    def list_trust(self, request: int, command: ListTrust, now: float) -> None:
        """Say whom the user trusts."""
        self._out.reply(request, answer(self._trackerless, self.budget, command, now))

    @on_command(ExaminePrivacy)
    def examine_privacy(self, request: int, command: ExaminePrivacy, now: float) -> None:
        """Say what others were told."""
        self._out.reply(request, answer(self._trackerless, self.budget, command, now))

    @on_command(ExamineOverlay)
    def examine_overlay(self, request: int, command: ExamineOverlay, now: float) -> None:
        """Say how the overlay without trackers stands."""
        self._out.reply(request, answer(self._trackerless, self.budget, command, now))

    @on_notice(ServiceAsked)
    def note_service(self, notice: ServiceAsked, now: float) -> None:
        """Enter what a proxy knows from now on."""
        for topic in notice.topics:
            self.budget.served(notice.proxy, topic, now)

    def stop(self, now: float) -> None:
        """The node goes down."""
        self.budget.flush()
