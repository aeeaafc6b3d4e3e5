"""Attacks on gates, each by its name. Those on the headers that a proxy passes on are in tests/deploy."""

import hashlib
import json
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from auth.core.tokens import one_time
from tests.support.gates import ORIGIN, GateVisitor, create, shown
from tests.support.openid import authorize_path
from tests.support.user_agent import Cookie

GRAFANA = "https://grafana.example.com"
EVIL = "https://evil.example.com"


@pytest.fixture
def app(make_app):
    return make_app(AUTH_GATE="true", AUTH_RATE_LIMITS_ENABLED="false")


@pytest.fixture
def gate(app) -> str:
    return create(app)


@pytest.fixture
def grafana(app) -> str:
    return create(app, GRAFANA, name="grafana")


@pytest.fixture
def visitor(app, gate, grafana) -> GateVisitor:
    return GateVisitor(app, ORIGIN, GRAFANA)


@pytest.fixture
def signed_in(visitor, alice) -> GateVisitor:
    visitor.with_session_of(alice).at()
    return visitor


def cookie(value: str, name: str = "__Host-latchkey-gate") -> dict[str, str]:
    return {"Cookie": f"{name}={value}"}


def callback_of(visitor: GateVisitor, origin: str = ORIGIN) -> str:
    """Return the URL with the code, which the browser does not open."""
    return visitor.visit(f"{origin}/x", stop=lambda url: "/.latchkey/callback?" in url).url


def test_claimed_remote_headers_are_not_those_of_the_answer(signed_in, alice):
    claims = {
        "Remote-User": "admin",
        "Remote_User": "admin",
        "Remote-Role": "admin",
        "X-Forwarded-User": "admin",
    }
    answer = signed_in.proxies[ORIGIN].ask(headers=claims | cookie(signed_in.cookie_of()))
    assert (answer.headers["Remote-User"], answer.headers["Remote-Role"]) == (alice.id, "authenticated")
    assert signed_in.proxies[ORIGIN].ask(headers=claims).status_code == 401


@pytest.mark.parametrize(
    "header", ["X-Forwarded-Proto", "X-Forwarded-For", "X-Forwarded-Method", "X-Original-URL"]
)
def test_other_forwarded_headers_decide_nothing(signed_in, header):
    """CVE-2025-54576 of oauth2-proxy, and others: a bypass by a path, a method or an address."""
    for value in ("http", "127.0.0.1", "OPTIONS", "/ping", "/.latchkey/start"):
        answer = signed_in.proxies[ORIGIN].ask(headers={header: value})
        assert answer.status_code == 401, value


@pytest.mark.parametrize(
    "path", ["/.latchkey/start", "/ping", "/static/x.css", "/x?/.latchkey/callback", "/%2e%2e/gate"]
)
def test_no_path_is_let_through_without_a_session(visitor, path):
    """CVE-2025-54576 and CVE-2026-40575 of oauth2-proxy: rules for paths, by what a request claims."""
    assert visitor.proxies[ORIGIN].ask(path).status_code == 401


@pytest.mark.parametrize("agent", ["GoogleHC/1.0", "kube-probe/1.29", "Envoy/HC"])
def test_health_check_of_a_load_balancer_is_not_let_through(visitor, agent):
    """CVE-2026-34457 of oauth2-proxy: a user agent that passed."""
    assert visitor.proxies[ORIGIN].ask(headers={"User-Agent": agent}).status_code == 401


@pytest.mark.parametrize(
    "host",
    [
        "DOCS.example.com",
        "docs.example.com.",
        "docs.example.com:443",
        "docs.example.com:80",
        "xn--docs.example.com",
        "docs.example.com@evil.example.com",
        "evil.example.com",
        "evil.example.com,docs.example.com",
        "docs.example.com,docs.example.com",
        "docs.example.com docs.example.com",
        "döcs.example.com",
        "",
    ],
)
def test_other_spelling_of_the_host_is_no_gate(app, signed_in, host):
    headers = {"X-Forwarded-Host": host.encode().decode("latin-1"), "Accept": "text/html"}
    answer = signed_in.client.get("/gate", headers=headers | cookie(signed_in.cookie_of()))
    assert (answer.status_code, answer.json["error_code"]) == (401, "session_not_found")
    started = signed_in.client.get(
        "/.latchkey/start?to=/", environ_overrides={"HTTP_HOST": host.encode().decode("latin-1")}
    )
    assert (started.status_code in (400, 404), "Set-Cookie" in started.headers) == (True, False)


