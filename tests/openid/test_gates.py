"""Gates: sign-in for tools without one, behind a proxy that asks GET /gate."""

import pytest

from tests.support.factors import set_up
from tests.support.gates import ORIGIN, GateVisitor, create, shown
from tests.support.users import PASSWORD

GRAFANA = "https://grafana.example.com"
AGE = "UPDATE sessions SET refreshed_at = now() - %(age)s::interval"
REFRESHED = "SELECT count(*) FROM sessions WHERE refreshed_at > now() - interval '10 minutes'"


@pytest.fixture
def app(make_app):
    return make_app(AUTH_GATE="true")


@pytest.fixture
def gate(app) -> str:
    return create(app)


@pytest.fixture
def visitor(app, gate) -> GateVisitor:
    return GateVisitor(app, ORIGIN, GRAFANA)


def change(client, service_role, person, **body) -> None:
    answer = client.put(f"/admin/users/{person.id}", json=body, headers=service_role)
    assert answer.status_code == 200


def test_visitor_signs_in_and_gets_to_the_path_that_was_asked_for(visitor, alice):
    page = visitor.at("/a/b?c=1&d=//e&to=/f%2F")
    assert page.url.startswith("http://localhost:8000/sign-in?")
    visitor.submit(email=alice.email, password=PASSWORD)
    assert shown(visitor.page) == "docs.example.com/a/b?c=1&d=//e&to=/f%2F"
    assert visitor.tool["Remote-User"] == alice.id
    names = {each.name for each in visitor.cookies if each.host == "docs.example.com"}
    assert names == {"__Host-latchkey-gate"}


def test_signed_in_user_passes_without_a_question_and_is_told_of_the_first_time(visitor, alice, database):
    visitor.with_session_of(alice)
    assert shown(visitor.at("/x")) == "docs.example.com/x"
    kinds = "SELECT array_agg(kind) FROM outbox WHERE kind = 'application_added'"
    assert database.value(kinds) == ["application_added"]
    visitor.cookies = [each for each in visitor.cookies if each.host != "docs.example.com"]
    assert shown(visitor.at("/y")) == "docs.example.com/y"
    assert database.value(kinds) == ["application_added"]


def test_second_step_is_asked_for_before_the_tool(visitor, alice):
    set_up(alice.open_session())
    visitor.at("/x")
    visitor.submit(email=alice.email, password=PASSWORD)
    assert shown(visitor.page).startswith("/second-step?")
    assert not visitor.cookie_of()


def test_headers_are_always_there_and_say_what_administrators_decide(visitor, alice, client, service_role):
    visitor.with_session_of(alice).at()
    names = [f"Remote-{name}" for name in ("User", "Email", "Name", "Role", "Groups")]
    assert [visitor.tool[name] for name in names] == [alice.id, alice.email, "", "authenticated", ""]
    groups = ["staff", "a,b", "c\nd", 3, "März", "50%"]
    change(client, service_role, alice, role="editor", app_metadata={"groups": groups})
    change(client, service_role, alice, user_metadata={"name": "Zoë\r\nRemote-Role: admin"})
    visitor.at()
    assert [visitor.tool[name] for name in names[2:]] == [
        "Zo%C3%AB%0D%0ARemote-Role: admin",
        "editor",
        "staff,M%C3%A4rz,50%25",
    ]


def test_unproved_address_is_no_header(visitor, alice, database):
    database.run("UPDATE users SET email_proved = false")
    visitor.with_session_of(alice).at()
    assert visitor.tool["Remote-Email"] == ""


def test_metadata_that_a_user_writes_changes_nothing_but_the_name_for_display(visitor, alice):
    forged = {"name": "admin", "role": "admin", "groups": ["admin"], "email": "root@example.com"}
    answer = alice.open_session().put("/user", json={"data": forged})
    assert answer.status_code == 200
    visitor.with_session_of(alice).at()
    got = [visitor.tool[f"Remote-{name}"] for name in ("User", "Email", "Name", "Role", "Groups")]
    assert got == [alice.id, alice.email, "admin", "authenticated", ""]


