"""A developer tries single sign-on on one machine: a provider there, and a domain that a command proves. Neither counts
at a service that other machines reach, with the same database.
"""

import json
import re
from urllib.parse import parse_qs, urlsplit

import dns.resolver
import pytest

from auth.core.checks import Context
from auth.delivery import janitor
from auth.extensions.sso.checks import CHECKS
from auth.flows.admin.providers_out_of_place import end_terms, remedy_of
from tests.support import passkeys
from tests.support.answers import A_TIMESTAMP, ANYTHING, assert_error
from tests.support.commands import run_command
from tests.support.links import CHALLENGE, SITE, VERIFIER
from tests.support.oauth import ALLOW_LIST, Service
from tests.support.own_providers import ALICE, DOMAIN, PATH, SignIn, page_of_press
from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD

EVE = "eve@example.com"
PROOF = {"current_password": PASSWORD}
# Settings of a service that other machines reach. The second one's pages are at the same URL as at home.
ELSEWHERE = {
    "by_url": {"AUTH_BASE_URL": "https://auth.example.com"},
    "by_bind": {"AUTH_BIND": "::"},
}
WRITTEN = ("users", "sessions", "identities", "memberships", "oauth_flows", "identity_providers")


@pytest.fixture
def elsewhere(make_app):
    """Return the service elsewhere, as its settings are called."""

    def elsewhere(place="by_bind"):
        changes = ELSEWHERE[place]
        app = make_app(
            AUTH_ORGANIZATIONS="users", AUTH_SSO="true", AUTH_CONSOLE="true", **(ALLOW_LIST | changes)
        )
        return Service(app, changes.get("AUTH_BASE_URL", SITE))

    return elsewhere


@pytest.fixture(params=["issuer", "command"])
def tried_out(request, sign_in, latchkey, customers, database) -> str:
    """The id of Acme's provider, which is on: its issuer is this machine, or a command proved its domain."""
    customers.acme.be("1", ALICE)
    if request.param == "issuer":
        assert sign_in.prove(DOMAIN).status_code == 200
    else:
        latchkey("organizations", "prove", "acme", DOMAIN)
    response = sign_in.connect(customers.acme, member_role="member")
    assert response.status_code == 201, response.text
    database.run("UPDATE identity_providers SET is_on = true")
    if request.param == "command":
        # Of a public provider, only the domain is in question.
        database.run("UPDATE identity_providers SET issuer = 'https://login.acme.example'")
    return response.json["id"]


