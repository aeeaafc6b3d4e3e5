"""What operators learn about an organization's provider before they turn it off, and what that ends."""

import json

import pytest

from tests.support.api_keys import insert_key
from tests.support.armed_console import act_at as act_at
from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.commands import run_command
from tests.support.pages import words

NAMED = "Acme-Idp (Acme)"
OPENED = "1 session, 1 session of applications and 1 API key"
PROMISES = (
    f"Disables 1 provider, {NAMED}. Nobody can sign in with it any more.",
    f"Ends {OPENED}. None of them gives a token from that moment on; they are ended in batches.",
    "Members stay members, and passwords, passkeys and emailed links still sign in.",
    "Acme requires its own sign-in: its members lose access until it is enabled again, or the requirement is lifted.",
    "Its owners are told, and can’t turn it on again.",
)


@pytest.fixture
def answer(on, application, alice, database):
    """What an application got in a session that the provider has opened, in which a key was added, too. The organization
    requires its own sign-in, and Alice's sessions by password have ended.
    """
    answer = application.tokens(on, scope="openid organization")
    insert_key(database, alice.id)
    database.run(
        "UPDATE api_keys SET provider_term = (SELECT term FROM identity_providers);"
        "UPDATE organizations SET needs_own_provider = true"
    )
    return answer


def test_page_says_whose_the_provider_is_and_what_it_has_opened(armed, answer, provider, id):
    page = armed.visit(f"/console/providers/{provider}")
    text = words(page)
    for part in (
        "Organization Acme acme", "Connected just now by alice@example.com", "Turned on just now by alice@example.com",
        "Tested just now by an owner", "Users 1", "Sessions 1", "Sessions of applications 1",
        "API keys 1", "Members added 0",
    ):  # fmt: skip
        assert part in text
    assert f'href="../../console/audit?organization={id}"' in page.text
    assert "has ended" not in text


def test_console_says_what_it_ends_and_ends_it(armed, act_at, answer, application, provider, database, alice):
    path = f"/console/providers/{provider}"
    text = words(armed.visit(f"{path}/disable"))
    for promise in PROMISES:
        assert promise in text
    # The page changes nothing.
    assert database.value("SELECT is_on FROM identity_providers")
    text = words(act_at(path, "disable"))
    assert "Provider disabled." in text
    assert "Sessions 0 Sessions of applications 0 API keys 0" in text
    assert "All that it had opened has ended." in text
    assert application.refresh(answer["refresh_token"]).status_code == 400
    assert database.count("memberships") == 1
    assert "Turned off just now by carol@example.com" in text
    explained = words(armed.visit(f"/console/users/{alice.id}"))
    assert f"The provider {NAMED} is disabled by an operator. See whose it is, and why." in explained
    assert "Acme asks for its own sign-in, and nobody can: Acme-Idp is off." in explained


@pytest.mark.parametrize("name", ["id", "identifier", "example.com", "acme-idp", "ACME-IDP"])
def test_command_finds_the_provider_says_what_it_ends_and_asks(
    app, latchkey, answer, application, provider, provider_identifier, database, name
):
    name = {"id": provider, "identifier": provider_identifier}.get(name, name)
    shown = latchkey("providers", "show", name).stdout
    for part in ("organization: Acme (acme,", "connected:", "turned on:", f"open now:     {OPENED}"):
        assert part in shown
    refused = run_command(app, "providers", "disable", name, input="n\n")
    assert refused.exit_code == 1
    assert "Nothing was changed." in refused.output
    assert database.value("SELECT is_on FROM identity_providers")
    result = latchkey("providers", "disable", name, input="y\n")
    for promise in PROMISES:
        assert promise in result.output
    assert "All that it had opened has ended." in result.output
    assert application.refresh(answer["refresh_token"]).status_code == 400
    assert "turned off:" in latchkey("providers", "show", name).stdout
    latchkey("providers", "enable", name, "--yes")
    assert application.refresh(answer["refresh_token"]).status_code == 400


def test_command_finds_the_provider_by_its_id_and_its_domain_in_capitals(latchkey, provider):
    for name in (provider.upper(), "EXAMPLE.com"):
        assert json.loads(latchkey("providers", "show", name, "--json").stdout)["id"] == provider


def test_script_gets_the_counts_as_json_and_is_not_asked(latchkey, answer, provider):
    before = json.loads(latchkey("providers", "show", provider, "--json").stdout)
    opened = {"users": 1, "sessions": 1, "of_applications": 1, "api_keys": 1, "members": 0}
    assert before["opened"] == opened | {"sessions_left": 0, "api_keys_left": 0, "has_more": False}
    result = latchkey("providers", "disable", provider, "--yes", "--json")
    after = json.loads(result.stdout)
    assert (after["enabled"], after["is_blocked"], after["opened"]["sessions"]) == (False, True, 0)
    assert "Ends" not in result.stderr


def test_name_of_several_providers_is_refused_with_their_identifiers(app, provider, database):
    database.run(
        "INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret)"
        " VALUES (gen_random_uuid(), 'custom:other', 'Acme-Idp', 'https://other.example', 'x', '')"
    )
    result = run_command(app, "providers", "disable", "Acme-Idp", "--yes")
    assert result.exit_code == 2
    assert "is the name of several providers: " in result.output
    assert "custom:other (no organization)" in result.output
    assert database.count("audit_log", "action = 'provider_disabled'") == 0


def test_owner_cannot_take_the_domain_or_identifier_of_another_provider_by_a_name(
    latchkey, provider, database
):
    database.run(
        "INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret)"
        " VALUES (gen_random_uuid(), 'custom:other', 'example.com', 'https://other.example', 'x', '')"
    )
    assert json.loads(latchkey("providers", "show", "example.com", "--json").stdout)["id"] == provider


def test_large_numbers_are_bounded(armed, latchkey, on, provider, database, alice):
    database.run(
        "INSERT INTO sessions (user_id, method, provider_term)"
        " SELECT %(id)s, 'oauth', p.term FROM identity_providers AS p, generate_series(1, 1001)",
        id=alice.id,
    )
    assert "Ends more than 1,000 sessions, 0 sessions of applications" in words(
        armed.visit(f"/console/providers/{provider}/disable")
    )


def test_page_says_what_is_still_being_ended(armed, answer, provider, database):
    # As after an interruption: the term has ended, and no batch has run.
    database.run("UPDATE identity_providers SET is_on = false, is_blocked = true")
    text = words(armed.visit(f"/console/providers/{provider}"))
    assert "Still being ended, and giving no token: 2 sessions and 1 API key." in text
    assert "Sessions 0" in text
