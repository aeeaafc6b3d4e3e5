"""POST /oauth/token decides about scope, resource, organization, client and user as the request did, whichever grant asks:
each grant of the endpoint in each situation.
"""

from typing import Any

import pytest

from auth.extensions.openid.api.openid import GRANTS
from auth.extensions.openid.clients import DEVICE_CODE
from tests.support.openid import USERINFO
from tests.support.openid_flow import make_application
from tests.support.pages import Visitor
from tests.support.token_grants import CALLBACK, CODE, ORDER, OWN, REFRESH, Situation, answer_of

API, PAY, OTHER = "https://api.example.com", "https://pay.example.com/v1", "https://other.example.com"
SCOPES = ["openid", "email", "profile", "read"]
ADMIN = "/admin/oauth/clients/{client}"


@pytest.fixture
def situation(make_app, database, alice, service_role) -> Situation:
    http = make_app().test_client()
    columns = {
        "redirect_uris": [CALLBACK],
        "scopes": SCOPES,
        "resources": [API, PAY],
        "grant_types": [*ORDER],
    }
    wiki = make_application(http, database, name="Wiki", **columns)
    others = make_application(http, database, name="Other", **columns).client
    visitor = Visitor(http.application).with_session_of(alice)
    return Situation(http, wiki, visitor, alice, service_role, others)


def put(**body: Any) -> tuple[str, str, dict[str, Any]]:
    return "PUT", ADMIN, body


BOTH, FIRST, ALL, FREE = (
    f"openid email @ {API}",
    f"openid @ {API}",
    f"{' '.join(SCOPES)} @ {USERINFO}",
    USERINFO,
)
SCOPE, TARGET, GRANT = "invalid_scope", "invalid_target", "invalid_grant"
# What has changed since the request, what the token request says, and the answers to the grants in `ORDER`.
CELLS: dict[str, tuple[Any, dict[str, Any], tuple[str, str, str, str]]] = {
    "nothing": (None, {}, (BOTH, BOTH, BOTH, ALL)),
    # Scopes. Neither a code nor a device sends any.
    "fewer scopes": (None, {"scope": "openid"}, (BOTH, FIRST, BOTH, f"openid @ {FREE}")),
    "a scope twice": (None, {"scope": "openid openid"}, (BOTH, FIRST, BOTH, f"openid @ {FREE}")),
    "a scope that was dropped": (None, {"scope": "openid email admin"}, (BOTH, BOTH, BOTH, SCOPE)),
    "a scope that was dropped, alone": (None, {"scope": "admin"}, (BOTH, SCOPE, BOTH, SCOPE)),
    "a scope of the client itself": (None, {"scope": "openid read"}, (BOTH, FIRST, BOTH, f"openid read @ {FREE}")),
    "a scope that was not asked for": (
        None, {"scope": "openid profile"}, (BOTH, SCOPE, BOTH, f"openid profile @ {FREE}")),
    "a blank scope": (None, {"scope": " "}, (BOTH, SCOPE, BOTH, SCOPE)),
    "an empty scope": (None, {"scope": ""}, (BOTH, BOTH, BOTH, ALL)),
    "fewer scopes of the client": (
        put(scopes=["openid", "read"]), {}, (FIRST, FIRST, FIRST, f"openid read @ {FREE}")),
    "a scope that the client has lost": (
        put(scopes=["openid", "read"]), {"scope": "openid email"}, (FIRST, FIRST, FIRST, SCOPE)),
    "other scopes of the client": (put(scopes=["read"]), {}, (SCOPE, SCOPE, SCOPE, f"read @ {FREE}")),
    # Resources, which are audiences.
    "the resource": (None, {"resource": API}, (BOTH, BOTH, BOTH, f"{' '.join(SCOPES)} @ {API}")),
    "the resource with a slash": (
        None, {"resource": f"{API}/"}, (BOTH, BOTH, BOTH, f"{' '.join(SCOPES)} @ {API}")),
    "no resource": (None, {"resource": ""}, (BOTH, BOTH, BOTH, ALL)),
    "another resource of the client": (
        None, {"resource": PAY}, (TARGET, TARGET, TARGET, f"{' '.join(SCOPES)} @ {PAY}")),
    "another path": (None, {"resource": f"{API}/x"}, (TARGET,) * 4),
    "a slash behind a path": (None, {"resource": f"{PAY}/"}, (TARGET,) * 4),
    "a foreign resource": (None, {"resource": OTHER}, (TARGET,) * 4),
    "a resource of ours": (None, {"resource": "http://localhost:8000/user"}, (TARGET,) * 4),
    "a malformed resource": (None, {"resource": "api"}, (TARGET,) * 4),
    "two resources": (None, {"resource": [API, API]}, (TARGET,) * 4),
    "the client lost the resource": (put(resources=[PAY]), {}, (GRANT, GRANT, GRANT, ALL)),
    "the client lost the resource that it names": (
        put(resources=[PAY]), {"resource": API}, (GRANT, GRANT, GRANT, TARGET)),
    "the resource got a slash": (
        put(resources=[f"{API}/", PAY]), {"resource": API},
        (f"{BOTH}/", f"{BOTH}/", f"{BOTH}/", f"{' '.join(SCOPES)} @ {API}/")),
    # The client.
    "a blocked client": (put(is_blocked=True), {}, ("invalid_client",) * 4),
    "a deleted client": (("DELETE", ADMIN), {}, ("invalid_client",) * 4),
    "a replaced secret": (("POST", f"{ADMIN}/regenerate_secret"), {}, ("invalid_client",) * 4),
    "a replaced secret that still counts": (
        ("POST", f"{ADMIN}/regenerate_secret", {"overlap": True}), {}, (BOTH, BOTH, BOTH, ALL)),
    "a client that needs a role": (put(allowed_roles=["staff"]), {}, (GRANT, GRANT, GRANT, ALL)),
    # The user.
    "a banned user": (("PUT", "/admin/users/{user}", {"ban_duration": "24h"}), {}, (GRANT, GRANT, GRANT, ALL)),
    "a deleted user": (("DELETE", "/admin/users/{user}"), {}, (GRANT, GRANT, GRANT, ALL)),
    "a user who has signed out": (("POST", "/admin/users/{user}/logout"), {}, (GRANT, GRANT, GRANT, ALL)),
}  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("grant", ORDER)
def test_grant_decides_as_the_request_did(situation, grant, cell):
    change, form, answers = CELLS[cell]
    ask = situation.prepared(grant, resource=API)
    if change:
        situation.change(*change)
    assert answer_of(ask(**form)) == answers[ORDER.index(grant)]