class TestAtHome:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "login.acme.localhost"])
    def test_owner_connects_a_provider_at_each_name_of_this_machine(
        self, sign_in, customers, alice, latchkey, service, database, host
    ):
        latchkey("organizations", "prove", "acme", DOMAIN)
        provider = customers.acme.provider
        issuer = provider.url.replace("127.0.0.1", host)
        provider.metadata, provider.claims = {"issuer": issuer}, {"iss": issuer}
        response = sign_in.connect(customers.acme, issuer=issuer, member_role="member")
        assert response.status_code == 201, response.text
        customers.acme.be("1", ALICE)
        visitor = Visitor(service.app).with_session_of(alice)
        for act in ("test", "on"):
            path = page_of_press(act, response.json["id"])
            visitor.visit(f"/{path}")
            visitor.press(path)
        assert database.value("SELECT is_on FROM identity_providers")
        customers.acme.be("2", EVE)
        session = service.signed_in(f"custom:{response.json['id']}")
        assert session.get("/user").json["organizations"] == [
            {"id": ANYTHING, "slug": "acme", "name": "Acme", "role": "member"}
        ]

    def test_provider_of_this_machine_leads_nowhere_else(self, sign_in, customers, latchkey, database):
        latchkey("organizations", "prove", "acme", DOMAIN)
        details = "issuer: must be an OpenID provider that this service can reach"
        for url in ("http://10.0.0.1", "https://login.acme.example", "http://169.254.169.254/latest"):
            customers.acme.provider.metadata = {"jwks_uri": url}
            response = sign_in.connect(customers.acme)
            assert_error(response, 400, "validation_failed", details=details)
        assert database.count("identity_providers") == 0

    def test_command_names_and_proves_a_domain_and_the_log_says_that_nothing_was_looked_up(
        self, sign_in, owner, acme, app, names, database, browse, alice
    ):
        result = run_command(app, "organizations", "prove", "acme", "Example.COM")
        assert (result.exit_code, result.stdout) == (
            0,
            f"{DOMAIN}: proved by command, which counts only on this machine\n",
        )
        assert names.asked == []
        entry = {"domain": DOMAIN, "by_command": True}
        details = "details - '{organization,email,role,system_user}'::text[]"
        found = database.one(f"SELECT actor, {details} FROM audit_log WHERE action = 'domain_proved'")
        assert tuple(found) == ("command", entry)
        domain = {
            "domain": DOMAIN,
            "name": f"_latchkey.{DOMAIN}",
            "value": ANYTHING,
            "proved_by_command_at": A_TIMESTAMP,
        }
        assert owner.get(f"{acme}/domains").json == {"domains": [domain]}
        again = run_command(app, "organizations", "prove", "acme", DOMAIN, "--json")
        assert (again.exit_code, json.loads(again.stdout)) == (0, domain)
        assert database.count("audit_log", "action = 'domain_proved'") == 1
        visitor = browse(alice)
        page = words(visitor.visit(f"{PATH}/sign-in"))
        assert "It counts only on this computer." in page
        assert "Connect identity provider" in page
        assert "from the command line, without a DNS record" in words(visitor.visit(f"{PATH}/history"))

    @pytest.mark.parametrize(
        ("domain", "message"),
        [
            ("gmail.com", "domain: gmail.com has mailboxes of everybody."),
            ("nonsense", "domain: must be domains of email addresses, such as example.com."),
        ],
    )
    def test_command_refuses_what_is_no_customers_domain(self, acme, app, database, domain, message):
        result = run_command(app, "organizations", "prove", "acme", domain)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.endswith(f"{message}\n")
        assert database.count("organization_domains") == 0

    def test_domain_is_one_organizations_at_a_time(self, sign_in, app, bob, client, database, latchkey):
        bob.open_session(client).post("/organizations", json={"name": "Globex"})
        latchkey("organizations", "prove", "acme", DOMAIN)
        result = run_command(app, "organizations", "prove", "globex", DOMAIN)
        assert (result.exit_code, result.output) == (2, "Error: Another provider has this domain.\n")
        assert database.count("organization_domains") == 1
        sign_in.prove("other.example")
        assert run_command(app, "organizations", "prove", "globex", "other.example").exit_code == 2

    def test_domain_with_a_record_stays_proved_by_it(self, sign_in, owner, acme, latchkey, database):
        sign_in.prove(DOMAIN)
        latchkey("organizations", "prove", "acme", DOMAIN)
        assert "proved_by_command_at" not in owner.get(f"{acme}/domains").json["domains"][0]
        assert database.count("audit_log", "action = 'domain_proved'") == 1

    def test_janitor_leaves_a_domain_alone_that_a_command_proved(
        self, sign_in, latchkey, customers, service, names, database, elsewhere
    ):
        latchkey("organizations", "prove", "acme", DOMAIN)
        assert sign_in.connect(customers.acme).status_code == 201
        database.run("UPDATE organization_domains SET proved_by_command_at = now() - interval '90 days'")
        before = database.everything("organization_domains", "identity_provider_domains")
        for parts in (service.parts, elsewhere().parts):
            janitor.look_up_domains(parts.settings, parts.db)
        assert names.asked == []
        assert database.everything("organization_domains", "identity_provider_domains") == before


