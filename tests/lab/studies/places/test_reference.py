"""The shipped classes as a guest has them."""

from __future__ import annotations

from linnet.core.ids import AuthorId
from linnet.event.signing import encode_unit
from linnet.lab.studies.places.reference import Guest
from linnet.lab.studies.places.voice import Voice
from linnet.places.channel.packet import Modifier
from linnet.places.channel.state import State
from linnet.places.config import PlacesConfig

NYM = AuthorId(b"n" * 32)


def test_a_guest_tells_what_came_and_what_did_not() -> None:
    voice = Voice(1, 4, PlacesConfig(hash_every=1))
    voice.announce("_message_public", (Modifier("=", "_a", b"1"),), b"x")
    voice.joined(NYM)
    voice.announce("_message", body=b"lost")
    voice.parted(NYM)
    units = [encode_unit(verified.unit) for verified, _ in voice.said]
    came = [units[3], units[0], units[1], units[0]]
    told = {(job, key): answer for job, key, answer in Guest(1, 4).answers(came)}
    state = State(variables={"_a": b"1"}).digest().hex()
    assert told["gaps", "fragment 2"] == "2"
    assert told["gaps", "message 3"] == "3"
    assert told["parsed", "1"] == "_message_public 0  =_a=31"  # There was no state to hash before.
    assert (told["state", "1"], told["state", "4"]) == (state, state)
    assert told["hashes", "2"] == "true"
    assert told["members", f"{NYM.hex()} 2 0 false"] == "no"
    assert told["members", f"{NYM.hex()} 4 0 true"] == "yes"
    assert (told["methods", "_message"], told["methods", ""]) == ("1", "3")
    assert told["messages", "1"].startswith("true ")
    assert not [key for job, key in told if job in ("refused", "conflict", "generations")]
