"""An owner and readers of a sealed stream as bare states: no network, no store."""

from __future__ import annotations

from tests.delivery.voices import TOPIC
from tests.streams.stage import NOW

from linnet.groups.labels import Device
from linnet.sim.seeded_random import SeededEntropy
from linnet.streams.sealed import owner, reader
from linnet.streams.sealed.access_request import Request, parse_request, request_text
from linnet.streams.sealed.owner import Announcement, Place, decode_announcement
from linnet.streams.sealed.stream_keys import EpochKey, find
from linnet.streams.sealed.vault import Reading
from linnet.testing.identities import known_identity

Told = tuple[int, Announcement]
"""An announcement with its number."""


def device(name: str) -> Device:
    card = known_identity(name).card
    return Device(card.person, card.device)


OWNER = device("ann")


class Hall:
    """Ann seals a stream; whoever asks is a reader's state by name."""

    def __init__(self, seed: int = 1) -> None:
        self.entropy = SeededEntropy(seed, "hall")
        self.owning = owner.start(OWNER.device, self.entropy)
        self.number = 0
        self.now = NOW
        self.readings: dict[str, Reading] = {}

    @property
    def place(self) -> Place:
        return Place(TOPIC, OWNER, self.number)

    def ask(self, name: str) -> Request:
        """A request, by way of its text."""
        self.readings[name] = made = reader.ask(self.readings.get(name), self.entropy, self.now)
        identity = known_identity(name)
        line = request_text(TOPIC, identity.card, made.accesses[0].prekeys.bundle, identity.device)
        return parse_request(line, self.now)

    def allow(self, name: str, from_now: bool = False) -> Told:
        return self.grant(self.ask(name), from_now)

    def grant(self, request: Request, from_now: bool = False) -> Told:
        return self._out(owner.allow(self.owning, self.place, request, from_now, self.entropy, self.now))

    def turn(self) -> Told:
        return self._out(owner.turn(self.owning, self.place, self.entropy, self.now))

    def put_out(self, name: str) -> Told:
        self.owning, _ = owner.without(self.owning, lambda each: each == device(name))
        return self.turn()

    def hear(self, name: str, *told: Told) -> None:
        for number, announcement in told:
            self.readings[name] = reader.take(
                self.readings[name], Place(TOPIC, OWNER, number), announcement, device(name), self.now
            )

    def holds(self, name: str) -> list[int]:
        """The epochs that a reader has the right key of."""
        keys = self.readings[name].keys
        assert all(self.key(known.epoch).key == known.key for known in keys)
        return [known.epoch for known in keys]

    def key(self, epoch: int) -> EpochKey:
        found = find(self.owning.keys, OWNER.device, epoch)
        assert found is not None
        return found

    def _out(self, step: owner.Step) -> Told:
        self.owning, body = step
        number = self.number
        self.number += 7  # others are said between
        return number, decode_announcement(body)
