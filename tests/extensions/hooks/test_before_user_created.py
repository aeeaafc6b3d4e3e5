"""The hook before-user-created is called for each new user, and never reveals who has an account."""

import base64
import json
import re
from typing import Any

import pytest

from auth.extensions.hooks import turns
from tests.support.answers import A_UUID, assert_error
from tests.support.checked_rows import statements_run
from tests.support.commands import run_command
from tests.support.links import OTHER_PHONE, PHONE, Outbox
from tests.support.oauth import profile_metadata
from tests.support.pages import Visitor
from tests.support.processes import free_port
from tests.support.users import PASSWORD, sign_in, sign_up_anonymously
from tests.support.walkthrough import ROOT

pytest_plugins = ["tests.support.oauth_fixtures"]
SECRET = "whsec_" + base64.b64encode(bytes(32)).decode()
NEW = "dave@example.com"
REFUSED = {"error": {"http_code": 418, "message": "Members of the club only"}}
# Each way to create a user: the provider, and a request with its body.
WAYS: dict[str, tuple[str | None, str, dict[str, Any]]] = {
    "password": ("email", "/signup", {"email": NEW, "password": PASSWORD}),
    "password of a phone": ("phone", "/signup", {"phone": PHONE, "password": PASSWORD}),
    "anonymous": (None, "/signup", {"data": {}}),
    "emailed code": ("email", "/otp", {"email": NEW}),
    "SMS code": ("phone", "/otp", {"phone": PHONE}),
    "link": ("email", "/magiclink", {"email": NEW}),
    "invitation": ("email", "/invite", {"email": NEW}),
    "generated link": (
        "email",
        "/admin/generate_link",
        {"type": "signup", "email": NEW, "password": PASSWORD},
    ),
}
# These never say whether they created a user.
SILENT = ("emailed code", "SMS code", "link")
each_way = pytest.mark.parametrize("way", WAYS)


def create(client: Any, way: str, service_role: dict[str, str]) -> Any:
    _provider, path, body = WAYS[way]
    is_by_administrator = way in ("invitation", "generated link")
    return client.post(path, json=body, headers=service_role if is_by_administrator else {})


def settings(url, **others):
    hook = {"AUTH_HOOK_BEFORE_USER_CREATED": url, "AUTH_HOOK_BEFORE_USER_CREATED_SECRETS": SECRET}
    return hook | {"AUTH_ANONYMOUS_ENABLED": "true"} | others


@pytest.fixture
def target(target):
    target.answer = lambda _event: {}
    return target


@pytest.fixture
def make_hooked(make_app, target):
    return lambda **others: make_app(**settings(target.url, **others))


@pytest.fixture
def client(make_hooked):
    return make_hooked().test_client()


def questions(target):
    return [json.loads(posted.body) for posted in target.requests]


@each_way
def test_hook_is_asked_about_each_new_user(client, target, service_role, database, way):
    provider = WAYS[way][0]
    # Other members of the answer change nothing.
    target.answer = lambda _event: {"user": {"role": "service_role"}}
    assert create(client, way, service_role).status_code in (200, 201)
    (question,) = questions(target)
    metadata = {"uuid": A_UUID, "name": "before-user-created", "ip_address": "127.0.0.1"}
    assert question["metadata"] == metadata | {"time": question["metadata"]["time"]}
    user = question["user"]
    row = database.one(
        "SELECT id::text, coalesce(email, '') AS email, coalesce(phone, '') AS phone, role FROM users"
    )
    assert (user["id"], user["email"], f"+{user['phone']}".rstrip("+"), "authenticated") == row
    metadata = {"provider": provider, "providers": [provider]} if provider else {}
    assert (user["app_metadata"], user["is_anonymous"]) == (metadata, provider is None)
    assert (user["aud"], user["role"], user["identities"]) == ("authenticated", "authenticated", [])


@each_way
def test_user_whom_the_hook_refuses_is_not_created(client, target, service_role, database, way, parts):
    target.answer = lambda _event: REFUSED
    response = create(client, way, service_role)
    assert database.count("users") == database.count("sessions") == database.count("one_time_tokens") == 0
    assert [message for message in Outbox(parts, database).sent() if message.kind != "none"] == []
    if way in SILENT:
        assert response.status_code == 200
    else:
        assert response.json | {"code": 0} == {
            "code": 0,
            "msg": "Members of the club only",
            "error_code": "hook_refused",
        }
        assert response.status_code == response.json["code"] == 418


def test_command_that_invites_asks_the_hook_and_shows_its_refusal(client, target, database):
    assert run_command(client.application, "users", "invite", NEW).exit_code == 0
    target.answer = lambda _event: REFUSED
    result = run_command(client.application, "users", "invite", "erin@example.com")
    output = "erin@example.com: refused: Members of the club only\n"
    assert (result.exit_code, result.output) == (3, output)
    assert [question["metadata"]["ip_address"] for question in questions(target)] == ["", ""]
    assert database.count("users") == 1


