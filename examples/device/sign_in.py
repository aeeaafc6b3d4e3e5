"""Signs its user in on a machine without a browser, by a code that the user types elsewhere (RFC 8628)."""

import os
import sys
import time

import requests
import segno
from authlib.integrations.requests_client import OAuth2Session, OAuthError

DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
LATCHKEY_URL, CLIENT_ID = os.environ["LATCHKEY_URL"], os.environ["CLIENT_ID"]

session = OAuth2Session(CLIENT_ID, token_endpoint_auth_method="none")  # noqa: S106
metadata = requests.get(f"{LATCHKEY_URL}/.well-known/openid-configuration", timeout=10).json()
asked = {"client_id": CLIENT_ID, "scope": "openid email"}
codes = requests.post(metadata["device_authorization_endpoint"], data=asked, timeout=10).json()
if "error" in codes:
    sys.exit(codes["error_description"])
print(f"Open {codes['verification_uri']} and enter the code {codes['user_code']}, or scan:")
segno.make(codes["verification_uri_complete"], micro=False).terminal(compact=True)
sys.stdout.flush()

interval, tokens = codes["interval"], None
while tokens is None:
    time.sleep(interval)
    sent = {"grant_type": DEVICE_CODE, "device_code": codes["device_code"]}
    try:
        tokens = session.fetch_token(metadata["token_endpoint"], **sent)
    except OAuthError as error:
        if error.error == "slow_down":
            interval += 5
        elif error.error != "authorization_pending":
            sys.exit(error.description)
print(f"Signed in as {session.get(metadata['userinfo_endpoint']).json()['email']}")
