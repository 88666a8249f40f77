"""The judge of a place: checks the one line of messages, and the state that follows from it.

It gets the acknowledged messages of speakers, and what each watcher held in the end. It works out the state
by itself, from the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from linnet.sim.judges.verdict import Complaint, Rule


class Word(Struct, frozen=True):
    """A message to all guests, with its changes of state."""

    text: str
    speaker: str
    asked: float
    acked: float
    """When it was acknowledged to the speaker."""
    sets: tuple[tuple[str, str], ...] = ()
    """Objects and their new values; an empty value removes the object."""
    resets: bool = False
    is_owed: bool = True
    """Whether its speaker lives, so that the message cannot be lost with the only node that has it."""


class Guest(Struct, frozen=True):
    """A guest that watches the place in the end."""

    name: str
    since: float
    """When its entry was acknowledged; later messages are due."""
    line: tuple[tuple[int, str], ...]
    """The numbers and texts that its watcher holds in the end, in the order of the numbers."""
    handed: tuple[str, ...]
    """Every text that it was ever handed, in the order of time, those taken back included."""
    taken_back: int
    """Messages that it was told to disregard."""
    lost: tuple[tuple[int, int], ...]
    """Ranges that were reported to it as lost."""
    objects: tuple[tuple[str, str], ...]
    """The state that it sees."""
    closed: tuple[tuple[int, int], ...] = ()
    """Ranges that were reported to it as from before its entry, where the line was cut before the notice that
    let it in: that notice is sent again, behind messages sent meanwhile (decision 0024)."""


class Outsider(Struct, frozen=True):
    """Somebody who was ejected, or never let in."""

    name: str
    since: float
    """When the ejection was acknowledged."""
    by: str
    """The speaker that knew of it."""
    handed: tuple[str, ...]


def judge_place(
    words: Iterable[Word], guests: Iterable[Guest], outsiders: Iterable[Outsider]
) -> list[Complaint]:
    """Return all broken promises."""
    said = {word.text: word for word in words}
    everyone = list(guests)
    numbers = {text: number for guest in everyone for number, text in guest.line}
    complaints = [each for guest in everyone for each in _judge_guest(said, numbers, guest)]
    complaints += _judge_line(said, everyone)
    for outsider in outsiders:
        for text in dict.fromkeys(outsider.handed):
            word = said.get(text)
            if word is not None and word.speaker == outsider.by and word.asked > outsider.since:
                wrong = f"{outsider.name} has {text!r}, said after it was put out"
                complaints.append(Complaint(Rule.FORBIDDEN, wrong))
    return complaints


def _judge_guest(said: dict[str, Word], numbers: dict[str, int], guest: Guest) -> Iterator[Complaint]:
    texts = [text for _, text in guest.line]
    for text in texts:
        if text not in said:
            yield Complaint(Rule.INVENTED, f"{guest.name} has {text!r}, which nobody said")
    if len(texts) != len(dict.fromkeys(texts)):
        twice = next(text for text in texts if texts.count(text) > 1)
        yield Complaint(Rule.DOUBLED, f"{guest.name} has {twice!r} twice")
    begins = guest.line[0][0] if guest.line else 0
    for word in said.values():
        number = numbers.get(word.text, begins)
        is_closed = number < begins and any(first <= number <= last for first, last in guest.closed)
        if word.is_owed and word.asked > guest.since and word.text not in texts and not is_closed:
            told = " and was told that messages are lost" if guest.lost else ""
            rule = Rule.TOLD_LOST if guest.lost else Rule.MISSING
            yield Complaint(rule, f"{guest.name} lacks {word.text!r} of {word.speaker}{told}")
    spoken: dict[str, float] = {}
    for text in texts:
        if text in said:
            word = said[text]
            if word.asked < spoken.get(word.speaker, 0.0):
                yield Complaint(
                    Rule.REORDERED, f"{guest.name} has {text!r} after later words of {word.speaker}"
                )
            spoken[word.speaker] = max(word.asked, spoken.get(word.speaker, 0.0))


def _judge_line(said: dict[str, Word], guests: list[Guest]) -> Iterator[Complaint]:
    """Check that there is one line, of which each guest has a part, and that states follow from the whole
    line."""
    numbered: dict[int, str] = {}
    for guest in guests:
        for number, text in guest.line:
            if numbered.setdefault(number, text) != text:
                wrong = f"message {number} is {text!r} at {guest.name}, and {numbered[number]!r} elsewhere"
                yield Complaint(Rule.REORDERED, wrong)
    state: dict[str, str] = {}
    for _, text in sorted(numbered.items()):
        word = said.get(text)
        if word is None:
            continue
        if word.resets:
            state.clear()
        for name, value in word.sets:
            state[name] = value
            if not value:
                del state[name]
    for guest in guests:
        seen = dict(guest.objects)
        if seen != state:
            yield Complaint(Rule.STATE, f"{guest.name} sees {seen}, but {state} follows from what was said")
