"""What the application asks about readers, and what it is answered."""

from __future__ import annotations

from tests.streams.sealed.readership import OWNER, Readership

from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.peer.interface import AnyCommand
from linnet.streams.commands import AllowReader, AskToRead, DisallowReader, ListReaders, ReadersAre


def declined(scene: Readership, who: str, command: AnyCommand) -> Reason:
    answer = scene.village.ask(who, command)
    assert isinstance(answer, Declined), answer
    return answer.reason


def test_readers_are_listed_as_they_come_and_go() -> None:
    scene = Readership()
    before = scene.readers()
    assert (before.epoch, before.since, before.readers) == (0, None, ())
    told = scene.allow("p1")
    assert [reader.label for reader in told.changed] == ["p1"]
    assert told.epoch == 1
    scene.allow("p2")
    assert {reader.label for reader in scene.readers().readers} == {"p1", "p2"}
    device = DisallowReader(scene.stream, device=scene.device("p2"))
    gone = scene.village.ask(OWNER, device)
    assert isinstance(gone, ReadersAre)
    assert ([reader.label for reader in gone.changed], gone.epoch) == (["p2"], 2)
    assert [reader.label for reader in scene.readers().readers] == ["p1"]


def test_what_cannot_be_is_declined_with_its_reason() -> None:
    scene = Readership()
    stream = scene.stream
    assert declined(scene, OWNER, AskToRead(stream)) is Reason.NOT_ALLOWED
    assert declined(scene, "p1", AskToRead("weather")) is Reason.UNSUPPORTED
    assert declined(scene, "p1", ListReaders(stream)) is Reason.NOT_ALLOWED
    assert declined(scene, OWNER, AllowReader(stream, "rain")) is Reason.MALFORMED
    assert declined(scene, "p1", AllowReader(stream, scene.request("p2"))) is Reason.NOT_A_PUBLISHER
    line = scene.request("p1")
    assert isinstance(scene.village.ask(OWNER, AllowReader(stream, line)), ReadersAre)
    assert declined(scene, OWNER, AllowReader(stream, line)) is Reason.KEY_SPENT
    assert declined(scene, OWNER, DisallowReader(stream)) is Reason.UNKNOWN
    strangers = DisallowReader(stream, scene.village.identity["p1"].author, scene.device("p2"))
    assert declined(scene, OWNER, strangers) is Reason.UNKNOWN
    assert [reader.label for reader in scene.readers().readers] == ["p1"]