def test_request_without_a_host_is_no_gate(signed_in):
    answer = signed_in.client.get("/gate", headers=cookie(signed_in.cookie_of()))
    assert answer.status_code == 401
    old = {"SERVER_PROTOCOL": "HTTP/1.0"}
    answer = signed_in.client.get("/gate", headers=cookie(signed_in.cookie_of()), environ_overrides=old)
    assert answer.status_code == 401


def test_cookie_of_one_gate_opens_no_other(signed_in):
    stolen = signed_in.cookie_of()
    assert signed_in.proxies[ORIGIN].ask(headers=cookie(stolen)).status_code == 204
    answer = signed_in.proxies[GRAFANA].ask(headers=cookie(stolen))
    assert (answer.status_code, "Remote-User" in answer.headers) == (401, False)


def test_cookie_of_a_gate_opens_nothing_of_ours(signed_in):
    """What a tool that is taken over could read, if a proxy forgot to remove it."""
    stolen = signed_in.cookie_of()
    for name in ("__Host-latchkey-gate", "__Host-latchkey", "latchkey", "latchkey_known"):
        answer = signed_in.client.get("/account", headers=cookie(stolen, name))
        assert answer.status_code == 401
    bearer = {"Authorization": f"Bearer {stolen}"}
    assert [
        signed_in.client.get(path, headers=bearer).status_code for path in ("/user", "/oauth/userinfo")
    ] == [401, 401]


def test_cookie_without_the_prefix_is_not_that_of_a_gate_with_tls(signed_in):
    """A sibling host can set it."""
    answer = signed_in.proxies[ORIGIN].ask(headers=cookie(signed_in.cookie_of(), "latchkey-gate"))
    assert answer.status_code == 401


@pytest.mark.parametrize("before", ["\xa0", "\x85", "\x1c", "\x1f", "\x0b", "\x0c", " \xa0"])
def test_cookie_whose_name_begins_with_what_python_takes_for_space_is_not_that_of_a_gate(signed_in, before):
    """To a browser it has no prefix, so a sibling host can set it."""
    planted = cookie(signed_in.cookie_of(), f"a=1;{before}__Host-latchkey-gate")
    assert signed_in.proxies[ORIGIN].ask(headers=planted).status_code == 401
    plain = cookie(signed_in.cookie_of(), "a=1; \t__Host-latchkey-gate")
    assert signed_in.proxies[ORIGIN].ask(headers=plain).status_code == 204


def test_session_of_our_pages_or_of_another_client_is_no_session_of_a_gate(signed_in, database):
    value = next(each.value for each in signed_in.cookies if each.name == "latchkey")
    assert signed_in.proxies[ORIGIN].ask(headers=cookie(value)).status_code == 401


def test_code_of_one_gate_is_not_redeemed_at_the_host_of_another(visitor, alice, database):
    visitor.with_session_of(alice)
    query = urlsplit(callback_of(visitor)).query
    # Even with the cookie and the state of a flow there.
    visitor.visit(f"{GRAFANA}/x", stop=lambda url: "/oauth/authorize" in url)
    state = parse_qs(urlsplit(visitor.page.url).query)["state"][0]
    code = parse_qs(query)["code"][0]
    page = visitor.visit(f"{GRAFANA}/.latchkey/callback?code={code}&state={state}")
    assert (page.status, visitor.cookie_of(GRAFANA), database.count("gate_sessions")) == (404, "", 0)


def test_code_of_a_gate_is_not_redeemed_at_the_token_endpoint(visitor, gate, alice, client):
    """A tool that is taken over may have a service worker, which sees the URL with the code."""
    verifier = one_time.new_token()
    challenge = one_time.hash_token(verifier)
    assert challenge
    visitor.with_session_of(alice)
    code = parse_qs(urlsplit(callback_of(visitor)).query)["code"][0]
    for secret in ({}, {"client_secret": ""}, {"client_secret": "x"}):
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "client_id": gate,
            "redirect_uri": f"{ORIGIN}/.latchkey/callback",
        }
        answer = client.post("/oauth/token", data=form | secret)
        assert (answer.status_code, answer.json["error"]) == (401, "invalid_client")


