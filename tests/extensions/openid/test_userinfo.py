"""GET and POST /oauth/userinfo: claims by scope (OpenID Connect Core, section 5.3)."""

import pytest

from tests.support.answers import assert_error, assert_ok, challenge
from tests.support.cases import cases
from tests.support.openid import RESOURCE, assert_refused, bearer, claims_of, make_client, tokens_of

PATH = "/oauth/userinfo"
ALL = "openid profile email phone offline_access groups roles"
TOKEN_TWICE = "access_token: must be given once"


@pytest.fixture
def userinfo(client, database, alice):
    """Return the claims of scopes, without `sub`, which must be Alice's in the ID token too."""
    app_client = make_client(database)

    def read(scopes: str) -> dict:
        tokens = tokens_of(client, database, app_client, alice, scopes)
        answer = client.get(PATH, headers=bearer(tokens["access_token"]))
        assert answer.status_code == 200, answer.json
        id_claims = claims_of(tokens["id_token"])
        aliases = {"phone", "phone_verified"}
        assert {name: id_claims[name] for name in answer.json if name not in aliases} == {
            name: value for name, value in answer.json.items() if name not in aliases
        }
        assert not {"email", "phone_number", "name", "groups"} & set(id_claims) - set(answer.json)
        assert answer.json["sub"] == alice.id
        return {name: value for name, value in answer.json.items() if name != "sub"}

    return read


class TestClaims:
    def test_scopes_name_the_claims(self, database, userinfo, alice):
        set_phone = (
            "UPDATE users SET phone = '+491701234567', phone_confirmed_at = now(), phone_proved = true"
        )
        database.run(set_phone)
        email = {"email": alice.email, "email_verified": True}
        phone = {"phone_number": "+491701234567", "phone_number_verified": True}
        phone |= {"phone": "+491701234567", "phone_verified": True}
        assert userinfo("openid") == {}
        assert userinfo("openid email") == email
        assert userinfo("openid phone offline_access") == phone
        assert userinfo("openid groups roles") == {"groups": [], "roles": []}
        profile = userinfo("openid profile")
        updated_at = database.value("SELECT floor(extract(epoch FROM updated_at))::int FROM users")
        assert profile == {"updated_at": updated_at}
        assert userinfo(ALL) == email | phone | profile | {"groups": [], "roles": []}

    def test_profile_comes_from_user_metadata(self, database, userinfo):
        metadata = (
            '{"name": "Alice", "username": "al", "avatar_url": "https://a.example/a.png", "locale": "de",'
            ' "given_name": "Alice Ann", "family_name": "Ames", "nickname": "Ally",'
            ' "email": "x@evil.example", "sub": "x", "phone_number": "+1", "groups": ["admins"]}'
        )
        database.run("UPDATE users SET user_metadata = %(metadata)s", metadata=metadata)
        claims = userinfo("openid profile groups")
        expected = {"name": "Alice", "preferred_username": "al", "picture": "https://a.example/a.png"}
        expected |= {"given_name": "Alice Ann", "family_name": "Ames", "nickname": "Ally", "locale": "de"}
        assert claims == expected | {"groups": [], "updated_at": claims["updated_at"]}

    @cases(
        "metadata",
        ['{"name": ["x"], "picture": 1, "nickname": ""}', '{"name": "", "locale": {"x": "y"}}', "{}"],
    )
    def test_profile_is_left_out_if_it_is_no_text(self, database, userinfo, metadata):
        database.run("UPDATE users SET user_metadata = %(metadata)s", metadata=metadata)
        claims = userinfo("openid profile")
        assert claims == {"updated_at": claims["updated_at"]}

    @cases(
        ("value", "expected"),
        [('["a", "b"]', ["a", "b"]), ('["a", 1, null, ["b"]]', ["a"]), ('"a"', []), ('{"a": "b"}', [])],
    )
    def test_groups_and_roles_are_lists_of_text_in_app_metadata(self, database, userinfo, value, expected):
        metadata = f'{{"groups": {value}, "roles": {value}}}'
        database.run("UPDATE users SET app_metadata = %(metadata)s", metadata=metadata)
        assert userinfo("openid groups") == {"groups": expected}
        assert userinfo("openid roles") == {"roles": expected}

    def test_address_that_nobody_has_shown_is_not_verified(self, database, userinfo, alice):
        """AUTH_AUTOCONFIRM, for example, confirms it; an application would mistake the user for its owner."""
        database.run("UPDATE users SET email_proved = false")
        assert userinfo("openid email") == {"email": alice.email, "email_verified": False}
        database.run("UPDATE users SET email = NULL")
        assert userinfo("openid email phone") == {}


class TestToken:
    @pytest.fixture
    def token(self, client, database, alice):
        return tokens_of(client, database, make_client(database), alice)["access_token"]

    def test_token_may_be_in_the_form_of_a_post(self, client, database, alice, token):
        before = database.everything()
        expected = {"sub": alice.id, "email": alice.email, "email_verified": True}
        assert_ok(client.post(PATH, data={"access_token": token}), expected)
        assert_ok(client.post(PATH, headers=bearer(token)), expected)
        assert database.everything() == before
        twice = client.post(PATH, data={"access_token": token}, headers=bearer(token))
        assert_refused(twice, "invalid_request", description=TOKEN_TWICE)
        twice = client.post(PATH, data={"access_token": [token, token]})
        assert_refused(twice, "invalid_request", description=TOKEN_TWICE)
        in_query = [client.open(f"{PATH}?access_token={token}", method=method) for method in ("GET", "POST")]
        for response in (*in_query, client.post(PATH, json={"access_token": token})):
            assert_refused(response, "invalid_token", 401)
            assert response.headers["WWW-Authenticate"] == challenge("no_authorization")

    def test_other_tokens_are_refused(self, client, database, alice, token):
        session = alice.open_session()
        tokens = tokens_of(client, database, make_client(database), alice)
        head, payload, signature = token.split(".")
        altered = (f"{head}.{payload}.{signature[:-4]}AAAA", f"{head}.{payload}.", "nonsense", "é")
        for other in (session.access_token, tokens["id_token"], tokens["refresh_token"], *altered):
            answer = client.get(PATH, headers=bearer(other))
            assert_refused(answer, "invalid_token", 401)
            assert answer.headers["WWW-Authenticate"] == 'Bearer realm="latchkey", error="invalid_token"'
            assert client.post(PATH, data={"access_token": other}).status_code == 401

    def test_scope_openid_is_needed(self, client, database, alice):
        tokens = tokens_of(client, database, make_client(database), alice, "email")
        answer = client.get(PATH, headers=bearer(tokens["access_token"]))
        assert_refused(answer, "insufficient_scope", 403)
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="latchkey", error="insufficient_scope"'

    def test_access_token_replay_at_another_resource_is_refused_by_its_audience(
        self, client, database, alice
    ):
        """RFC 9700, section 4.9.1."""
        session = alice.open_session()
        tokens = tokens_of(client, database, make_client(database), alice, resource=RESOURCE)
        assert claims_of(tokens["access_token"])["aud"] != session.claims["aud"]
        answer = client.get("/user", headers=bearer(tokens["access_token"]))
        assert_error(answer, 403, "insufficient_scope")
