"""What operators learn about an organization's provider, in the console and by the commands, before they turn it off."""

import json

import pytest

from sql import queries
from tests.support.answers import NO_ID
from tests.support.api_keys import insert_key
from tests.support.armed_console import act_at as act_at
from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.audit import clear_history, record, refuse
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
def app(service):
    return service.app


@pytest.fixture
def id(acme):
    return acme.rpartition("/")[2]


@pytest.fixture
def latchkey(app):
    """Run a command, and return its result, which must be a success."""

    def latchkey(*arguments, **options):
        result = run_command(app, *arguments, **options)
        assert result.exit_code == 0, result.output
        return result

    return latchkey


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


class TestNames:
    def test_log_names_a_provider_and_its_organization_and_links_to_both(self, armed, on, provider, id):
        page = armed.visit("/console/audit")
        assert (
            f'identity linked (<a href="../console/providers/{provider}" title="The provider {provider}">{NAMED}</a>)'
            in page.text
        )
        assert f"Provider enabled: {NAMED}" in words(page).replace("provider enabled", "Provider enabled")
        assert f'href="../console/organizations/{id}" title="Acme, {id}">acme</a>' in page.text
        assert f"sso:{provider}" not in page.text

    def test_user_page_names_the_provider_of_sessions_identities_and_the_timeline(
        self, armed, on, provider, alice
    ):
        page = armed.visit(f"/console/users/{alice.id}")
        link = f'href="../../console/providers/{provider}" title="The provider {provider}">{NAMED}</a>'
        assert page.text.count(link) >= 3
        assert "or the provider Acme-Idp (Acme)" in words(page)
        assert f"sso:{provider}" not in page.text

    def test_list_of_users_names_the_provider_and_filters_by_it(self, armed, on, provider, bob):
        text = words(armed.visit(f"/console/users?provider=sso:{provider}"))
        assert NAMED in text
        assert "alice@example.com" in text
        assert bob.email not in text

    def test_explanation_and_timeline_of_the_api_name_it_and_keep_the_stored_method(
        self, latchkey, on, provider, alice, service_role, client
    ):
        output = latchkey("explain", alice.email).stdout
        assert f"signs in with password, email, {NAMED}" in output
        assert f"identity linked ({NAMED})" in output
        assert f"sso:{provider}" not in output
        report = json.loads(latchkey("explain", alice.email, "--json").stdout)
        assert f"sso:{provider}" in report["user"]["providers"]
        items = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role).json["data"]
        linked = next(item for item in items if item["kind"] == "act" and item["name"] == "identity_linked")
        assert f"identity linked ({NAMED})" in linked["text"]
        assert linked["details"]["provider"] == f"sso:{provider}"

    def test_deleted_provider_keeps_the_name_of_the_log(self, armed, on, provider, latchkey, database, alice):
        latchkey("providers", "delete", provider, "--yes")
        text = words(armed.visit(f"/console/users/{alice.id}"))
        assert "Acme-Idp, deleted (acme)" in text
        database.run("UPDATE audit_log SET details = details - 'provider_name'")
        assert "a deleted provider (acme)" in words(armed.visit(f"/console/users/{alice.id}"))
        database.run("DELETE FROM audit_log WHERE action = 'provider_deleted'")
        page = armed.visit(f"/console/users/{alice.id}")
        assert f'<span title="The provider {provider}">a deleted provider</span>' in page.text

    def test_name_that_imitates_a_sentence_stays_quoted(self, armed, on, provider, database):
        name = "Google), by the service role key"
        database.run("UPDATE identity_providers SET name = %(name)s", name=name)
        assert f"“{name}” (Acme)" in words(armed.visit("/console/audit"))

    def test_names_of_a_page_take_one_statement_and_none_without_such_entries(
        self, armed, alice, on, statements_of_page
    ):
        assert statements_of_page(armed, "/console/audit?action=banned", "list_mentions") == 0
        for path in ("/console/audit", f"/console/users/{alice.id}", "/console/users"):
            assert statements_of_page(armed, path, "list_mentions") == 1


