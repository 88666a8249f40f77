"""A place in the open world: a host, a co-host, a keeper, guests who come and go, and state that changes."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.effects import Deliver
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Handed, Start
from linnet.places.channel.packet import ASSIGN, Modifier
from linnet.places.commands import (
    Admit,
    Announce,
    Announced,
    ChangePlace,
    Eject,
    Entered,
    EnterPlace,
    GuestsAre,
    HostPlace,
    LeavePlace,
    ListGuests,
    Look,
    ObjectsAre,
    PlaceIs,
    Talked,
    WatchPlace,
)
from linnet.places.deed import Policy
from linnet.places.items import Body, Knocked, Lost, Said, TakenBack
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.sim.judges.places import Guest, Outsider, Word, judge_place
from linnet.sim.judges.verdict import Complaint, Rule
from linnet.sim.named_nodes import SetupFailed
from linnet.sim.nemesis.budget import Situation
from linnet.sim.nemesis.faults import Cast
from linnet.sim.nemesis.open_world import OpenWorld, pick
from linnet.sim.seeded_random import named_luck
from linnet.streams.commands import Revoke
from linnet.trace.records import TraceSink

HOST, COHOST, KEEPER, THIEF = "host", "cohost", "keeper", "cohost-phone"
GUESTS = ("ann", "bob", "cid")
NEWCOMERS = ("dee", "eve")
_METHOD = "_message_nemesis"
_OBJECTS = ("_colour", "_shape", "_size")
_BATCH = 8
"""Items after which an application acknowledges them."""
_LEAVES = 0.3
"""Probability that a guest leaves that was just started: the host may be out of reach."""


class Speaking(Struct):
    """An announcement, acknowledged or not."""

    text: str
    speaker: str
    asked: float
    request: int
    sets: tuple[tuple[str, str], ...]
    acked: float | None = None


class Heard(Struct):
    """The items that the application of a node has got."""

    line: dict[int, str] = {}
    handed: list[str] = []
    taken_back: int = 0
    lost: list[tuple[int, int]] = []
    closed: list[tuple[int, int]] = []
    """Those of the lost ranges that are reported as from before the entry."""
    pieces: dict[int, bytearray] = {}
    """Messages that have arrived in part."""
    pending: int = 0
    """Items that it has not acknowledged."""


class PlacesWay(OpenWorld):
    """A world with one place."""

    way = "places"
    thief = THIEF
    robbed = COHOST

    def __init__(self, seed: int, trace: TraceSink | None = None) -> None:
        super().__init__(seed, trace)
        self.place = TopicId(b"")
        self.policy = self.luck.choice(tuple(Policy))
        self.words: list[Speaking] = []
        self.heard: dict[str, Heard] = {}
        self.entered: dict[str, float] = {}
        """Nodes that are known to be in, and since when."""
        self.out: dict[str, tuple[float, str]] = {}
        """Nodes that are known to be out, since when, and the speaker that put them out."""
        self._entering: dict[str, int] = {}
        self._ejecting: dict[str, tuple[int, str]] = {}
        self._leaving: dict[str, int] = {}
        self._leaving_luck = named_luck(seed, "nemesis/places/leave")
        """A generator of its own, so that the rest of a seed is as it was before leaving was added."""
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

    def configured(self, name: str) -> PeerConfig:
        """Return a configuration in which the keeper is a relay that is open to all."""
        relay = RelayConfig(policy=RelayPolicy.OPEN) if name == KEEPER else None
        return PeerConfig(listens=(self.address(name),), relay=relay)

    def set_up(self) -> None:
        """Found the place, and let all but the newcomers enter."""
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
        self.obtain(HOST, ChangePlace(self.place, cohosts=(person,), keepers=keepers), PlaceIs)
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
        """Let a random speaker send a message."""
        speaker = pick(self.luck, self.living((HOST, COHOST)))
        if speaker is not None:
            self._say(speaker)

    def change(self) -> None:
        """Change an object, or eject a guest."""
        speaker = pick(self.luck, self.living((HOST, COHOST)))
        if speaker is None:
            return
        going = (*self._ejecting, *self._leaving)
        guests = [name for name in GUESTS[1:] if name in self.entered and name not in going]
        if guests and self.luck.random() < 0.2:
            name = self.luck.choice(guests)
            request = self.ask(speaker, Eject(self.place, self.identities[name].author))
            self._ejecting[name] = (request, speaker)
        else:
            self._say(speaker, ((self.luck.choice(_OBJECTS), f"value{len(self.words)}"),))

    def welcome(self, name: str) -> None:
        """Let a newcomer enter through the host or co-host."""
        self._enter(name)

    def revoke(self, name: str) -> None:
        """Let the co-host revoke a device; that device speaks in the co-host's name."""
        word = self.revocation_of(name)
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
        """Watch from the beginning, anew; or leave, before the host is in reach."""
        before = self._of(name)
        self.heard[name] = Heard(handed=before.handed, taken_back=before.taken_back)
        if name in self.entered:
            self._watch(name)
            if name in (*GUESTS[1:], *NEWCOMERS):
                self._maybe_leave(name)
        elif name in self._entering and name in NEWCOMERS and name not in self._leaving:
            self._enter(name)

    def _maybe_leave(self, name: str) -> None:
        """Let a guest leave at times, but not while only the spending of nodes is watched."""
        if self.account.situation is not Situation.BUSY or self._leaving_luck.random() >= _LEAVES:
            return
        if name not in (*self._ejecting, *self._leaving):
            self._leaving[name] = self.ask(name, LeavePlace(self.place, for_good=True))

    def finish(self) -> None:
        """Let all speakers send a last message; newcomers that could not enter try again."""
        self.note()
        for name in self.living(NEWCOMERS):
            if name in self._entering and name not in (*self.entered, *self._leaving):
                self._enter(name)
        for name in self.living((HOST, COHOST)):
            self._say(name)

    def _watch(self, name: str) -> None:
        self.ask(name, WatchPlace(1, self.place, since=1, objects=""))

    def _say(self, name: str, sets: tuple[tuple[str, str], ...] = ()) -> None:
        text = f"{name}:{len(self.words)}"
        modifiers = tuple(Modifier(ASSIGN, key, value.encode()) for key, value in sets)
        request = self.ask(name, Announce(self.place, _METHOD, modifiers, text.encode()))
        self.words.append(Speaking(text, name, self.network.elapsed, request, sets))

    def _of(self, name: str) -> Heard:
        return self.heard.setdefault(name, Heard())

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        """Assemble delivered messages, and acknowledge the items."""
        self.note()
        name = self.names[peer]
        heard = self._of(name)
        for item in effect.items:
            match item:
                case Said(_, message, None, _, method) if method == _METHOD:
                    heard.pieces[message] = bytearray()
                case Body(_, message, None, _, data, last) if message in heard.pieces:
                    heard.pieces[message] += data
                    if last:
                        text = heard.pieces.pop(message).decode()
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
        heard.pending += len(effect.items)
        if heard.pending >= _BATCH:
            self.network.ask(peer, Consumed(effect.subscription, heard.pending))
            heard.pending = 0

    def _is_put_out(self, nym: AuthorId) -> bool:
        """Return whether a device that knocks was ejected or left: it may not have heard so, and is not let
        in."""
        return any(self.identities[name].author == nym for name in (*self._ejecting, *self._leaving))

    def note(self) -> None:
        """Take note of answers that have arrived."""
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
        for name, request in self._leaving.items():
            answer = answers.get(request)
            if name not in self.out and isinstance(answer, Talked):
                self.out[name] = (self.network.elapsed, self.names[answer.voice])
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
            # Whether somebody is out is unknown if the ejection was not acknowledged.
            if not self.is_up(name) or name in (*self._ejecting, *self._leaving):
                continue
            looked = self.answered(self.ask(name, Look(self.place, "")))
            if not isinstance(looked, ObjectsAre):
                complaints.append(Complaint(Rule.STUCK, f"{name} cannot look at its place: {looked}"))
                continue
            heard = self._of(name)
            objects = tuple((key, value.decode()) for key, value in looked.objects if key in _OBJECTS)
            line = tuple(sorted(heard.line.items()))
            # Nothing is closed to a guest that entered by a valid notice, nor where the whole past is open.
            was_cut = heard.taken_back > 0 and self.policy.restricts and name not in (HOST, COHOST)
            closed = tuple(heard.closed) if was_cut else ()
            told = (tuple(heard.handed), heard.taken_back, tuple(heard.lost))
            guests.append(Guest(name, since, line, *told, objects, closed))
        complaints += [
            Complaint(Rule.STUCK, f"{name} never came in: {self.obtained(request)}")
            for name, request in self._entering.items()
            if name not in (*self.entered, *self.out, *self._leaving) and self.is_up(name)
        ]
        complaints += self._list_leavers()
        # Where everyone may enter, an ejected guest may enter again.
        out = self.out if self.policy.admits else {}
        outsiders = [
            Outsider(name, since, by, tuple(self._of(name).handed)) for name, (since, by) in out.items()
        ]
        return complaints + judge_place(words, guests, outsiders)

    def _list_leavers(self) -> list[Complaint]:
        """Return complaints about guests that left, as their host knows, and that a speaker still lists."""
        gone = {self.identities[name].author: name for name in self._leaving if name in self.out}
        complaints = []
        for speaker in self.living((HOST, COHOST)) if gone else []:
            listed = self.answered(self.ask(speaker, ListGuests(self.place)))
            guests = listed.guests if isinstance(listed, GuestsAre) else ()
            complaints += [
                Complaint(Rule.STATE, f"{speaker} takes {gone[each.nym]} for a guest, who has left")
                for each in guests
                if each.nym in gone
            ]
        return complaints
