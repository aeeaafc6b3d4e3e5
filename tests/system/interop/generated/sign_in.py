"""The client that openapi-generator makes for Python: test_generated.py generates it, and runs this program."""

import os
import time
from uuid import uuid4

import latchkey_client as latchkey

URL, KEY = os.environ["LATCHKEY_URL"], os.environ["LATCHKEY_SERVICE_KEY"]
EMAIL, PASSWORD = f"{uuid4()}@example.com", "Correct-Horse-1"


def calls(token: str | None = None) -> latchkey.ApiClient:
    """A client with these credentials."""
    return latchkey.ApiClient(latchkey.Configuration(host=URL, access_token=token))


def mailed_code() -> str:
    for _ in range(300):
        if messages := latchkey.ServiceApi(calls(KEY)).list_dev_inbox(recipient=EMAIL):
            return messages[0].code
        time.sleep(0.1)
    raise TimeoutError(EMAIL)


anyone = latchkey.SignInApi(calls())
by_password = latchkey.TokenGrant(email=EMAIL, password=PASSWORD)
created = anyone.signup(latchkey.Signup(email=EMAIL, password=PASSWORD)).actual_instance
assert (type(created), created.email, created.email_confirmed_at) == (latchkey.User, EMAIL, None)
refusal = None
try:
    anyone.token("password", by_password)
except latchkey.ApiException as error:
    refusal = error
assert refusal
assert (refusal.status, refusal.data.error_code) == (403, "email_not_confirmed")

code = latchkey.Verification(type="email", email=EMAIL, token=mailed_code())
verified = anyone.verify(code).actual_instance
signed_in = anyone.token("password", by_password).actual_instance
by_refresh_token = latchkey.TokenGrant(refresh_token=signed_in.refresh_token)
refreshed = anyone.token("refresh_token", by_refresh_token).actual_instance
assert (type(verified), verified.user.id) == (latchkey.VerifiedSession, created.id)
assert {type(each) for each in (signed_in, refreshed)} == {latchkey.UserTokens}

session = calls(refreshed.access_token)
user = latchkey.UserApi(session).get_user()
assert (user.id, user.email, user.phone) == (created.id, EMAIL, None)
assert user.identities[0].provider == "email"
latchkey.SessionsApi(session).logout()

# A response that has the members of both types.
anonymous = anyone.signup(latchkey.Signup()).actual_instance
assert (type(anonymous), anonymous.user.is_anonymous) == (latchkey.SignedUpUser, True)

administration = latchkey.AdministrationApi(calls(KEY))
invited = latchkey.UserCreation(email=f"{uuid4()}@example.com", role="editor", email_confirm=True)
assert administration.create_user(invited).role == "editor"
assert administration.list_audit().data[0].actor == "service_role"
