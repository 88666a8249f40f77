from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from linnet.core.errors import ConfigError
from linnet.identity.text import Sort, to_text
from linnet.node.config import NodeConfig, StorageSection, StreamSection
from linnet.node.config_file import MAX_BYTES, load, parse
from linnet.overlay.config import Control
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.trace.records import Level

TRACKER = to_text(Sort.DEVICE, bytes(32)) + "@127.0.0.1:7700"


def test_an_empty_file_is_all_defaults() -> None:
    assert parse("") == NodeConfig()


def test_a_full_file_is_read() -> None:
    config = parse(
        f"""
        [node]
        label = "desk"
        listen = ["0.0.0.0:7700"]
        listen_wide = true
        advertise = ["wss://node.example:443"]
        trackers = ["{TRACKER}"]
        [tracker]
        enabled = true
        grace = 2
        [[storage]]
        stream = "news"
        retention = 60
        quota = 1_000_000
        [streams."my stream"]
        degree = 6
        near = true
        [trace]
        level = "full"
        [overlay]
        status_delay = 0.5
        """
    )
    assert config.listens == ("tls://0.0.0.0:7700",)
    assert config.advertised == ("wss://node.example:443",)
    assert [contact.peer for contact in config.trackers] == [bytes(32)]
    assert (config.tracker.enabled, config.tracker.grace) == (True, 2.0)
    assert config.storage == (StorageSection("news", 60.0, 1_000_000),)
    assert config.streams == {"my stream": StreamSection(6, True)}
    assert config.trace.level is Level.FULL
    assert config.overlay.control is Control.COUNTER


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[node\n", "linnet.toml:1: this is no TOML: "),
        ("[node]\nlabel = \n", "linnet.toml:2: this is no TOML: Invalid value"),
        ("x = [1,\n\n", "linnet.toml:3: this is no TOML: Invalid value"),
        ("\n\nnod = 1\n", "linnet.toml:3: nod: there is no such setting; did you mean node?"),
        ("[node]\nlabl = 'x'", "linnet.toml:2: node.labl: there is no such setting; did you mean label?"),
        (
            "[trace]\nzzz = 1",
            "linnet.toml:2: trace.zzz: there is no such setting; here are level, max_bytes, keep, flush_seconds",  # noqa: E501
        ),
        (
            "[links]\nmax_links = 0",
            "linnet.toml:2: links.max_links: 0 is wrong; allowed is a whole number above 0",
        ),
        (
            "[links]\nmax_links = true",
            "linnet.toml:2: links.max_links: true is wrong; allowed is a whole number",
        ),
        (
            "[links]\nping_period = nan",
            "linnet.toml:2: links.ping_period: nan is wrong; allowed is a number above 0",
        ),
        ("[links]\nping_period = inf", "linnet.toml:2: links.ping_period: inf is wrong"),
        (
            "[links]\nmax_links = 99999999999999999999",
            "linnet.toml:2: links.max_links: so large a number is wrong",
        ),
        ("node = 5", "linnet.toml:1: node: 5 is wrong; allowed is a table of settings"),
        (
            "[control]\nport = 70000",
            "linnet.toml:2: control.port: 70000 is wrong; allowed is a whole number from 1 to",
        ),
        (
            "[trace]\nlevel = 'all'",
            'linnet.toml:2: trace.level: \'all\' is wrong; allowed is one of "loss", "full"',
        ),
        ("[trace]\nlevel = 2024-01-01", "linnet.toml:2: trace.level: a date or time is wrong"),
        ("[[storage]]\nquota = 1", "linnet.toml:1: storage[0]: stream is missing; it is text"),
        (
            "[streams.'a b']\n\ndegree = 1",
            'linnet.toml:3: streams."a b".degree: 1 is wrong; allowed is a whole number',
        ),
        ("[streams.a]\ndegree = 65", "linnet.toml:2: streams.a.degree: 65 is wrong"),
        (
            "[node]\nlisten = ['tls://0.0.0.0:1']",
            "linnet.toml:2: node.listen[0]: 'tls://0.0.0.0:1' can be reached",
        ),
        ("[node]\nlisten = [\n'a b:1']", "linnet.toml:2: node.listen[0]: 'a b:1' has 'a b'"),
        (
            "[node]\nlisten_wide = true\nlisten = ['0.0.0.0:1']",
            "linnet.toml:3: node.listen[0]: '0.0.0.0:1' is every address of this machine: name in advertise",
        ),
        ("[node]\ntrackers = ['x@h:1']", "linnet.toml:2: node.trackers[0]: 'x' is no device id"),
        ("[node]\nadvertise = ['h:0']", "linnet.toml:2: node.advertise[0]: 'h:0' has port 0"),
        ("[streams.a]\ntrackers = ['h:1']", "linnet.toml:2: streams.a.trackers[0]: 'h:1' has no address"),
        (
            "[[storage]]\nstream = 'a'\n[[storage]]\nstream = 'a'",
            "linnet.toml:4: storage[1].stream: 'a' is stored twice",
        ),
        (
            "[tracker]\nenabled = true\ncontrol = 'naive'",
            "linnet.toml:3: tracker.control: differs from overlay.control",
        ),
    ],
)
def test_an_error_names_line_field_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)


