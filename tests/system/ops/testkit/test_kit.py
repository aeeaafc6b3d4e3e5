"""The test kit: the fixture `latchkey`, `mint`, and the databases of the test server."""

import contextlib
import socket
import time
import uuid
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
import pytest
import standardwebhooks

from auth.ops.testkit import Refused, databases
from latchkey_auth.testing import Control, Latchkey, LatchkeyError, User, jwks, mint
from tests.support.cases import cases
from tests.support.processes import wait_until


@pytest.fixture(scope="session")
def latchkey_settings() -> dict[str, str]:
    hooks = ("BEFORE_USER_CREATED", "CUSTOM_ACCESS_TOKEN", "SEND_SMS")
    own = {"AUTH_ANONYMOUS_ENABLED": "true", "AUTH_ORGANIZATIONS": "admins"}
    return own | {f"AUTH_HOOK_{name}": "capture" for name in hooks}


@pytest.fixture
def http(latchkey: Latchkey):
    with httpx.Client(base_url=latchkey.url, trust_env=False, timeout=60) as http:
        yield http


def refused(text: str):
    return pytest.raises(LatchkeyError, match=text)


def test_user_has_what_the_test_chose_and_signs_in(latchkey, http):
    members = {"role": "editor", "app_metadata": {"plan": "pro"}, "user_metadata": {"name": "Alice"}}
    alice = latchkey.user(email="alice@example.com", password="Correct-Horse-7-Battery", **members)
    credentials = {"email": alice.email, "password": alice.password}
    assert http.post("/token?grant_type=password", json=credentials).status_code == 200
    user = http.get("/user", headers=alice.headers()).json()
    assert (user["id"], user["email"]) == (alice.id, "alice@example.com")
    assert {name: user[name] | members[name] for name in ("app_metadata", "user_metadata")} == {
        name: user[name] for name in ("app_metadata", "user_metadata")
    }
    assert user["role"] == "editor"


def test_users_with_a_phone_without_an_address_or_unconfirmed_can_be_made(latchkey, http):
    phone, guest = latchkey.user(phone="+4915112345678"), latchkey.user(anonymous=True)
    assert http.get("/user", headers=phone.headers()).json()["phone"] == "+4915112345678"
    assert http.get("/user", headers=guest.headers()).json()["is_anonymous"]
    unconfirmed = latchkey.user(confirmed=False)
    credentials = {"email": unconfirmed.email, "password": unconfirmed.password}
    assert (
        http.post("/token?grant_type=password", json=credentials).json()["error_code"]
        == "email_not_confirmed"
    )
    with refused("email_exists"):
        latchkey.user(email=unconfirmed.email)


def test_many_users_sign_in_with_their_password(latchkey, http):
    *_, last_user = users = latchkey.users(2_000)
    assert len({user.email for user in users}) == 2_000
    credentials = {"email": last_user.email, "password": last_user.password}
    assert http.post("/token?grant_type=password", json=credentials).status_code == 200
    # Their user objects are like those of POST /admin/users.
    objects = [http.get("/user", headers=user.headers()).json() for user in (last_user, latchkey.user())]
    assert objects[0].keys() == objects[1].keys()
    assert objects[0]["identities"][0]["identity_data"] == {"sub": last_user.id, "email": last_user.email}


def test_token_has_the_chosen_level_expiry_and_claims(latchkey, http):
    alice = latchkey.user(factors=["totp"])
    full_session, session_without_step = alice.session(), alice.session(aal="aal1")
    claims = [
        jwt.decode(each["access_token"], options={"verify_signature": False})
        for each in (full_session, session_without_step)
    ]
    assert [(each["aud"], each["aal"]) for each in claims] == [
        ("authenticated", "aal2"),
        ("second_step", "aal1"),
    ]
    assert http.get("/user", headers=alice.headers()).status_code == 200
    assert http.get("/user", headers=alice.headers(expires_in=-60)).json()["error_code"] == "bad_jwt"
    own_claims = jwt.decode(
        alice.token(claims={"plan": "pro", "phone": None}), options={"verify_signature": False}
    )
    assert (own_claims["plan"], "phone" in own_claims) == ("pro", False)
    refreshed = http.post(
        "/token?grant_type=refresh_token", json={"refresh_token": full_session["refresh_token"]}
    )
    assert refreshed.status_code == 200


