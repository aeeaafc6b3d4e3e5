"""The pages of consent for an organization: the choice comes first, and a refusal says what is missing and the way there."""

from urllib.parse import quote

import pytest

from tests.support.cases import cases
from tests.support.factors import App
from tests.support.openid import make_client
from tests.support.openid_flow import make_application
from tests.support.pages import Visitor, words

SCOPE = "openid email organization"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


def id_of(organization: str) -> str:
    return organization.rpartition("/")[2]


@pytest.fixture
def requires_step(database):
    """Have an organization require a second step."""

    def requires_step(slug="acme"):
        database.run("UPDATE organizations SET level = 'aal2' WHERE slug = %(slug)s", slug=slug)

    return requires_step


@pytest.fixture
def change(client, service_role, application):
    """Change the application, as an administrator."""

    def change(**body):
        path = f"/admin/oauth/clients/{application.client.id}"
        response = client.put(path, json=body, headers=service_role)
        assert response.status_code == 200, response.text

    return change


@pytest.fixture
def ask_by_device(client, database):
    """Have a television ask, and return the page on which the user of a browser decides."""

    def ask_by_device(visitor, **columns):
        television = make_client(database, name="Wiki", grant_types=[DEVICE_CODE], **columns)
        codes = television.post(client, "/oauth/device_authorization", scope=SCOPE).json
        database.run("UPDATE sessions SET reauthenticated_at = now()")
        visitor.visit(f"/device?user_code={codes['user_code']}")
        return visitor.submit(user_code=codes["user_code"])

    return ask_by_device


class TestChoice:
    def test_page_asks_for_the_organization_before_what_is_allowed_and_small_print_follows_the_buttons(
        self, alice, acme, beta, application, browser
    ):
        text = words(application.begin(browser(alice), scope=SCOPE))
        parts = (
            "You’re signed in as",
            "Choose an organization",
            "Wiki wants to:",
            "Next, you’ll",
            "Allow",
            "Access ends",
        )
        places = [text.index(part) for part in parts]
        assert places == sorted(places)

    def test_nothing_is_chosen_beforehand_and_a_choice_survives_an_error(
        self, alice, acme, beta, application, browser
    ):
        visitor = browser(alice)
        page = application.begin(visitor, scope=SCOPE)
        assert ("checked" in page.text, page.text.count('type="radio"')) == (False, 2)
        page = visitor.submit(action="approve", organization=id_of(beta), form_token="0" * 64)
        assert (page.status, f'value="{id_of(beta)}" required checked' in page.text) == (403, True)
        assert page.text.count("checked") == 1
        assert "code" in application.returned(visitor.submit(action="approve"))

    def test_seven_organizations_are_a_list(self, alice, acme, database, application, browser):
        database.run(
            """
            WITH more AS (INSERT INTO organizations (id, slug, name) SELECT gen_random_uuid(), 'o' || n, 'O ' || n
                            FROM generate_series(1, 6) AS n RETURNING id)
            INSERT INTO memberships (user_id, organization_id, role, added_by)
            SELECT %(id)s, id, 'member', 'administrator' FROM more
            """,
            id=alice.id,
        )
        visitor = browser(alice)
        page = application.begin(visitor, scope=SCOPE)
        assert ('type="radio"' in page.text, '<label for="organization">Choose an' in page.text) == (
            False,
            True,
        )
        page = visitor.submit(action="approve", organization=id_of(acme), form_token="0" * 64)
        assert f'<option value="{id_of(acme)}" selected>' in page.text
        assert "code" in application.returned(visitor.submit(action="approve"))

    def test_only_organization_that_counts_is_chosen_and_the_other_stands_below_with_its_way(
        self, alice, acme, beta, application, browser, requires_step
    ):
        requires_step()
        visitor = browser(alice)
        page = application.begin(visitor, scope=SCOPE)
        text = words(page)
        assert text.index("You’ll use it as a member of Beta .") < text.index("Acme asks for a second step.")
        assert ('type="radio"' in page.text, "caution" in page.text) == (False, False)
        refused = visitor.submit(action="approve", organization=id_of(acme))
        assert (refused.status, "Choose one of the organizations" in words(refused)) == (400, True)
        assert "code" in application.returned(visitor.submit(action="approve"))

    def test_allowing_for_the_only_organization_gives_no_other_one_that_was_joined_meanwhile(
        self, bob, acme, beta, join, owner, application, browser
    ):
        join(bob, acme)
        visitor = browser(bob)
        assert "as a member of Acme ." in words(application.begin(visitor, scope=SCOPE))
        assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
        join(bob, beta)
        page = visitor.submit(action="approve")
        assert (page.status, "as a member of Beta ." in words(page)) == (400, True)

    def test_missing_second_step_comes_back_to_the_page(
        self, alice, acme, beta, application, browser, requires_step
    ):
        requires_step()
        visitor = browser(alice)
        asks = application.begin(visitor, scope=SCOPE).url
        page = visitor.visit(visitor.link_to("second-step?next=oauth%2Fconsent"))
        page = visitor.press("account/two-step")
        app = App("", page.text.partition("secret=")[2].partition("&")[0])
        page = visitor.press("account/two-step/verify", code=app.code())
        page = visitor.visit(visitor.link_to("sign-in?next=oauth%2Fconsent"))
        assert (page.url, page.text.count('type="radio"')) == (asks, 2)


