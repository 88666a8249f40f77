"""What a person chose about a source."""

from __future__ import annotations

from msgspec import Struct

from linnet.lab.manifest import Parameter


class Choices(Struct, frozen=True):
    """Options of all formats; each format takes those that it knows."""

    timezone: str = "UTC"
    """Of times that do not say theirs."""
    dates: str = ""
    """``dmy``, ``mdy`` or ``ymd``."""
    unit: str = ""
    """``s``, ``ms`` or ``iso``."""
    values: str = ""
    """``rtt`` or ``oneway``."""
    columns: tuple[str, ...] = ()
    """Columns of a table in text, where they have other names."""
    without_bots: bool = False
    excluded: frozenset[str] = frozenset()
    """Users that are left out."""
    keep_text: bool = False

    def parameters(self) -> dict[str, Parameter]:
        """What of this belongs to the recipe of a table."""
        return {
            "timezone": self.timezone,
            "dates": self.dates,
            "unit": self.unit,
            "values": self.values,
            "columns": self.columns,
            "without_bots": self.without_bots,
            "excluded": tuple(sorted(self.excluded)),
            "keep_text": self.keep_text,
        }