def test_code_of_the_authenticator_app_works_each_time(latchkey, http):
    alice = latchkey.user(factors=["totp"])
    for _ in range(2):
        headers = alice.headers(aal="aal1")
        (factor,) = http.get("/user", headers=headers).json()["factors"]
        challenge = http.post(f"/factors/{factor['id']}/challenge", headers=headers, json={}).json()
        body = {"challenge_id": challenge["id"], "code": alice.totp()}
        assert http.post(f"/factors/{factor['id']}/verify", headers=headers, json=body).status_code == 200
    with refused("authenticator app"):
        latchkey.user().totp()


def test_cookies_sign_a_browser_in_on_the_pages(latchkey, http):
    (cookie,) = latchkey.user(email="alice@example.com").cookies()
    answer = http.get(
        "/account", headers={"Cookie": f"{cookie['name']}={cookie['value']}", "Accept": "text/html"}
    )
    assert "alice@example.com" in answer.text


def test_hooks_are_captured_and_answer_what_the_test_says(latchkey, http):
    alice = latchkey.user(phone="+4915112345678")
    latchkey.answer("customize-access-token", {"error": {"http_code": 403, "message": "Not today"}})
    with refused("Not today"):
        alice.token()
    answer = {"error": {"http_code": 400, "message": "By invitation only"}}
    latchkey.answer("before-user-created", answer)
    credentials = {"email": "eve@example.com", "password": "Correct-Horse-7-Battery"}
    assert http.post("/signup", json=credentials).json()["msg"] == "By invitation only"
    http.post("/otp", json={"phone": alice.phone})
    assert latchkey.inbox.all() == []
    names = {call.hook for call in latchkey.hooks}
    assert names == {"customize-access-token", "before-user-created", "send-sms"}
    for call in latchkey.hooks:
        standardwebhooks.Webhook(latchkey.hook_secret).verify(call.text, call.headers)


def test_inbox_has_mail_at_once(latchkey, http):
    alice = latchkey.user()
    for _ in range(2):
        http.post("/recover", json={"email": alice.email})
    mail = latchkey.inbox.last(alice)
    assert (len(latchkey.inbox.all(alice.email)), mail.kind, mail.code in mail.text) == (2, "recovery", True)
    assert mail.link in mail.text
    assert mail.html.startswith("<!doctype html>")


def test_webhooks_are_signed(latchkey):
    alice = latchkey.user()
    (event,) = latchkey.webhooks
    assert (event.body["event"], event.body["data"]["user"]["id"]) == ("user.created", alice.id)
    standardwebhooks.Webhook(latchkey.webhook_secret).verify(event.text, event.headers)


def test_requests_fail_as_often_as_the_test_says(latchkey, http):
    alice = latchkey.user()
    body = {"refresh_token": alice.session()["refresh_token"]}
    latchkey.fail("refresh", times=2)
    latchkey.fail("GET /us*", status=500)
    answers = [http.post("/auth/v1/token?grant_type=refresh_token", json=body) for _ in range(3)]
    assert [(each.status_code, each.headers.get("Retry-After")) for each in answers] == [(503, "1")] * 2 + [
        (200, None)
    ]
    answers = [http.get("/user", headers=alice.headers()) for _ in range(2)]
    assert [each.status_code for each in answers] == [500, 200]
    with refused("418"):
        latchkey.fail("refresh", status=418)


def claims_of(user, **options):
    return jwt.decode(user.token(**options), options={"verify_signature": False})


