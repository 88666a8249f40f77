"""The text form and the header before it: what is rendered is parsed back, and faults name their offset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.raised import reason_of

from linnet.core.errors import Refused, RemoteError
from linnet.core.reasons import Reason
from linnet.places.channel.packet import (
    LARGEST_HEADER,
    NAME_CHARS,
    OPERATORS,
    Header,
    Ignored,
    Modifier,
    Packet,
    check_transient,
    covers,
    encode_header,
    is_name,
    is_text,
    parse,
    parse_section,
    read_header,
    render,
    slices,
)
from linnet.places.config import PlacesConfig

_names = st.text("_abcXYZ019", min_size=1, max_size=12)
_values = st.binary(max_size=20) | st.sampled_from(
    [b"", b"\n", b"\t", b"a\tb", b"\n\n_m\n", b"5\t", b"\xff\x00"]
)
_modifiers = st.lists(st.builds(Modifier, st.sampled_from(OPERATORS), _names, _values), max_size=5)
_SMALL = PlacesConfig(value_bytes=1024, modifier_bytes=1024)


def test_e1_transient_modifier_method_and_body() -> None:
    data = b":_volume\t100\n_message_public_shout\nHello,\nworld!"
    modifiers = (Modifier(":", "_volume", b"100"),)
    assert parse(data) == Packet(modifiers, "_message_public_shout", b"Hello,\nworld!")
    assert render(modifiers, "_message_public_shout") + b"Hello,\nworld!" == data


def test_e2_persistent_modifiers_and_no_body() -> None:
    data = b"=_location_planet\tEarth\n=_location_continent\tEurope\n_notice_profile_location"
    modifiers = (Modifier("=", "_location_planet", b"Earth"), Modifier("=", "_location_continent", b"Europe"))
    assert parse(data) == Packet(modifiers, "_notice_profile_location")
    assert render(modifiers, "_notice_profile_location") == data + b"\n"


def test_a_method_alone_is_a_message() -> None:
    assert parse(b"_m") == parse(b"_m\n") == Packet((), "_m")


def test_binary_values_go_by_their_length_and_text_stays_readable() -> None:
    modifiers = [Modifier("=", "_b", b"a\nb"), Modifier("=", "_t", b"a\tb"), Modifier("=", "_e", b"")]
    assert render(modifiers, "_m") == b"=_b 3\ta\nb\n=_t\ta\tb\n=_e\n_m\n"
    assert parse(b"=_e\t\n=_f 0\t\n_m").modifiers == (Modifier("=", "_e", b""), Modifier("=", "_f", b""))
    assert [is_text(value) for value in (b"", b"abc", b"a\tb", b"a\n", b"\xff")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@given(_modifiers, _names, st.binary(max_size=30))
def test_render_and_parse_round_trip(modifiers: list[Modifier], method: str, body: bytes) -> None:
    section = render(modifiers, method)
    assert parse(section + body) == Packet(tuple(modifiers), method, body)
    assert parse_section(section) == Packet(tuple(modifiers), method)


@given(st.integers(1000, 1030), st.booleans(), st.integers(1, 3))
def test_modifiers_pass_up_to_their_limit(size: int, counted: bool, more: int) -> None:
    value = b"x" * size
    line = b"=_a %d\t%b\n" % (size, value) if counted else b"=_a\t%b\n" % value
    text = line * more + b"_m\n"
    if len(text) <= 1024:
        assert parse(text, _SMALL).modifiers == (Modifier("=", "_a", value),) * more
        return
    assert reason_of(RemoteError, parse, text, _SMALL) == Reason.TOO_LARGE


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"", 0),
        (b"=_a\tb\n", 6),  # modifiers, and then nothing
        (b"=_a\tb", 0),
        (b"\nbody", 0),
        (b"=\tvalue\n_m", 1),
        (b"=_a\tb\n_m!\n", 8),
        (b"=_a 3\tabcd\n_m", 9),
        (b"=_a x\tabc\n_m", 4),
        (b"=_a!b\n_m", 3),
    ],
)
def test_a_message_without_a_method_or_with_a_fault_is_rejected_at_its_offset(
    data: bytes, offset: int
) -> None:
    with pytest.raises(RemoteError, match=rf"offset {offset}:") as caught:
        parse(data)
    assert caught.value.reason == Reason.MALFORMED


@pytest.mark.parametrize(
    "data",
    [
        b"=_a\t" + b"x" * 1025 + b"\n_m",
        b"=_a 1025\t",
        b"=_a 99999999999\t",
        b"=_a\t" + b"x" * 600 + b"\n=_b\t" + b"x" * 600 + b"\n_m",
        b"=" + b"_" * 257 + b"\n_m",
        b"_" * 257 + b"\n",
        b"_" * 257,
    ],
)
def test_what_is_too_large_is_refused_without_waiting_for_the_rest(data: bytes) -> None:
    assert reason_of(RemoteError, parse, data, _SMALL) == Reason.TOO_LARGE


def test_reserved_operators_are_left_out_with_a_reason() -> None:
    packet = parse(b"?_a\n:_b\t1\n@_c\t2\n!_d\n_m")
    assert packet.modifiers == (Modifier(":", "_b", b"1"),)
    assert packet.ignored == tuple(
        Ignored(modifier, Reason.UNSUPPORTED, "a reserved operator")
        for modifier in (Modifier("?", "_a", b""), Modifier("@", "_c", b"2"), Modifier("!", "_d", b""))
    )


def test_a_section_that_ends_before_its_length_is_refused() -> None:
    with pytest.raises(RemoteError, match="offset 3: "):
        parse_section(b"_m\nx")


def test_a_request_with_a_persistent_modifier_is_refused() -> None:
    check_transient([Modifier(":", "_a", b"1")])
    for operator in "=+-":
        assert (
            reason_of(
                RemoteError, check_transient, [Modifier(":", "_a", b"1"), Modifier(operator, "_b", b"1")]
            )
            == Reason.NOT_ALLOWED
        )


@pytest.mark.parametrize(
    ("modifier", "method", "reason"),
    [
        (Modifier("?", "_a", b""), "_m", Reason.UNSUPPORTED),
        (Modifier("=", "", b""), "_m", Reason.MALFORMED),
        (Modifier("=", "_a\tb", b""), "_m", Reason.MALFORMED),
        (Modifier("=", "_a", b""), "_m\n", Reason.MALFORMED),
        (Modifier("=", "_a", b""), "", Reason.MALFORMED),
    ],
)
def test_nothing_is_rendered_that_would_not_be_parsed_back(
    modifier: Modifier, method: str, reason: Reason
) -> None:
    assert reason_of(Refused, render, [modifier], method) == reason


_deltas = st.none() | st.integers(0, 2**63 - 1)


@given(st.integers(1, 4 * 1024 * 1024), _deltas, st.binary(min_size=32, max_size=32), st.binary(max_size=9))
def test_a_header_is_read_back_and_its_length_told(
    length: int, delta: int | None, sha: bytes, rest: bytes
) -> None:
    header = Header(length, delta, None if delta is None or sha[0] % 2 else sha)
    data = encode_header(header)
    assert len(data) <= LARGEST_HEADER
    assert read_header(data + rest) == (header, len(data))


@given(_deltas, st.binary(min_size=32, max_size=32))
def test_a_header_that_is_not_complete_asks_for_more(delta: int | None, sha: bytes) -> None:
    data = encode_header(Header(7, delta, None if delta is None else sha))
    assert all(read_header(data[:cut]) is None for cut in range(len(data)))


def test_layout_is_big_endian() -> None:
    header = Header(258, 3, bytes(range(32)))
    assert encode_header(header) == b"\x01\x03\x00\x00\x01\x02" + b"\x00" * 7 + b"\x03" + bytes(range(32))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x02\x00\x00\x00\x00\x07", Reason.UNSUPPORTED),
        (b"\x01\x04\x00\x00\x00\x07", Reason.MALFORMED),
        (b"\x01\x02\x00\x00\x00\x07" + bytes(32), Reason.MALFORMED),  # a hash without a delta
        (b"\x01\x00\x00\x00\x00\x00", Reason.MALFORMED),
        (b"\x01\x00\x00\x00\x04\x01", Reason.TOO_LARGE),
        (b"\x01\x01\x00\x00\x00\x07" + b"\xff" * 8, Reason.MALFORMED),
    ],
)
def test_what_is_no_header_is_refused_with_its_reason(data: bytes, reason: Reason) -> None:
    with pytest.raises(RemoteError, match="offset") as caught:
        read_header(data, PlacesConfig(modifier_bytes=1024))
    assert caught.value.reason == reason


_methods = st.text("_ab", min_size=1, max_size=8)


def test_slices_of_a_method_are_tried_from_the_specific_to_the_empty_name() -> None:  # E3
    assert slices("_message_public_shout") == ("_message_public_shout", "_message_public", "_message", "")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", ("",)),
        ("_", ("_", "")),
        ("plain", ("plain", "")),
        ("a_b", ("a_b", "a", "")),
        ("__a", ("__a", "_", "")),
    ],
)
def test_slices_of_odd_names(name: str, expected: tuple[str, ...]) -> None:
    assert slices(name) == expected


@given(_methods, _methods)
def test_a_prefix_covers_exactly_the_names_whose_slices_it_is_among(prefix: str, name: str) -> None:
    assert covers(prefix, name) == (prefix in slices(name))


def test_a_prefix_covers_whole_keywords_only() -> None:
    assert covers("_a_b", "_a_b_c")
    assert not covers("_a_b", "_a_bc")
    assert covers("", "_anything")


@pytest.mark.parametrize("text", ["", "a b", "_é", "_a\n", "_a-b", "_" * (NAME_CHARS + 1), "_٣"])
def test_what_is_no_name(text: str) -> None:
    assert not is_name(text)


@pytest.mark.parametrize("text", ["_", "_a", "plain", "_A9_z", "_" * NAME_CHARS])
def test_what_is_a_name(text: str) -> None:
    assert is_name(text)
