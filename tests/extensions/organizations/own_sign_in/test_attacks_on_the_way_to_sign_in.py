"""Attacks on the way to single sign-on: reasons of failures for who owns nothing any more, and races of owners."""

import json

import pytest

from tests.support.fake_provider import Answer
from tests.support.own_providers import DOMAIN, PATH
from tests.support.pages import words
from tests.support.server import at_once

JSON = {"Content-Type": "application/json"}
DEMOTED = "UPDATE memberships SET role = 'admin' WHERE user_id = %(id)s"
REMOVED = "DELETE FROM memberships WHERE user_id = %(id)s"
ENDED = "UPDATE organizations SET ended_at = now()"


@pytest.mark.parametrize("meanwhile", [DEMOTED, REMOVED, ENDED])
@pytest.mark.parametrize("cause", ["invalid_client", "user_elsewhere"])
def test_who_owns_nothing_any_more_is_told_no_reason(
    provider, service, browse, alice, customers, database, meanwhile, cause
):
    acme = customers.acme
    if cause == "invalid_client":
        answer = json.dumps({"error": cause}).encode()
        acme.provider.instead[acme.provider.TOKEN] = Answer(401, answer, JSON)
    else:
        acme.be("2", f"carol@{DOMAIN}")
    visitor = browse(alice)
    visitor.visit(f"{PATH}/sign-in/providers/{provider}/test")
    url = visitor.submit(stop=service.is_callback).url
    database.run(meanwhile, id=alice.id)
    page = visitor.visit(url)
    assert "secret" not in words(page)
    for word in ("carol", "cause="):
        assert word not in f"{page.trail} {page.text}"
    assert database.value("SELECT tried_at FROM identity_providers") is None
    assert database.count("audit_log", "details ? 'because'") == 0
    assert database.count("identities", "provider LIKE 'sso:%%'") == 0


def test_of_twenty_owners_at_once_one_gets_the_redirect_uri(sign_in, customers, database):
    assert sign_in.prove(DOMAIN).status_code == 200
    uri = sign_in.owner.get(f"{sign_in.path}/providers").json["next_redirect_uri"]

    def connect(number):
        return sign_in.connect(customers.acme, domains=[], **({"redirect_uri": uri} if number % 2 else {}))

    answers = at_once(20, connect)
    assert {answer.status_code for answer in answers} <= {201, 409, 422}
    uris = [answer.json["redirect_uri"] for answer in answers if answer.status_code == 201]
    assert uris.count(uri) == 1
    assert len(set(uris)) == len(uris) == database.count("identity_providers")
    assert sign_in.owner.get(f"{sign_in.path}/providers").json["next_redirect_uri"] not in uris


def test_move_of_a_member_is_no_test_of_the_provider(on, join, bob, acme, press, customers, database):
    join(bob, acme, "admin")
    customers.acme.be("9", bob.email)
    # A change of the client secret does this: no owner has tested the new one.
    database.run("UPDATE identity_providers SET tried_at = NULL")
    press(bob, "move")
    assert database.count("identities", f"provider LIKE 'sso:%%' AND user_id = '{bob.id}'") == 1
    assert database.value("SELECT tried_at FROM identity_providers") is None


def test_user_whom_the_provider_adds_has_no_invitation_left(
    on, owner, acme, beta, provider, service, customers, database
):
    dave = f"dave@{DOMAIN}"
    for organization, email in ((acme, dave), (beta, dave), (acme, f"eve@{DOMAIN}")):
        body = {"email": email, "role": "admin"}
        assert owner.post(f"{organization}/invitations", json=body).status_code == 201
    customers.acme.be("7", dave)
    service.signed_in(f"custom:{provider}")
    assert database.all("SELECT role FROM memberships WHERE added_by = 'provider'") == [("member",)]
    # The invitations of others, and to other organizations, stay.
    assert database.count("organization_invitations") == 2
