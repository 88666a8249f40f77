"""The tables of latencies and what is read from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.core.errors import ConfigError
from linnet.sim.links import LinkModel, aws_latency, constant_latency, named_latency, parse_latency


def test_the_published_matrix_is_whole() -> None:
    """Facts about Juslenius 2021, Table 5.1; the mean is the one that the thesis states."""
    table = aws_latency()
    milliseconds = {pair: delay * 1000 for pair, delay in table.delays.items()}
    between = {pair: value for pair, value in milliseconds.items() if pair[0] != pair[1]}
    inside = [milliseconds[region, region] for region in table.regions]
    assert len(table.regions) == 16
    assert len(milliseconds) == 256
    assert table.mean() * 1000 == pytest.approx(68.64, abs=0.01)
    assert sum(between.values()) / len(between) == pytest.approx(73.21, abs=0.01)
    assert min(between.items(), key=lambda item: item[1])[0] == ("eu-west-3", "eu-west-2")
    assert max(between.items(), key=lambda item: item[1])[0] == ("sa-east-1", "ap-southeast-1")
    assert max(between.values()) == pytest.approx(172.10)
    assert [min(inside), max(inside)] == pytest.approx([0.07, 0.46])
    apart = {(a, b): abs(milliseconds[a, b] - milliseconds[b, a]) for a, b in between}
    assert max(apart.values()) == pytest.approx(6.69)


def test_names_mean_tables(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("region,a,b\na,0,1.5\nb,2,0\n")
    assert named_latency("aws") == aws_latency()
    assert named_latency("constant:7.5") == constant_latency(7.5)
    assert named_latency(str(path)).between("a", "b") == 0.0015
    assert named_latency(str(path)).between("b", "a") == 0.002


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the rows must be the regions"),
        ("region,a,b\nb,0,1\na,1,0\n", "the rows must be the regions"),
        ("region,a,b\na,0,1\n", "the rows must be the regions"),
        ("region,a,b\na,0\nb,1,0\n", "row a has 1 value for 2 regions; a table is a CSV file"),
        ("region,a\na,far\n", "'far' is no number"),
        ("region,a\na,-1\n", "-1 is no delay"),
        ("region,a\na,inf\n", "inf is no delay"),
        ("region,a\na,nan\n", "nan is no delay"),
    ],
)
def test_a_wrong_table_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse_latency(text, "table.csv")


def test_what_is_wrong_says_what_a_table_looks_like_and_that_is_one(tmp_path: Path) -> None:
    for name in (str(tmp_path / "none.csv"), str(_written(tmp_path, "a,b\n"))):
        with pytest.raises(ConfigError, match="a first line region,A,B and for each region a line such as"):
            named_latency(name)
    assert (
        named_latency(str(_written(tmp_path, "region,A,B\nA,0.1,12.5\nB,12.5,0.1\n"))).between("A", "B")
        == 0.0125
    )


def _written(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["constant:x", "/nowhere/at/all.csv"])
def test_a_wrong_name_is_told(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        named_latency(name)


def test_dialling_takes_round_trips() -> None:
    model = LinkModel(constant_latency(10), dial_round_trips=2.0)
    assert model.dial_time(0.010, 0.020) == pytest.approx(0.070)