def test_members_of_an_organization_have_it_in_their_tokens(latchkey, http):
    alice, bob, carol = (latchkey.user() for _ in range(3))
    acme = latchkey.organization("Acme Ltd", owner=alice, members={bob: "member"})
    globex = latchkey.organization("Globex", owner=bob)
    assert (acme.slug, acme.name) == ("acme-ltd", "Acme Ltd")
    assert claims_of(alice)["organizations"] == {acme.id: "owner"}
    assert claims_of(bob)["organizations"] == {acme.id: "member", globex.id: "owner"}
    assert "organizations" not in claims_of(carol)
    (listed,) = http.get("/organizations", headers=alice.headers()).json()["data"]
    assert (listed["id"], listed["slug"], listed["role"]) == (acme.id, "acme-ltd", "owner")


def test_member_gets_another_role_and_is_removed(latchkey):
    alice, bob = latchkey.user(), latchkey.user()
    acme = latchkey.organization("Acme", owner=alice)
    acme.add(bob)
    assert claims_of(bob)["organizations"] == {acme.id: "member"}
    acme.add(bob, "billing")
    assert claims_of(bob)["organizations"] == {acme.id: "billing"}
    acme.remove(bob)
    assert "organizations" not in claims_of(bob)
    with refused("user_not_found"):
        acme.remove(bob)


def test_events_tell_an_application_of_the_organization_and_its_members(latchkey):
    alice, bob = latchkey.user(), latchkey.user()
    acme = latchkey.organization("Acme", owner=alice, members={bob: "billing"})
    acme.remove(bob)
    about_acme = [each.body for each in latchkey.webhooks if "organization" in each.body["data"]]
    assert {each["data"]["organization"]["id"] for each in about_acme} == {acme.id}
    assert sorted(each["event"] for each in about_acme) == [
        "membership.created", "membership.created", "membership.deleted", "organization.created",
    ]  # fmt: skip


def test_session_without_the_second_step_that_an_organization_requires_has_no_membership(latchkey, http):
    alice = latchkey.user(factors=["totp"])
    acme = latchkey.organization("Acme", owner=alice)
    headers = {"apikey": latchkey.service_role_key}
    required = http.put(f"/organizations/{acme.id}", json={"requires": {"aal": "aal2"}}, headers=headers)
    assert required.status_code == 200
    assert claims_of(alice)["organizations"] == {acme.id: "owner"}
    assert "organizations" not in claims_of(alice, aal="aal1")


def test_organization_of_a_user_or_role_that_does_not_exist_is_refused_with_the_reason(latchkey):
    bob, nobody = latchkey.user(), User(latchkey, str(uuid.uuid4()))
    with refused("user_not_found"):
        latchkey.organization("Acme", owner=nobody)
    with refused("name: "):
        latchkey.organization("")
    acme = latchkey.organization("Acme")
    for role in ("", "Two words"):
        with refused("role: "):
            acme.add(bob, role)
    with refused("email_not_confirmed"):
        acme.add(latchkey.user(anonymous=True))
    assert "organizations" not in claims_of(bob)


def test_organization_without_the_setting_is_refused_by_the_name_of_the_setting(latchkey_server):
    url, key = urlsplit(latchkey_server._control.url), latchkey_server._control._key
    without = Control(f"{url.scheme}://{url.netloc}", key).start({"AUTH_ORGANIZATIONS": "off"})
    with refused("AUTH_ORGANIZATIONS is off"):
        without.organization("Acme")


def test_time_passes_for_one_user(latchkey, http):
    users = [latchkey.user(), latchkey.user()]
    tokens = [{"refresh_token": user.session()["refresh_token"]} for user in users]
    latchkey.age(users[0], days=31)
    answers = [http.post("/token?grant_type=refresh_token", json=each) for each in tokens]
    assert [each.status_code for each in answers] == [400, 200]
    http.post("/recover", json={"email": users[1].email})
    latchkey.age(users[1], hours=2)
    code = latchkey.inbox.last(users[1]).code
    response = http.post("/verify", json={"type": "recovery", "email": users[1].email, "token": code})
    assert response.json()["error_code"] == "otp_expired"


