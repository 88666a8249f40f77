"""A cursor over what a person wrote, and an error that points at the character."""

from __future__ import annotations

from re import Match, Pattern
from typing import NoReturn

from linnet.core.errors import BadText

_BEFORE = 40
_AFTER = 30
"""Characters of a long text that are shown around the place where it goes wrong."""


class BadPredicate(BadText):
    """A predicate, or the attributes of an event, that cannot be read: where, and what was expected there."""

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
    """What can be printed without harm, one character for each."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


class Reader:
    """Reads a text from left to right. Spaces between its parts mean nothing."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        """The next character that is no space; nothing at the end."""
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1
        return self.text[self.at : self.at + 1]

    def take(self, characters: str) -> str:
        """The next character if it is one of these, or nothing."""
        found = self.peek()
        if not found or found not in characters:
            return ""
        self.at += 1
        return found

    def need(self, characters: str, expected: str) -> str:
        """The next character, which has to be one of these."""
        return self.take(characters) or self.fail(expected)

    def match(self, pattern: Pattern[str]) -> Match[str] | None:
        """What the pattern matches from here, if it does; it is read then."""
        self.peek()
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        """Something else should be here, or there."""
        raise BadPredicate(self.text, self.at if at is None else at, expected)
