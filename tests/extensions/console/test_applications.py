"""/console/applications: the applications that sign users in here, their grants, and what administrators change."""

import hashlib
import html
import re

import pytest

from tests.support.cases import cases
from tests.support.openid import allow, insert_client
from tests.support.pages import Visitor, words

CALLBACK = "https://grafana.example/login"
UNKNOWN_ID = "11111111-1111-1111-1111-111111111111"
NEW = {
    "client_name": "Grafana",
    "token_endpoint_auth_method": "client_secret_basic",
    "redirect_uris": CALLBACK,
    "authorization_code": "yes",
    "refresh_token": "yes",
    "require_pkce": "yes",
    "id_token_signed_response_alg": "RS256",
}
_NAMES = re.compile(r'<td class="long"><a [^>]+>(?:<bdi translate="no">)?([^<]+)<')
_SECRET = re.compile(r"<dt>Secret</dt><dd><code>([\w-]{43})</code>")
# The name could read “Grafana is trusted”, and the picture would reveal the visitor to its host.
PLANTED = '\u202edetsurt si\u202c <b>Grafana</b>"><img src=x>\u200b'
LOGO = "https://tracker.example/logo.png?operator"


@pytest.fixture
def submit(armed, act_at):
    """Submit a form with a factor's code, and return the next page. None clears a checkbox."""

    def submit(path, **fields):
        page = armed.visit(f"/console/applications/{path}")
        ticked = dict.fromkeys(re.findall('name="([a-z_]+)" value="yes" checked', page.text), "yes")
        values = {name: value for name, value in (ticked | fields).items() if value is not None}
        return act_at("/console/applications", path, **values)

    return submit


def add(database, name="Grafana", users=(), **columns):
    """Add a confidential application, which these users allow, and return its id."""
    client_id = insert_client(database, name=name, **columns)
    for user in users:
        allow(database, user.id, client_id)
    return client_id


class TestLists:
    def test_applications_are_shown_with_their_use_and_paged(self, operator, database, alice, bob):
        assert "No applications yet" in words(operator.visit("/console/applications"))
        add(database, "Gitea", users=[alice, bob])
        add(database, "", token_endpoint_auth_method="none", is_dynamic=True)
        text = words(operator.visit("/console/applications"))
        assert "Gitea confidential 2 just now just now" in text
        assert "Unnamed application public registered itself 0 never just now" in text
        for number in range(25):
            add(database, f"Tool {number}")
        operator.visit("/console/applications")
        names = [name for page in operator.pages() for name in _NAMES.findall(page.text)]
        assert names == [*(f"Tool {number}" for number in range(24, -1, -1)), "Unnamed application", "Gitea"]

    def test_grants_are_shown_with_their_users(self, operator, database, alice, bob):
        id, _other = add(database, users=[bob]), add(database, "Gitea", users=[alice])
        text = words(operator.visit(f"/console/applications/{id}"))
        assert "Last use just now , 1 grant" in text
        assert f"{bob.email} openid email just now just now Remove" in text
        assert alice.email not in text
        for id in (UNKNOWN_ID, "nonsense"):
            assert operator.visit(f"/console/applications/{id}").status == 404


def test_names_and_urls_of_dynamic_applications_are_harmless(operator, database, alice):
    id = add(
        database,
        PLANTED,
        users=[alice],
        is_dynamic=True,
        redirect_uris=["com.evil.app:/<script>"],
    )
    database.run("UPDATE oauth_clients SET uri = 'javascript:alert(1)', logo_uri = %(logo)s", logo=LOGO)
    for path in ("applications", f"applications/{id}", f"users/{alice.id}"):
        page = operator.visit(f"/console/{path}")
        assert (
            '<bdi translate="no">detsurt si &lt;b&gt;Grafana&lt;/b&gt;&#34;&gt;&lt;img src=x&gt;</bdi>'
            in page.text
        )
        assert not re.search(
            "[\u200b\u202c\u202e]|<b>|<img src=x|<script>|(href|src)=[^ ]*(javascript|tracker)", page.text
        )
        assert "tracker.example" not in page.headers["Content-Security-Policy"]
    operator.visit(f"/console/applications/{id}")
    assert (LOGO in operator.page.text, "javascript:alert(1)" in operator.page.text) == (True, True)