@each_way
def test_hook_that_is_down_creates_nobody(make_app, service_role, database, way):
    client = make_app(**settings(f"http://127.0.0.1:{free_port()}")).test_client()
    response = create(client, way, service_role)
    assert database.count("users") == database.count("sessions") == 0
    if way in SILENT:
        assert response.status_code == 200
    else:
        assert_error(response, 503, "hook_failed")
        assert "127.0.0.1" not in response.text


class TestWhoIsNotAskedAbout:
    def test_administrators_and_changes_of_no_address_do_not_ask(self, client, target, service_role, alice):
        body = {"email": NEW, "password": PASSWORD, "email_confirm": True}
        assert client.post("/admin/users", json=body, headers=service_role).status_code == 200
        changes = {"email": alice.email, "data": {"name": "Alice"}, "password": "Another-Horse-1"}
        assert alice.sign_in(client=client).put("/user", json=changes).status_code == 200
        assert target.requests == []

    @pytest.mark.parametrize("is_down", [False, True])
    def test_users_sign_in_without_the_hook(self, make_hooked, alice, target, outbox, is_down):
        client = make_hooked().test_client()
        target.behaviour, target.answer = ("close", None) if is_down else ("", lambda _event: REFUSED)
        assert sign_in(client, alice.email).status_code == 200
        assert target.requests == []
        # The address may be free, so the hook is asked, but a user's code does not depend on it.
        assert client.post("/otp", json={"email": alice.email}).status_code == 200
        assert outbox.last().to == alice.email
        assert len(target.requests) == (2 if is_down else 1)

    def test_invitation_is_repeated_and_a_link_generated_without_the_hook(self, client, target, service_role):
        for _ in range(2):
            client.post("/invite", json={"email": NEW}, headers=service_role)
        body = {"type": "signup", "email": NEW, "password": PASSWORD}
        assert client.post("/admin/generate_link", json=body, headers=service_role).status_code == 200
        assert len(target.requests) == 1

    def test_nobody_is_asked_about_while_sign_ups_are_disabled(self, make_hooked, target):
        client = make_hooked(AUTH_DISABLE_SIGNUP="true").test_client()
        for way in ("password", "anonymous"):
            assert_error(create(client, way, {}), 403, "signup_disabled")
        client.post("/otp", json={"email": NEW})
        assert target.requests == []


class TestAddressesOfUsersWhoExist:
    """A refused address must not become that of an anonymous or another user either."""

    @pytest.fixture(params=["anonymous", "permanent"])
    def session(self, request, make_app, alice):
        without_hook = make_app(AUTH_ANONYMOUS_ENABLED="true").test_client()
        return sign_up_anonymously(without_hook) if request.param == "anonymous" else alice.sign_in()

    @pytest.mark.parametrize("address", [{"email": NEW}, {"phone": PHONE}], ids=str)
    def test_hook_is_asked_about_another_address_and_may_refuse_it(
        self, client, target, session, outbox, database, address
    ):
        session = session.on(client)
        response = session.put("/user", json=address)
        assert (response.status_code, len(outbox.sent())) == (200, 1)
        (question,) = questions(target)
        (kind,) = address
        assert question["user"]["id"] == session.user["id"]
        assert question["user"][kind] == address[kind].removeprefix("+")
        assert question["user"]["app_metadata"] == {"provider": kind, "providers": [kind]}
        target.answer = lambda _event: REFUSED
        before = database.everything("users", "one_time_tokens", "outbox")
        other = {"email": "erin@example.com"} if kind == "email" else {"phone": OTHER_PHONE}
        assert_error(session.put("/user", json=other), 418, "hook_refused")
        assert database.everything("users", "one_time_tokens", "outbox") == before

    def test_taken_address_is_asked_about_before_it_is_refused(self, client, target, alice, service_role):
        client.post("/admin/users", json={"email": NEW, "email_confirm": True}, headers=service_role)
        session = alice.sign_in(client=client)
        assert_error(session.put("/user", json={"email": NEW}), 409, "email_exists")
        target.answer = lambda _event: REFUSED
        for email in (NEW, "free@example.com"):
            assert_error(session.put("/user", json={"email": email}), 418, "hook_refused")
        assert len(target.requests) == 3

    def test_hook_is_asked_about_a_linked_identity_and_may_refuse_it(
        self, make_service, target, google, session, database
    ):
        google.person = {"sub": "dave", "email": NEW, "email_verified": True}
        service = make_service(**settings(target.url))
        session = session.on(service.client)
        target.answer = lambda _event: REFUSED
        body = {"provider": "google", "id_token": google.id_token(), "link_identity": True}
        assert_error(session.post("/token?grant_type=id_token", json=body), 418, "hook_refused")
        assert database.count("identities", "provider = 'google'") == 0
        target.answer = lambda _event: {}
        assert session.post("/token?grant_type=id_token", json=body).status_code == 200
        (*_, question) = questions(target)
        user = question["user"]
        assert (user["id"], user["email"]) == (session.user["id"], NEW)
        assert user["app_metadata"]["provider"] == "google"


