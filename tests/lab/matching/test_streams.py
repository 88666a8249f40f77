"""Records of real streams, as their files have them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.matching.streams import STREAMS, find, read_streams

FLIGHT = {"date": "2001/01/01 00:47", "delay": 66, "distance": 1750, "origin": "DTW", "destination": "LAS"}
QUAKE = {
    "properties": {"mag": 2, "time": 1517966773840, "place": "near"},
    "geometry": {"type": "Point", "coordinates": [-118.6671667, 34.4945, 26.49]},
}


def texts(folder: Path) -> list[str]:
    return [found.text for _, found in read_streams(folder).records]


def test_a_list_and_features_are_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "vega_flights-20k.json.gz", "wt") as file:
        json.dump([FLIGHT], file)
    (tmp_path / "earthquakes.geojson").write_text(json.dumps({"features": [QUAKE]}))
    assert texts(tmp_path) == [
        'delay=66/distance=1750/flight/from="DTW"/to="LAS"',
        "at={34.4945,-118.6671667}/depth=26.49/earthquake/magnitude=2/time=2018-02-07T01:26:13.84Z",
    ]


@pytest.mark.parametrize(
    ("name", "text", "first"),
    [
        (
            "stocks.csv",
            "symbol,date,price\nMSFT,Jan 1 2000,39.81\n",
            'day=2000-01-01/price=39.81/stock/symbol="MSFT"',
        ),
        ("brent_crude_oil.csv", "day,DPB\n05/20/1987,18.63\n", "day=1987-05-20/oil/price=18.63"),
        (
            "water-flow.csv",
            "Time,Water flow [l/s]\n2022-03-20T11:00:00+01:00,100.59\n",
            "flow=100.59/time=2022-03-20T10:00Z/water",
        ),
        (
            "trump_approval.csv",
            "ordinal_date,five_thirty_eight,gallup\n736389,43.7,43.843213\n",
            'approval/day=2017-03-01/of="gallup"/value=43.843213',
        ),
        (
            "seattle-temps.csv",
            "date,temp\n2010/01/01 01:00,39.2\n",
            'city="seattle"/temperature=39.2/time=2010-01-01T01:00Z/weather',
        ),
    ],
)
def test_tables_are_read(tmp_path: Path, name: str, text: str, first: str) -> None:
    (tmp_path / name).write_text(text)
    assert texts(tmp_path)[0] == first


def test_what_is_missing_or_has_no_value_is_counted(tmp_path: Path) -> None:
    (tmp_path / "bitcoin.csv").write_text("date,price\n2013-02-11,24.1955\n2013-02-12,\nsoon,1\n")
    found = read_streams(tmp_path)
    assert len(found.records) == 1
    assert found.unread == {"bitcoin.csv": 2}
    assert found.missing == tuple(stream.file for stream in STREAMS if stream.file != "bitcoin.csv")


def test_a_folder_without_a_stream_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="flights-20k"):
        read_streams(tmp_path)


def test_a_broken_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "stocks.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(LabError, match="stocks"):
        read_streams(tmp_path)
    (tmp_path / "flights-20k.json").write_text("[")
    with pytest.raises(LabError, match="flights"):
        read_streams(tmp_path)


def test_names_are_not_mixed_up(tmp_path: Path) -> None:
    """`vega_sp500-2000.csv` is no `sp500.csv`."""
    (tmp_path / "vega_sp500-2000.csv").write_text("")
    assert find(tmp_path, "sp500.csv") is None
    assert find(tmp_path, "sp500-2000.csv") == tmp_path / "vega_sp500-2000.csv"
