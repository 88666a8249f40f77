"""Keys of a sealed place on their way: guests ask for what they lack, the voice tells.

A key that did not come is most often in a fragment that did not come, and that is asked for anyway. Where
nothing is missing and a message still cannot be read, this device was not known to the voice: a second
device, or one whose prekeys have ended, or a co-host's epoch. Then it gives the voice its prekeys as a
request, which finds its way up the tree and cannot be read by others.

The voice itself may lack keys of what others said who may speak. Whoever may speak asks those of them to whom
there is a link, one after the other, and each tells what it has in a turn of its own.
"""

from __future__ import annotations

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, PeerId
from linnet.core.reasons import Reason
from linnet.groups.ids import Device
from linnet.identity.keys import device_id
from linnet.machine.outbox import Outbox
from linnet.places.channel.packet import Modifier
from linnet.places.door import Waiting
from linnet.places.guest_requests import Asked, GuestRequests
from linnet.places.place_setup import Parts
from linnet.trace.records import Kind, Record

REQUEST_KEYS = "_request_place_keys"
MESSAGE = "_message"
"""In a request to somebody who is not the voice: a message that cannot be read."""
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
        self._tries = 0
        self._answered: dict[Device, float] = {}

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        self._again_at = None if self._again_at is None else self._again_at - seconds
        for device in self._answered:
            self._answered[device] -= seconds

    # The guest.

    def ask_for_keys(self, now: float) -> None:
        """Ask for keys, if something waits for one and nothing else is on its way to us: the voice, or those
        who may speak as we may."""
        parts = self._parts
        first = 2 * parts.config.replay_timeout
        speakers = self._speakers()
        if not parts.guest_keys.locked or (parts.is_voice and not speakers):
            self._again_at, self._pause = None, first
            return
        if self._again_at is None:
            self._again_at, self._pause = now + first, first
        # What is missing may bring the key; but not for ever.
        if now < self._again_at + (LONGEST_PAUSE if parts.fragment_repair.count else 0.0):
            return
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._again_at = now + self._pause
        to, about = self._whom(speakers)
        try:
            self._guest_requests.say(
                None, REQUEST_KEYS, about, parts.guest_keys.prekeys(now), PATIENCE, now, to
            )
        except Refused as refused:
            note = f"no keys can be asked for: {refused.detail}"[:200]
            self._out.record(Record(Kind.DROPPED, parts.id, reason=refused.reason, note=note))

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Ask soon, if somebody is back who may have the keys that we lack."""
        if self._again_at is not None and peer in self._speakers():
            self._pause = 2 * self._parts.config.replay_timeout
            self._again_at = min(self._again_at, now + self._pause)

    def _speakers(self) -> list[PeerId]:
        """If we may speak: devices of others who may, and have a link to us; who spoke last first."""
        parts = self._parts
        if not parts.may_speak or not parts.guest_keys.locked:
            return []
        found: dict[PeerId, AuthorId] = {}
        for opening in (segment.opening for segment in reversed(parts.terms.line)):
            card = parts.context.cards.find(opening.person, opening.device)
            if card is not None:
                found[card.device_key] = opening.person
        for peer in parts.context.links:
            nym = parts.tree.downstreams.get(peer) or parts.relay_filter_up.nym(peer)
            if nym is not None:
                found.setdefault(peer, nym)
        found.pop(parts.context.peer, None)
        links, deed = parts.context.links, parts.deed
        return [peer for peer, nym in found.items() if peer in links and deed.rank(nym) is not None]

    def _whom(self, speakers: list[PeerId]) -> tuple[PeerId | None, tuple[Modifier, ...]]:
        """Whom to ask for which message, in turn: of each term the first that waits, of each who may have the
        key. None: the voice, whoever that is."""
        if not speakers:
            return None, ()
        parts = self._parts
        waiting: dict[int, int] = {}
        for message in sorted(parts.guest_keys.locked):
            row = parts.fragments.get_at(message, 0)
            waiting.setdefault(0 if row is None else row.term, message)
        pairs = [(peer, message) for message in waiting.values() for peer in speakers]
        peer, message = pairs[self._tries % len(pairs)]
        self._tries += 1
        return peer, (Modifier(":", MESSAGE, str(message).encode()),)

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
        if not self._parts.is_voice and not self._parts.may_speak:
            return Reason.STALE
        if not self._parts.is_voice and not self._can_help(asked):
            return Reason.STALE if self._parts.deed.rank(nym) is None else Reason.KEY_MISSING
        if now < self._answered.get(device, now - APART) + APART:
            return Reason.FLOODING
        self._answered.pop(device, None)
        self._answered[device] = now
        if len(self._answered) > ASKERS:
            del self._answered[next(iter(self._answered))]
        self._parts.host_keys.learn(device, asked.packet.body)
        known = self._parts.host_keys.readers.prekeys(device)
        return device if known else Reason.MISSING_PREKEYS

    def _can_help(self, asked: Asked) -> bool:
        """Whether somebody else who may speak asks for what we can read: that is worth a turn of ours."""
        named = [each.value for each in asked.packet.modifiers if each.name == MESSAGE]
        if self._parts.deed.rank(asked.request.nym) is None or not named or not named[0].isdigit():
            return False
        return self._parts.guest_keys.has_key(int(named[0]))


def device_of(nym: AuthorId, peer: PeerId) -> Device:
    """A device as keys are sealed to it."""
    return Device(nym, device_id(peer))
