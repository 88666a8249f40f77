"""What a node has told others of its interests, kept in one account, and what its user asks about it."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import Send
from linnet.core.stores import Cells
from linnet.edge.messages import Serve
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command
from linnet.overlay.trackerless.asking import answer
from linnet.overlay.trackerless.commands import ExamineOverlay, ExaminePrivacy, ListTrust, SetTrust
from linnet.overlay.trackerless.privacy import Budget
from linnet.overlay.trackerless.trackerless import Trackerless
from linnet.streams.stream_names import topic_of


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

    def served(self, effects: Iterable[object], now: float) -> None:
        """What is sent to proxies: from when they are asked to serve a stream they know that we want it."""
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Serve):
                for wanted in effect.message.streams:
                    self.budget.served(effect.peer, topic_of(wanted.stream), now)

    def stop(self, now: float) -> None:
        """The node goes down."""
        self.budget.flush()
