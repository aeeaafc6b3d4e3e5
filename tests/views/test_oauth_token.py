"""POST /oauth/token for an authorization code."""

from tests.support.answers import A_REFRESH_TOKEN, AN_ACCESS_TOKEN, assert_ok
from tests.support.openid import granted_code, make_client


def test_code_is_redeemed_for_tokens(client, database, alice):
    app = make_client(database)
    answer = app.redeem(client, granted_code(database, app, alice.open_session()))
    expected = {"access_token": AN_ACCESS_TOKEN, "token_type": "bearer", "expires_in": 3600}
    expected |= {"scope": "openid email", "refresh_token": A_REFRESH_TOKEN, "id_token": AN_ACCESS_TOKEN}
    assert_ok(answer, expected)
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