@pytest.fixture
def statements_of_page(monkeypatch):
    """Count how often a page runs a statement."""

    def statements_of_page(visitor, path, name):
        calls, run = [], getattr(queries, name)

        def counted(*arguments, **parameters):
            calls.append(parameters)
            return run(*arguments, **parameters)

        monkeypatch.setattr(queries, name, counted)
        assert visitor.visit(path).status == 200
        return len(calls)

    return statements_of_page


class TestActors:
    def test_employee_who_signs_in_for_the_first_time_did_all_of_it(
        self, armed, on, service, customers, database, provider, provider_identifier
    ):
        clear_history(database)
        customers.acme.be("7", "zoe@example.com")
        service.signed_in(provider_identifier)
        zoe = database.value("SELECT id::text FROM users WHERE email = 'zoe@example.com'")
        entries = database.all(
            "SELECT action, actor, actor_id::text FROM audit_log WHERE user_id = %(id)s ORDER BY action",
            id=zoe,
        )
        assert [tuple(entry) for entry in entries] == [
            (action, "user", zoe) for action in ("membership_added", "signed_in", "user_created")
        ]

    def test_entries_of_earlier_nodes_are_shown_as_those_of_the_user(self, armed, alice, database, id):
        clear_history(database)
        organization = {"id": id, "slug": "acme"}
        for action in ("membership_added", "identity_linked", "message_requested"):
            record(database, alice.id, action, organization=organization)
        database.run("UPDATE audit_log SET actor = 'anonymous', actor_id = NULL")
        rows = armed.visit("/console/audit").text.partition("<tbody>")[2].split("<tr>")[1:]
        actors = {row.split('title="')[2].partition('"')[0]: "the user" in row for row in rows}
        assert sum(actors.values()) == 2
        assert "anonymous" in next(row for row in rows if "message requested" in row)

    def test_removal_says_who_was_removed(self, owner, acme, join, bob):
        join(bob, acme)
        assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
        entry = owner.get(f"{acme}/audit").json["data"][0]
        assert (entry["action"], entry["details"]["email"]) == ("membership_removed", bob.email)


@pytest.fixture
def provider_identifier(provider, database):
    return database.value("SELECT identifier FROM identity_providers")


class TestFilter:
    @pytest.fixture
    def beta_id(self, beta, database, alice):
        id = beta.rpartition("/")[2]
        refuse(database, alice.id, "change_refused", "last_owner", organization={"id": id, "slug": "beta"})
        return id

    def test_console_filters_by_short_name_name_and_id_and_by_the_id_of_an_ended_one(
        self, armed, acme, beta_id, database
    ):
        for text in ("beta", "BETA", "Beta", beta_id, beta_id.upper()):
            page = armed.visit(f"/console/audit?organization={text}")
            assert "organization created: beta" in words(page)
            assert "acme" not in page.text.partition("<tbody>")[2]
        record(database, None, "organization_ended", organization={"id": NO_ID, "slug": "gone"})
        page = armed.visit(f"/console/audit?organization={NO_ID}")
        assert f'href="../console/audit?organization={NO_ID}"' in page.text
        assert "organization ended: gone" in words(page)
        assert "No organization has the short name or name nonsense." in words(
            armed.visit("/console/audit?organization=nonsense")
        )

    def test_several_organizations_of_one_name_are_listed(self, armed, acme, beta_id, id, database):
        database.run("UPDATE organizations SET name = 'Twin'")
        page = armed.visit("/console/audit?organization=twin")
        assert "Several organizations are called twin." in words(page)
        for each in (id, beta_id):
            assert f'href="audit?organization={each}"' in page.text
        assert "<tbody>" not in page.text

    def test_page_of_an_organization_shows_its_newest_entries_and_leads_to_all(
        self, armed, acme, id, database
    ):
        for number in range(12):
            record(database, None, f"act_{number:02}", organization={"id": id, "slug": "acme"})
        page = armed.visit(f"/console/organizations/{id}")
        assert page.text.partition('id="log"')[2].count("<tr>") == 11
        assert f'href="../../console/audit?organization={id}">Audit log</a>' in page.text

    def test_api_filters_by_id_and_short_name_and_refuses_another_name(
        self, client, service_role, acme, id, beta_id
    ):
        def listed(value):
            return client.get(f"/admin/audit?organization={value}", headers=service_role)

        for value in (beta_id, beta_id.upper(), "beta"):
            answer = listed(value).json
            data = answer["data"]
            assert {entry["details"]["organization"]["id"] for entry in data} == {beta_id}
            assert answer["pagination"]["total"] == len(data)
            assert "change_refused" in {entry["action"] for entry in data}
        assert listed(NO_ID).json["data"] == []
        for value in ("nonsense", "Beta", "%00", ""):
            response = listed(value)
            assert response.status_code == 400
            assert response.json["error_code"] == "validation_failed"
            assert response.json["details"].startswith("organization: must")

    def test_command_shows_the_log_of_an_organization(self, app, latchkey, acme, id, beta_id, database):
        lines = latchkey("explain", "--organization", "beta").stdout.splitlines()
        assert lines[0] == f"Beta (beta), {beta_id}:"
        assert any("organization created: beta" in line for line in lines)
        assert not any("acme" in line for line in lines)
        report = json.loads(latchkey("explain", "--organization", beta_id, "--most", "1", "--json").stdout)
        assert (report["kind"], len(report["events"]), report["has_more"]) == ("organization", 1, True)
        record(database, None, "organization_ended", organization={"id": NO_ID, "slug": "gone"})
        assert "organization ended: gone" in latchkey("explain", "--organization", NO_ID).stdout
        assert run_command(app, "explain", "--organization", "nonsense").exit_code == 3
        for wrong in ([], ["alice@example.com", "--organization", "beta"]):
            assert run_command(app, "explain", *wrong).exit_code == 2


