"""What papers print, kept as data beside a study: its ``published.toml``.

::

    sources = ["Juslenius 2021: the whole reference"]

    [figure."rdp.counter.2048"]
    value = 4.19
    unit = "ratio"
    source = "Juslenius 2021, section 5.4.5"
    note = "The conclusion prints 4.18."
"""

from __future__ import annotations

from importlib import resources

import msgspec

from linnet.lab.errors import LabError
from linnet.lab.report.parts import Cell, Figure

FILE = "published.toml"


class Printed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One published figure."""

    value: str | int | float
    """A number, or the words of the source where it prints none."""
    unit: str
    source: str
    """Author, year, table or section."""
    note: str = ""
    """Errors of the source, and what makes it hard to compare."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    figure: dict[str, Printed] = {}
    sources: tuple[str, ...] = ()


class Published:
    """The published figures of one study; it remembers which were asked for."""

    def __init__(self, where: str, printed: dict[str, Printed], sources: tuple[str, ...] = ()) -> None:
        self._where = where
        self._printed = printed
        self._asked: dict[str, None] = {}
        self.sources = sources
        """Whole references, for the end of the report."""

    def __getitem__(self, id: str) -> Printed:
        """The entry of this id; an unknown one is an error."""
        if id not in self._printed:
            raise LabError(f"no published figure {id!r} in {self._where}")
        self._asked[id] = None
        return self._printed[id]

    def __contains__(self, id: object) -> bool:
        """Whether something is published under this id; asking so is no use of it."""
        return id in self._printed

    def number(self, id: str) -> float:
        """A published figure that must be a number, for a plot or a check."""
        value = self[id].value
        if isinstance(value, str):
            raise LabError(f"the published figure {id!r} in {self._where} is words: {value!r}")
        return value

    def figure(self, id: str, title: str, unit: str, measured: Cell, note: str = "") -> Figure:
        """What was measured, beside what is published under the same id and in the same unit."""
        printed = self[id]
        if printed.unit != unit:
            raise LabError(
                f"{id!r} is measured in {unit!r}, but published in {printed.unit!r} ({self._where})"
            )
        return Figure(
            id=id,
            title=title,
            unit=unit,
            measured=measured,
            published=printed.value,
            source=printed.source,
            note=" ".join(part for part in (printed.note, note) if part),
        )

    def unused(self) -> list[str]:
        """Ids that nobody has asked for yet; a test of a whole study wants none."""
        return [id for id in self._printed if id not in self._asked]


def read_published(package: str) -> Published:
    """The figures in the ``published.toml`` of a package, such as ``linnet.lab.studies.streams``."""
    where = f"{FILE} of {package}"
    try:
        data = resources.files(package).joinpath(FILE).read_bytes()
    except (FileNotFoundError, ModuleNotFoundError) as error:
        raise LabError(f"there is no {where}; a study keeps what is published there") from error
    try:
        read = msgspec.toml.decode(data, type=_File)
    except msgspec.DecodeError as error:
        raise LabError(f"{where} cannot be read: {error}") from error
    return Published(where, read.figure, read.sources)
