"""Keys of a sealed place on their way: guests ask for what they lack, the voice tells.

A key that did not come is most often in a fragment that did not come, and that is asked for anyway. Where
nothing is missing and a message still cannot be read, this device was not known to the voice: a second
device, or one whose prekeys have ended, or a co-host's epoch. Then it gives the voice its prekeys as a
request, which finds its way up the tree and cannot be read by others.
"""

from __future__ import annotations

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, PeerId
from linnet.core.reasons import Reason
from linnet.groups.ids import Device
from linnet.identity.keys import device_id
from linnet.machine.outbox import Outbox
from linnet.places.door import Waiting
from linnet.places.guest_requests import Asked, GuestRequests
from linnet.places.place_setup import Parts
from linnet.trace.records import Kind, Record

REQUEST_KEYS = "_request_place_keys"
PATIENCE = 20.0
"""Seconds that the voice has to take a request for keys."""
LONGEST_PAUSE = 300.0
"""Seconds between two requests, at most: each time it is twice as long."""
APART = 5.0
"""Seconds between two requests of one device that the voice answers."""
ASKERS = 4096


class KeyDistribution:
    """Requests for the keys of one place, and what becomes of them."""

    def __init__(self, parts: Parts, guest_requests: GuestRequests, out: Outbox) -> None:
        self._parts = parts
        self._guest_requests = guest_requests
        self._out = out
        self._again_at: float | None = None
        self._pause = 0.0
        self._answered: dict[Device, float] = {}

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        self._again_at = None if self._again_at is None else self._again_at - seconds
        for device in self._answered:
            self._answered[device] -= seconds

    # The guest.

    def ask_for_keys(self, now: float) -> None:
        """Ask the voice for keys, if something waits for one and nothing else is on its way to us."""
        parts = self._parts
        first = 2 * parts.config.replay_timeout
        if not parts.guest_keys.locked or parts.is_voice:
            self._again_at, self._pause = None, first
            return
        if self._again_at is None:
            self._again_at, self._pause = now + first, first
        # What is missing may bring the key; but not for ever.
        if now < self._again_at + (LONGEST_PAUSE if parts.fragment_repair.count else 0.0):
            return
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._again_at = now + self._pause
        try:
            self._guest_requests.say(None, REQUEST_KEYS, (), parts.guest_keys.prekeys(now), PATIENCE, now)
        except Refused as refused:
            note = f"no keys can be asked for: {refused.detail}"[:200]
            self._out.record(Record(Kind.DROPPED, parts.id, reason=refused.reason, note=note))

    # The voice.

    def learn_device(self, waiting: Waiting) -> Device | None:
        """Learn the prekeys of the device at the door; the device, if keys can be sealed to it."""
        enter = waiting.enter
        device = Device(enter.card.person, enter.card.device)
        if enter.prekeys is None or not self._parts.deed.policy.seals:
            return None
        self._parts.host_keys.learn(device, enter.prekeys)
        return device if self._parts.host_keys.readers.prekeys(device) else None

    def is_news(self, waiting: Waiting) -> bool:
        """Whether the device at the door gave other prekeys than it had: then it lacks the keys, too."""
        enter = waiting.enter
        device = Device(enter.card.person, enter.card.device)
        return enter.prekeys is not None and self._parts.host_keys.learn(device, enter.prekeys)

    def take_request(self, asked: Asked, now: float) -> Device | Reason:
        """Take a guest's request for keys: the device that is to be told them, or why it is not."""
        nym, peer = asked.request.nym, asked.request.device
        device = device_of(nym, peer)
        if not self._parts.deed.policy.seals:
            return Reason.UNSUPPORTED
        if now < self._answered.get(device, now - APART) + APART:
            return Reason.FLOODING
        self._answered.pop(device, None)
        self._answered[device] = now
        if len(self._answered) > ASKERS:
            del self._answered[next(iter(self._answered))]
        self._parts.host_keys.learn(device, asked.packet.body)
        known = self._parts.host_keys.readers.prekeys(device)
        return device if known else Reason.MISSING_PREKEYS


def device_of(nym: AuthorId, peer: PeerId) -> Device:
    """A device as keys are sealed to it."""
    return Device(nym, device_id(peer))
