"""Whose an address is, what its proof keeps, and which link is good, a sentence and an example each."""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from auth.rules import admission, first_proof, links, remaining, users
from tests.rules.facts import (
    ALICE,
    ANONYMOUS,
    BANNED,
    CAROL,
    CONFIRMED,
    CONVERTED,
    DAY,
    HOUR,
    MICROSECOND,
    NOW,
    NUMBER,
    UNCONFIRMED,
    UNUSED,
    WEEK,
    Link,
    with_phone,
)
from tests.support.cases import cases

EMAIL, NEW = "alice@example.com", "new@example.com"
INVITED = replace(UNUSED, password_hash=None, invited_at=NOW - DAY)


@cases(
    ("sentence", "user", "gives_way"),
    [
        ("An unused sign-up gives way.", UNUSED, True),
        ("A user who has signed in does not.", replace(UNUSED, last_sign_in_at=NOW), False),
        ("A ban keeps its address.", replace(UNUSED, banned_until=NOW + DAY), False),
        ("It ends at its moment.", replace(UNUSED, banned_until=NOW), True),
        ("An operator's password keeps its address.", replace(UNUSED, is_password_vouched=True), False),
        ("A user whom a generated link made does not give way.", replace(UNUSED, made_by="link"), False),
    ],
)
def test_user_gives_way(sentence, user, gives_way):
    assert users.gives_way(user) is gives_way


def test_user_who_gives_way_is_replaced_but_no_administrator():
    assert users.is_replaced(UNUSED)
    assert not users.is_replaced(replace(UNUSED, role="admin"))


def test_user_whom_a_message_made_is_no_unused_sign_up():
    assert users.is_unused_sign_up(UNUSED)
    assert not users.is_unused_sign_up(replace(UNUSED, made_by="message"))


def test_converted_user_is_not_anonymous():
    assert (users.is_anonymous(ANONYMOUS), users.is_anonymous(CONVERTED)) == (True, False)


def test_address_is_proved_for_itself_and_not_by_a_confirmation():
    assert users.has_proved(ALICE, EMAIL)
    assert not users.has_proved(ALICE, "bob@example.com")
    assert not users.has_proved(CONFIRMED, EMAIL)
    assert not users.is_proved(CONFIRMED, "email")


@cases(
    ("user", "is_open"),
    [
        (INVITED, True),
        (replace(INVITED, email_confirmed_at=NOW), False),
        (replace(INVITED, password_hash=""), False),
        (replace(INVITED, invited_at=None), False),
    ],
)
def test_invitation_is_open_until_it_is_accepted_or_there_is_a_password(user, is_open):
    assert users.has_open_invitation(user) is is_open


def test_ban_lasts_as_long_as_postgres_says_for_ever_or_not_at_all():
    ends = [users.end_of_ban(seconds, NOW) for seconds in (1.5e-6, math.inf, 0, None)]
    assert ends == [NOW + 2 * MICROSECOND, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), None, None]


@dataclass(frozen=True)
class Settings:
    email_enabled: bool = True
    offers_phone: bool = True
    disable_signup: bool = False
    signup_domains: frozenset[str] = frozenset()
    signup_blocked_domains: frozenset[str] = frozenset()
    sms_countries: tuple[str, ...] = ()


ALLOWED = Settings(signup_domains=frozenset({"example.com"}))
BLOCKED = Settings(signup_blocked_domains=frozenset({"example.com"}))
CLOSED = Settings(disable_signup=True)
OTHERS = Settings(signup_domains=frozenset({"corp.example"}))
NOT_LISTED, DISABLED = "email_address_not_authorized", "signup_disabled"


@cases(
    ("sentence", "address", "settings", "refusal"),
    [
        ("A free address is whose it is given to.", EMAIL, Settings(), None),
        ("Email can be disabled.", EMAIL, Settings(email_enabled=False), "email_provider_disabled"),
        ("SMS can be disabled.", NUMBER, Settings(offers_phone=False), "phone_provider_disabled"),
        ("A number must be a possible one.", "+49151", Settings(), "phone.validation_failed"),
        ("It may be of a country that gets SMS.", NUMBER, Settings(sms_countries=("+33", "+49")), None),
        ("And of no other.", NUMBER, Settings(sms_countries=("+33",)), "country.validation_failed"),
    ],
)
def test_channel_of_an_address_is_open(sentence, address, settings, refusal):
    email, phone = (address, None) if "@" in address else (None, address)
    is_possible = len(address) > 10
    assert admission.refusal_of_channel(email, phone, settings, is_possible_phone=is_possible) == refusal


