"""The cursor that reads predicates and names the character of an error; conditions on texts, and topics.

A condition on a text is the whole text or its beginning. A topic is a name alone: an event has it or not.
"""

from __future__ import annotations

import unicodedata
from re import Match, Pattern
from typing import Final, NoReturn

from msgspec import Struct

from linnet.core.errors import BadText

_BEFORE = 40
_AFTER = 30
"""Characters of a long text that are shown around the place where it goes wrong."""


class BadPredicate(BadText):
    """A predicate, or an event's attributes, cannot be read: names the place, and what was expected there."""

    def __init__(self, text: str, at: int, expected: str) -> None:
        self.at = at
        """The number of the character, from 0; the length of the text if it ended too early."""
        self.expected = expected
        found = f"'{_shown(text[at])}'" if at < len(text) else "the end"
        start = max(0, at - _BEFORE)
        excerpt = _shown(text[start : at + _AFTER])
        super().__init__(
            f"character {at + 1}: expected {expected}, found {found}\n  {excerpt}\n  {' ' * (at - start)}^"
        )


def _shown(text: str) -> str:
    """Replace each character that cannot be printed safely, keeping the length."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


class Reader:
    """Reads a text from left to right. Spaces between its parts mean nothing."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        """Return the next character that is no space, without reading it; empty at the end."""
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1
        return self.text[self.at : self.at + 1]

    def take(self, characters: str) -> str:
        """Read the next character if it is one of these; return it, or an empty string."""
        found = self.peek()
        if not found or found not in characters:
            return ""
        self.at += 1
        return found

    def need(self, characters: str, expected: str) -> str:
        """Read the next character, which has to be one of these."""
        return self.take(characters) or self.fail(expected)

    def match(self, pattern: Pattern[str]) -> Match[str] | None:
        """Read what the pattern matches from here; None if it does not match."""
        self.peek()
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        """Raise `BadPredicate`: here, or at the given place, something else was expected."""
        raise BadPredicate(self.text, self.at if at is None else at, expected)


CHARACTERS = 64
"""Characters of a text at most."""


class Words(Struct, frozen=True, gc=False):
    """A text: ``symbol="AAPL"``, or how one begins: ``symbol="AA"*``."""

    begins: str
    whole: bool = True
    """Whether the text is whole; otherwise it is only the beginning."""

    def __post_init__(self) -> None:
        if not self.begins.isprintable() or unicodedata.normalize("NFC", self.begins) != self.begins:
            raise BadText("a text is printable and in Unicode's composed form")
        if len(self.begins) > CHARACTERS:
            raise BadText(f"a text has at most {CHARACTERS} characters")

    @property
    def exact(self) -> bool:
        """Whether it is a single value, such as an event has."""
        return self.whole

    @property
    def text(self) -> str:
        """The condition as it is written after the attribute's name."""
        escaped = self.begins.replace("\\", "\\\\").replace('"', '\\"')
        return f'="{escaped}"' if self.whole else f'="{escaped}"*'

    def covers(self, other: Words) -> bool:
        """Return whether it accepts every text that the other accepts."""
        return self == other if self.whole else other.begins.startswith(self.begins)

    def merged(self, other: Words) -> Words | None:
        """Return the wider of both; None if neither covers the other: no beginning covers just both."""
        return self if self.covers(other) else other if other.covers(self) else None


def read_words(reader: Reader) -> Words:
    """Read a text in quotation marks, and a star if it is only the beginning."""
    reader.need('"', "a quotation mark")
    start = reader.at
    characters: list[str] = []
    while (character := reader.text[reader.at : reader.at + 1]) != '"':
        if character == "\\":
            reader.at += 1
            character = reader.text[reader.at : reader.at + 1]
            if not character or character not in '\\"':
                reader.fail('\\ or " after a \\')
        if not character:
            reader.fail("a closing quotation mark")
        if not character.isprintable():
            reader.fail("a character that can be printed")
        characters.append(character)
        reader.at += 1
    text = unicodedata.normalize("NFC", "".join(characters))
    if len(text) > CHARACTERS:
        reader.fail(f"a text of at most {CHARACTERS} characters", start)
    reader.at += 1
    return Words(text, whole=not reader.take("*"))


class Topic(Struct, frozen=True, gc=False):
    """The condition that an event has this name, without a value."""

    @property
    def exact(self) -> bool:
        """Whether an event can have it as its attribute: always."""
        return True

    @property
    def text(self) -> str:
        """The condition as it is written after the attribute's name: empty."""
        return ""

    def covers(self, other: Topic) -> bool:
        """Return whether it accepts all that the other accepts: always."""
        return True

    def merged(self, other: Topic) -> Topic | None:
        """Return the condition that accepts exactly what either accepts: a topic."""
        return self


TOPIC: Final = Topic()