def test_two_gates_admit_different_roles(app, visitor, alice, client, service_role):
    create(app, GRAFANA, "editor", name="grafana")
    visitor.with_session_of(alice)
    assert shown(visitor.at()) == "docs.example.com/"
    page = visitor.at("/d", GRAFANA)
    assert (page.status, page.url.partition("?")[0]) == (403, "http://localhost:8000/oauth/consent")
    assert not visitor.cookie_of(GRAFANA)
    change(client, service_role, alice, role="editor")
    assert shown(visitor.at("/d", GRAFANA)) == "grafana.example.com/d"


def test_user_who_goes_back_from_the_consent_page_gets_a_page_that_says_no(app, visitor, alice):
    create(app, GRAFANA, "editor", name="grafana")
    visitor.with_session_of(alice).at("/d", GRAFANA)
    page = visitor.submit(action="deny")
    assert (page.status, page.url.partition("?")[0]) == (403, f"{GRAFANA}/.latchkey/callback")
    assert "You can’t use grafana.example.com" in page.text


def test_ban_bites_at_the_next_request(visitor, client, service_role, alice):
    visitor.with_session_of(alice).at()
    assert visitor.proxies[ORIGIN].ask(headers=cookie(visitor)).status_code == 204
    change(client, service_role, alice, ban_duration="1h")
    answer = visitor.proxies[ORIGIN].ask(headers=cookie(visitor))
    assert (answer.status_code, "Remote-User" in answer.headers) == (401, False)
    assert shown(visitor.at()).startswith("/sign-in?")


def test_demotion_bites_at_the_next_request(app, visitor, client, service_role, alice):
    create(app, GRAFANA, "editor", name="grafana")
    change(client, service_role, alice, role="editor")
    visitor.with_session_of(alice).at("/", GRAFANA)
    assert visitor.proxies[GRAFANA].ask(headers=cookie(visitor, GRAFANA)).status_code == 204
    change(client, service_role, alice, role="guest")
    answer = visitor.proxies[GRAFANA].ask(headers=cookie(visitor, GRAFANA))
    assert (answer.status_code, "Remote-User" in answer.headers) == (403, False)
    change(client, service_role, alice, role="editor")
    # What has ended does not come back: the sign-in opens another session.
    assert visitor.proxies[GRAFANA].ask(headers=cookie(visitor, GRAFANA)).status_code == 401
    assert shown(visitor.at("/", GRAFANA)) == "grafana.example.com/"


def cookie(visitor, origin=ORIGIN) -> dict[str, str]:
    return {"Cookie": f"__Host-latchkey-gate={visitor.cookie_of(origin)}"}


def test_client_that_is_blocked_admits_nobody_and_says_so(app, gate, visitor, alice, client, service_role):
    visitor.with_session_of(alice).at()
    answer = client.put(f"/admin/oauth/clients/{gate}", json={"is_blocked": True}, headers=service_role)
    assert answer.status_code == 200
    answer = visitor.proxies[ORIGIN].ask(headers=cookie(visitor))
    assert answer.status_code == 403
    assert answer.json == {
        "code": 403,
        "msg": "This user may not use docs.example.com",
        "error_code": "insufficient_permissions",
    }
    page = visitor.at()
    assert (page.status, page.url) == (403, f"{ORIGIN}/")
    assert "You can’t use docs.example.com" in page.text
    # The host has none of our files.
    assert 'href="http://localhost:8000/account"' in page.text
    assert "static/" not in page.text


def test_sign_out_at_the_gate_ends_its_session_and_asks_about_the_sign_in(visitor, alice, database):
    visitor.with_session_of(alice).at()
    before = cookie(visitor)
    page = visitor.post(f"{ORIGIN}/.latchkey/sign-out", {})
    assert (page.status, page.url.partition("?")[0]) == (200, "http://localhost:8000/oauth/logout")
    assert not visitor.cookie_of()
    assert visitor.proxies[ORIGIN].ask(headers=before).status_code == 401
    reasons = "SELECT array_agg(end_reason::text) FROM sessions WHERE ended_at IS NOT NULL"
    assert database.value(reasons) == ["logout"]
    visitor.press("oauth/logout/confirm")
    assert database.value("SELECT count(*) FROM sessions WHERE ended_at IS NULL") == 0
    assert shown(visitor.at()).startswith("/sign-in?")