def test_table_has_every_grant_of_the_endpoint():
    assert set(ORDER) == set(GRANTS)


@pytest.mark.parametrize("grant", ORDER)
def test_client_without_the_grant_gets_no_token(situation, grant):
    ask = situation.prepared(grant)
    others = [each for each in ORDER if each != grant]
    situation.change(*put(grant_types=others))
    assert answer_of(ask()) == "unauthorized_client"


@pytest.mark.parametrize("grant", ORDER[:-1])
def test_grant_of_another_client_is_none(situation, grant):
    ask = situation.prepared(grant)
    assert answer_of(ask(by=situation.others)) == GRANT
    assert answer_of(ask()) == f"openid email @ {USERINFO}"


@pytest.mark.parametrize("grant", ORDER[:-1])
def test_request_without_a_resource_has_no_token_for_one(situation, grant):
    ask = situation.prepared(grant)
    assert answer_of(ask(resource=API)) == TARGET
    # A refusal spends nothing.
    assert answer_of(ask()) == f"openid email @ {USERINFO}"


@pytest.mark.parametrize("grant", ORDER[:-1])
def test_withdrawn_consent_gives_no_token(situation, grant):
    ask = situation.prepared(grant)
    session = situation.person.open_session(situation.http)
    path = f"/user/oauth/grants?client_id={situation.application.client.id}"
    assert session.delete(path).status_code == 204
    assert answer_of(ask()) == GRANT


@pytest.mark.parametrize("grant", ORDER[:-1])
def test_refused_scope_and_resource_leave_the_grant_good(situation, grant):
    ask = situation.prepared(grant, resource=API)
    assert answer_of(ask(resource=PAY)) == TARGET
    if grant == REFRESH:
        assert answer_of(ask(scope="profile")) == SCOPE
    assert answer_of(ask()) == BOTH


@pytest.mark.parametrize("change", [None, put(scopes=["read"]), put(resources=[API, PAY, OTHER])])
@pytest.mark.parametrize("grant", [CODE, DEVICE_CODE])
def test_second_use_ends_what_the_first_opened_whatever_it_asks_for(situation, grant, change):
    ask = situation.prepared(grant, resource=API)
    tokens = ask().json
    if change:
        situation.change(*change)
    assert answer_of(ask(resource=OTHER)) == GRANT
    assert answer_of(situation.application.refresh(tokens["refresh_token"])) == GRANT


@pytest.mark.parametrize("asked", [API, f"{API}/"])
@pytest.mark.parametrize("grant", ORDER)
def test_audience_is_spelled_as_the_client_has_it(situation, grant, asked):
    if grant == OWN:
        assert answer_of(situation.prepared(grant)(resource=asked)) == f"{' '.join(SCOPES)} @ {API}"
        return
    assert answer_of(situation.prepared(grant, resource=asked)()) == BOTH


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"scope": "admin"}, SCOPE),
        ({"resource": f"{API}/x"}, TARGET),
        ({"resource": OTHER}, TARGET),
        ({"resource": "api"}, TARGET),
    ],
)
def test_request_of_a_browser_and_of_a_device_are_refused_alike(situation, request_, error):
    of_browser = situation.application.returned(situation.application.begin(situation.visitor, **request_))
    of_device = situation.application.client.post(situation.http, "/oauth/device_authorization", **request_)
    assert (of_browser["error"], answer_of(of_device)) == (error, error)
    assert of_browser["error_description"] == of_device.json["error_description"]
