"""Run a chat room in a place: guests talk to the host, and a bot there repeats it to all guests.

The host decides which messages go to all guests: here the bot repeats the polite ones.
Run it: python examples/chat_room.py
"""

from __future__ import annotations

import asyncio

from linnet import Node
from linnet.identity.text import Sort, to_text
from linnet.node.place_messages import Listening
from linnet.node.places import Place

SAY = "_request_message"
SAID = "_message_public"


async def relay(requests: Listening, place: Place, count: int) -> None:
    """Announce the requests of guests, each with its author.

    The author is the person whose device signed the request, whatever name the request claims.
    """
    async for request in requests:
        if request.nym is not None and "please" in request.text:
            who = to_text(Sort.PERSON, request.nym)
            await place.announce(request.text, SAID, variables={"_person": who})
            count -= 1
        if not count:
            return


async def main() -> None:
    async with asyncio.timeout(50), Node() as host, Node() as ada, Node() as bea:
        place = await host.places.host(name="tea room")
        address = await place.address()
        known = {to_text(Sort.PERSON, node.author): name for node, name in ((ada, "ada"), (bea, "bea"))}
        hers, his = await ada.places.enter(address), await bea.places.enter(address)
        async with (
            place.listen(SAY) as requests,
            his.listen(SAID) as heard,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(relay(requests, place, 2))
            await hers.talk("Milk, please.", SAY, {"_nick": "bea"})  # the bot ignores the false name
            await hers.talk("Hurry up!", SAY)
            await his.talk("Sugar, please.", SAY)
            seen = 0
            async for message in heard:
                print(f"{known[message.variables['_person'].decode()]}: {message.text}")
                seen += 1
                if seen == 2:
                    break


if __name__ == "__main__":
    asyncio.run(main())