def test_sign_out_on_our_pages_ends_every_gate(app, visitor, alice):
    create(app, GRAFANA, name="grafana")
    visitor.with_session_of(alice)
    visitor.at()
    visitor.at("/", GRAFANA)
    visitor.visit("/account")
    visitor.press("sign-out")
    answers = [visitor.proxies[origin].ask(headers=cookie(visitor, origin)) for origin in (ORIGIN, GRAFANA)]
    assert [answer.status_code for answer in answers] == [401, 401]


def test_removing_the_application_ends_the_gate(visitor, alice, database):
    visitor.with_session_of(alice).at()
    database.run("DELETE FROM oauth_grants")
    assert visitor.proxies[ORIGIN].ask(headers=cookie(visitor)).status_code == 401
    assert database.count("gate_sessions") == 0


def test_gate_ends_with_the_timebox_of_the_sign_in_that_made_it(visitor, alice, database):
    visitor.with_session_of(alice)
    database.run("UPDATE sessions SET created_at = now() - interval '399 days'")
    visitor.at()
    assert visitor.proxies[ORIGIN].ask(headers=cookie(visitor)).status_code == 204
    database.run("UPDATE sessions SET created_at = created_at - interval '2 days'")
    assert visitor.proxies[ORIGIN].ask(headers=cookie(visitor)).status_code == 401


def test_visit_refreshes_the_gate_and_the_sign_in_once_an_hour(visitor, alice, database):
    visitor.with_session_of(alice).at()
    sent = cookie(visitor)
    database.run(AGE, age="59 minutes")
    assert visitor.proxies[ORIGIN].ask(headers=sent).status_code == 204
    assert database.value(REFRESHED) == 0
    database.run(AGE, age="61 minutes")
    assert visitor.proxies[ORIGIN].ask(headers=sent).status_code == 204
    assert database.value(REFRESHED) == 2
    rows = "SELECT array_agg(xmin::text) FROM sessions"
    before = database.value(rows)
    assert visitor.proxies[ORIGIN].ask(headers=sent).status_code == 204
    assert database.value(rows) == before


def test_expired_or_ended_session_is_not_refreshed(visitor, alice, database):
    visitor.with_session_of(alice).at()
    database.run(AGE, age="31 days")
    assert visitor.proxies[ORIGIN].ask(headers=cookie(visitor)).status_code == 401
    assert database.value(REFRESHED) == 0


def test_gate_is_open_for_whoever_visits_within_a_short_lifetime(make_app, alice, database):
    app = make_app(AUTH_GATE="true", AUTH_REFRESH_TOKEN_LIFETIME="1800")
    create(app)
    visitor = GateVisitor(app).with_session_of(alice)
    visitor.at()
    database.run(AGE, age="16 minutes")
    assert visitor.proxies[ORIGIN].ask(headers=cookie(visitor)).status_code == 204
    assert database.value(REFRESHED) == 2


def test_tool_gets_the_other_cookies_alone(visitor, alice):
    visitor.with_session_of(alice).at()
    mixed = f"a=1; {cookie(visitor)['Cookie']}; b=2;__Host-latchkey-gate-flow=x; latchkey-gate=y; c"
    answer = visitor.proxies[ORIGIN].ask(headers={"Cookie": mixed})
    assert (answer.status_code, answer.headers["Cookie"]) == (204, "a=1; b=2; c")


def test_program_gets_401_and_a_script_no_redirect(visitor):
    ask = visitor.proxies[ORIGIN].ask
    page = {"Accept": "text/html"}
    requests = [{}, {"Accept": "application/json"}, page | {"Sec-Fetch-Mode": "cors"}]
    requests += [
        page | {"Sec-Fetch-Mode": "no-cors"},
        page | {"Sec-Purpose": "prefetch", "Sec-Fetch-Mode": "navigate"},
    ]
    answers = [ask(headers=headers) for headers in requests]
    assert [(answer.status_code, answer.headers.get("Location")) for answer in answers] == [(401, None)] * 5
    assert answers[0].json["error_code"] == "session_not_found"
    opened = [ask("/x", page), ask("/x", {"Sec-Fetch-Mode": "navigate"})]
    to = f"{ORIGIN}/.latchkey/start?to=/x"
    assert [(answer.status_code, answer.headers["Location"]) for answer in opened] == [(302, to)] * 2


