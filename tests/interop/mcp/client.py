"""FastMCP's own client: `client.py URL`. Prints the URLs for the browser, and the answers of the tool as JSON.

It calls the tool twice, with another access token each time, and once more after a line on standard input.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.auth import OAuth


async def main() -> None:
    # It opens the browser of the environment variable BROWSER.
    oauth = OAuth(scopes=["openid", "email", "offline_access"], client_name="Reader")
    async with Client(sys.argv[1], auth=oauth) as client:
        seen = []
        for _ in range(2):
            answer = await client.call_tool("claims")
            seen.append({"claims": answer.data, "token": oauth.context.current_tokens.access_token})
            # As if it had expired.
            oauth.context.token_expiry_time = 1
        print(json.dumps(seen), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await client.call_tool("claims")


asyncio.run(main())
