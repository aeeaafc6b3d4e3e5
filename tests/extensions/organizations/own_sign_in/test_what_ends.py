"""What a removed member keeps at three applications, and what pages, notice and account say of it: once with an account
that had moved to the organization's provider, once with one that the provider made.
"""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from auth.core.tokens import one_time
from auth.delivery.rendering import load_templates
from auth.html.forms import SESSION
from sql import queries
from tests.support.links import SITE
from tests.support.oauth import assert_failed
from tests.support.openid import assert_refused, claims_of
from tests.support.own_providers import PATH
from tests.support.pages import Visitor, words
from tests.support.users import Person

CAROL = "carol@example.com"
# Whether the token is active, the status of userinfo, and the claims of the next token, None without one.
Outcome = tuple[bool, int, set[str] | None]
SCOPES = ("openid organization", "openid organizations", "openid")
STAYS = "Other applications and devices stay signed in."
STILL_OPENS = "carol@example.com · It can still open this account."
ELSEWHERE = "To disconnect it, sign in another way first: this session was opened by it."


@pytest.fixture
def browse_in(service):
    """Return a browser with a session, as its sign-in on the pages leaves it."""

    def browse_in(session):
        visitor, token = Visitor(service.app), one_time.new_token()
        queries.insert_browser_session(
            service.parts.db, token_hash=one_time.hash_token(token), session_id=session.id
        )
        visitor.plant(SESSION, token)
        return visitor

    return browse_in


@pytest.fixture
def use_applications(application):
    """Allow the application in a browser with each scope, and return the answers by scope."""
    return lambda visitor: {scope: application.tokens(visitor, scope=scope) for scope in SCOPES}


@pytest.fixture
def outcomes(client, application):
    """Return what refresh, userinfo and introspection of each scope give, and the claim in the new token."""

    def outcomes(answers):
        result: dict[str, Outcome] = {}
        for scope, answer in answers.items():
            token = answer["access_token"]
            active = application.client.post(client, "/introspect", token=token).json["active"]
            seen = application.userinfo(token).status_code
            refreshed = application.refresh(answer["refresh_token"])
            if refreshed.status_code == 200:
                claims = claims_of(refreshed.json["access_token"])
                result[scope] = (active, seen, {"organization", "organizations"} & claims.keys())
            else:
                assert_refused(refreshed, "invalid_grant")
                result[scope] = (active, seen, None)
        return result

    return outcomes


@pytest.fixture
def read(service, outbox):
    def read(address, kind):
        message = outbox.last(address, kind)
        row = {"id": "5", "channel": message.channel, "kind": kind, "recipient": address, "expires_at": None}
        moment = {"created_at": datetime.now(UTC), "variables": message.variables}
        return load_templates(service.parts.settings).render(SimpleNamespace(**row, **moment), {}).text

    return read


ENDED: Outcome = (False, 401, None)
WITHOUT_CLAIM: Outcome = (True, 200, set())


def test_moved_account_keeps_what_it_opened_itself_and_loses_what_the_provider_opened(
    on, join, bob, acme, customers, press, browse, browse_in, provider, service, sign_in, alice, read,
    use_applications, outcomes,
):  # fmt: skip
    own = join(bob, acme)
    customers.acme.be("9", bob.email)
    press(bob, "move")
    by_provider = service.signed_in(f"custom:{provider}")
    answers = {"own": use_applications(browse(bob)), "provider": use_applications(browse_in(by_provider))}
    page = words(browse(alice).visit(f"{PATH}/members/{bob.id}/remove"))
    for sentence in (
        "Applications that they use as a member of Acme lose access.",
        "Sessions that it opened end",
        STAYS,
    ):
        assert sentence in page
    assert sign_in.owner.delete(f"{acme}/members/{bob.id}").status_code == 204
    lost, without_claim, other = SCOPES
    assert outcomes(answers["provider"]) == dict.fromkeys(SCOPES, ENDED)
    assert outcomes(answers["own"]) == {lost: ENDED, without_claim: WITHOUT_CLAIM, other: WITHOUT_CLAIM}
    assert (own.refresh().status_code, by_provider.refresh().status_code) == (200, 400)
    assert_failed(service.sign_in(f"custom:{provider}"), "user_sso_conflict")
    text = read(bob.email, "identity_unlinked")
    assert (
        "Sessions that it opened have ended, and applications that you used as a member have lost access."
        in text
    )
    assert STILL_OPENS not in words(browse(bob).visit("/account"))


