"""An MCP server that accepts Latchkey's access tokens for itself only: `server.py ISSUER URL [SCOPE]...`.

Its metadata names the scopes.
"""

import sys
from typing import Any
from urllib.parse import urlsplit

from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token

issuer, url, *scopes = sys.argv[1:]
checks = {"issuer": issuer, "audience": f"{url}/mcp", "algorithm": "ES256", "required_scopes": scopes or None}
verifier = JWTVerifier(jwks_uri=f"{issuer}/.well-known/jwks.json", **checks)
# A string, because AnyHttpUrl appends a slash, with which it would not be the issuer.
auth = RemoteAuthProvider(token_verifier=verifier, authorization_servers=[issuer], base_url=url)
mcp: Any = FastMCP("Notes", auth=auth)


@mcp.tool
def claims() -> dict[str, Any]:
    """Return the claims of the caller's access token."""
    token = get_access_token()
    return token.claims if token else {}


mcp.run(transport="http", host="127.0.0.1", port=urlsplit(url).port, show_banner=False)
