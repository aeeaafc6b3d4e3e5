"""A client's metadata document and its location."""

from tests.support.openid import authorize_path

HOST, PUBLIC_ADDRESS = "agent.example", "93.184.216.34"
URL = f"https://{HOST}/oauth/client.json"
CALLBACK = f"https://{HOST}/callback"
DOCUMENT = {
    "client_id": URL,
    "client_name": "Agent Smith",
    "redirect_uris": [CALLBACK, "http://127.0.0.1/callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "token_endpoint_auth_method": "none",
    "logo_uri": "https://agent.example/logo.png",
}


def opened_page(visitor, url=URL, **parameters):
    return visitor.visit(authorize_path(url, **{"redirect_uri": CALLBACK} | parameters))