def test_nginx_gets_401_and_403_alone(app, gate, visitor, alice, database):
    ask = visitor.proxies[ORIGIN].ask
    opened = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}
    assert ask(headers=opened, query="?proxy=nginx").status_code == 401
    visitor.with_session_of(alice).at()
    opened |= cookie(visitor)
    assert ask(headers=opened, query="?proxy=nginx").status_code == 204
    database.run("UPDATE oauth_clients SET is_blocked = true")
    assert ask(headers=opened, query="?proxy=nginx").status_code == 403


def test_request_of_another_site_reaches_the_tool_whose_business_it_is(visitor, alice):
    visitor.with_session_of(alice).at()
    foreign = {"Origin": "https://evil.example.com", "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}
    answer = visitor.proxies[ORIGIN].ask(headers=foreign | cookie(visitor))
    assert (answer.status_code, answer.headers.get("Access-Control-Allow-Origin")) == (204, None)


def test_back_button_leads_to_the_tool_and_redeems_nothing_again(visitor, alice, database):
    visitor.with_session_of(alice).at("/deep")
    callback = next(url for url in visitor.page.trail if "/.latchkey/callback?" in url)
    assert shown(visitor.visit(callback)) == "docs.example.com/deep"
    assert database.value("SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL") == 0


def test_tabs_that_begin_one_after_the_other_both_get_to_their_paths(visitor, alice):
    visitor.at("/one")
    visitor.at("/two")
    visitor.submit(email=alice.email, password=PASSWORD)
    assert shown(visitor.page) == "docs.example.com/two"
    assert shown(visitor.at("/one")) == "docs.example.com/one"


def test_tab_whose_flow_another_has_replaced_gets_to_its_path(visitor, alice):
    """As a browser does that opens the tabs of its last session at once."""
    one = visitor.visit(f"{ORIGIN}/one", stop=lambda url: "/oauth/authorize" in url).url
    visitor.cookies.clear()
    visitor.visit(f"{ORIGIN}/two", stop=lambda url: "/oauth/authorize" in url)
    visitor.with_session_of(alice)
    assert shown(visitor.visit(one)) == "docs.example.com/one"


def test_expired_code_gets_a_page_from_which_the_user_starts_again(visitor, alice, database):
    visitor.with_session_of(alice)
    callback = visitor.visit(f"{ORIGIN}/x", stop=lambda url: "/.latchkey/callback?" in url).url
    database.run("UPDATE oauth_requests SET code_expires_at = now()")
    page = visitor.visit(callback)
    assert (page.status, bool(visitor.cookie_of())) == (404, False)
    assert "This request has expired" in page.text
    assert '<a href="/">Try again</a>' in page.text
    assert shown(visitor.at("/x")) == "docs.example.com/x"


def test_gate_is_among_the_applications_of_the_account_and_of_the_console(whole_app, visitor, alice, carol):
    visitor.with_session_of(alice).at()
    assert "docs" in visitor.visit("/account").text
    administrator = GateVisitor(whole_app).with_session_of(carol)
    assert "docs" in administrator.visit("/console/applications").text


def test_page_with_forty_assets_writes_nothing(visitor, alice, database):
    visitor.with_session_of(alice).at()
    rows = "SELECT array_agg(xmin::text) FROM sessions"
    before = database.value(rows)
    answers = [
        visitor.proxies[ORIGIN].ask(f"/asset/{n}", cookie(visitor) | {"Sec-Fetch-Mode": "no-cors"})
        for n in range(40)
    ]
    assert [answer.status_code for answer in answers] == [204] * 40
    assert database.value(rows) == before


def test_gate_that_is_off_has_no_route_and_is_not_imported(make_app):
    client = make_app().test_client()
    paths = ("/gate", "/.latchkey/start", "/.latchkey/callback")
    assert [client.get(path).status_code for path in paths] == [404] * 3
