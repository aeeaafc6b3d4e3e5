"""A file of organizations has their domains and providers, but no secret, and an import restores them."""

import json

import pytest

from tests.support.answers import assert_error
from tests.support.commands import run_command
from tests.support.own_providers import DOMAIN

TABLES = ("organizations", "organization_domains", "identity_providers", "identity_provider_domains")
DELETE_ALL = """
DELETE FROM memberships; DELETE FROM identity_provider_domains; DELETE FROM identities WHERE provider LIKE 'sso:%%';
DELETE FROM identity_providers; DELETE FROM organizations
"""


@pytest.fixture
def run(client):
    def run(*arguments, status=0):
        result = run_command(client.application, "organizations", *map(str, arguments), "--json")
        assert result.exit_code == status, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    return run


@pytest.fixture
def file(run, on, sign_in, database, tmp_path):
    """A file with Acme, which requires its provider; the provider is on, for a proved domain."""
    sign_in.name("acme.example")
    run("require", "acme", "own-sign-in")
    path = tmp_path / "organizations.jsonl"
    run("export", path)
    return path


@pytest.fixture
def exported(file):
    (line,) = map(json.loads, file.read_text().splitlines())
    return line


@pytest.fixture
def read(client, service_role):
    """Return an object as the operator reads it."""
    return lambda path: client.get(path, headers=service_role).json


def by_kind(outcomes):
    """Return the outcomes of the domains and providers, and of the organization as "", and the totals."""
    kinds = {each["domain"] or each["provider"] or "": each for each in outcomes[:-1] if not each["user_id"]}
    return kinds, outcomes[-1]


def test_line_has_domains_with_their_state_and_providers_without_their_secrets(
    file, exported, read, acme, customers
):
    domains = read(f"{acme}/domains")["domains"]
    assert exported["domains"] == domains
    assert ["proved_at" in each for each in domains] == [False, True]
    (provider,) = exported["providers"]
    current = read(f"{acme}/providers/{provider['id']}")
    assert provider == {name: value for name, value in current.items() if name != "redirect_uri"}
    assert provider["enabled"] is True
    assert exported["requires"] == {"aal": "aal1", "own_provider": True}
    assert customers.acme.provider.client_secret not in file.read_text()
    assert "secret" not in file.read_text()


def test_import_restores_domains_and_leaves_a_provider_without_its_secret_off(
    run, file, exported, read, acme, provider, database
):
    messages = database.count("outbox", "channel <> 'webhook'")
    database.run(DELETE_ALL)
    outcomes, totals = by_kind(run("import", file))
    assert totals | {"exists": 0, "refused": 0} == totals
    assert (totals["named"], totals["connected"], totals["added"]) == (2, 1, 1)
    assert "latchkey organizations require acme own-sign-in" in outcomes[""]["reason"]
    assert "off until" in outcomes[provider]["reason"]
    assert "client secret" in outcomes[provider]["reason"]
    assert database.count("outbox", "channel <> 'webhook'") == messages

    domains = read(f"{acme}/domains")["domains"]
    assert [(each["domain"], each["value"], "proved_at" in each) for each in domains] == [
        (each["domain"], each["value"], "proved_at" in each) for each in exported["domains"]
    ]
    former = exported["providers"][0]
    changed = {"enabled": False, "redirect_uri": f"http://localhost/providers/{provider}/callback"}
    current = read(f"{acme}/providers/{provider}")
    assert current.keys() == (former.keys() | {"redirect_uri"}) - {"tried_at"}
    times = {"created_at", "updated_at"}
    compared = current.keys() - times - {"redirect_uri"}
    assert {name: current[name] for name in compared} == {name: (former | changed)[name] for name in compared}
    # Owners are not locked out by a requirement that nobody can meet.
    assert read(acme)["requires"] == {"aal": "aal1"}

    before = database.everything(*TABLES)
    assert run("import", file)[-1] == totals | {
        **{"created": 0, "added": 0, "named": 0, "connected": 0, "exists": 5, "refused": 0},
    }
    assert database.everything(*TABLES) == before


