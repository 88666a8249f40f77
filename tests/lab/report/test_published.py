"""Published figures as data beside a study."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.report.parts import Figure
from linnet.lab.report.published import Published, read_published

GOOD = """
sources = ["Juslenius 2021: The whole reference."]

[figure."rdp.2048"]
value = 4.19
unit = "ratio"
source = "Juslenius 2021, section 5.4.5"
note = "The conclusion prints 4.18."

[figure."shape"]
value = "grows with log N"
unit = ""
source = "Juslenius 2021, section 5.4.3"
"""


def package(folder: Path, text: str | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """An importable package beside this run only; its name is the folder's, and so different in each test."""
    name = f"study_{folder.name}"
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("")
    if text is not None:
        (folder / name / "published.toml").write_text(text)
    monkeypatch.syspath_prepend(folder)
    return name


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    return read_published(package(tmp_path, GOOD, monkeypatch))


def test_a_figure_has_both_sides_and_both_notes(published: Published) -> None:
    assert published.figure("rdp.2048", "Relative delay", "ratio", 4.2, "50 messages.") == Figure(
        id="rdp.2048",
        title="Relative delay",
        unit="ratio",
        measured=4.2,
        published=4.19,
        source="Juslenius 2021, section 5.4.5",
        note="The conclusion prints 4.18. 50 messages.",
    )
    assert published.figure("shape", "Growth", "", "R² 0.99").published == "grows with log N"
    assert published.sources == ("Juslenius 2021: The whole reference.",)


def test_it_tells_what_nobody_asked_for(published: Published) -> None:
    assert published.unused() == ["rdp.2048", "shape"]
    assert published.number("rdp.2048") == 4.19
    assert published.unused() == ["shape"]


def test_an_unknown_id_is_an_error(published: Published) -> None:
    with pytest.raises(LabError, match=r"no published figure 'rdp\.4096' in published\.toml of study_"):
        published.figure("rdp.4096", "", "ratio", 1)


def test_units_must_be_the_same(published: Published) -> None:
    with pytest.raises(LabError, match="measured in '%', but published in 'ratio'"):
        published.figure("rdp.2048", "", "%", 419)


def test_words_are_no_number(published: Published) -> None:
    with pytest.raises(LabError, match="is words"):
        published.number("shape")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no published.toml"),
        ("[figure", "cannot be read"),
        ('[figure."a"]\nvalue = 1\nunit = "ms"\n', "missing required field `source`"),
        ('[figure."a"]\nvalue = 1\nunit = "ms"\nsource = "x"\nnotes = "y"\n', "unknown field `notes`"),
    ],
)
def test_a_bad_file_says_what_is_wrong(
    text: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = package(tmp_path, text, monkeypatch)
    with pytest.raises(LabError, match=words):
        read_published(name)


def test_a_package_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no_such_package"):
        read_published("no_such_package")