class TestDisabling:
    def test_page_says_whose_the_provider_is_and_what_it_has_opened(self, armed, answer, provider, id):
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

    def test_console_says_what_it_ends_and_ends_it(
        self, armed, act_at, answer, application, provider, database, alice
    ):
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
        self, app, latchkey, answer, application, provider, provider_identifier, database, name
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

    def test_script_gets_the_counts_as_json_and_is_not_asked(self, latchkey, answer, provider):
        before = json.loads(latchkey("providers", "show", provider, "--json").stdout)
        opened = {"users": 1, "sessions": 1, "of_applications": 1, "api_keys": 1, "members": 0}
        assert before["opened"] == opened | {"sessions_left": 0, "api_keys_left": 0, "has_more": False}
        result = latchkey("providers", "disable", provider, "--yes", "--json")
        after = json.loads(result.stdout)
        assert (after["enabled"], after["is_blocked"], after["opened"]["sessions"]) == (False, True, 0)
        assert "Ends" not in result.stderr

    def test_name_of_several_providers_is_refused_with_their_identifiers(self, app, provider, database):
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
        self, latchkey, provider, database
    ):
        database.run(
            "INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret)"
            " VALUES (gen_random_uuid(), 'custom:other', 'example.com', 'https://other.example', 'x', '')"
        )
        assert json.loads(latchkey("providers", "show", "example.com", "--json").stdout)["id"] == provider

    def test_large_numbers_are_bounded(self, armed, latchkey, on, provider, database, alice):
        database.run(
            "INSERT INTO sessions (user_id, method, provider_term)"
            " SELECT %(id)s, 'oauth', p.term FROM identity_providers AS p, generate_series(1, 1001)",
            id=alice.id,
        )
        assert "Ends more than 1,000 sessions, 0 sessions of applications" in words(
            armed.visit(f"/console/providers/{provider}/disable")
        )

    def test_page_says_what_is_still_being_ended(self, armed, answer, provider, database):
        # As after an interruption: the term has ended, and no batch has run.
        database.run("UPDATE identity_providers SET is_on = false, is_blocked = true")
        text = words(armed.visit(f"/console/providers/{provider}"))
        assert "Still being ended, and giving no token: 2 sessions and 1 API key." in text
        assert "Sessions 0" in text