def test_all_problems_are_told_at_once_up_to_a_bound() -> None:
    text = "[node]\n" + "".join(f"unknown_{number} = 1\n" for number in range(50))
    with pytest.raises(ConfigError) as caught:
        parse(text)
    lines = str(caught.value).splitlines()
    assert len(lines) == 21
    assert lines[7].startswith("linnet.toml:9: node.unknown_7: ")
    assert lines[-1] == "linnet.toml: and 30 more"


def test_a_file_is_read_with_bounds(tmp_path: Path) -> None:
    file = tmp_path / "linnet.toml"
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(file)
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than"):
        load(file)
    file.write_bytes(b"[node]\nlabel = '\xff'\n")
    with pytest.raises(ConfigError, match=r"linnet\.toml:2: not UTF-8"):
        load(file)
    file.write_text("[node]\nlabel = 'x'\n")
    assert load(file).node.label == "x"


def names() -> st.SearchStrategy[str]:
    words = ["node", "tracker", "storage", "streams", "trace", "control", "overlay", "delivery", "links"]
    words += [
        "label",
        "listen",
        "trackers",
        "enabled",
        "stream",
        "quota",
        "degree",
        "level",
        "port",
        "x",
        '"a b"',
    ]
    return st.sampled_from(words)


def values() -> st.SearchStrategy[str]:
    plain = ["1", "-1", "0.5", "nan", "true", "[]", "['a']", "[[1]]", "{}", "{a = 1}", "'full'", "''"]
    plain += ["2024-01-01", "'ld1@h:1'", "'''\n[x]\n'''", "10" * 3000, "[" * 400 + "]" * 400, '"\\u0041"']
    return st.sampled_from(plain)


@given(
    st.lists(
        st.tuples(names(), values()).map(" = ".join)
        | st.lists(names(), min_size=1, max_size=3).map(lambda parts: f"[{'.'.join(parts)}]")
        | st.lists(names(), min_size=1, max_size=2).map(lambda parts: f"[[{'.'.join(parts)}]]")
        | st.text(max_size=20),
        max_size=12,
    ).map("\n".join)
)
def test_any_text_is_a_configuration_or_a_config_error(text: str) -> None:
    message = "linnet.toml: none"
    try:
        parse(text)
    except ConfigError as error:
        message = str(error)
    assert message.startswith("linnet.toml:")
    assert len(message) < 20_000


def test_every_number_without_trackers_has_a_range() -> None:
    fields = inspect.type_info(TrackerlessConfig)
    assert isinstance(fields, inspect.StructType)
    for field in fields.fields:
        if not isinstance(field.type, inspect.IntType | inspect.FloatType):
            continue
        least, most = field.type.ge, field.type.le
        assert least is not None
        assert most is not None
        assert least <= field.default <= most
        for good in (least, most):
            if (field.name, good) not in (
                ("epsilon", least),
                ("least_topics", most),
                ("filter_hashes", most),
            ):
                parse(f"[trackerless]\n{field.name} = {good}")
        for bad in (least - 1, most + 1):
            with pytest.raises(ConfigError) as caught:
                parse(f"[trackerless]\n{field.name} = {bad}")
            told = str(caught.value)
            assert told.startswith(f"linnet.toml:2: trackerless.{field.name}: {bad} is wrong; allowed is ")
            assert told.endswith(f" from {least} to {most}")


def test_settings_of_a_filter_that_nobody_would_believe_are_told() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("[trackerless]\nfilter_hashes = 8\nfilter_bits = 260\nleast_topics = 256")
    assert [
        line.partition(":")[2].partition(":")[2].partition(":")[0] for line in str(caught.value).splitlines()
    ] == [
        " trackerless.filter_bits",
        " trackerless.epsilon",
        " trackerless.least_topics",
    ]
