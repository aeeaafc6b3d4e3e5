"""Links and codes that a browser requested on our pages, and links opened in other browsers.

A cookie binds both to the browser. A code works only there (ASVS 6.6.2). A browser gets no session when its
link is opened elsewhere: a stranger could request a link, and wait until the owner of the address opens it.
"""

from auth.core import constants
from auth.core.addresses import is_email
from auth.core.net.redirects import is_web
from auth.core.text.user_agents import browser_and_system
from auth.core.tokens import one_time
from auth.web.asked import Asked
from auth.web.fields import is_uuid
from sql import queries


def keep_address(asked: Asked, address: str, browser_hash: bytes | None, *, has_asked: bool) -> str:
    """Keep an address that this browser typed, as long as its link or code, and return the id for a URL."""
    lifetime = constants.LINK_LIFETIME if is_email(address) else constants.SMS_CODE_LIFETIME
    return queries.keep_typed_address(
        asked.db, browser_hash=browser_hash, address=address, has_asked=has_asked, lifetime=lifetime
    ).id


def typed_address(asked: Asked, id: str) -> "queries.SelectTypedAddress | None":
    """Return the address that this browser typed, for the `id` in the URL of a page, or None."""
    browser_hash = asked.browser_hash
    if not is_uuid(id) or browser_hash is None:
        return None
    return queries.select_typed_address(asked.db, id=id, browser_hash=browser_hash)


def is_elsewhere(asked: Asked, link: "queries.SelectLink", *, is_same: bool = False) -> bool:
    """Whether another browser requested a link.

    A link of the API has no cookie. With a code challenge it is useless in another browser, so the browsers
    are compared, unless the user says that they are the same: phones and desktops differ, and two browsers of
    one kind count as the same. All count as the same if the link opens an application's own scheme: a WebView
    requests it, the system's browser opens it, and the application on this device redeems the code. Without
    pages, there is no other way to continue.
    """
    if link.browser_hash and link.purpose not in one_time.CHANGES:
        return bytes(link.browser_hash) != asked.browser_hash
    is_bound = link.code_challenge and link.purpose in ("magiclink", "recovery", "signup")
    is_native = not is_web(link.redirect_to or "https:")
    if is_same or is_native or not is_bound or not asked.settings.pages:
        return False
    there, here = browser_and_system(link.user_agent), browser_and_system(asked.client["user_agent"])
    # An application on a server asks for its users, with a user agent that is no browser's.
    return None not in (*there, *here) and there != here


def used_link(asked: Asked, address: str, purpose: str) -> "queries.SelectUsedLink | None":
    """Return the `user_id` of a link that this browser requested, once it is used in any browser, or None."""
    return queries.select_used_link(
        asked.db, target=address, purpose=purpose, browser_hash=asked.browser_hash
    )


def code_elsewhere(asked: Asked, link: "queries.SelectLink", token: str) -> str | None:
    """Return the code of a link's message if it works in the browser that requested both, or None."""
    code = one_time.code_of(token)
    row = queries.select_newest_code(asked.db, target=link.target, browser_hash=link.browser_hash)
    return code if row and bytes(row.code_mac) in asked.parts.codes.macs(link.target, code) else None
