"""Distributes the keys of a sealed place: guests ask for missing keys, the voice sends them.

A missing key is most often in a missing fragment, which is asked for anyway. Where nothing is missing and a
message still cannot be read, the voice did not know this device: a second device, or one with expired
prekeys, or the epoch was a co-host's. Then the device sends the voice its prekeys as a request, which finds
its way up the tree and cannot be read by others.

The voice itself may lack keys of messages of co-hosts. A node that may speak asks the other such nodes that
it has links to, one after the other, and each sends its keys in a turn of its own.
"""

from __future__ import annotations

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, PeerId
from linnet.core.reasons import Reason
from linnet.groups.labels import Device
from linnet.identity.keys import device_id
from linnet.places.channel.packet import Modifier
from linnet.places.door import Waiting
from linnet.places.guest_requests import Asked, GuestRequests
from linnet.places.place_setup import Parts
from linnet.trace.records import Kind

REQUEST_KEYS = "_request_place_keys"
MESSAGE = "_message"
"""In a request to a node that is not the voice: a message that cannot be read."""
PATIENCE = 20.0
"""Seconds that the voice has to take a request for keys."""
LONGEST_PAUSE = 300.0
"""The longest pause, in seconds, between two requests: each pause is twice the last."""
APART = 5.0
"""The least seconds between two requests of one device that are answered."""
ASKERS = 4096


class KeyDistribution:
    """Asks for the keys of one place, and answers such requests."""

    def __init__(self, parts: Parts, guest_requests: GuestRequests) -> None:
        self._parts = parts
        self._guest_requests = guest_requests
        self._again_at: float | None = None
        self._pause = 0.0
        self._tries = 0
        self._answered: dict[Device, float] = {}

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        self._again_at = None if self._again_at is None else self._again_at - seconds
        for device in self._answered:
            self._answered[device] -= seconds

    # The guest.

    def ask_for_keys(self, now: float) -> None:
        """Ask for keys, if messages wait for one and nothing else is on its way to us: ask the voice or, if
        we may speak, the others who may."""
        parts = self._parts
        first = 2 * parts.config.replay_timeout
        speakers = self._speakers()
        if not parts.guest_keys.locked or (parts.is_voice and not speakers):
            self._again_at, self._pause = None, first
            return
        if self._again_at is None:
            self._again_at, self._pause = now + first, first
        # Missing fragments may bring the key; but not for ever.
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
            note = f"no keys can be asked for: {refused.detail}"
            self._parts.record(Kind.DROPPED, None, refused.reason, note)

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Ask soon, if a peer is back that may have the keys that we lack."""
        if self._again_at is not None and peer in self._speakers():
            self._pause = 2 * self._parts.config.replay_timeout
            self._again_at = min(self._again_at, now + self._pause)

    def _speakers(self) -> list[PeerId]:
        """If we may speak: return devices of others who may and have a link, the latest speaker first."""
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
        """Choose a peer and a message to ask for: the first waiting one of each term, at each peer that may
        have the key, in turn. None: the voice, whichever device that is."""
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
        """Learn the prekeys of the device at the door; return the device, if keys can be sealed to it."""
        enter = waiting.enter
        device = Device(enter.card.person, enter.card.device)
        if enter.prekeys is None or not self._parts.deed.policy.seals:
            return None
        self._parts.host_keys.learn(device, enter.prekeys)
        return device if self._parts.host_keys.readers.prekeys(device) else None

    def is_news(self, waiting: Waiting) -> bool:
        """Learn the prekeys of the device at the door; return whether they are new: it lacks keys then."""
        enter = waiting.enter
        device = Device(enter.card.person, enter.card.device)
        return enter.prekeys is not None and self._parts.host_keys.learn(device, enter.prekeys)

    def take_request(self, asked: Asked, now: float) -> Device | Reason:
        """Take a guest's request for keys; return the device to send them to, or the reason why not."""
        nym, peer = asked.request.nym, asked.request.device
        device = Device(nym, device_id(peer))
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
        """Return whether another person who may speak asks for a message that we can read."""
        named = [each.value for each in asked.packet.modifiers if each.name == MESSAGE]
        if self._parts.deed.rank(asked.request.nym) is None or not named or not named[0].isdigit():
            return False
        return self._parts.guest_keys.has_key(int(named[0]))
