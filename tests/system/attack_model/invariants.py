"""The invariants after each step of `Takeover`, by name."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tests.system.attack_model.doors import OPENS, OWN_DOOR, SECRET_OPENS, Credential, kind_of

if TYPE_CHECKING:
    from tests.system.attack_model.takeover import Takeover

# AUTH_RATE_LIMIT_LOGIN_FAILURES
WRONG_PASSWORDS = 10
# Tries a day for the codes of an authenticator app.
WRONG_CODES = 20


def nothing_answers(takeover: "Takeover", after: str) -> None:
    """Assert that credentials that ended for a reason give no token, and that their tokens open no door.

    Each is tried in the step that ends it, and again at the end of the example.
    """
    for credential in takeover.credentials:
        if after in credential.ended_by and not (credential.is_tried and not takeover.is_over):
            name = f"{credential.level} {credential.kind} of the {credential.holder}"
            for token in credential.access_tokens:
                opened = takeover.doors.opened(takeover.anyone, token)
                assert not opened, f"a token of the {name} opens {opened} after {after}"
            assert credential.ask(takeover.anyone).status_code != 200, (
                f"the {name} gives a token after {after}"
            )


def nothing_below_the_demanded_level_gives_a_full_token(takeover: "Takeover") -> None:
    for credential in takeover.living("session", "client's session", "API key"):
        if credential.level < takeover.demanded_level():
            name = f"{credential.level} {credential.kind} of the {credential.holder}"
            assert not credential.gives_full_token(takeover.anyone), f"the {name} gives a full token"


def tokens_open_only_what_they_are_for(takeover: "Takeover") -> None:
    """Try each token once, and each secret at the doors of the other kinds."""
    for credential in takeover.living():
        if credential.tried < len(credential.access_tokens):
            for token in credential.access_tokens[credential.tried :]:
                assert_opens_at_most(takeover, token, OPENS[kind_of(credential, token, takeover.role())])
            allowed = SECRET_OPENS.get(credential.kind, set())
            own_door = OWN_DOOR.get(credential.kind)
            assert_opens_at_most(takeover, credential.secret, allowed, own_door)
            credential.tried = len(credential.access_tokens)


def assert_opens_at_most(
    takeover: "Takeover", token: str, allowed: set[str], own_door: str | None = None
) -> None:
    opened = takeover.doors.opened(takeover.anyone, token, own_door)
    assert opened <= allowed, f"a token that is for {allowed} opens {opened - allowed}"


def assert_opens_all(takeover: "Takeover", credential: Credential) -> None:
    """Assert that a new credential's token opens all that it is for."""
    token = credential.access_tokens[-1]
    opened = takeover.doors.opened(takeover.anyone, token)
    assert opened == OPENS[kind_of(credential, token)], opened


def each_addition_is_told_of(takeover: "Takeover") -> None:
    """Assert that the transaction of each addition wrote a message to an address proved before it."""
    for addition, recipients in takeover.additions:
        assert recipients, f"nobody was told of {addition}"


def owner_is_not_refused(takeover: "Takeover") -> None:
    assert not takeover.refusals, takeover.refusals


def verdicts_stay_below_the_limit(takeover: "Takeover") -> None:
    for (address, network), verdicts in takeover.verdicts.items():
        limit = WRONG_CODES if address == "codes" else WRONG_PASSWORDS
        assert verdicts.count("wrong") <= limit, f"wrong verdicts on {address} from {network}: {verdicts}"
        was_told = verdicts.count("wrong") == limit and verdicts[-1] == "right"
        assert not was_told, f"the right password for {address} from {network} after {limit} wrong ones"


def strangers_cannot_tell_whether_an_address_has_a_user(takeover: "Takeover") -> None:
    for request, of_user, free in takeover.twins:
        assert of_user == free, (
            f"{request} answers {of_user} for an address with a user, and {free} for a free one"
        )


# The invariants, by their subject.
INVARIANTS: dict[str, Callable[["Takeover"], None]] = {
    "the owner's defence": owner_is_not_refused,
    "additions": each_addition_is_told_of,
    "verdicts": verdicts_stay_below_the_limit,
    "strangers": strangers_cannot_tell_whether_an_address_has_a_user,
    "doors": tokens_open_only_what_they_are_for,
    "a removal": partial(nothing_answers, after="its removal"),
    "a recovery": partial(nothing_answers, after="a recovery"),
    "an undo": partial(nothing_answers, after="an undo"),
    "an operator's reset": partial(nothing_answers, after="an operator's reset"),
    "a second step": partial(nothing_answers, after="a second step"),
    "the demanded level": nothing_below_the_demanded_level_gives_a_full_token,
    "the first factor": partial(nothing_answers, after="the first factor"),
}