class TestRefusals:
    @cases(
        ("scope", "sentence"),
        [
            (SCOPE, "Wiki is for members of an organization, and you aren’t in one."),
            ("openid organization:acme", "Wiki is for members of an organization that you aren’t in."),
        ],
    )
    def test_user_without_a_membership_is_told_what_is_missing(
        self, bob, acme, application, browser, scope, sentence
    ):
        visitor = browser(bob)
        page = application.begin(visitor, scope=scope)
        assert (page.status, sentence in words(page), "Acme" in words(page)) == (403, True, False)
        assert ("Use another account" in words(page), "Allow</button>" in page.text) == (True, False)
        denied = application.returned(visitor.submit(action="deny"))
        refusal = ("access_denied", "User denied the request")
        assert (denied["error"], denied["error_description"]) == refusal

    def test_short_names_of_others_and_of_nobody_look_alike(self, bob, acme, application, browser):
        visitor = browser(bob)
        shown = {
            words(application.begin(visitor, scope=f"openid organization:{slug}"))
            for slug in ("acme", "nobody")
        }
        assert len(shown) == 1

    def test_application_of_an_organization_does_not_name_it_to_a_stranger(
        self, bob, acme, beta, join, application, change, browser
    ):
        change(organization_id="acme")
        join(bob, beta)
        for scope in ("openid", SCOPE):
            page = application.begin(browser(bob), scope=scope)
            sentence = (
                "Wiki is for members of an organization that you aren’t in. Ask one of its owners to invite"
            )
            assert (page.status, sentence in words(page)) == (403, True)
            assert ("Acme" in words(page), "account/organizations/new" in page.text) == (False, False)

    def test_application_of_an_organization_names_it_to_a_member_who_lacks_a_step(
        self, alice, acme, application, change, browser, requires_step
    ):
        change(organization_id="acme")
        requires_step()
        visitor = browser(alice)
        page = application.begin(visitor, scope="openid")
        assert page.status == 403
        for sentence in (
            "One more step to use Wiki",
            "Wiki is for members of Acme .",
            "Acme asks for a second step.",
        ):
            assert sentence in words(page)
        assert visitor.link_to("second-step?next=oauth%2Fconsent")

    @pytest.mark.parametrize(("passkeys", "text"), [("true", "Add a passkey"), ("false", None)])
    def test_without_two_step_verification_the_pages_lead_to_a_passkey_or_nowhere(
        self, bob, acme, join, make_app, database, requires_step, passkeys, text
    ):
        join(bob, acme)
        requires_step()
        app = make_app(AUTH_ORGANIZATIONS="users", AUTH_MFA_ENABLED="false", AUTH_PASSKEYS_ENABLED=passkeys)
        application, visitor = (
            make_application(app.test_client(), database),
            Visitor(app).with_session_of(bob),
        )
        pages = {
            "oauth/consent": lambda: application.begin(visitor, scope=SCOPE),
            "organizations/acme/join": lambda: visitor.visit("/organizations/acme/join"),
            "organizations/acme": lambda: visitor.visit("/account"),
        }
        for after, show in pages.items():
            page = show()
            assert "Acme asks for a second step." in words(page)
            link = f"account/passkeys/new?next={quote(after, safe='')}"
            assert (link in page.text, "second-step?next" in page.text) == (text is not None, False)
            assert text is None or f"{text} Acme" in words(page)

    def test_user_without_an_allowed_role_is_told_that(self, bob, acme, application, change, browser):
        change(allowed_roles=["editor"])
        page = application.begin(browser(bob), scope=SCOPE)
        sentence = "Your role doesn’t include access to Wiki ."
        assert (page.status, sentence in words(page), "organization" in words(page)) == (403, True, False)

    def test_user_founds_an_organization_and_comes_back(self, bob, application, browser):
        visitor = browser(bob)
        asks = application.begin(visitor, scope=SCOPE).url
        visitor.visit(visitor.link_to("account/organizations/new?next=oauth%2Fconsent"))
        page = visitor.press("account/organizations/new", name="Initech", slug="")
        assert (page.url, "You’ll use it as a member of Initech ." in words(page)) == (asks, True)
        assert "code" in application.returned(visitor.submit(action="approve"))

    @pytest.mark.parametrize("way", ["operator founds", "address unproved"])
    def test_nobody_is_sent_to_found_an_organization_who_may_not(
        self, bob, application, make_app, database, way, browser
    ):
        visitor = browser(bob)
        if way == "operator founds":
            visitor = Visitor(make_app(AUTH_ORGANIZATIONS="admins")).with_session_of(bob)
        else:
            database.run("UPDATE users SET email_proved = false")
        page = application.begin(visitor, scope=SCOPE)
        assert (page.status, "Ask a colleague to invite bob@example.com , or use" in words(page)) == (
            403,
            True,
        )
        assert "account/organizations/new" not in page.text

    @cases(("scope", "slugs"), [(SCOPE, ["beta", "acme"]), ("openid organization:beta", ["beta"])])
    def test_open_invitations_that_help_are_shown(
        self, bob, acme, beta, owner, application, browser, scope, slugs
    ):
        for organization in (acme, beta):
            body = {"email": bob.email, "role": "member"}
            assert owner.post(f"{organization}/invitations", json=body).status_code == 201
        visitor = browser(bob)
        page = application.begin(visitor, scope=scope)
        links = [part.partition("/join?")[0] for part in page.text.split('href="../organizations/')[1:]]
        assert (page.status, links) == (403, slugs)
        assert "Ask" not in words(page)
        page = visitor.visit(visitor.link_to("organizations/beta/join?next=oauth%2Fconsent"))
        assert "Join Beta as member?" in words(page)


class TestDevices:
    def test_choice_comes_first_and_survives_an_error(self, alice, acme, beta, browser, ask_by_device):
        visitor = browser(alice)
        text = words(ask_by_device(visitor))
        parts = (
            "Choose an organization",
            "Wiki wants to:",
            "Only continue if you started this",
            "Allow",
            "Access ends",
        )
        places = [text.index(part) for part in parts]
        assert places == sorted(places)
        page = visitor.submit(action="approve", organization=id_of(beta), form_token="0" * 64)
        assert f'value="{id_of(beta)}" required checked' in page.text

    def test_refusal_says_what_is_missing(self, bob, acme, browser, ask_by_device):
        page = ask_by_device(browser(bob))
        sentence = "Wiki is for members of an organization, and you aren’t in one."
        assert (page.status, sentence in words(page)) == (403, True)
        assert "account/organizations/new?next=device%2Fconsent" in page.text

    def test_missing_step_comes_back_to_the_device(self, alice, acme, browser, ask_by_device, requires_step):
        requires_step()
        visitor = browser(alice)
        page = ask_by_device(visitor)
        assert (page.status, "Acme asks for a second step." in words(page)) == (403, True)
        assert visitor.link_to("second-step?next=device%2Fconsent%3Frequest")
