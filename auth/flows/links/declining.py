"""The receiver of a link declines a sign-up that was not used, or a first address of a stranger's user."""

from auth.flows.links.finding import find_link, locked
from auth.flows.links.proving import person_of
from auth.rules import links
from auth.rules.remaining import refusal_of_leaving
from auth.web import audit
from auth.web.asked import Asked
from sql import queries


def is_offered(asked: Asked, link: "queries.SelectLink") -> bool:
    """Whether the page of a good link offers to decline it."""
    person = queries.select_person(asked.db, user_id=link.user_id, session_id=None)
    return person is not None and links.can_be_declined(link.purpose, person)


def decline_sign_up(asked: Asked, token: str) -> bool:
    """Delete the user of a sign-up's link, and return whether the link was good.

    If several people have signed up, the user has no password until one of them proves the address. Only the
    link is deleted then.
    """
    with locked(asked, find_link(token, "signup")) as (act, link):
        person = link and person_of(act, link.user_id)
        if not (link and person and links.can_be_declined(link.purpose, person)):
            return False
        queries.delete_link(act, id=link.id)
        if person.password_hash is None:
            return True
        if person.role == "admin":
            act.lock_administrators()
        others = queries.count_administrators(act, without=person.id).total
        if refusal_of_leaving(person, others) is None:
            queries.delete_user(act, user_id=person.id, because="declined")
        return True


def decline_change(asked: Asked, token: str) -> bool:
    """Withdraw a first email, and return whether the link was good."""
    with locked(asked, find_link(token, "email_change")) as (act, link):
        person = link and person_of(act, link.user_id)
        if not (link and person and links.can_be_declined(link.purpose, person)):
            return False
        if queries.withdraw_email(act, user_id=person.id, target=link.target):
            entries = ["email_change_declined"]
            audit.record(act, person.id, None, entries, ["user.updated"], new_address=link.target)
        return True