@cases(
    ("sentence", "email", "settings", "holder", "word", "refusal"),
    [
        ("Without settings, an email is whose it is given to.", EMAIL, Settings(), "new", "proof", None),
        ("An allowed domain is exact.", EMAIL, ALLOWED, "new", "proof", None),
        ("It has no subdomains.", "alice@mail.example.com", ALLOWED, "new", "proof", NOT_LISTED),
        ("It admits nobody without an email.", None, ALLOWED, "new", "proof", NOT_LISTED),
        ("Nor an email that nobody proves.", EMAIL, ALLOWED, "new", "none", NOT_LISTED),
        (
            "An anonymous user's first address is like a new one.",
            EMAIL,
            OTHERS,
            "anonymous",
            "proof",
            NOT_LISTED,
        ),
        ("So is the phone.", None, ALLOWED, "anonymous", "proof", NOT_LISTED),
        ("A permanent user's phone is not held against the list.", None, ALLOWED, "permanent", "proof", None),
        ("The next email is.", EMAIL, OTHERS, "permanent", "proof", NOT_LISTED),
        ("A domain can be blocked.", EMAIL, BLOCKED, "new", "proof", NOT_LISTED),
        ("It has its subdomains.", "alice@mail.example.com", BLOCKED, "new", "proof", NOT_LISTED),
        ("And no others.", "alice@notexample.com", BLOCKED, "new", "proof", None),
        ("Closed sign-up makes no user.", EMAIL, CLOSED, "new", "proof", DISABLED),
        ("Not even an anonymous one.", None, CLOSED, "new", "proof", DISABLED),
        ("One who is there may get an address.", EMAIL, CLOSED, "anonymous", "proof", None),
        ("An invitation lets in.", EMAIL, CLOSED, "new", "invitation", None),
        ("Also what no list has.", EMAIL, OTHERS, "new", "invitation", None),
        ("And an anonymous user.", EMAIL, OTHERS, "anonymous", "invitation", None),
        ("It gives a permanent user nothing.", EMAIL, OTHERS, "permanent", "invitation", NOT_LISTED),
        ("Nobody is let in without one.", EMAIL, CLOSED, "new", "none", DISABLED),
        ("Nor what is blocked.", EMAIL, BLOCKED, "new", "invitation", NOT_LISTED),
        ("A customer's provider lets in.", EMAIL, CLOSED, "new", "customer", None),
        ("Also what no list has.", EMAIL, OTHERS, "new", "customer", None),
        ("But not what is blocked.", EMAIL, BLOCKED, "new", "customer", NOT_LISTED),
    ],
)
def test_address_may_become_a_users(sentence, email, settings, holder, word, refusal):
    assert admission.refusal_of_address(email, settings, holder, word) == refusal


@cases(
    ("sentence", "email", "settings", "takes_it"),
    [
        ("An open door takes none.", EMAIL, Settings(), False),
        ("Nor does a list that has the domain.", EMAIL, ALLOWED, False),
        ("A closed one does.", EMAIL, CLOSED, True),
        ("And another list.", EMAIL, OTHERS, True),
        ("A phone has none.", None, CLOSED, False),
        (
            "It opens nothing that is blocked.",
            EMAIL,
            replace(CLOSED, signup_blocked_domains=frozenset({"com"})),
            False,
        ),
    ],
)
def test_email_takes_an_invitation(sentence, email, settings, takes_it):
    assert admission.takes_invitation(email, settings, "new") is takes_it


REQUESTED = replace(UNUSED, made_by="message", password_hash=None)


@cases(
    ("sentence", "person", "holder"),
    [
        ("Who is not there is new.", None, "new"),
        ("And of whom there is only a request for a code.", REQUESTED, "new"),
        ("A sign-up was let in.", UNUSED, "permanent"),
        ("Who proved the address is in.", replace(REQUESTED, email_confirmed_at=NOW), "permanent"),
        ("As is an administrator.", replace(REQUESTED, role="admin"), "permanent"),
        ("An anonymous user has a session.", replace(UNUSED, made_by="anonymous"), "anonymous"),
    ],
)
def test_person_gets_an_address_as(sentence, person, holder):
    assert admission.holder_of(person) == holder


