"""Keep the door of a closed place: a bot admits friends and sends all others to another place.

Run it: python examples/door_keeper.py
"""

from __future__ import annotations

import asyncio

from linnet import Node
from linnet.core.ids import AuthorId
from linnet.node.places import Place, TurnedAway
from linnet.places.deed import Policy


async def keep(club: Place, lobby: Place, friends: dict[AuthorId, str], knocks: int) -> None:
    """Answer this number of knocks."""
    elsewhere = await lobby.address()
    async for knock in club.door():
        name = friends.get(knock.nym)
        print(f"knock: {name or 'a stranger'} says {knock.text.decode()!r}")
        if name is None:
            await club.reject(knock.nym, "friends only", elsewhere=elsewhere)
        else:
            await club.admit(knock.nym)
        knocks -= 1
        if not knocks:
            return


async def main() -> None:
    async with asyncio.timeout(50), Node() as ada, Node() as bea, Node() as cal:
        lobby = await ada.places.host(name="lobby")
        club = await ada.places.host(Policy.CLOSED, "club")
        address = await club.address()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(keep(club, lobby, {bea.author: "bea"}, 2))
            await bea.places.enter(address, text="it is me")
            print("bea is in")
            try:
                await cal.places.enter(address, text="let me in")
            except TurnedAway as turned:
                print("cal is told:", turned.text)
                if turned.elsewhere is not None:
                    await cal.places.enter(turned.elsewhere)
                    print("cal is in the", turned.elsewhere.name)
        print("guests of the club:", len((await club.guests()).guests))


if __name__ == "__main__":
    asyncio.run(main())