def test_secret_that_the_operator_adds_is_used_once_an_owner_has_tested_it(
    run, file, exported, provider, database, press, alice, customers
):
    exported["providers"][0]["client_secret"] = customers.acme.provider.client_secret
    file.write_text(json.dumps(exported))
    database.run(DELETE_ALL)
    outcomes, _ = by_kind(run("import", file))
    assert "client secret" not in outcomes[provider]["reason"]
    assert database.value("SELECT is_on FROM identity_providers") is False
    press(alice, "on", press(alice))  # in the session of *Test sign-in*
    assert database.value("SELECT is_on FROM identity_providers") is True


@pytest.mark.parametrize("is_own", [True, False])
def test_import_sends_no_stored_secret_to_another_issuer(
    run, file, exported, customers, client, service_role, database, is_own
):
    """The file may name the organization's provider, or one that the operator has added."""
    (line,) = exported["providers"]
    if not is_own:
        body = customers.acme.body(domains=[])
        line["id"] = client.post("/admin/custom-providers", json=body, headers=service_role).json["id"]
    before = database.everything("identity_providers")
    line |= {"issuer": customers.globex.provider.url, "acceptable_client_ids": ["website"]}
    for secret in ({}, {"client_secret": "another"}):
        file.write_text(json.dumps(exported | {"providers": [line | secret]}))
        outcomes, _ = by_kind(run("import", file, status=0 if is_own else 3))
        assert outcomes[line["id"]]["status"] == ("exists" if is_own else "refused")
    assert database.everything("identity_providers") == before
    assert "/token" not in customers.globex.provider.paths()


def test_domain_whose_record_is_gone_is_not_proved_and_its_provider_has_none(
    run, file, provider, names, database
):
    database.run(DELETE_ALL)
    names.texts.clear()
    outcomes, totals = by_kind(run("import", file))
    assert (totals["named"], totals["connected"], totals["refused"]) == (2, 1, 0)
    assert "not proved" in outcomes[DOMAIN]["reason"]
    assert f"without {DOMAIN}" in outcomes[provider]["reason"]
    assert database.count("organization_domains", "proved_at IS NOT NULL") == 0
    assert database.count("identity_provider_domains") == 0


def test_domain_whose_look_up_failed_is_named_with_what_to_do_and_proved_by_the_next_import(
    run, file, provider, names, database
):
    database.run(DELETE_ALL)
    texts = dict(names.texts)
    names.texts.clear()
    first, _ = by_kind(run("import", file))
    assert "latchkey providers change" in first[provider]["reason"]
    second, totals = by_kind(run("import", file))
    assert (totals["named"], totals["connected"]) == (1, 0)
    for outcomes in (first, second):
        assert "import again" in outcomes[DOMAIN]["reason"]
        # The file does not say that it was proved.
        assert outcomes["acme.example"]["reason"] is None
    names.texts.update(texts)
    outcomes, _ = by_kind(run("import", file))
    assert (outcomes[DOMAIN]["status"], outcomes[DOMAIN]["reason"]) == ("named", None)
    assert database.value("SELECT domain FROM organization_domains WHERE proved_at IS NOT NULL") == DOMAIN
    assert run("import", file)[-1]["named"] == 0


def test_domain_of_another_customer_is_not_taken(run, file, provider, database, client, service_role):
    database.run(DELETE_ALL)
    other = client.post("/organizations", json={"name": "Other"}, headers=service_role).json["id"]
    database.run(
        "INSERT INTO organization_domains (organization_id, domain, token, proved_at)"
        " VALUES (%(id)s, 'example.com', 'x', now())",
        id=other,
    )
    outcomes, _ = by_kind(run("import", file))
    assert "not proved" in outcomes[DOMAIN]["reason"]
    rows = database.all("SELECT organization_id::text FROM organization_domains WHERE proved_at IS NOT NULL")
    assert rows == [(other,)]
    assert database.count("identity_provider_domains") == 0


