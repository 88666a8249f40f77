"""Texts, whole or how they begin, and topics: names alone, which an event has or has not."""

from __future__ import annotations

import unicodedata
from typing import Final

from msgspec import Struct

from linnet.content.predicate_reader import Reader
from linnet.core.errors import BadText

CHARACTERS = 64
"""Characters of a text at most."""


class Words(Struct, frozen=True, gc=False):
    """A text: ``symbol="AAPL"``, or how one begins: ``symbol="AA"*``."""

    begins: str
    whole: bool = True
    """Whether nothing may follow."""

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
        """What follows the name."""
        escaped = self.begins.replace("\\", "\\\\").replace('"', '\\"')
        return f'="{escaped}"' if self.whole else f'="{escaped}"*'

    def covers(self, other: Words) -> bool:
        """Whether it accepts all that the other accepts."""
        return self == other if self.whole else other.begins.startswith(self.begins)

    def merged(self, other: Words) -> Words | None:
        """The wider of both; the union of two others is no beginning."""
        return self if self.covers(other) else other if other.covers(self) else None


def read_words(reader: Reader) -> Words:
    """A text in quotation marks, and a star if it is only the beginning."""
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
    """An event has this name, and no value with it."""

    @property
    def exact(self) -> bool:
        """Whether an event can have it as its attribute."""
        return True

    @property
    def text(self) -> str:
        """What follows the name."""
        return ""

    def covers(self, other: Topic) -> bool:
        """Whether it accepts all that the other accepts."""
        return True

    def merged(self, other: Topic) -> Topic | None:
        """What accepts exactly what either does, if there is such a thing."""
        return self


TOPIC: Final = Topic()
