"""An organization's age, and the first token of a sign-in with a provider: it is as old as the provider says, hook or not."""

import time

import pytest

from tests.extensions.social.test_oauth_proofs import by_code, by_id_token, by_redirect
from tests.support.cases import cases

pytest_plugins = ["tests.support.oauth_fixtures"]
FUNCTION = "pg-functions://postgres/of_tests/custom_access_token_hook"
HOUR = 3_600


@pytest.fixture(params=[False, True], ids=["without a hook", "with a hook"])
def service(request, make_service, database):
    hook = {"AUTH_HOOK_CUSTOM_ACCESS_TOKEN": FUNCTION} if request.param else {}
    database.run(
        "CREATE SCHEMA of_tests; GRANT USAGE ON SCHEMA of_tests TO PUBLIC;"
        " CREATE FUNCTION of_tests.custom_access_token_hook(event jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT event'"
    )
    yield make_service(AUTH_ORGANIZATIONS="users", **hook)
    database.run("DROP SCHEMA of_tests CASCADE")


@cases("sign_in", [by_redirect, by_code, by_id_token])
def test_first_token_says_the_membership_only_if_the_provider_signed_in_lately(
    service, acme, database, sign_in
):
    acme.person = {"sub": "somebody-at-acme", "name": "Somebody"}
    user_id = sign_in(service, acme).get("/user").json["id"]
    database.run(
        "INSERT INTO organizations (id, slug, name, max_age) VALUES (%(id)s, 'acme', 'Acme', '1 hour') ON CONFLICT DO NOTHING;"
        " INSERT INTO memberships (user_id, organization_id, role, added_by)"
        " VALUES (%(id)s, %(id)s, 'owner', 'administrator') ON CONFLICT DO NOTHING",
        id=user_id,
    )
    for signed_in_at, counts in ((None, True), (time.time() - HOUR - 1, False), (time.time() + HOUR, True)):
        acme.signed_in_at = signed_in_at
        session = sign_in(service, acme)
        assert ("organizations" in session.claims) is counts, signed_in_at
        assert ("role" in session.get("/user").json["organizations"][0]) is counts
        assert ("organizations" in session.refreshed().claims) is counts
