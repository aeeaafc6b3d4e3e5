"""FastMCP's own client: `client.py URL PORT [DOCUMENT | any]`. Prints the URLs for the browser, and the answers of the
tool as JSON. With the URL of a document, it does not register. With `any`, it asks for the scopes of the server's metadata.

It calls the tool twice, with another access token each time, and once more after a line on standard input.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.auth import OAuth

url, port, *rest = sys.argv[1:]
document = [each for each in rest if each != "any"]
# It opens the browser of the environment variable BROWSER.
oauth = OAuth(
    scopes=None if "any" in rest else ["openid", "email", "offline_access"],
    client_name="Reader",
    callback_port=int(port),
    client_metadata_url=document[0] if document else None,
)


async def main() -> None:
    async with Client(url, auth=oauth) as client:
        states = []
        for _ in range(2):
            answer = await client.call_tool("claims")
            states.append({"claims": answer.data, "token": oauth.context.current_tokens.access_token})
            # Make the client take its token for expired.
            oauth.context.token_expiry_time = 1
        print(json.dumps(states), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await client.call_tool("claims")


asyncio.run(main())