class TestElsewhere:
    @pytest.mark.parametrize("place", ELSEWHERE)
    def test_command_refuses_and_says_why(self, acme, elsewhere, database, place):
        result = run_command(elsewhere(place).app, "organizations", "prove", "acme", DOMAIN)
        why = {
            "by_url": "AUTH_BASE_URL is https://auth.example.com, not this machine",
            "by_bind": "AUTH_BIND is ::, so other machines reach the service",
        }[place]
        what = "set the TXT record, and press Check at Single sign-on (SSO) of the organization"
        assert (result.exit_code, result.output) == (3, f"Error: {why}: {what}.\n")
        assert database.count("organization_domains") == 0

    @pytest.mark.parametrize("place", ELSEWHERE)
    def test_nobody_names_an_issuer_on_this_machine(
        self, sign_in, acme, elsewhere, customers, service_role, database, place
    ):
        sign_in.prove(DOMAIN)
        client = elsewhere(place).client
        session = sign_in.owner.on(client) if place == "by_bind" else None
        customers.acme.provider.requests.clear()
        for issuer in (customers.acme.provider.url, "http://localhost:1", "https://x.localhost"):
            body = customers.acme.body(issuer=issuer, domains=[])
            response = client.post("/admin/custom-providers", json=body, headers=service_role)
            details = (
                "issuer: is this machine, which works only while AUTH_BASE_URL and AUTH_BIND are this machine"
            )
            assert_error(response, 400, "validation_failed", details=details)
            if session:
                response = SignIn(session, acme, sign_in.names).connect(customers.acme, issuer=issuer)
                details = "issuer: must be an OpenID provider that this service can reach"
                assert_error(response, 400, "validation_failed", details=details)
        assert (customers.acme.provider.requests, database.count("identity_providers")) == ([], 0)

    @pytest.mark.parametrize(
        "host",
        ["localhost.", "127.1", "2130706433", "0", "[::]", "[::ffff:127.0.0.1]", "ⓛocalhost", "127。0。0。1"],
    )
    @pytest.mark.parametrize("place", ELSEWHERE)
    def test_no_spelling_makes_this_machine_a_private_network(
        self, make_app, customers, service_role, database, host, place
    ):
        settings = {"AUTH_SSO": "true", "AUTH_WEBHOOK_PRIVATE_NETWORKS": "true"}
        app = make_app(**settings | ELSEWHERE[place])
        issuer = customers.acme.provider.url.replace("127.0.0.1", host)
        customers.acme.provider.metadata = {"issuer": issuer}
        body = customers.acme.body(issuer=issuer)
        response = app.test_client().post("/admin/custom-providers", json=body, headers=service_role)
        assert_error(response, 400, "validation_failed", details=ANYTHING)
        assert (customers.acme.provider.requests, database.count("identity_providers")) == ([], 0)

    @pytest.mark.parametrize("place", ELSEWHERE)
    def test_provider_of_the_developers_machine_signs_in_nobody_elsewhere(
        self, tried_out, elsewhere, customers, bob, database, place
    ):
        """Neither by the API, nor on the pages; it is offered nowhere."""
        away, identifier = elsewhere(place), f"custom:{tried_out}"
        customers.acme.be("2", EVE)
        customers.acme.provider.requests.clear()
        employee = Visitor(away.app, away.origin).signed_in_as(bob)
        assert bob.email.endswith(f"@{DOMAIN}")
        before = database.everything(*WRITTEN)
        for body in ({"domain": DOMAIN}, {"provider_id": tried_out}):
            assert_error(away.client.post("/sso", json=body), 404, "sso_provider_disabled")
        body = {"provider": identifier, "id_token": customers.acme.provider.id_token()}
        response = away.client.post("/token?grant_type=id_token", json=body)
        assert_error(response, 404, "sso_provider_disabled")
        assert away.sign_in(identifier).status == 404
        visitor = Visitor(away.app, away.origin)
        visitor.visit("/sign-in/company")
        page = words(visitor.send("/sign-in/company", email=EVE))
        assert f"No company has connected {DOMAIN} here." in page
        visitor.visit("/sign-in")
        page = words(visitor.send("/sign-in", email=EVE, password=PASSWORD))
        assert "That email and password don’t match." in page
        visitor.visit("/sign-in")
        page = words(visitor.send("/sign-in/code", email=EVE))
        assert "signs in with its company" not in page
        assert employee.visit("/account/company").status == 404
        assert customers.acme.provider.requests == []
        # The password's failure and the code's flow are no part of these.
        assert database.everything(*WRITTEN) == before

    @pytest.mark.parametrize("press", ["test", "move"])
    def test_press_from_before_signs_nobody_in(
        self, tried_out, browse, alice, service, elsewhere, database, customers, press
    ):
        database.run("UPDATE identity_providers SET issuer = %(url)s", url=customers.acme.provider.url)
        visitor = browse(alice)
        visitor.visit(f"/{page_of_press(press, tried_out)}")
        page = visitor.submit(stop=service.is_callback)
        before = database.everything(*WRITTEN)
        visitor.go_on_at(elsewhere().app)
        assert "error_code=sso_provider_disabled" in visitor.visit(page.url, stop=_is_other(page.url)).url
        before["oauth_flows"] = []
        assert database.everything(*WRITTEN) == before

    def test_owner_reads_that_nobody_signs_in_here_and_turns_nothing_on(
        self, tried_out, elsewhere, alice, acme, owner, database
    ):
        visitor = Visitor(elsewhere().app).with_session_of(alice)
        page = visitor.visit(f"{PATH}/sign-in")
        assert "Nobody can sign in with it here." in words(page)
        assert ("/test" in page.text, '/on"' in page.text, "/delete" in page.text) == (False, False, True)
        visitor.visit(f"/{page_of_press('test', tried_out)}")
        assert "turned off" in words(visitor.press(page_of_press("test", tried_out)))
        assert database.count("oauth_flows") == 0

    def test_operator_turns_it_on_nowhere_else(self, tried_out, elsewhere, service_role, database):
        database.run("UPDATE identity_providers SET is_on = false")
        path = f"/admin/custom-providers/{tried_out}"
        response = elsewhere().client.put(path, json={"enabled": True}, headers=service_role)
        details = (
            "enabled: its issuer is this machine, or a command proved its domain, which works only while"
        )
        details += " AUTH_BASE_URL and AUTH_BIND are this machine"
        assert_error(response, 400, "validation_failed", details=details)
        assert database.value("SELECT is_on FROM identity_providers") is False

    def test_owner_who_has_tested_it_turns_it_on_nowhere_else(
        self, tried_out, elsewhere, browse, alice, customers, database
    ):
        url = customers.acme.provider.url
        database.run("UPDATE identity_providers SET is_on = false, issuer = %(url)s", url=url)
        visitor = browse(alice)
        visitor.visit(f"/{page_of_press('test', tried_out)}")
        visitor.press(page_of_press("test", tried_out))
        assert database.value("SELECT tried_at IS NOT NULL FROM identity_providers")
        visitor.go_on_at(elsewhere().app)
        visitor.visit(f"/{page_of_press('on', tried_out)}")
        assert visitor.press(page_of_press("on", tried_out)).status == 400
        assert database.value("SELECT is_on FROM identity_providers") is False

    def test_organization_requires_no_sign_in_that_nobody_has(
        self, tried_out, elsewhere, acme, service_role, database
    ):
        body = {"requires": {"own_provider": True}}
        response = elsewhere().client.put(acme, json=body, headers=service_role)
        details = "requires.own_provider: needs a provider that is on, with a domain"
        assert_error(response, 400, "validation_failed", details=details)

    def test_domain_that_a_command_proved_is_open_until_its_record_is_there(
        self, sign_in, acme, latchkey, elsewhere, customers, names, database
    ):
        latchkey("organizations", "prove", "acme", DOMAIN)
        away = SignIn(sign_in.owner.on(elsewhere().client), acme, names)
        assert_error(away.connect(customers.acme), 422, "domain_not_proved")
        details = f"there is no TXT record at _latchkey.{DOMAIN}"
        response = away.owner.post(f"{acme}/domains/{DOMAIN}")
        assert_error(response, 422, "domain_not_proved", details=details)
        proved = away.prove(DOMAIN)
        assert (proved.status_code, proved.json["proved_at"]) == (200, A_TIMESTAMP)
        assert "proved_by_command_at" not in proved.json
        assert database.count("audit_log", "action = 'domain_proved'") == 2

    @pytest.mark.parametrize("place", ["home", "by_bind"])
    def test_owner_of_the_record_takes_a_domain_that_a_command_proved(
        self,
        sign_in,
        latchkey,
        elsewhere,
        service,
        customers,
        names,
        bob,
        client,
        database,
        place,
        outbox,
        alice,
    ):
        latchkey("organizations", "prove", "acme", DOMAIN)
        assert sign_in.connect(customers.acme).status_code == 201
        here = service if place == "home" else elsewhere()
        session = bob.open_session(here.client)
        organization = session.post("/organizations", json={"name": "Globex"}).json
        rival = SignIn(session, f"/organizations/{organization['id']}", names)
        assert rival.prove(DOMAIN).status_code == 200
        assert database.count("identity_provider_domains") == 0
        assert outbox.last(to=alice.email).kind == "organization_sign_in"
        assert database.count("audit_log", "action = 'domain_lost' AND details ? 'by_record'") == 1
        page = words(Visitor(service.app).with_session_of(alice).visit(f"{PATH}/history"))
        assert f"The domain {DOMAIN} now belongs to another organization" in page
        # Acme cannot take it back, also on the developer's machine.
        assert_error(sign_in.connect(customers.globex, domains=[DOMAIN]), 422, "domain_not_proved")
        result = run_command(service.app, "organizations", "prove", "acme", DOMAIN)
        assert result.exit_code == 2
        assert database.count("identity_provider_domains") == 0

    def test_export_has_no_proof_that_an_import_would_believe(
        self, sign_in, latchkey, customers, database, tmp_path, acme, owner
    ):
        latchkey("organizations", "prove", "acme", DOMAIN)
        assert sign_in.connect(customers.acme).status_code == 201
        file = tmp_path / "organizations.jsonl"
        latchkey("organizations", "export", str(file))
        assert "proved_at" not in json.loads(file.read_text())["domains"][0]
        database.run(
            "DELETE FROM memberships; DELETE FROM identity_provider_domains; DELETE FROM identity_providers;"
            " DELETE FROM organizations"
        )
        output = latchkey("organizations", "import", str(file)).output
        assert f"connected without {DOMAIN}, not proved" in output
        domain = database.one("SELECT proved_at, proved_by_command_at FROM organization_domains")
        assert tuple(domain) == (None, None)
        assert database.count("identity_provider_domains") == 0

    def test_what_a_provider_opened_on_the_developers_machine_ends_with_the_start_elsewhere(
        self, tried_out, service, elsewhere, customers, database
    ):
        database.run("UPDATE identity_providers SET issuer = %(url)s", url=customers.acme.provider.url)
        customers.acme.be("2", EVE)
        session = service.signed_in(f"custom:{tried_out}")
        browser = service.browser()
        url = service.return_url(browser, f"custom:{tried_out}", code_challenge=CHALLENGE)
        code = parse_qs(urlsplit(browser.visit(url).url).query)["code"][0]
        home = service.parts
        assert end_terms(home.settings, home.db) == []
        assert session.refresh().status_code == 200
        away = elsewhere()
        (provider,) = end_terms(away.parts.settings, away.parts.db)
        assert (provider.id, provider.enabled) == (tried_out, True)
        later = session.on(away.client)
        assert_error(later.get("/user"), 401, "session_not_found")
        assert_error(later.refresh(), 400, "refresh_token_not_found")
        body = {"auth_code": code, "code_verifier": VERIFIER}
        assert_error(away.client.post("/token?grant_type=pkce", json=body), 404, "flow_state_not_found")
        janitor.keep_house(away.parts.settings, away.parts.db, away.parts.sealer)
        assert database.count("sessions", "amr::text LIKE '%%sso:%%' AND ended_at IS NULL") == 0

    def test_doctor_names_it_while_it_is_on(self, tried_out, service, elsewhere, database):
        def look(parts):
            (each,) = CHECKS
            return each.look(Context(parts.settings, parts.db, dns.resolver.get_default_resolver(), 0))

        away = elsewhere().parts
        failure = look(away)
        assert failure.sentence.startswith(
            "The provider 'Acme-Idp' of the organization acme cannot sign users in: "
        )
        assert look(service.parts) is None
        database.run("UPDATE identity_providers SET is_on = false")
        assert look(away) is None
        assert [each.enabled for each in end_terms(away.settings, away.db)] == [False]

    def test_remedy_lets_owners_in_where_the_organization_requires_it(
        self, tried_out, elsewhere, database, owner, acme
    ):
        database.run("UPDATE organizations SET needs_own_provider = true")
        away = elsewhere()
        (provider,) = end_terms(away.parts.settings, away.parts.db)
        command = re.search(r"Run: latchkey (organizations require acme [a-z-]+)\. ", remedy_of(provider))
        assert command
        session = owner.on(away.client)
        assert session.get(f"{acme}/domains").json["error_code"] == "organization_sign_in_needed"
        assert run_command(away.app, *command[1].split()).exit_code == 0
        assert session.get(f"{acme}/domains").status_code == 200

    def test_record_that_a_node_of_the_last_release_has_found_proves_the_domain(
        self, sign_in, latchkey, customers, database
    ):
        """It leaves what the command wrote."""
        latchkey("organizations", "prove", "acme", DOMAIN)
        assert sign_in.connect(customers.acme).status_code == 201
        by_command = "SELECT has_domain_by_command(p) FROM identity_providers AS p"
        assert database.value(by_command) is True
        database.run("UPDATE organization_domains SET proved_at = now(), checked_at = now()")
        assert database.value(by_command) is False

    def test_domain_with_a_record_is_not_by_command_for_what_another_organization_had(
        self, sign_in, latchkey, customers, names, bob, client, database
    ):
        latchkey("organizations", "prove", "acme", DOMAIN)
        session = bob.open_session(client)
        organization = session.post("/organizations", json={"name": "Globex"}).json
        rival = SignIn(session, f"/organizations/{organization['id']}", names)
        assert rival.prove(DOMAIN).status_code == 200
        assert rival.connect(customers.globex, domains=[DOMAIN]).status_code == 201
        assert database.value("SELECT has_domain_by_command(p) FROM identity_providers AS p") is False

    def test_owner_of_the_record_waits_for_a_change_of_the_provider_that_has_the_domain(
        self, sign_in, latchkey, customers, names, bob, client, database
    ):
        latchkey("organizations", "prove", "acme", DOMAIN)
        id = sign_in.connect(customers.acme).json["id"]
        session = bob.open_session(client)
        organization = session.post("/organizations", json={"name": "Globex"}).json
        rival = SignIn(session, f"/organizations/{organization['id']}", names)
        record = rival.name(DOMAIN)
        names.texts[record["name"]] = record["value"]
        with database.locked("identity_providers", id) as lock:
            answer = lock.start(lambda: session.post(f"{rival.path}/domains/{DOMAIN}").status_code)
        assert answer.result() == 200
        assert database.count("identity_provider_domains") == 0

    @pytest.mark.parametrize("is_on", [True, False])
    def test_next_step_is_one_that_it_leaves_open(
        self, tried_out, elsewhere, alice, database, is_on, request
    ):
        database.run("UPDATE identity_providers SET is_on = %(on)s, tried_at = now()", on=is_on)
        page = Visitor(elsewhere().app).with_session_of(alice).visit(f"{PATH}/sign-in")
        (present,) = re.findall(r'<li aria-current="step">([^<]+)', page.text)
        is_proved = request.node.callspec.params["tried_out"] == "issuer"
        assert present == ("Identity provider" if is_proved else "Domain")
        primary = re.findall(r'<a class="button" href="([^"]+)"', page.text)
        assert [each for each in primary if tried_out in each] == []

    def test_departing_member_is_promised_no_way_back_by_it(
        self, tried_out, service, elsewhere, join, bob, acme
    ):
        join(bob, acme)
        promises = [
            "move your account" in words(Visitor(app).with_session_of(bob).visit(f"{PATH}/leave"))
            for app in (service.app, elsewhere().app)
        ]
        assert promises == [True, False]

    def test_member_who_needs_it_is_not_led_to_it(
        self, tried_out, service, elsewhere, join, bob, acme, database
    ):
        join(bob, acme)
        database.run("UPDATE organizations SET needs_own_provider = true")
        is_led = [
            "account/company?next=" in Visitor(app).with_session_of(bob).visit(PATH).text
            for app in (service.app, elsewhere().app)
        ]
        assert is_led == [True, False]

    @pytest.mark.parametrize("place", ["home", "by_bind"])
    def test_membership_of_another_provider_does_not_outlive_it_for_one_out_of_place(
        self, tried_out, sign_in, service, elsewhere, customers, database, service_role, place
    ):
        database.run("UPDATE identity_providers SET issuer = %(url)s", url=customers.acme.provider.url)
        customers.acme.be("2", EVE)
        service.signed_in(f"custom:{tried_out}")
        assert sign_in.prove("other.example").status_code == 200
        other = sign_in.connect(customers.globex, domains=["other.example"], member_role="member").json["id"]
        database.run("UPDATE memberships SET provider_id = %(id)s WHERE role = 'member'", id=other)
        client = service.client if place == "home" else elsewhere().client
        response = client.delete(f"/admin/custom-providers/{other}", headers=service_role)
        assert response.status_code == 204, response.text
        assert database.count("memberships", "role = 'member'") == (1 if place == "home" else 0)

    @pytest.mark.parametrize("place", ["home", "by_bind"])
    def test_passkey_of_its_user_is_the_last_way_to_sign_in_elsewhere(
        self, tried_out, service, customers, make_app, database, place
    ):
        database.run("UPDATE identity_providers SET issuer = %(url)s", url=customers.acme.provider.url)
        customers.acme.be("2", EVE)
        session = service.signed_in(f"custom:{tried_out}")
        _, passkey = passkeys.register(session)
        settings = {"AUTH_ORGANIZATIONS": "users", "AUTH_SSO": "true", "AUTH_EMAIL_ENABLED": "false"}
        app = make_app(**settings | ELSEWHERE.get(place, {}))
        response = session.on(app.test_client()).delete(f"/passkeys/{passkey['id']}", json={})
        assert response.status_code == (200 if place == "home" else 422), response.text
        assert database.count("factors") == (0 if place == "home" else 1)

    def test_explanation_says_where_the_provider_works(
        self, tried_out, service, elsewhere, customers, database
    ):
        database.run("UPDATE identity_providers SET issuer = %(url)s", url=customers.acme.provider.url)
        customers.acme.be("2", EVE)
        service.signed_in(f"custom:{tried_out}")
        output = run_command(elsewhere().app, "explain", EVE).output
        assert "works only while AUTH_BASE_URL and AUTH_BIND are its machine" in output


def _is_other(url):
    return lambda target: target != url
