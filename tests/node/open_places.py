"""A place of real nodes in the open world: a host, a co-host, a keeper, guests, and state that changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

from msgspec import Struct
from tests.node.lasting_reader import UNREACHED
from tests.node.place_world import BRISK
from tests.node.struck_world import SUBSCRIBES, Recorder, StruckWorld

from linnet.api.places import (
    AskToEnter,
    ExaminePlace,
    KnockedView,
    ListenToPlace,
    LostView,
    MessageView,
    OpenPlace,
    TakenBackView,
)
from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.addresses import parse_contact
from linnet.identity.text import Sort, from_text
from linnet.node.client import ControlClient
from linnet.places.commands import Admit, Announce, ChangePlace, Eject, Entered, Look
from linnet.places.deed import Policy
from linnet.sim.judges.places import Guest, Outsider, Word, judge_place
from linnet.sim.judges.verdict import Complaint, Rule
from linnet.sim.nemesis.faults import Cast

HOST, COHOST, KEEPER = "host", "cohost", "relay"
GUESTS = ("ann", "bob")
NEWCOMERS = ("dee",)
METHOD = "_message_nemesis"
OBJECTS = ("_colour", "_shape", "_size")
ENTERS = 10.0
"""Seconds that somebody waits at a door before it knocks again."""


class Speaking(Struct):
    """An announcement."""

    text: str
    speaker: str
    asked: float
    sets: tuple[tuple[str, str], ...]
    acked: float | None = None


class Heard(Struct):
    """What the application of a node has in the end."""

    line: dict[int, str] = {}
    handed: list[str] = []
    taken_back: int = 0
    lost: list[tuple[int, int]] = []
    closed: list[tuple[int, int]] = []
    """Of these, what is said to be from before the entry."""


class OpenPlaces(StruckWorld):
    """One place."""

    way = "places"

    def __init__(self, directory: Path, seed: int) -> None:
        super().__init__(directory, (HOST, COHOST, KEEPER, *GUESTS), NEWCOMERS, BRISK, seed)
        self.policy = self.luck.choice(tuple(Policy))
        self.place = TopicId(b"")
        self.words: list[Speaking] = []
        self.entered: dict[str, float] = {}
        """Since when somebody is known to be in."""
        self.out: dict[str, tuple[float, str]] = {}
        """Since when somebody is known to be out, and by whom that was said."""
        self._coming: set[str] = set()
        self._ejecting: set[str] = set()
        self._applications: dict[str, Recorder] = {}
        self._speaking = {name: threading.Lock() for name in (HOST, COHOST)}

    @property
    def cast(self) -> Cast:
        """See `StruckWorld.cast`."""
        return Cast(
            nodes=(HOST, COHOST, KEEPER, *GUESTS),
            anchors=(HOST, COHOST, KEEPER),
            spared=(HOST, GUESTS[0]) if self.seed % 2 else (COHOST, GUESTS[0]),
            fixed=(),
            newcomers=NEWCOMERS,
        )

    @property
    def acknowledged(self) -> int:
        """See `StruckWorld.acknowledged`."""
        return sum(word.acked is not None for word in self.words)

    def set_up(self) -> None:
        """The place is founded; all but the newcomers come in."""
        self.start_these((HOST, COHOST, KEEPER, *GUESTS))
        control = self.nodes[HOST].control
        self.place = control.ask(OpenPlace(self.policy, "open world")).place.place
        self.entered[HOST] = time.monotonic()
        self._listen(HOST).await_subscription(SUBSCRIBES)
        for name in (COHOST, *GUESTS):
            # Nobody but the host can let anybody in yet.
            self._enter(name, (HOST,))
            self._applications[name].await_subscription(SUBSCRIBES)
        cohosts, keepers = (self.nodes[COHOST].author,), (parse_contact(self.contact(KEEPER)),)
        control.ask(ChangePlace(self.place, cohosts=cohosts, keepers=keepers))
        for name in OBJECTS:
            self._say(HOST, ((name, "first"),))

    def act(self) -> None:
        """Somebody who may speak says a word."""
        speakers = self.living((HOST, COHOST))
        if speakers:
            self.call(partial(self._say, self.luck.choice(speakers)))

    def change(self) -> None:
        """An object changes, or a guest is put out."""
        speakers = self.living((HOST, COHOST))
        if not speakers:
            return
        speaker = self.luck.choice(speakers)
        guests = [name for name in GUESTS[1:] if name in self.entered and name not in self._ejecting]
        if guests and self.luck.random() < 0.2:
            name = self.luck.choice(guests)
            self._ejecting.add(name)
            self.call(partial(self._eject, speaker, name))
        else:
            sets = ((self.luck.choice(OBJECTS), f"value{len(self.words)}"),)
            self.call(partial(self._say, speaker, sets))

    def welcome(self, name: str) -> None:
        """Somebody comes in by whoever is there."""
        self._coming.add(name)
        self.insist(partial(self._enter, name))

    def finish(self) -> None:
        """All who may speak say a last word."""
        for name in self.living((HOST, COHOST)):
            self.call(partial(self._say, name))

    def _enter(self, name: str, by: tuple[str, ...] = (HOST, COHOST)) -> bool:
        """Come in by the address that somebody who is in knows now."""
        doors = [each for each in self.living(by) if each in self.entered and each != name]
        if not doors:
            return False
        address = self.nodes[doors[0]].control.ask(ExaminePlace(self.place)).address.text
        contacts = tuple(parse_contact(self.contact(each)) for each in doors)
        answer = self.nodes[name].control.ask(AskToEnter(address, contacts, patience=ENTERS))
        if not isinstance(answer, Entered):
            raise Refused(Reason.NOT_ALLOWED, f"{name} is not let in")
        self.entered[name] = time.monotonic()
        self._listen(name)
        return True

    def _listen(self, name: str) -> Recorder:
        def listen(reading: ControlClient) -> Iterator[object]:
            return reading.lines(ListenToPlace(0, self.place, since=1, name="application"), manual=True)

        def key(item: object) -> bytes | None:
            if isinstance(item, KnockedView) and self.nodes[name].person != item.person:
                self.call(partial(self._admit, name, item.person))
            return None

        reader = Recorder(self.nodes[name], "application", listen, key, Random(f"{self.seed} {name}"))
        self._applications[name] = reader
        return self.read(reader)

    def _admit(self, name: str, person: str) -> None:
        """Who did not hear that it was put out knocks again, and is not let in."""
        if person not in {self.nodes[each].person for each in self._ejecting}:
            self.nodes[name].control.ask(Admit(self.place, AuthorId(from_text(Sort.PERSON, person))))

    def _eject(self, speaker: str, name: str) -> None:
        self.nodes[speaker].control.ask(Eject(self.place, self.nodes[name].author))
        self.out[name] = (time.monotonic(), speaker)
        self.entered.pop(name, None)

    def _say(self, name: str, sets: tuple[tuple[str, str], ...] = ()) -> None:
        text = f"{name}:{len(self.words)}:{self.luck.getrandbits(32):08x}"
        # One word after the other: of two calls at once nobody can say which the node hears first.
        with self._speaking[name]:
            word = Speaking(text, name, time.monotonic(), sets)
            self.words.append(word)
            command = Announce(self.place, METHOD, text=text, state=dict(sets))
            self.nodes[name].control.ask(command)
            word.acked = time.monotonic()

    def judge(self) -> list[Complaint]:
        """See `StruckWorld.judge`."""
        words = [
            Word(
                word.text,
                word.speaker,
                word.asked,
                time.monotonic() if word.acked is None else word.acked,
                word.sets,
                is_owed=word.acked is not None and word.speaker not in self.dead,
            )
            for word in list(self.words)
        ]
        guests, complaints = [], []
        for name, since in list(self.entered.items()):
            # Whether somebody is out is not known where the word of it was not acknowledged.
            if name in self.dead or name in self._ejecting:
                continue
            try:
                looked = self.nodes[name].control.ask(Look(self.place))
            except UNREACHED as error:
                complaints.append(Complaint(Rule.STUCK, f"{name} cannot look at its place: {error}"))
                continue
            heard = self._heard(name)
            objects = tuple(
                (each.name, each.value.decode()) for each in looked.objects if each.name in OBJECTS
            )
            # Nothing is closed to whoever came in by a notice that stands, nor where all of the past is open.
            was_cut = heard.taken_back > 0 and self.policy.restricts and name not in (HOST, COHOST)
            guests.append(
                Guest(
                    name,
                    since,
                    tuple(sorted(heard.line.items())),
                    tuple(heard.handed),
                    heard.taken_back,
                    tuple(heard.lost),
                    objects,
                    tuple(heard.closed) if was_cut else (),
                )
            )
        complaints += [
            Complaint(Rule.STUCK, f"{name} never came in")
            for name in self._coming
            if name not in self.entered
        ]
        # Where everyone may come in, who was put out may come in again.
        out = self.out if self.policy.admits else {}
        outsiders = [
            Outsider(name, since, by, tuple(self._heard(name).handed)) for name, (since, by) in out.items()
        ]
        return complaints + judge_place(words, guests, outsiders)

    def _heard(self, name: str) -> Heard:
        heard = Heard()
        for each in list(self._applications[name].taken):
            match each.item:
                case MessageView(message=number, method=method, text=str(text), nym=None) if method == METHOD:
                    heard.line[number] = text
                    heard.handed.append(text)
                case LostView(_, first, last, reason):
                    heard.lost.append((first, last))
                    if reason == Reason.NOT_ALLOWED:
                        heard.closed.append((first, last))
                case TakenBackView(_, messages):
                    heard.taken_back += len(messages)
                    for number in messages:
                        heard.line.pop(number, None)
                case _:
                    pass
        return heard
