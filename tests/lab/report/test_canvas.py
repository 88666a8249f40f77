"""The style of all plots, and their way to SVG."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.figure import Figure

from linnet.lab.report.canvas import add_legend, as_svg, look, new_figure


def drawing(title: str, note: str = "") -> Figure:
    figure = new_figure(title, 2.0, note)
    axes = figure.subplots()
    for number in range(3):
        axes.plot([0, 1], [number, 2], label=f"series {number}", color=look(number).colour)
    add_legend(figure, 3)
    return figure


def texts(svg: str) -> list[str]:
    return [
        element.text or "" for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}text")
    ]


def test_it_is_one_element_with_its_title_and_real_text() -> None:
    svg = as_svg(drawing)("Delays < 5 & more", "A note.")
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["role"] == "img"
    assert root[0].tag.endswith("title")
    assert root[0].text == "Delays < 5 & more"
    assert {"series 0", "series 1", "series 2", "A note."} <= set(texts(svg))


def test_the_same_data_give_the_same_bytes_without_a_date() -> None:
    first, second = as_svg(drawing)("same"), as_svg(drawing)("same")
    assert first == second
    assert "metadata" not in first
    assert "dc:date" not in first


def test_paths_have_no_digits_that_nobody_sees() -> None:
    svg = as_svg(drawing)("digits")
    paths = re.findall(r' d="([^"]+)"', svg)
    assert paths
    assert not re.search(r"\.\d{3}", " ".join(paths))


def test_the_style_ends_with_the_drawing() -> None:
    before = dict(mpl.rcParams)
    as_svg(drawing)("style")
    assert dict(mpl.rcParams) == before


def test_a_dollar_sign_is_no_formula() -> None:
    assert "costs $1 or $2" in texts(as_svg(drawing)("dollars", "costs $1 or $2"))


def test_looks_differ_without_colour_and_go_on_after_the_palette() -> None:
    first = [look(number) for number in range(7)]
    assert len({one.colour for one in first}) == len({one.marker for one in first}) == 7
    assert len({one.dash for one in first}) == 7
    assert len({one.hatch for one in first}) == 7
    assert len({(one.colour, one.dash, one.marker) for one in map(look, range(21))}) == 21
