"""Share a user profile: friends watch its fields, and can read them when its owner is offline.

A profile is a place whose state variables are the fields; every friend has a copy of all of them.
Run it: python examples/profile.py
"""

from __future__ import annotations

import asyncio

from linnet import Node


async def main() -> None:
    async with asyncio.timeout(50), Node() as bea:
        async with Node() as ada:
            fields = {"_profile_name": "Ada", "_profile_city": "London", "_profile_city_district": "Soho"}
            profile = await ada.places.host(name="ada", state=fields)
            friend = await bea.places.enter(await profile.address())
            watching = friend.watch("_profile_city", present=True)
            for _ in range(2):
                seen = await anext(watching)
                print(f"as it stands: {seen.name} is {(seen.value or b'').decode()}")
            await profile.announce(state={"_profile_city": "Turin", "_profile_name": "Ada L."})
            change = await anext(watching)
            print(f"now: {change.name} is {(change.value or b'').decode()}")
            await profile.announce(state={"_profile_city_district": None})
            change = await anext(watching)
            print(f"gone: {change.name}" if change.value is None else "still there")
            await watching.aclose()
        # Ada is offline now.
        for name, value in (await friend.look("_profile")).items():
            print(f"offline: {name} is {value.decode()}")


if __name__ == "__main__":
    asyncio.run(main())
