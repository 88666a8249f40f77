"""A place in the open world: a host, a co-host, a keeper, guests who come and go, and state that changes."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.effects import Deliver
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed
from linnet.identity.cards import revoke
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Handed, Start
from linnet.places.channel.packet import ASSIGN, Modifier
from linnet.places.commands import (
    Admit,
    Announce,
    Announced,
    Eject,
    Entered,
    EnterPlace,
    HostPlace,
    Look,
    ObjectsAre,
    PlaceIs,
    WatchPlace,
)
from linnet.places.deed import Policy
from linnet.places.items import Body, Knocked, Lost, Said, TakenBack
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.sim.judges.places import Guest, Outsider, Word, judge_place
from linnet.sim.judges.verdict import Complaint, Rule
from linnet.sim.named_nodes import SetupFailed
from linnet.sim.nemesis.faults import Cast
from linnet.sim.nemesis.open_world import OpenWorld, person_key, pick, second_device
from linnet.streams.commands import Revoke
from linnet.trace.sink import TraceSink

HOST, COHOST, KEEPER, THIEF = "host", "cohost", "keeper", "cohost-phone"
GUESTS = ("ann", "bob", "cid")
NEWCOMERS = ("dee", "eve")
_METHOD = "_message_nemesis"
_OBJECTS = ("_colour", "_shape", "_size")


class Speaking(Struct):
    """An announcement that waits for its acknowledgement, or has it."""

    text: str
    speaker: str
    asked: float
    request: int
    sets: tuple[tuple[str, str], ...]
    acked: float | None = None


class Heard(Struct):
    """What the application of a node has."""

    line: dict[int, str] = {}
    handed: list[str] = []
    taken_back: int = 0
    lost: list[tuple[int, int]] = []
    closed: list[tuple[int, int]] = []
    """Of these, what is said to be from before the entry."""


class PlacesWay(OpenWorld):
    """One place."""

    way = "places"

    def __init__(self, seed: int, trace: TraceSink | None = None) -> None:
        super().__init__(seed, trace)
        self.place = TopicId(b"")
        self.policy = self.luck.choice(tuple(Policy))
        self.words: list[Speaking] = []
        self.heard: dict[str, Heard] = {}
        self.entered: dict[str, float] = {}
        """Since when somebody is known to be in."""
        self.out: dict[str, tuple[float, str]] = {}
        """Since when somebody is known to be out, and by whom that was said."""
        self._entering: dict[str, int] = {}
        self._ejecting: dict[str, tuple[int, str]] = {}
        self._pieces: dict[tuple[str, int], bytearray] = {}
        self._handed: dict[str, int] = {}
        self.add((HOST, COHOST, KEEPER, *GUESTS, THIEF, *NEWCOMERS))

    @property
    def cast(self) -> Cast:
        """See `OpenWorld.cast`."""
        return Cast(
            nodes=(HOST, COHOST, KEEPER, *GUESTS),
            anchors=(HOST, COHOST, KEEPER),
            spared=(HOST, GUESTS[0]) if self.seed % 2 else (COHOST, GUESTS[0]),
            fixed=(),
            newcomers=NEWCOMERS,
            thief=THIEF,
        )

    def identity(self, name: str) -> Identity:
        """The thief has a device of the co-host."""
        return second_device(self.seed, COHOST, name) if name == THIEF else super().identity(name)

    def configured(self, name: str) -> PeerConfig:
        """The keeper is a relay that is open to all."""
        relay = RelayConfig(policy=RelayPolicy.OPEN) if name == KEEPER else None
        return PeerConfig(listens=(self.address(name),), relay=relay)

    def set_up(self) -> None:
        """The place is founded; all but the newcomers come in."""
        for name in self.identities:
            self.ask(name, Start())
        self.run(1.0)
        self.place = self.obtain(HOST, HostPlace(policy=self.policy), PlaceIs).deed.place
        self.obtain(HOST, Announce(self.place, "_notice_place_open"), Announced)
        self._watch(HOST)
        self.run(1.0)
        self.entered[HOST] = self.network.elapsed
        for name in (COHOST, *GUESTS):
            self._enter(name)
            self.run(2.0)
        self.run(5.0)
        person = self.identities[COHOST].author
        keepers = (self.contact(KEEPER),)
        self.obtain(HOST, HostPlace(self.place, cohosts=(person,), keepers=keepers), PlaceIs)
        self.run(10.0)
        for name in (COHOST, *GUESTS):
            if name not in self.entered:
                raise SetupFailed(
                    f"{name} did not come in: {self.obtained(self._entering[name])}, seed {self.seed}"
                )
        for name in _OBJECTS:
            self._say(HOST, ((name, "first"),))
        self.run(5.0)

    def act(self) -> None:
        """Somebody who may speak says a word."""
        speaker = pick(self.luck, self.living((HOST, COHOST)))
        if speaker is not None:
            self._say(speaker)

    def change(self) -> None:
        """An object changes, or a guest is put out."""
        speaker = pick(self.luck, self.living((HOST, COHOST)))
        if speaker is None:
            return
        guests = [name for name in GUESTS[1:] if name in self.entered and name not in self._ejecting]
        if guests and self.luck.random() < 0.2:
            name = self.luck.choice(guests)
            request = self.ask(speaker, Eject(self.place, self.identities[name].author))
            self._ejecting[name] = (request, speaker)
        else:
            self._say(speaker, ((self.luck.choice(_OBJECTS), f"value{len(self.words)}"),))

    def welcome(self, name: str) -> None:
        """Somebody comes in by whoever is there."""
        self._enter(name)

    def revoke(self, name: str) -> None:
        """The co-host says that a device is theirs no longer; that device speaks in the co-host's name."""
        device = self.identities[name].card.device
        word = revoke(person_key(self.seed, COHOST), device, int(self.network.now))
        for each in self.living((HOST, COHOST, *GUESTS)):
            self.ask(each, Revoke(word))
        if self.is_up(name):
            self.ask(name, EnterPlace(self.place, (self.contact(HOST),)))
            self._say(name)

    def _enter(self, name: str) -> None:
        contacts = tuple(
            self.contact(each)
            for each in (HOST, COHOST)
            if each == HOST or (COHOST in self.entered and name != COHOST)
        )
        self._entering[name] = self.ask(name, EnterPlace(self.place, contacts))

    def resume(self, name: str) -> None:
        """Applications watch from the beginning, anew."""
        self._handed.pop(name, None)
        before = self._of(name)
        self.heard[name] = Heard(handed=before.handed, taken_back=before.taken_back)
        for key in [key for key in self._pieces if key[0] == name]:
            del self._pieces[key]
        if name in self.entered:
            self._watch(name)
        elif name in self._entering and name in NEWCOMERS:
            self._enter(name)

    def finish(self) -> None:
        """All who may speak say a last word; newcomers who could not come in try again."""
        self.note()
        for name in self.living(NEWCOMERS):
            if name in self._entering and name not in self.entered:
                self._enter(name)
        for name in self.living((HOST, COHOST)):
            self._say(name)

    def _watch(self, name: str) -> None:
        self.ask(name, WatchPlace(1, self.place, since=1))

    def _say(self, name: str, sets: tuple[tuple[str, str], ...] = ()) -> None:
        text = f"{name}:{len(self.words)}"
        modifiers = tuple(Modifier(ASSIGN, key, value.encode()) for key, value in sets)
        request = self.ask(name, Announce(self.place, _METHOD, modifiers, text.encode()))
        self.words.append(Speaking(text, name, self.network.elapsed, request, sets))

    def _of(self, name: str) -> Heard:
        return self.heard.setdefault(name, Heard())

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        """What an application does: put together what it is handed, and say that it has."""
        self.note()
        name = self.names[peer]
        heard = self._of(name)
        for item in effect.items:
            match item:
                case Said(_, message, None, _, method) if method == _METHOD:
                    self._pieces[name, message] = bytearray()
                case Body(_, message, None, _, data, last) if (name, message) in self._pieces:
                    self._pieces[name, message] += data
                    if last:
                        text = self._pieces.pop((name, message)).decode()
                        heard.line[message] = text
                        heard.handed.append(text)
                case Knocked(_, nym) if not self._is_put_out(nym):
                    self.ask(name, Admit(self.place, nym))
                case Lost(_, first, last, reason):
                    heard.lost.append((first, last))
                    if reason is Reason.NOT_ALLOWED:
                        heard.closed.append((first, last))
                case TakenBack(_, messages):
                    heard.taken_back += len(messages)
                    for message in messages:
                        heard.line.pop(message, None)
                case _:
                    pass
        self._handed[name] = self._handed.get(name, 0) + len(effect.items)
        if self._handed[name] >= 8:
            self.network.ask(peer, Consumed(effect.subscription, self._handed.pop(name)))

    def _is_put_out(self, nym: AuthorId) -> bool:
        """Who did not hear that it was put out knocks again; whoever put it out does not let it in."""
        return any(self.identities[name].author == nym for name in self._ejecting)

    def note(self) -> None:
        """Look which answers have come."""
        answers = self.network.answers
        for word in self.words:
            if word.acked is None and isinstance(answers.get(word.request), Announced):
                word.acked = self.network.elapsed
        for name, request in list(self._entering.items()):
            if name not in self.entered and isinstance(answers.get(request), Entered):
                self.entered[name] = self.network.elapsed
                self._watch(name)
        for name, (request, by) in list(self._ejecting.items()):
            if name not in self.out and isinstance(answers.get(request), Announced):
                self.out[name] = (self.network.elapsed, by)
                self.entered.pop(name, None)

    def judge(self) -> list[Complaint]:
        """See `OpenWorld.judge`."""
        self.note()
        words = [
            Word(
                word.text,
                word.speaker,
                word.asked,
                self.network.elapsed if word.acked is None else word.acked,
                word.sets,
                is_owed=word.acked is not None and word.speaker not in (*self.dead, THIEF),
            )
            for word in self.words
        ]
        guests, complaints = [], []
        for name, since in self.entered.items():
            # Whether somebody is out is not known where the word of it was not acknowledged.
            if not self.is_up(name) or name in self._ejecting:
                continue
            looked = self.answered(self.ask(name, Look(self.place, "")))
            if not isinstance(looked, ObjectsAre):
                complaints.append(Complaint(Rule.STUCK, f"{name} cannot look at its place: {looked}"))
                continue
            heard = self._of(name)
            objects = tuple((key, value.decode()) for key, value in looked.objects if key in _OBJECTS)
            line = tuple(sorted(heard.line.items()))
            # Nothing is closed to whoever came in by a notice that stands, nor where all of the past is open.
            was_cut = heard.taken_back > 0 and self.policy.restricts and name not in (HOST, COHOST)
            closed = tuple(heard.closed) if was_cut else ()
            told = (tuple(heard.handed), heard.taken_back, tuple(heard.lost))
            guests.append(Guest(name, since, line, *told, objects, closed))
        complaints += [
            Complaint(Rule.STUCK, f"{name} never came in: {self.obtained(request)}")
            for name, request in self._entering.items()
            if name not in self.entered and name not in self.out and self.is_up(name)
        ]
        # Where everyone may come in, who was put out may come in again.
        out = self.out if self.policy.admits else {}
        outsiders = [
            Outsider(name, since, by, tuple(self._of(name).handed)) for name, (since, by) in out.items()
        ]
        return complaints + judge_place(words, guests, outsiders)
