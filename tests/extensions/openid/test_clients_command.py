"""`latchkey clients`: the applications that sign users in here."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from auth.extensions.openid.clients import DEVICE_CODE
from auth.extensions.openid.command.products import PRODUCTS
from tests.support.answers import A_CLIENT_SECRET, A_UUID, NO_ID, oauth_client
from tests.support.cases import cases
from tests.support.commands import SYSTEM_USER, run_command
from tests.system.interop.test_foreign_applications import TESTED

GRAFANA = "https://grafana.example.com/login/generic_oauth"
ENDPOINTS = {
    "issuer": "http://localhost:8000",
    "discovery_url": "http://localhost:8000/.well-known/openid-configuration",
    "authorization_endpoint": "http://localhost:8000/oauth/authorize",
    "token_endpoint": "http://localhost:8000/oauth/token",
    "userinfo_endpoint": "http://localhost:8000/oauth/userinfo",
    "end_session_endpoint": "http://localhost:8000/oauth/logout",
    "device_authorization_endpoint": "http://localhost:8000/oauth/device_authorization",
    "jwks_uri": "http://localhost:8000/.well-known/jwks.json",
}
HOME = "https://grafana.example.com/"
OPTIONS: dict[str, dict[str, Any]] = {
    "--role admin --role sales": {"allowed_roles": ["admin", "sales"]},
    "--no-pkce": {"require_pkce": False},
    "--skip-consent": {"skip_consent": True},
    f"--logout-uri {HOME}": {"post_logout_redirect_uris": [HOME]},
    "--backchannel-logout-uri http://127.0.0.1:9/": {"backchannel_logout_uri": "http://127.0.0.1:9/"},
    "--resource urn:api": {"resources": ["urn:api"]},
    "--grant client_credentials": {"grant_types": ["client_credentials"]},
    "--scope read --scope write": {"scopes": ["read", "write"]},
    "--introspects-sessions": {"introspects_sessions": True},
    "--method client_secret_post": {
        "token_endpoint_auth_method": "client_secret_post",
        "accepts_either_method": False,
    },
    "--alg ES256": {"id_token_signed_response_alg": "ES256"},
    "--lifetime 60": {"token_lifetime": 60},
    "--lifetime 0": {"token_lifetime": None},
    f"--website {HOME}": {"client_uri": HOME},
    f"--logo {HOME}logo.svg": {"logo_uri": f"{HOME}logo.svg"},
}


def rows_of_document() -> dict[str, list[str]]:
    """Return the rows of the table in docs/openid.md, by the name of `--for`."""
    document = (Path(__file__).parents[3] / "docs" / "openid.md").read_text()
    table = document.partition("## Applications\n")[2].partition("\n- ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "|" in line
    ]
    return {row[0].strip("`"): row for row in rows[2:]}


@pytest.fixture
def run(app):
    def run(*arguments: str) -> str:
        result = run_command(app, "clients", *arguments)
        assert result.exit_code == 0, result.output
        return result.output

    return run


@pytest.fixture
def grafana_client(run) -> dict[str, Any]:
    return json.loads(run("create", "grafana", GRAFANA, "--json"))


def grafana(**changes):
    return oauth_client(client_name="grafana", redirect_uris=[GRAFANA], **changes)


class TestCreating:
    @pytest.mark.usefixtures("no_openid_keys")
    def test_id_secret_and_endpoints_are_printed(self, make_app, database):
        # Another application may remember the keys.
        command = ("clients", "create", "grafana", GRAFANA, "--role", "admin")
        lines = run_command(make_app(fresh=True), *command).output.splitlines()
        printed = dict(line.split(maxsplit=1) for line in lines)
        assert printed == {"client_id": A_UUID, "client_secret": A_CLIENT_SECRET, **ENDPOINTS}
        row = database.one("SELECT action, actor, user_id, details FROM audit_log")
        details = {"client_id": printed["client_id"], "client": "grafana", "system_user": SYSTEM_USER}
        assert tuple(row) == ("client_created", "command", None, details)
        assert database.count("openid_keys") == 1

    def test_json_is_the_client_with_the_endpoints(self, grafana_client):
        assert grafana_client == grafana(client_secret=A_CLIENT_SECRET) | ENDPOINTS

    def test_client_of_a_device_has_its_grant_and_that_of_a_browser_only_with_redirects(self, run):
        grant_types = [
            json.loads(run("create", "tv", *uris, "--public", "--device", "--json"))["grant_types"]
            for uris in ([], ["com.example.tv:/callback"])
        ]
        assert grant_types == [
            ["refresh_token", DEVICE_CODE],
            ["authorization_code", "refresh_token", DEVICE_CODE],
        ]

    def test_tokens_for_oauth2_proxy_live_for_two_minutes_unless_an_option_says_otherwise(
        self, run, database
    ):
        lifetimes = []
        for options in ([], ["--lifetime", "300"]):
            run("create", "wiki", f"{HOME}oauth2/callback", "--for", "oauth2-proxy", *options)
            lifetimes.append(database.value("DELETE FROM oauth_clients RETURNING token_lifetime"))
        assert lifetimes == [120, 300]

    @pytest.mark.parametrize("name", PRODUCTS)
    def test_application_gets_the_client_of_the_document_and_settings_with_its_secret(self, run, name):
        _for, uri, options, _settings, _checked = rows_of_document()[name]
        expected = {
            "require_pkce": options != "`--no-pkce`",
            "client_type": "public" if options == "`--public`" else "confidential",
        }
        client = json.loads(run("create", name, uri.strip("`"), "--for", name, "--json"))
        assert {member: client[member] for member in expected} == expected
        printed = run("create", name, uri.strip("`"), "--for", name)
        secrets = re.findall(r"(?<![\w-])[\w-]{43}(?![\w-])", printed)
        assert (len(secrets), "$" in printed) == ("client_secret" in client, False)

    def test_document_names_each_application_and_the_tested_ones(self):
        tested = {
            name for name, (*_, checked) in rows_of_document().items() if checked.startswith("tested, ")
        }
        assert {*rows_of_document()} == {*PRODUCTS}
        assert tested == {*TESTED, "oauth2-proxy"}

    def test_redirect_uri_that_the_application_does_not_have_is_refused(self, app, database):
        result = run_command(
            app, "clients", "create", "g", "https://grafana.example.com/", "--for", "grafana"
        )
        assert (result.exit_code, "must end with /login/generic_oauth." in result.output) == (2, True)
        assert database.count("oauth_clients") == 0

    @cases("options", OPTIONS)
    def test_each_option_sets_its_member_of_a_new_client_and_of_another(self, run, options):
        other = json.loads(run("create", "grafana", GRAFANA, "--json"))["client_id"]
        client = json.loads(run("create", "grafana", GRAFANA, "--json", *options.split()))
        assert client == grafana(client_secret=A_CLIENT_SECRET) | ENDPOINTS | OPTIONS[options]
        assert json.loads(run("update", other, "--json", *options.split())) == grafana() | OPTIONS[options]

    @cases(
        ("arguments", "problem"),
        [
            (["grafana"], "redirect_uris is required"),
            (["grafana", "http://grafana.example.com"], "http is only for localhost"),
            (["grafana", GRAFANA, "--public", "--no-pkce"], "require_pkce: must be true"),
            (["grafana", GRAFANA, "--grant", "implicit"], "'implicit' is not one of"),
        ],
    )
    def test_refused_client_is_wrong_usage(self, app, database, arguments, problem):
        result = run_command(app, "clients", "create", *arguments)
        assert (result.exit_code, problem in result.output) == (2, True)
        assert database.count("oauth_clients") == 0


class TestOtherCommands:
    def test_list_has_all_clients_newest_first(self, run, grafana_client):
        other = json.loads(run("create", "app", "com.example.app:/callback", "--public", "--json"))
        assert run("list") == (
            f"{other['client_id']}  manual    public        app\n"
            f"{grafana_client['client_id']}  manual    confidential  grafana\n"
        )
        listed = [json.loads(line) for line in run("list", "--json").splitlines()]
        assert [client["client_id"] for client in listed] == [other["client_id"], grafana_client["client_id"]]

    def test_list_reads_all_pages(self, run, database):
        insert = """
            INSERT INTO oauth_clients (token_endpoint_auth_method, redirect_uris, grant_types)
            SELECT 'none', '{x:/}', '{authorization_code}' FROM generate_series(1, 201)
        """
        assert run("list") == ""
        database.run(insert)
        assert len(run("list").splitlines()) == 201

    def test_show_has_all_members_but_the_secret(self, run, grafana_client):
        lines = run("show", grafana_client["client_id"]).splitlines()
        printed = {line.split()[0]: line.split()[1:] for line in lines}
        assert printed.keys() == grafana().keys()
        assert (printed["redirect_uris"], printed["require_pkce"]) == ([GRAFANA], ["true"])
        assert json.loads(run("show", grafana_client["client_id"], "--json")) == grafana()

    def test_update_renames_replaces_lists_and_clears_them(self, run, grafana_client):
        id = grafana_client["client_id"]
        run("update", id, "--role", "admin", "--no-pkce", "--skip-consent")
        resets = ["--role", "", "--pkce", "--ask-consent"]
        client = json.loads(
            run("update", id, "--name", "g", "--redirect-uri", "https://g.example/", *resets, "--json")
        )
        assert client == oauth_client(client_name="g", redirect_uris=["https://g.example/"])

    @cases("arguments", [["show"], ["update", "--name", "x"], ["delete"], ["rotate"], ["end-old-secret"]])
    def test_unknown_client_exits_with_3(self, app, arguments):
        command, *options = arguments
        result = run_command(app, "clients", command, NO_ID, *options)
        remedy = "Find its ID by: latchkey clients list"
        assert (result.exit_code, result.output) == (3, f"Error: OAuth client not found. {remedy}\n")
        assert run_command(app, "clients", command, "grafana", *options).exit_code == 2