def test_permanent_user_is_let_in_by_any_proof_whatever_the_settings_say_since():
    assert admission.refusal_of_first_proof(ALICE, EMAIL, CLOSED, is_invited=False) is None
    assert admission.refusal_of_first_proof(REQUESTED, EMAIL, CLOSED, is_invited=False) == DISABLED
    assert admission.refusal_of_first_proof(REQUESTED, EMAIL, CLOSED, is_invited=True) is None


def test_number_that_gets_no_sms_can_still_sign_in_with_a_password():
    assert admission.refusal_of_kind(None, "+49151", Settings()) is None


@cases(
    ("kind", "holder", "refusal"),
    [
        ("email", UNUSED, None),
        ("email", ALICE, "email_exists"),
        ("phone", ALICE, "phone_exists"),
    ],
)
def test_only_a_user_whom_a_stranger_may_have_made_blocks_no_address(kind, holder, refusal):
    assert admission.refusal_of_holder(kind, holder) == refusal


ADDED_YESTERDAY = replace(UNCONFIRMED, email_added_at=NOW - DAY)


@cases(
    ("sentence", "user", "value", "proof", "is_first"),
    [
        ("The first proof removes everything else.", UNCONFIRMED, EMAIL, "signup", True),
        ("The second one nothing.", ALICE, EMAIL, "signup", False),
        ("A proved user's next address is no first one.", with_phone(ALICE), NEW, "signup", False),
        ("Nor is one as old as the other proof.", with_phone(ADDED_YESTERDAY), EMAIL, "signup", False),
        ("An older one is.", with_phone(UNCONFIRMED), EMAIL, "signup", True),
        ("What the user does not have is none.", UNCONFIRMED, NEW, "signup", False),
        ("But for an administrator.", UNCONFIRMED, NEW, "administrator", True),
        (
            "An administrator vouches for the own one.",
            replace(UNCONFIRMED, made_by="administrator"),
            EMAIL,
            "administrator",
            False,
        ),
    ],
)
def test_proof_of_an_address_is_the_first(sentence, user, value, proof, is_first):
    assert first_proof.is_first_proof(user, "email", value, proof) is is_first


@cases(
    ("sentence", "user", "proof", "is_kept"),
    [
        ("A sign-up's code keeps its password.", UNUSED, "signup", True),
        ("A link that anybody can ask for does not.", UNUSED, "magiclink", False),
        ("Nor for an administrator's user.", replace(UNUSED, made_by="administrator"), "signup", False),
        ("Nor for an imported one.", replace(UNUSED, made_by="import"), "signup", False),
        ("If vouched for.", replace(UNUSED, made_by="import", is_password_vouched=True), "signup", True),
    ],
)
def test_first_proof_keeps_the_password(sentence, user, proof, is_kept):
    assert first_proof.keeps_password(user, proof) is is_kept


@cases(
    ("user", "has_same_password", "has_same_data", "is_disputed"),
    [
        (UNUSED, True, True, False),
        (UNUSED, False, True, True),
        (UNUSED, True, False, True),
        (ALICE, False, False, False),
    ],
)
def test_another_password_or_other_data_make_a_sign_up_nobodys(
    user, has_same_password, has_same_data, is_disputed
):
    facts = {"has_same_password": has_same_password, "has_same_data": has_same_data}
    assert first_proof.disputes_sign_up(user, **facts) is is_disputed


@cases(("is_shown", "is_own"), [(True, True), (False, False)])
def test_only_the_page_tells_whose_sign_up_it_is(is_shown, is_own):
    link = replace(LINK, purpose="signup", is_of_sign_up=True)
    assert first_proof.is_own_sign_up(link, is_first=True, is_shown=is_shown) is is_own


@cases(
    ("proof", "is_own", "carries_password", "is_set"),
    [
        ("signup", True, True, True),
        ("signup", False, True, False),
        ("signup", True, False, False),
        ("recovery", False, True, True),
    ],
)
def test_link_sets_the_password_of_its_own_sign_up_or_of_an_administrator(
    proof, is_own, carries_password, is_set
):
    facts = {"is_own": is_own, "carries_password": carries_password}
    assert first_proof.sets_password(proof, **facts) is is_set


LINK = Link(purpose="recovery", created_at=NOW - HOUR, expires_at=NOW + HOUR, code_expires_at=NOW + HOUR)
OF_BROWSER = replace(LINK, browser_hash=memoryview(b"this"), created_at=NOW)