def test_provider_that_cannot_be_reached_is_refused_and_connected_by_the_next_import(
    run, file, exported, provider, database
):
    database.run(DELETE_ALL)
    issuer = exported["providers"][0]["issuer"]
    exported["providers"][0]["issuer"] = "https://127.0.0.1:9"
    file.write_text(json.dumps(exported))
    outcomes, totals = by_kind(run("import", file, status=3))
    assert (outcomes[provider]["status"], totals["refused"], totals["added"]) == ("refused", 1, 1)
    assert database.count("identity_providers") == 0
    exported["providers"][0]["issuer"] = issuer
    file.write_text(json.dumps(exported))
    assert run("import", file)[-1]["connected"] == 1


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("domains", [{"domain": DOMAIN, "value": "latchkey=short"}]),
        ("domains", [5]),
        ("providers", [{"id": "x"}]),
    ],
)
def test_malformed_domain_or_provider_is_named_by_its_line(
    client, run, file, exported, database, part, value
):
    file.write_text(json.dumps(exported | {part: value}))
    database.run(DELETE_ALL)
    result = run_command(client.application, "organizations", "import", str(file))
    assert result.exit_code == 2, result.output
    assert f"{file}, line 1: " in result.output
    assert database.count("organizations") == 0


def test_provider_that_an_operator_turned_off_is_imported_as_turned_off(
    run, on, acme, provider, sign_in, client, service_role, database, tmp_path, read, alice
):
    path, file = f"/admin/custom-providers/{provider}", tmp_path / "organizations.jsonl"
    assert client.put(path, json={"enabled": False}, headers=service_role).status_code == 200
    run("export", file)
    database.run(DELETE_ALL)
    outcomes, totals = by_kind(run("import", file))
    assert (outcomes[provider]["status"], totals["refused"]) == ("connected", 0)
    assert "an operator turned it off" in outcomes[provider]["reason"]
    current = read(f"{acme}/providers/{provider}")
    assert (current["enabled"], current["is_blocked"]) == (False, True)
    refused = sign_in.change(provider, alice.sign_in(), enabled=True)
    assert_error(refused, 403, "sso_provider_disabled")
    response = client.put(path, json={"enabled": True}, headers=service_role)
    assert (response.status_code, response.json["enabled"]) == (200, True)


@pytest.mark.parametrize("is_blocked", ["yes", 1])
def test_block_that_is_no_boolean_is_named_by_its_line(client, run, file, exported, is_blocked):
    exported["providers"][0]["is_blocked"] = is_blocked
    file.write_text(json.dumps(exported))
    result = run_command(client.application, "organizations", "import", str(file))
    assert (result.exit_code, f"{file}, line 1: " in result.output) == (2, True)


@pytest.mark.parametrize("domain", ["acme", "gmail.com", "a b.example"])
def test_domain_that_no_organization_may_name_is_refused_alone(
    run, file, exported, provider, database, domain
):
    exported["domains"][0]["domain"] = domain
    exported["providers"][0]["domains"].append(domain)
    file.write_text(json.dumps(exported))
    database.run(DELETE_ALL)
    outcomes, totals = by_kind(run("import", file, status=3))
    assert outcomes[domain]["status"] == "refused"
    assert (totals["named"], totals["refused"], outcomes[provider]["status"]) == (1, 1, "connected")
    assert database.all("SELECT domain FROM organization_domains") == [(DOMAIN,)]
    assert run("import", file, status=3)[-1]["refused"] == 1


