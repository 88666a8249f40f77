"""The page: whole, well-formed, offline, and readable by those who cannot see it."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace
from tests.lab.report.sample import sample

from linnet.lab.report.page import inline, page_of, verdict
from linnet.lab.report.parts import Plot, Report

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Reader(HTMLParser):
    """Tags with their attributes, and whether each that was opened was closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


@pytest.fixture(scope="module")
def page() -> str:
    return page_of(sample())


def test_it_is_well_formed_and_ids_are_unique(page: str) -> None:
    reader = Reader(page)
    assert page.startswith("<!DOCTYPE html>")
    assert reader.open == []
    ids = Counter(attributes["id"] for _, attributes in reader.tags if "id" in attributes)
    assert {id: count for id, count in ids.items() if count > 1} == {}
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', page)
    assert used
    assert set(used) <= set(ids)


def test_nothing_is_fetched(page: str) -> None:
    reader = Reader(page)
    assert reader.all("link") == reader.all("img") == []
    assert all("src" not in attributes for _, attributes in reader.tags)
    assert "@import" not in page
    assert "default-src 'none'" in page
    addresses = re.findall(r'="(https?:[^"]+)"', page)
    assert set(addresses) <= {
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/2000/svg",
    }  # names, not places


def test_it_says_everything(page: str) -> None:
    text = Reader(page).text
    for words in (
        "Delivery <with> & without relays",
        "What was asked.",
        "All 2 checks hold",
        "✓ Relays are never worse",
        "Undelivered",
        "+25.0 %",
        "about 4",
        "1,234,567",
        "First delivery & more",
        "A quarter was never delivered.",
        "Per margin",
        "Few.",
        "chats 18",
        "bad_user 1 no_time 3",
        "profiles 1,000 1 min 12 s 1.50 GiB stood already",
        "A 2024: a thesis",
        "B 2021",
    ):
        assert words in text.replace("  ", " "), words


def test_a_note_is_told_once_and_marked_where_it_is_used(page: str) -> None:
    text = Reader(page).text
    assert text.count("RDP [1]") == text.count("Own [1]") == 1
    assert page.count("<li>N.</li>") == 1


def test_what_fails_is_told_first_and_with_its_detail() -> None:
    text = Reader(page_of(sample(failing=True))).text
    assert "1 of 2 checks does not hold" in text
    assert text.index("✗ Does not hold: Model and protocol agree") < text.index("✓ Relays are never worse")
    assert "chat 7, event 3: 12 ms" in text


def test_tables_and_drawings_speak_to_those_who_cannot_see(page: str) -> None:
    reader = Reader(page)
    assert all(attributes.get("scope") in ("col", "row") for attributes in reader.all("th"))
    assert len(reader.all("caption")) == len(reader.all("table")) == 5
    ids = {attributes.get("id") for _, attributes in reader.tags}
    drawings = reader.all("svg")
    assert len(drawings) == 2
    for drawing in drawings:
        assert drawing["role"] == "img"
        assert set((drawing["aria-labelledby"] or "").split()) <= ids
        assert "viewbox" in drawing
        assert "width" not in drawing
    assert reader.all("html")[0]["lang"] == "en"


def test_numbers_line_up_with_their_heads(page: str) -> None:
    heads = re.findall(r"<thead><tr>(.*?)</tr></thead>", page)
    assert '<th scope="col" class="number">measured</th>' in heads[0]
    assert '<th scope="col">source</th>' in heads[0]


def test_a_drawing_keeps_no_style_for_the_whole_page() -> None:
    plot = Plot(title="T", svg='<svg width="5"><defs><style>*{}</style></defs><g id="a"/></svg>', caption="C")
    assert inline(plot, "p1-") == (
        '<svg role="img" aria-labelledby="p1-title p1-text"><title id="p1-title">T</title>'
        '<desc id="p1-text">C</desc><defs></defs><g id="p1-a"/></svg>'
    )


def test_a_bare_report_is_a_page_too() -> None:
    report = Report(study="bare", title="Bare", abstract=(), parameters={}, figures=())
    text = Reader(page_of(report)).text
    assert "No row of the input was put aside." in text
    assert "check" not in text.lower()


@pytest.mark.parametrize(
    ("failing", "count", "words"), [(False, 1, "The check holds"), (True, 1, "1 of 1 checks does")]
)
def test_a_single_check(failing: bool, count: int, words: str) -> None:
    report = sample(failing=failing)
    assert verdict(replace(report, checks=report.checks[-count:])).startswith(words)