def test_callback_that_another_browser_began_signs_nobody_in(app, visitor, alice, mallory):
    """An attacker begins, and lets the victim end, to be signed in together with them."""
    attacker = GateVisitor(app, ORIGIN, GRAFANA).with_session_of(mallory)
    callback = callback_of(attacker)
    page = visitor.with_session_of(alice).visit(callback)
    assert (page.status, visitor.cookie_of()) == (404, "")
    assert [each.value for each in visitor.cookies if "gate" in each.name] == []


def test_planted_value_of_the_cookie_is_replaced_at_the_sign_in(visitor, alice):
    """Fixation: the attacker knows a value from before."""
    known = one_time.new_token()
    visitor.cookies.append(Cookie("__Host-latchkey-gate", known, "docs.example.com", "/", True, False, "lax"))
    visitor.with_session_of(alice).at()
    assert visitor.cookie_of() not in ("", known)
    assert visitor.proxies[ORIGIN].ask(headers=cookie(known)).status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example.com/",
        "///evil.example.com",
        "/\\evil.example.com",
        "\\\\evil.example.com",
        "https://evil.example.com/",
        "@evil.example.com/",
        ".evil.example.com/",
        ":pass@evil.example.com/",
        "/\t/evil.example.com",
        "/ /evil.example.com",
        "/\r\nLocation: https://evil.example.com",
        "javascript:alert(1)",
        "",
        "/.latchkey/start?to=/.latchkey/start",
    ],
)
def test_return_address_leads_to_no_other_site(visitor, alice, path):
    visitor.with_session_of(alice)
    answer = visitor.proxies[ORIGIN].ask(path, {"Accept": "text/html"}) if path.isprintable() else None
    assert answer is None or answer.headers["Location"] == f"{ORIGIN}/.latchkey/start?to=/"
    for sent in (path, quote(path, safe="")):
        visitor.cookies = [each for each in visitor.cookies if each.host != "docs.example.com"]
        environ = {"QUERY_STRING": f"to={sent}", "HTTP_HOST": "docs.example.com", "HTTP_ACCEPT": "text/html"}
        started = visitor.client.get("/.latchkey/start", environ_overrides=environ)
        flow = started.headers["Set-Cookie"].partition("=")[2].partition(";")[0]
        visitor.cookies.append(
            Cookie("__Host-latchkey-gate-flow", flow, "docs.example.com", "/", True, True, "lax")
        )
        page = visitor.visit(started.headers["Location"])
        assert shown(page) == "docs.example.com/"


def test_state_of_another_gate_or_a_changed_one_leads_nowhere(visitor, alice):
    visitor.with_session_of(alice)
    url = visitor.visit(f"{GRAFANA}/x", stop=lambda url: "/oauth/authorize" in url).url
    state = parse_qs(urlsplit(url).query)["state"][0]
    visitor.at()
    for sent in (state, state[:-2], "x", "é", ""):
        page = visitor.visit(f"{ORIGIN}/.latchkey/callback?code=x&state={quote(sent)}")
        assert (page.status, page.url.partition("?")[0]) == (404, f"{ORIGIN}/.latchkey/callback")


def test_script_starts_and_ends_no_flow(visitor, alice):
    visitor.with_session_of(alice)
    for path in ("/.latchkey/start?to=/", urlsplit(callback_of(visitor)).path):
        headers = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}
        answer = visitor.client.get(path, headers=headers, base_url=ORIGIN)
        assert (answer.status_code, "Set-Cookie" in answer.headers) == (401, False)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_page_of_another_site_signs_nobody_out(signed_in, site):
    """SameSite does not separate sibling hosts; Sec-Fetch-Site does."""
    answer = signed_in.client.post(
        "/.latchkey/sign-out",
        base_url=ORIGIN,
        headers={"Sec-Fetch-Site": site, "Origin": EVIL, **cookie(signed_in.cookie_of())},
        content_type="application/x-www-form-urlencoded",
    )
    assert (answer.status_code, answer.json["error_code"]) == (403, "origin_not_allowed")
    assert signed_in.proxies[ORIGIN].ask(headers=cookie(signed_in.cookie_of())).status_code == 204


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE"])
def test_other_methods_are_not_answered(signed_in, method):
    headers = {"X-Forwarded-Host": "docs.example.com", **cookie(signed_in.cookie_of())}
    answer = signed_in.client.open("/gate", method=method, headers=headers, json={})
    assert (answer.status_code, "Remote-User" in answer.headers) == (405, False)