def test_account_that_the_provider_made_keeps_all_but_the_applications_for_the_organization(
    on, customers, provider, service, sign_in, acme, alice, browse, browse_in, read, database,
    use_applications, outcomes,
):  # fmt: skip
    customers.acme.be("10", CAROL)
    session = service.signed_in(f"custom:{provider}")
    user_id, visitor = session.get("/user").json["id"], browse_in(session)
    assert STILL_OPENS not in words(visitor.visit("/account"))
    answers = use_applications(visitor)
    page = words(browse(alice).visit(f"{PATH}/members/{user_id}/remove"))
    joins = "can still open their account and makes them a member again: remove them from your company’s directory first."
    for sentence in ("Applications that they use as a member of Acme lose access.", joins, STAYS):
        assert sentence in page
    assert sign_in.owner.delete(f"{acme}/members/{user_id}").status_code == 204
    lost, without_claim, other = SCOPES
    assert outcomes(answers) == {lost: ENDED, without_claim: WITHOUT_CLAIM, other: WITHOUT_CLAIM}
    assert session.refresh().status_code == 200
    text = read(CAROL, "membership_removed")
    assert (
        "You can disconnect the organization’s sign-in on your account page after signing in another way."
        in text
    )
    account = visitor.visit("/account")
    assert (STILL_OPENS in words(account), ELSEWHERE in words(account)) == (True, True)
    assert "account/remove?kind=identity" not in account.text
    service.signed_in(f"custom:{provider}")
    assert database.count("memberships", "user_id = %(id)s", id=user_id) == 1


def test_former_employee_disconnects_the_provider_in_a_session_that_it_did_not_open(
    on, customers, provider, service, sign_in, acme, outbox, database
):
    customers.acme.be("10", CAROL)
    session = service.signed_in(f"custom:{provider}")
    user_id = session.get("/user").json["id"]
    assert sign_in.owner.delete(f"{acme}/members/{user_id}").status_code == 204
    visitor = Visitor(service.app)
    visitor.visit("/sign-in?way=password")
    visitor.press("sign-in/code", email=CAROL)
    visitor.press("sign-in/verify", code=outbox.last(CAROL).code)
    account = visitor.visit("/account")
    assert (STILL_OPENS in words(account), ELSEWHERE in words(account)) == (True, False)
    assert visitor.remove("identity").url.startswith(f"{SITE}/account")
    assert STILL_OPENS not in words(visitor.visit("/account"))
    assert session.refresh().status_code == 400
    assert_failed(service.sign_in(f"custom:{provider}"), "user_sso_conflict")
    assert database.count("memberships", "user_id = %(id)s", id=user_id) == 0


def test_nobody_is_told_to_disconnect_who_cannot(
    on, customers, provider, service, alice, acme, read, make_app
):
    customers.acme.be("10", CAROL)
    session = service.signed_in(f"custom:{provider}")
    app = make_app(AUTH_ORGANIZATIONS="users", AUTH_SSO="true", AUTH_MANUAL_LINKING="false")
    owner = alice.open_session(app.test_client())
    assert owner.delete(f"{acme}/members/{session.get('/user').json['id']}").status_code == 204
    text = read(CAROL, "membership_removed")
    assert ("can still open it" in text, "disconnect" in text) == (True, False)
    visitor = Visitor(app).with_session_of(Person(app.test_client(), session.get("/user").json["id"], CAROL))
    account = visitor.visit("/account")
    assert (STILL_OPENS in words(account), "disconnect" in words(account).lower()) == (True, False)
