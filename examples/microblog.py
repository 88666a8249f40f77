"""Write a microblog: readers get new posts and also the posts from before they entered.

The blog is a place that everyone may enter unannounced, with all of its history open.
Run it: python examples/microblog.py
"""

from __future__ import annotations

import asyncio

from linnet import Node
from linnet.places.deed import Policy


async def main() -> None:
    async with asyncio.timeout(50), Node() as ada, Node() as bea:
        blog = await ada.places.host(Policy.ANONYMOUS, "Ada's notes")
        first = await blog.announce("The engine can weave.", "_message_post", variables={"_tag": "engines"})
        await blog.announce("It has no pretensions to originate anything.", "_message_post")

        read = await bea.places.enter((await blog.address()).text)
        async for post in read.history(first.message):
            print(f"{post.number}: {post.text}")
        print("from:", (await read.look("_name"))["_name"].decode())

        # Subscribe to new posts alone; other methods, such as keep-alives, are left out.
        async with read.listen("_message_post") as news:
            await blog.announce("Note G is done.", "_message_post")
            async for post in news:
                print("new:", post.text)
                break


if __name__ == "__main__":
    asyncio.run(main())
