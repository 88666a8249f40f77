"""Checking the signature of a descriptor once for all nodes of a simulation, instead of once for each."""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.overlay.trackerless.descriptor import check_signature
from linnet.overlay.trackerless.messages import Descriptor

REMEMBERED = 262_144
"""Results that are kept: above the descriptors that are about at once in any scenario of ours."""


class RememberingSignatureCheck:
    """`check_signature` with its results remembered by the whole value; one for all nodes."""

    __slots__ = ("_results", "checked")

    def __init__(self) -> None:
        self._results: dict[Descriptor, RemoteError | None] = {}
        self.checked = 0
        """Signatures that were really checked."""

    def __call__(self, descriptor: Descriptor) -> None:
        """See `check_signature`; raises `RemoteError` alike."""
        if descriptor not in self._results:
            if len(self._results) >= REMEMBERED:
                del self._results[next(iter(self._results))]
            self._results[descriptor] = self._check(descriptor)
        failure = self._results[descriptor]
        if failure is not None:
            raise RemoteError(failure.reason, failure.detail)

    def _check(self, descriptor: Descriptor) -> RemoteError | None:
        self.checked += 1
        try:
            check_signature(descriptor)
        except RemoteError as error:
            return error
        return None