@pytest.mark.parametrize("typed", [f" {DOMAIN}", DOMAIN.upper(), "bücher.example"])
def test_domain_in_another_spelling_is_known_as_it_is_stored(
    run, file, exported, provider, database, names, typed
):
    stored = "xn--bcher-kva.example" if "ü" in typed else DOMAIN
    exported["domains"][1]["domain"] = typed
    exported["providers"][0]["domains"] = [typed]
    names.texts[f"_latchkey.{stored}"] = exported["domains"][1]["value"]
    file.write_text(json.dumps(exported))
    database.run(DELETE_ALL)
    outcomes, totals = by_kind(run("import", file))
    assert (outcomes[stored]["status"], outcomes[stored]["reason"], totals["named"]) == ("named", None, 2)
    assert database.all("SELECT domain FROM identity_provider_domains") == [(stored,)]
    outcomes, totals = by_kind(run("import", file))
    assert (outcomes[stored]["status"], totals["named"], totals["exists"]) == ("exists", 0, 5)


def test_ids_in_capitals_are_those_of_the_rows(
    run, file, exported, provider, database, press, alice, customers
):
    (line,) = exported["providers"]
    line |= {"id": provider.upper(), "client_secret": customers.acme.provider.client_secret}
    exported["members"][0]["user_id"] = exported["members"][0]["user_id"].upper()
    file.write_text(json.dumps(exported | {"id": exported["id"].upper()}))
    database.run(DELETE_ALL)
    outcomes = run("import", file)
    assert {each["provider"] for each in outcomes[:-1]} == {None, provider}
    assert {each["user_id"] for each in outcomes[:-1]} == {None, alice.id}
    assert run("import", file)[-1] | {"exists": 5, "refused": 0, "connected": 0} == run("import", file)[-1]
    press(alice, "on", press(alice))
    assert database.value("SELECT is_on FROM identity_providers") is True


def test_second_import_adds_what_is_missing_and_leaves_the_rest(run, file, exported, provider, database):
    database.run(DELETE_ALL)
    partial = exported | {"domains": exported["domains"][:1], "providers": []}
    complete = file.read_text()
    file.write_text(json.dumps(partial))
    assert run("import", file)[-1]["named"] == 1
    database.run("UPDATE organizations SET name = 'Renamed'")
    file.write_text(complete)
    totals = run("import", file)[-1]
    assert (totals["named"], totals["connected"], totals["created"]) == (1, 1, 0)
    assert database.value("SELECT name FROM organizations") == "Renamed"


@pytest.mark.parametrize("text", ["a\0.example", "a\ud800.example"])
@pytest.mark.parametrize("part", ["domain", "scopes", "app_metadata"])
def test_text_that_cannot_be_stored_is_named_by_its_line(client, run, file, exported, database, part, text):
    if part == "domain":
        exported["domains"][0]["domain"] = text
    elif part == "scopes":
        exported["providers"][0]["scopes"] = ["openid", "email", text]
    else:
        exported["app_metadata"] = {"plan": text}
    file.write_text(json.dumps(exported))
    database.run(DELETE_ALL)
    result = run_command(client.application, "organizations", "import", str(file))
    assert (result.exit_code, f"{file}, line 1: must not contain NUL" in result.output) == (2, True)
    assert database.count("organizations") == 0


def test_users_get_their_identity_at_a_provider_that_was_imported_before_them(
    run, file, provider, database, client, tmp_path
):
    users = tmp_path / "users.jsonl"
    assert run_command(client.application, "users", "export", str(users), "--plaintext").exit_code == 0
    select_emails = (
        "SELECT email FROM users AS u JOIN identities AS i ON i.user_id = u.id WHERE provider = %(provider)s"
    )
    emails = database.all(select_emails, provider=f"sso:{provider}")
    database.run(f"{DELETE_ALL}; DELETE FROM users")
    assert run("import", file, status=3)[-1]["connected"] == 1
    result = run_command(client.application, "users", "import", str(users), "--trust-addresses")
    assert result.exit_code == 0, result.output
    assert run("import", file)[-1]["added"] == 1
    assert database.all(select_emails, provider=f"sso:{provider}") == emails != []
