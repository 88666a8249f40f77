"""Descriptors that one node passes on about others: checked once, and blamed on whoever is at fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.acquaintances import Acquaintances
from linnet.overlay.trackerless.descriptor import DescriptorCheck
from linnet.overlay.trackerless.messages import Descriptor
from linnet.overlay.trackerless.trust import Trust
from linnet.trace.records import Kind, Record

_OF_THE_TELLER = (Reason.BAD_SIGNATURE, Reason.MALFORMED)
"""Faults that everyone notices before passing something on."""
_OF_THE_NODE = (Reason.IMPLAUSIBLE_FILTER,)
"""Faults of what a node itself signed."""


class Hearsay:
    """Takes in what others tell of nodes."""

    def __init__(
        self,
        ours: PeerId,
        acquaintances: Acquaintances,
        trust: Trust,
        check: DescriptorCheck,
        dropped: Callable[[PeerId], None],
    ) -> None:
        self._ours = ours
        self._acquaintances = acquaintances
        self._trust = trust
        self._check = check
        self._dropped = dropped
        """Told of those who turned out to be at fault."""

    def named(
        self, teller: PeerId, descriptors: Sequence[Descriptor], most: int, now: float
    ) -> tuple[list[PeerId], list[Record]]:
        """The nodes that an answer names, each once, as far as their descriptors are good."""
        wrong: dict[Reason, int] = {}
        if len(descriptors) > most:
            wrong[Reason.TOO_MANY] = len(descriptors) - most
        named: dict[PeerId, None] = {}
        is_vouching = self._trust.is_vouching(teller, now)
        for descriptor in descriptors[:most]:
            node = descriptor.peer
            if node == self._ours or node in named or self._trust.is_banned(node, now):
                continue
            fault = self._fault(descriptor, now)
            if fault is not None:
                wrong[fault] = wrong.get(fault, 0) + 1
                self._blame(teller, node, fault, now)
            elif node in self._acquaintances:
                named[node] = None
                if is_vouching:
                    self._trust.vouched(node, teller, now)
        records = [Record(Kind.REJECTED, peer=teller, reason=why, events=n) for why, n in wrong.items()]
        return ([] if self._trust.is_banned(teller, now) else list(named)), records

    def _fault(self, descriptor: Descriptor, now: float) -> Reason | None:
        """Learn a descriptor, or say what is wrong with it. The very one that is known was checked before."""
        known = self._acquaintances.descriptor(descriptor.peer)
        if known is not None and known == descriptor and descriptor.expires >= now:
            return None
        try:
            self._check(descriptor, now)
        except RemoteError as error:
            return error.reason
        self._acquaintances.learn(descriptor, now)
        return None

    def _blame(self, teller: PeerId, node: PeerId, reason: Reason, now: float) -> None:
        culprit = teller if reason in _OF_THE_TELLER else node if reason in _OF_THE_NODE else None
        if culprit is not None:
            self._trust.offence(culprit, now)
            self._dropped(culprit)