def test_only_one_function_asks_whose_an_address_may_become():
    paths = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "auth").rglob("*.py")
        if re.search(
            r"in asked\.parts\.admission_hooks:|\.signup_(blocked_)?domains|\.disable_signup|settings\.sms_countries",
            path.read_text(),
        )
    }
    # Delivery also guards messages that were written before the setting, and GET /settings shows one.
    deciding = {"auth/flows/admission.py", "auth/rules/admission.py"}
    assert paths == deciding | {"auth/delivery/attempts.py", "auth/api/service.py"}


class TestProviders:
    @pytest.fixture
    def hooked(self, make_service, target, google):
        google.person = {"sub": "dave", "name": "Dave", "email": NEW, "email_verified": True}
        return make_service(**settings(target.url))

    def hand_in(self, service, id_token):
        body = {"provider": "google", "id_token": id_token}
        return service.client.post("/token?grant_type=id_token", json=body)

    def test_only_the_first_sign_in_asks(self, hooked, target, google):
        first = self.hand_in(hooked, google.id_token()).json["user"]
        (question,) = questions(target)
        user = {"id": first["id"], "email": NEW, "user_metadata": profile_metadata(name="Dave")}
        user |= {"is_anonymous": False, "app_metadata": {"provider": "google", "providers": ["google"]}}
        assert {name: question["user"][name] for name in user} == user
        assert hooked.signed_in("google").get("/user").json["id"] == first["id"]
        assert len(target.requests) == 1

    def test_refused_user_may_try_again_with_the_same_id_token(self, hooked, target, google, database):
        id_token, target.answer = google.id_token(), lambda _event: REFUSED
        assert_error(self.hand_in(hooked, id_token), 418, "hook_refused")
        assert database.count("users") == 0
        target.answer = lambda _event: {}
        assert self.hand_in(hooked, id_token).status_code == 200

    def test_application_gets_the_refusal_of_a_browser(self, hooked, target, database):
        target.answer = lambda _event: REFUSED
        page = hooked.sign_in("google")
        assert "error=access_denied" in page.url
        assert "error_code=hook_refused" in page.url
        assert "Members+of+the+club+only" in page.url.replace("%20", "+")
        target.answer, target.body = None, b"Oops"
        assert "error=temporarily_unavailable&error_code=hook_failed" in hooked.sign_in("google").url
        assert database.count("users") == 0


class TestHooksThatCallTheService:
    def test_hook_that_calls_itself_is_refused(
        self, make_hooked, target, service_role, database, monkeypatch
    ):
        # A tenth of a second is left to the hook otherwise, which a busy machine takes.
        monkeypatch.setattr(turns, "_PATIENCE", 0.2)
        app, answers = make_hooked(), []

        def answer(_event):
            body = {"email": f"user{len(target.requests)}@example.com"}
            answers.append(app.test_client().post("/invite", json=body, headers=service_role).status_code)
            return {}

        target.answer = answer
        assert create(app.test_client(), "password", {}).status_code == 201
        # The invitation waited in vain for the turn of its network.
        assert (answers, len(target.requests)) == ([503], 1)
        assert database.count("users") == 1


def test_sign_up_page_shows_the_message_of_the_hook(make_hooked, target, database):
    visitor = Visitor(make_hooked())
    target.answer = lambda _event: {"error": {"http_code": 401, "message": "<b>Members</b>\nonly"}}
    visitor.visit("/sign-up")
    page = visitor.submit(email=NEW, password=PASSWORD)
    assert page.status == 403
    assert "&lt;b&gt;Members&lt;/b&gt; only" in page.text
    target.answer, target.status = None, 500
    assert "available right now. Try again shortly." in visitor.submit(email=NEW, password=PASSWORD).text
    assert database.count("users") == 0


@pytest.mark.parametrize("answer", [{}, REFUSED, {"error": "?"}], ids=["agrees", "refuses", "lies"])
def test_taken_address_is_asked_about_like_a_free_one(
    make_hooked, target, alice, service_role, database, answer
):
    target.answer = lambda _event: answer
    app = make_hooked()
    client = app.test_client()
    for path, body in (("/signup", {"password": PASSWORD}), ("/otp", {}), ("/magiclink", {})):
        answers = []
        for email in (alice.email, NEW):
            before = (statements_run(), database.count("outbox"), len(target.requests))
            response = client.post(path, json=body | {"email": email})
            after = (statements_run(), database.count("outbox"), len(target.requests))
            text = re.sub(r"[0-9a-f-]{36}|[\d-]+T[\d:.]+Z|\w+@example.com", "", response.text)
            answers.append(
                (
                    response.status_code,
                    text,
                    [later - earlier for later, earlier in zip(after, before, strict=True)],
                )
            )
            assert after[2] == before[2] + 1
        assert answers[0] == answers[1], path
    ids = {question["user"]["id"] for question in questions(target)}
    assert len(ids) == 6
    assert alice.id not in ids