def test_reset_leaves_nothing_but_the_service(latchkey, http):
    alice = latchkey.user()
    headers = alice.headers()
    http.post("/recover", json={"email": alice.email})
    assert latchkey.inbox.all()
    latchkey.fail("GET /user")
    latchkey.organization("Acme", owner=alice)
    latchkey.reset()
    assert latchkey.organization("Acme").slug == "acme"
    latchkey.reset()
    assert (latchkey.inbox.all(), latchkey.webhooks) == ([], [])
    assert http.get("/user", headers=headers).json()["error_code"] == "user_not_found"
    latchkey.user()
    assert len(latchkey.webhooks) == 1


def test_control_needs_its_key_and_listens_on_loopback_only(latchkey):
    address = urlsplit(latchkey._control.url)
    for key in ("", "another"):
        with refused("key"):
            Control(latchkey._control.url, key).call("user")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", address.port or 0)).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", urlsplit(latchkey.url).port or 0)).close()


@cases(
    "settings",
    [{"AUTH_BIND": "::"}, {"DATABASE_URL": "postgresql://x/x"}, {"AUTH_STATE_DIR": "/"}, {"PATH": "/"}],
)
def test_settings_that_would_leave_the_machine_are_refused(latchkey_server, settings):
    url, key = urlsplit(latchkey_server._control.url), latchkey_server._control._key
    with refused(next(iter(settings))):
        Control(f"{url.scheme}://{url.netloc}", key).start(settings)


def test_other_program_on_the_port_is_not_taken_for_the_service(latchkey, latchkey_server):
    control, port = latchkey_server._control, urlsplit(latchkey.url).port
    url = urlsplit(control.url)
    with refused(f"Can't listen on 127.0.0.1:{port}: Address already in use"):
        Control(f"{url.scheme}://{url.netloc}", control._key).start({"PORT": str(port)})


def test_minted_token_is_verified_by_the_keys():
    token = mint({"role": "editor", "phone": None}, issuer="https://auth.example.com")
    (key,) = jwt.PyJWKSet.from_dict(jwks()).keys
    options: Any = {"require": ["exp", "sub", "session_id"]}
    expected: Any = {"issuer": "https://auth.example.com", "audience": "authenticated"}
    claims = jwt.decode(token, key, ["ES256"], options=options, **expected)
    assert (claims["role"], claims["exp"] > time.time(), "phone" in claims) == ("editor", True, False)
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(f"{token[:-4]}AAAA", key, ["ES256"], **expected)


@cases(
    "url",
    [
        "postgresql://db.example.com/postgres",
        "postgresql://localhost,db.example.com/postgres",
        "postgresql://localhost/postgres?hostaddr=192.0.2.1",
        "postgresql:///postgres?service=production",
        "nonsense",
    ],
)
def test_postgres_that_may_be_foreign_is_refused(url):
    with pytest.raises(Refused, match="LATCHKEY_TEST_DATABASE_URL"):
        databases.refuse_remote(url)


def test_databases_of_killed_test_servers_are_dropped_and_no_others(all_rows, database_url):
    def present() -> set[str]:
        return {
            row.datname
            for row in all_rows.all("SELECT datname FROM pg_database WHERE datname LIKE 'latchkey_test%%'")
        }

    all_rows.run("CREATE DATABASE latchkey_test_of_somebody")
    try:
        with contextlib.closing(databases.Databases(database_url)) as living_server:
            killed_server = databases.Databases(database_url)
            database, living_database = killed_server.make(), killed_server.make()
            database.connection.close()
            # Postgres ends the backend of a closed connection a moment later.
            name = urlsplit(database.url).path[1:]
            clients = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %(name)s AND usesysid IS NOT NULL"
            )
            wait_until(lambda: all_rows.value(clients, name=name) == 0)
            living_server.make()
            names = {urlsplit(each.url).path[1:] for each in (database, living_database)}
            assert present() & names == {urlsplit(living_database.url).path[1:]}
            killed_server.close()
        assert {name for name in present() if "template" not in name} == {"latchkey_test_of_somebody"}
    finally:
        for name in present():
            all_rows.run(f'DROP DATABASE "{name}" WITH (FORCE)')