class TestActs:
    def test_secret_is_shown_once_and_only_its_hash_is_kept(self, submit, armed, carol, database):
        page = submit("new", **NEW)
        (secret,) = _SECRET.findall(page.text)
        row = database.one("SELECT id, name, secret_hash, redirect_uris FROM oauth_clients")
        assert (row.name, row.redirect_uris) == ("Grafana", [CALLBACK])
        assert bytes(row.secret_hash) == hashlib.sha256(secret.encode()).digest()
        assert page.headers["Cache-Control"] == "no-store"
        assert row.id in words(page)
        text = words(armed.visit(f"/console/applications/{row.id}"))
        assert "Confidential: on a server, sends its secret by HTTP Basic" in text
        assert secret not in armed.page.text
        entry = database.one("SELECT actor, actor_id, details FROM audit_log WHERE action = 'client_created'")
        assert (entry.actor, entry.actor_id) == ("user", carol.id)
        assert entry.details["client"] == "Grafana"
        assert secret not in str(database.everything())

    def test_all_settings_are_changed_and_kept_by_a_form_that_is_sent_unchanged(self, submit, database):
        id = add(database)
        fields = {
            "client_name": "Grafana 2",
            "client_uri": "https://grafana.example.com",
            "token_endpoint_auth_method": "client_secret_post",
            "redirect_uris": f"{CALLBACK}\r\nhttps://b.example.com/cb\r\n",
            "resources": "https://api.example.com",
            "allowed_roles": "staff\nops",
            "token_lifetime": "900",
            "require_pkce": None,
        }
        assert "Application changed." in words(submit(f"{id}/change", **fields))
        expected = {
            "name": "Grafana 2",
            "uri": "https://grafana.example.com",
            "token_endpoint_auth_method": "client_secret_post",
            "redirect_uris": [CALLBACK, "https://b.example.com/cb"],
            "resources": ["https://api.example.com"],
            "allowed_roles": ["staff", "ops"],
            "require_pkce": False,
            "token_lifetime": 900,
        }
        statement = f"SELECT {', '.join(expected)} FROM oauth_clients"
        assert database.one(statement)._asdict() == expected
        submit(f"{id}/change")
        assert database.one(statement)._asdict() == expected
        cleared: dict[str, object] = {"uri": "", "resources": [], "allowed_roles": [], "token_lifetime": None}
        submit(f"{id}/change", **dict.fromkeys({"client_uri", *cleared} - {"uri"}, ""))
        assert database.one(statement)._asdict() == expected | cleared

    @cases(
        ("fields", "field", "problem"),
        [
            (
                {"redirect_uris": "http://grafana.example.com/"},
                "redirect_uris",
                "“http://grafana.example.com/” can’t be used: http is only for localhost, 127.0.0.1 and [::1].",
            ),
            (
                {"token_endpoint_auth_method": "none", "require_pkce": None},
                "require_pkce",
                "A public application, or one that registered itself, needs PKCE.",
            ),
            (
                {"token_lifetime": "an hour"},
                "token_lifetime",
                "The lifetime must be a whole number from 30 to 86400.",
            ),
        ],
    )
    def test_what_is_wrong_stands_at_its_field_and_nothing_is_lost(
        self, submit, database, fields, field, problem
    ):
        values = NEW | {"allowed_roles": "staff"} | fields
        page = submit("new", **values)
        assert page.status == 400
        assert re.findall(r'<p class="wrong"[^>]*>(.*?)</p>', page.text) == [html.escape(problem)]
        # The wrong field is the last one before the sentence, described by it, and focused.
        before = page.text.partition('id="problem" role')[0]
        *_, tag = re.finditer(r'<(?:input|textarea|select)[^>]* name="(\w+)"[^>]*>', before)
        assert tag[1] == field
        assert ' aria-invalid="true" aria-describedby="problem" autofocus' in tag[0]
        assert page.text.count('aria-invalid="true"') == page.text.count(" autofocus") == 1
        assert "<h1>Add an application</h1>" in page.text
        assert ">\nstaff</textarea>" in page.text
        assert page.text.count('value="yes" checked') == sum(value == "yes" for value in values.values())
        assert database.count("oauth_clients") == 0

    def test_kind_of_application_decides_its_grants_and_an_error_opens_more_settings(self, submit, database):
        machine = NEW | {
            "client_name": "Nightly",
            "token_endpoint_auth_method": "machine",
            "redirect_uris": "",
        }
        assert "Copy the secret now" in words(submit("new", **machine))
        statement = "SELECT grant_types, token_endpoint_auth_method FROM oauth_clients"
        assert database.one(statement).grant_types == ["client_credentials"]
        for fields, is_open in (({"redirect_uris": "x"}, False), ({"token_lifetime": "x"}, True)):
            text = submit("new", **NEW | fields).text
            assert ('<details class="field" open>' in text) is is_open
            assert re.search(r'value="client_secret_basic"|value=""[^>]*>\s*<span>Web app', text)
        assert re.search('<input id="client_name"[^>]* required', text)

    def test_old_secret_works_for_a_day_if_that_is_ticked(self, submit, armed, database):
        id = add(database)
        old = bytes(database.value("SELECT secret_hash FROM oauth_clients"))
        assert "end-old-secret" not in armed.visit(f"/console/applications/{id}").text
        page = submit(f"{id}/new-secret", overlap="yes")
        row = database.one(
            "SELECT previous_secret_hash, previous_secret_expires_at AS ends FROM oauth_clients"
        )
        assert bytes(row.previous_secret_hash) == old
        ends = f"until {row.ends:%Y-%m-%d %H:%M:%S} UTC"
        assert f"Enter all three in the application. The old secret works {ends}." in words(page)
        assert f"Old secret still works {ends}" in words(armed.visit(f"/console/applications/{id}"))


class TestOnThisMachine:
    """An administrator without a factor."""

    def test_sign_in_of_the_last_minutes_is_enough_to_add_an_application(self, operator, database):
        page = operator.visit("/console/applications/new")
        assert (page.status, "factor_code" in page.text) == (200, False)
        operator.press("applications/new", **NEW)
        assert _SECRET.search(operator.page.text)
        assert database.count("oauth_clients") == 1

    def test_public_service_asks_for_a_factor(self, make_app, carol, database):
        public = "http://auth.example.com"
        operator = Visitor(make_app(AUTH_BASE_URL=public), public).with_session_of(carol)
        assert "/account/confirm?by=code" in operator.visit("/console/applications/new").url
        assert "We ask this before “Add an application”. Some admin actions need" in words(operator.page)
        operator.send("/console/applications/new", **NEW)
        assert database.count("oauth_clients") == 0