def test_head_has_no_effect(visitor):
    for path in ("/.latchkey/start?to=/", "/.latchkey/callback?code=x&state=y"):
        answer = visitor.client.head(path, base_url=ORIGIN)
        assert (answer.status_code, "Set-Cookie" in answer.headers) == (200, False)


def test_paths_of_a_gate_are_not_served_on_other_hosts(visitor):
    for base_url in ("http://localhost:8000", EVIL):
        answers = [
            visitor.client.get(path, base_url=base_url)
            for path in ("/.latchkey/start", "/.latchkey/callback")
        ]
        assert [answer.status_code for answer in answers] == [404, 404]


def test_token_for_a_tool_behind_a_gate_is_not_made(app, gate, service_role):
    client = app.test_client()
    for resource in (
        ORIGIN,
        f"{ORIGIN}/",
        f"{ORIGIN}/api",
        "https://DOCS.example.com:443/api",
        "https://docs.example.com./",
    ):
        body = {"client_name": "x", "redirect_uris": ["https://a.example.com/"], "resources": [resource]}
        answer = client.post("/admin/oauth/clients", json=body, headers=service_role)
        assert (answer.status_code, "must not be behind a gate" in answer.json["msg"]) == (400, True), (
            resource
        )


def test_gate_cannot_be_made_another_client(app, gate, service_role, database):
    client, path = app.test_client(), f"/admin/oauth/clients/{gate}"
    for body in (
        {"redirect_uris": [f"{EVIL}/"]},
        {"grant_types": ["client_credentials"]},
        {"token_endpoint_auth_method": "none"},
        {"skip_consent": False},
        {"scopes": ["openid"]},
    ):
        answer = client.put(path, json=body, headers=service_role)
        assert (answer.status_code, "the client is a gate" in answer.json["msg"]) == (400, True), body
    assert client.post(f"{path}/regenerate_secret", headers=service_role).status_code == 400
    assert client.put(path, json={"allowed_roles": ["staff"]}, headers=service_role).status_code == 200
    assert database.value("SELECT gate_origin FROM oauth_clients WHERE id = %(id)s", id=gate) == ORIGIN
    shown_client = client.get(path, headers=service_role).json
    assert ("client_secret" in shown_client, shown_client["gate_origin"]) == (False, ORIGIN)


def test_gate_is_asked_for_by_a_request_that_anyone_may_begin_and_gives_its_code_to_the_gate_alone(
    visitor, gate, alice
):
    visitor.with_session_of(alice)
    elsewhere = visitor.visit(authorize_path(gate, redirect_uri=f"{EVIL}/", scope="email"))
    assert elsewhere.status == 400
    page = visitor.visit(authorize_path(gate, redirect_uri=f"{ORIGIN}/.latchkey/callback", scope="email"))
    assert (page.status, page.url.partition("?")[0], visitor.cookie_of()) == (
        404,
        f"{ORIGIN}/.latchkey/callback",
        "",
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://docs.example.com",
        "https://docs.example.com/path",
        "https://DOCS.example.com",
        "https://docs.example.com:443",
        "https://docs.example.com.",
        "https://user@docs.example.com",
        "https://docs.example.com?a",
        "ftp://docs.example.com",
        "docs.example.com",
        "https://localhost",
        "https://döcs.example.com",
        "https://",
    ],
)
def test_gate_has_one_spelling_of_an_https_origin_of_its_own(app, url):
    from auth.web.errors import ApiError

    with pytest.raises(ApiError) as refused:
        create(app, url)
    assert refused.value.error_code == "validation_failed"


def test_hashes_alone_are_stored(signed_in, database):
    stored = database.value("SELECT token_hash FROM gate_sessions")
    assert bytes(stored) == hashlib.sha256(signed_in.cookie_of().encode()).digest()
    assert json.dumps(signed_in.cookie_of()) not in str(
        database.value("SELECT array_agg(details::text) FROM audit_log")
    )