@cases(
    ("sentence", "facts", "is_good"),
    [
        ("A link is good until it expires.", {"expires_at": NOW}, False),
        ("It is good once.", {"spent_at": NOW}, False),
        ("The newest three work.", {"newer": 2}, True),
        ("The fourth does not.", {"newer": 3}, False),
        ("A thief cannot void the link of a notice.", {"purpose": "undo", "newer": 9}, True),
        ("Each sign-up has its own.", {"is_of_sign_up": True, "newer": 9}, True),
    ],
)
def test_link_is_good(sentence, facts, is_good):
    assert links.is_good_link(replace(LINK, **facts)) is is_good


@cases(
    ("sentence", "facts", "is_right", "is_open"),
    [
        ("A code is open.", {}, True, True),
        ("A wrong one is not.", {}, False, False),
        ("It expires on its own.", {"code_expires_at": NOW}, True, False),
        ("It is for its purpose.", {"purpose": "signup"}, True, False),
    ],
)
def test_code_is_open(sentence, facts, is_right, is_open):
    assert links.is_open_code(replace(LINK, **facts), is_right, ["recovery"]) is is_open


def test_newest_code_for_this_browser_or_for_any_works():
    codes = [replace(LINK, created_at=NOW - DAY), LINK, OF_BROWSER]
    assert [links.code_for_browser(codes, browser) for browser in (b"this", b"another", None)] == [
        OF_BROWSER,
        LINK,
        LINK,
    ]
    assert links.code_for_browser([OF_BROWSER], b"another") is None


@cases(
    ("purpose", "target", "pending", "refusal"),
    [
        ("recovery", EMAIL, None, None),
        ("recovery", NEW, NEW, "otp_expired"),
        ("email_change", NEW, NEW, None),
        ("email_change", NEW, None, "otp_expired"),
        ("email_change", EMAIL, None, None),
    ],
)
def test_link_is_for_the_users_own_address_and_a_new_one_while_it_is_pending(
    purpose, target, pending, refusal
):
    user = replace(ALICE, new_email=pending)
    assert links.refusal_of_use(purpose, target, user) == refusal
    assert links.refusal_of_use("recovery", EMAIL, BANNED) == "user_banned"


@cases(
    ("purpose", "was_mailed", "method", "ends_everything"),
    [("recovery", True, "recovery", False), ("recovery", False, "otp", True), ("sms", False, "otp", False)],
)
def test_mailed_recovery_opens_a_recovery_and_a_generated_link_ends_everything(
    purpose, was_mailed, method, ends_everything
):
    assert links.method_of_session(purpose, was_mailed=was_mailed) == method
    assert links.ends_everything(purpose, was_mailed=was_mailed) is ends_everything


def test_address_of_a_notice_comes_back_unless_somebody_has_proved_it_since():
    assert links.comes_back(UNUSED, EMAIL)
    assert not links.comes_back(ALICE, EMAIL)


def test_notice_asks_for_a_factor_of_seven_days_removed_or_not():
    assert links.asks_for_factor(NOW - WEEK, NOW)
    assert not links.asks_for_factor(NOW - WEEK + MICROSECOND, NOW)
    removals = [(NOW - DAY, WEEK), (NOW - DAY, 6 * DAY), (NOW - WEEK, WEEK)]
    assert [
        links.asks_for_removed_factor(removed_at - age, removed_at, NOW) for removed_at, age in removals
    ] == [True, False, False]


@cases(
    ("sentence", "user", "providers", "has_passkey", "usable", "can_sign_in"),
    [
        ("A proved address signs in.", ALICE, ["email"], False, ["email"], True),
        ("Not where email is disabled.", ALICE, ["email"], False, ["phone"], False),
        ("A provider does.", ALICE, ["github"], False, ["github"], True),
        ("A passkey does.", ANONYMOUS, [], True, ["passkey"], True),
        ("Where it is enabled.", ANONYMOUS, [], True, [], False),
        ("An address that is only confirmed does not.", CONFIRMED, ["email"], False, ["email"], False),
        ("But with a password.", CONFIRMED, ["email"], False, ["email", "password"], True),
        ("That does not do alone.", UNCONFIRMED, ["email"], False, ["email", "password"], False),
    ],
)
def test_something_that_can_sign_in_remains(sentence, user, providers, has_passkey, usable, can_sign_in):
    assert remaining.can_sign_in(user, providers, has_passkey, usable) is can_sign_in


@cases(("user", "others", "refusal"), [(CAROL, 0, "last_administrator"), (CAROL, 1, None), (ALICE, 0, None)])
def test_last_administrator_stays(user, others, refusal):
    assert remaining.refusal_of_leaving(user, others) == refusal
