"""Messages: announced, said to the host, watched, kept, and who has one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.cli.place.parlour import Parlour
from tests.cli.shell import LINNET

from linnet.net.clock import Clock


def test_a_guest_hears_what_the_host_announces(parlour: Parlour) -> None:
    said = parlour.ada.json(
        "place", "announce", "tea", "The kettle is on", "--set", "_topic=cake", "--var", "_volume=3"
    )
    heard = parlour.bea.json("place", "watch", "tea", "--from", str(said["message"]), "--count", "1")
    assert (heard["method"], heard["text"]) == ("_message", "The kettle is on")
    assert [(each["name"], each["text"]) for each in heard["variables"]] == [
        ("_topic", "cake"),
        ("_volume", "3"),
    ]
    assert parlour.ada.ok("place", "announce", parlour.place[:14], "x").startswith("message ")
    assert parlour.ada.json("place", "announce", "tea", "-", given=b"\xff\x00")["size"] == 2


def test_a_file_is_sent_saved_and_gone_on_with(parlour: Parlour, tmp_path: Path) -> None:
    file = tmp_path / "film.bin"
    file.write_bytes(bytes(range(256)) * 8000)
    said = parlour.ada.json("place", "announce", "tea", "--file", str(file), "--method", "_file")
    assert said["size"] == file.stat().st_size
    target = tmp_path / "copy"
    (tmp_path / "copy.part").write_bytes(file.read_bytes()[:70_001])
    words = ("place", "history", "tea", "--save", str(said["message"]), "--to", str(target))
    assert parlour.bea.ok(*words).startswith(f"saved   {target} (2.0 MB)")
    assert target.read_bytes() == file.read_bytes()
    saved = tmp_path / "saved"
    saved.mkdir()
    watched = parlour.bea.run(
        "place",
        "watch",
        "tea",
        "--from",
        str(said["message"]),
        "--count",
        "1",
        "--save-to",
        str(saved),
        "--json",
    )
    assert json.loads(watched.stdout)["size"] == file.stat().st_size
    assert (saved / f"{said['message']}-film.bin").read_bytes() == file.read_bytes()
    assert "nothing can be added" in parlour.ada.fails(
        1, "place", "announce", "tea", "--file", str(file), "--resume", str(said["message"])
    )


def test_wrong_words(parlour: Parlour) -> None:
    assert "give a text or --file" in parlour.ada.fails(2, "place", "announce", "tea", "x", "--file", "y")
    assert "name it with --file" in parlour.ada.fails(2, "place", "announce", "tea", "--resume", "3")
    assert "nothing to say" in parlour.ada.fails(2, "place", "announce", "tea")
    assert "_topic=tea" in parlour.ada.fails(2, "place", "announce", "tea", "--set", "topic")
    assert "No such file" in parlour.ada.fails(2, "place", "announce", "tea", "--file", "/nowhere/at/all")
    assert "talk to the host" in parlour.bea.fails(1, "place", "announce", "tea", "me too")
    assert "there is no place 'pub'" in parlour.ada.fails(2, "place", "announce", "pub", "x")


def test_lists_and_numbers_are_added_to_and_taken_away_from(parlour: Parlour) -> None:
    parlour.hosted("bakery", "--policy", "anonymous")
    say = ("place", "announce", "bakery")
    parlour.ada.ok(*say, "--set", "_list_cakes=|bun", "--set", "_amount_cups=5")
    parlour.ada.ok(*say, "--set", "_list_cakes+=scone", "--set", "_amount_cups+=3")
    parlour.ada.ok(*say, "--set", "_list_cakes-=|bun", "--set", "_amount_cups-=1", "--set", "_topic=a+=b")
    told = {each["name"]: each["text"] for each in parlour.ada.json("place", "look", "bakery")["objects"]}
    assert told == {"_name": "bakery", "_list_cakes": "|scone", "_amount_cups": "7", "_topic": "a+=b"}
    assert "is no list and no number" in parlour.ada.fails(2, *say, "--set", "_topic+=tea")
    assert "is no whole number" in parlour.ada.fails(2, *say, "--set", "_amount_cups+=many")


def test_a_range_in_order_and_what_is_not_there(parlour: Parlour) -> None:
    parlour.hosted("chronicle")
    for text in ("one", "two", "three"):
        parlour.ada.ok("place", "announce", "chronicle", text)
    told = parlour.ada.ok("place", "history", "chronicle", "--first", "2", "--last", "3")
    assert told == "2 _message one\n3 _message two\n"
    assert "say which with --save" in parlour.ada.fails(2, "place", "history", "chronicle", "--to", "x")
    assert "no message 99" in parlour.ada.fails(1, "place", "history", "chronicle", "--save", "99")


def test_what_was_before_the_entry_into_a_public_place_is_not_told_as_lost(
    parlour: Parlour,
) -> None:
    address = parlour.hosted("annals")["address"]
    for text in ("one", "two"):
        parlour.ada.ok("place", "announce", "annals", text)
    parlour.bea.ok("place", "enter", address)
    parlour.ada.ok("place", "announce", "annals", "three")
    parlour.bea.ok("place", "watch", "annals", "--from", "5", "--count", "1")
    done = parlour.bea.run("place", "history", "annals")
    assert done.exit_code == 0
    assert "lost" not in done.stderr
    assert parlour.people["bea"] in done.stdout.splitlines()[0], "its entry, by the id that it has"
    assert done.stdout.splitlines()[-1] == "5 _message three"
    asked = parlour.bea.run("place", "history", "annals", "--first", "1")
    assert "lost: message 1" in asked.stderr, "who asks for it is told"


LIMIT = 90.0


def test_a_guest_has_a_message_and_has_said_so(parlour: Parlour) -> None:
    said = parlour.ada.json("place", "announce", "tea", "Who has this?")["message"]
    clock = Clock()
    limit = clock.now() + LIMIT
    while (told := parlour.ada.json("place", "receipts", "tea", str(said)))["receipts"][0][
        "state"
    ] != "delivered":
        assert clock.now() < limit, told
    assert [(each["person"], each["at_ms"] > 0) for each in told["receipts"]] == [
        (parlour.people["bea"], True)
    ]
    assert parlour.people["bea"] in parlour.ada.ok("place", "receipts", "tea", str(said))
    assert "delivered" in parlour.ada.ok("place", "receipts", "tea", str(said))


def test_the_last_message_and_who_may_ask(parlour: Parlour) -> None:
    last = parlour.ada.json("place", "status", "tea")["place"]["message"]
    assert parlour.ada.json("place", "receipts", "tea")["message"] == last
    parlour.hosted("empty")
    assert "nobody is in yet" in parlour.ada.ok("place", "receipts", "empty")
    assert "not_allowed" in parlour.bea.fails(1, "place", "receipts", "tea", str(last))


def test_the_host_hears_what_a_guest_says_to_it_alone(parlour: Parlour) -> None:
    assert "not_held" in parlour.bea.fails(1, "place", "talk", "tea", "hello?")
    command = [*LINNET, "place", "watch", "tea", "--count", "1", "--method", "_request", "--json"]
    with subprocess.Popen([*command, "--home", str(parlour.ada.home)], stdout=subprocess.PIPE) as watching:
        while parlour.bea.run("place", "talk", "tea", "One sugar", "--var", "_sugar=1").exit_code:
            pass
        assert watching.stdout is not None
        heard = json.loads(watching.stdout.readline())
    assert (heard["nym"], heard["text"]) == (parlour.people["bea"], "One sugar")


def test_the_host_does_not_talk_to_itself(parlour: Parlour) -> None:
    assert "announce instead" in parlour.ada.fails(1, "place", "talk", "tea", "x")


def test_a_durable_watch_goes_on_after_what_was_printed(parlour: Parlour) -> None:
    place = parlour.hosted("diary")["place"]["place"]
    words = ("place", "watch", "diary", "--name", "reader", "--from", "2", "--count", "1", "--timeout", "20")
    for text in ("one", "two"):
        parlour.ada.ok("place", "announce", place, text)
    assert parlour.ada.ok(*words) == "2 _message one\n"
    assert parlour.ada.ok(*words) == "3 _message two\n"


def test_too_few_and_wrong_directories_are_told(parlour: Parlour) -> None:
    words = ("place", "watch", "tea", "--count", "1")
    assert "0 of 1 message came" in parlour.bea.fails(1, *words, "--timeout", "0.2")
    assert "is no directory" in parlour.bea.fails(2, *words, "--save-to", "/nowhere")
