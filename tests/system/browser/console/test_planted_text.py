"""Text that users, browsers, providers and mail servers have planted: shown everywhere, executed nowhere."""

import re
from collections.abc import Iterator
from urllib.parse import quote, urldefrag

import pytest

from auth.core.text.labels import quoted
from tests.support.audit import record
from tests.support.browser import Browser
from tests.support.users import register

pytest_plugins = ["tests.support.browser_fixtures"]

# A value that escapes becomes an element x-planted, or an attribute of this name.
TAG = "<x-planted>"
CORPUS = " ".join(
    (
        f"{TAG}<script>planted=1</script>",
        f'">{TAG}<img src=x onerror=planted=1>',
        f"'>{TAG}<svg onload=planted=1>",
        '" x-planted onfocus=planted=1 autofocus tabindex=1 a="',
        "' x-planted onmouseover=planted=1 a='",
        f"</textarea>{TAG}</title>{TAG}</style>{TAG}</script>{TAG}</pre>{TAG}</option></select>{TAG}--> ]]>{TAG}",
        f"<iframe srcdoc='{TAG}'></iframe><base href=//evil.example><meta http-equiv=refresh content=99;//evil.example>",
        "<form action=//evil.example><button>Sign in</button><a href=javascript:planted=1>x</a>",
        "{{ 7 * 7 }}{% raw %}${7*7}#{7*7} &lt;x-planted&gt; \\u003cx-planted\\u003e \u2028 \u202e",
        "<!--",
    )
)
# A value that would run as the target of a link.
LINK = "javascript:planted=1//"

_PLANT = """
UPDATE users
   SET email = %(email)s, phone = %(phone)s, new_email = %(email)s, signup_user_agent = %(user_agent)s,
       user_metadata = jsonb_build_object('name', %(name)s), app_metadata = jsonb_build_object(%(plan)s, 1),
       banned_until = now() + interval '1 day'
 WHERE id = %(id)s;
INSERT INTO sessions (user_id, method, user_agent, ip) VALUES (%(id)s, %(method)s, %(user_agent)s, '192.0.2.1');
INSERT INTO identities (user_id, provider, subject, identity_data)
VALUES (%(id)s, %(provider)s, %(subject)s, jsonb_build_object('email', %(known_as)s));
INSERT INTO factors (id, user_id, factor_type, friendly_name, verified_at, secret)
VALUES (gen_random_uuid(), %(id)s, 'totp', %(factor)s, now(), '');
INSERT INTO factors (id, user_id, factor_type, friendly_name, verified_at, credential_id, public_key, sign_count)
VALUES (gen_random_uuid(), %(id)s, 'passkey', %(passkey)s, now(), gen_random_uuid()::text::bytea, '', 0);
INSERT INTO webhooks (id, url, description, events, secret)
VALUES (gen_random_uuid(), %(url)s, %(description)s, '{user.updated}', '');
WITH client AS (
  INSERT INTO oauth_clients (name, uri, logo_uri, redirect_uris, resources, allowed_roles, is_dynamic, grant_types,
                             token_endpoint_auth_method)
  VALUES (%(client)s, %(client_uri)s, %(logo_uri)s, ARRAY[%(redirect_uri)s], ARRAY[%(resource)s],
          ARRAY[%(allowed_role)s], true, '{authorization_code}', 'none')
  RETURNING id
)
INSERT INTO oauth_grants (user_id, client_id, scopes) SELECT %(id)s, id, ARRAY[%(scope)s] FROM client;
INSERT INTO outbox (id, user_id, channel, kind, recipient, outcome, finished_at, attempts, last_error)
VALUES (gen_random_uuid(), %(id)s, 'email', %(kind)s, %(recipient)s, 'failed', now(), 3, %(last_error)s),
       (gen_random_uuid(), %(id)s, 'email', 'recovery', %(recipient)s, 'failed', now(), 3, %(last_error)s);
INSERT INTO outbox (id, user_id, channel, kind, recipient, outcome, finished_at, attempts, last_error, variables)
SELECT gen_random_uuid(), %(id)s, 'webhook', 'user.updated', id, 'failed', now(), 3, %(last_error)s,
       jsonb_build_object('event_id', 1, 'timestamp', now(), 'data', jsonb_build_object('email', %(email)s))
  FROM webhooks;
"""
FIELDS = {"action", "details", *re.findall(r"%\((\w+)\)s", _PLANT)} - {"id"}
# The page of the application shows these, not the page of the user.
_FIELDS_OF_CLIENT = {"client", "client_uri", "logo_uri", "redirect_uri", "resource", "allowed_role"}
# The text of the page that people see or hear.
_TEXT_OF_PAGE = """
[document.documentElement.textContent,
 ...[...document.querySelectorAll("input, textarea")].map((field) => field.value),
 ...[...document.querySelectorAll("[title]")].map((element) => element.title)].join("\\n")
"""
_ESCAPED = """
[...document.querySelectorAll(
   "x-planted, [x-planted], [onerror], [onload], [onfocus], [onmouseover], iframe:not([sandbox]), base, meta[http-equiv],"
   + " script:not([src]), main img, form[action*=evil], a[href^='javascript:' i], form[action^='javascript:' i]"
 )].map((element) => element.outerHTML)
"""


def planted(text: str) -> dict[str, str]:
    return {field: f"{text}{field}" for field in FIELDS}


@pytest.fixture
def victims(client, service_role, database):
    """Two users whose every field is planted."""
    people = []
    for number, text in enumerate((CORPUS, LINK)):
        person = register(client, service_role, f"victim{number}@example.com")
        values = planted(text)
        # bytea takes a backslash for an escape.
        statement = _PLANT.replace("gen_random_uuid()::text::bytea", f"'{number}'")
        database.run(statement, id=person.id, **values)
        for name in (values["action"], "email_changed", "factor_removed", "user_created", "banned"):
            details = dict.fromkeys(
                ("old_email", "new_email", "factor", "by", "administrator"), values["details"]
            )
            audit_origin = {"actor": "user", "user_agent": values["user_agent"]}
            record(database, person.id, name, origin=audit_origin, **details)
        people.append(person)
    return people


def crawl(console: Browser, origin: str, *start: str) -> Iterator[str]:
    """Open these URLs of the console and all pages that they link to, and yield each."""
    waiting, seen = list(start), set(start)
    while waiting:
        url = waiting.pop()
        console.open(url)
        yield url
        links = console.run("[...document.querySelectorAll('main a, nav a')].map((link) => link.href)")
        new_urls = {urldefrag(link).url for link in links if link.startswith(f"{origin}/console")} - seen
        seen |= new_urls
        waiting += sorted(new_urls)
        assert len(seen) < 300


def look(page) -> str:
    """Check that nothing on the page has been executed, and return its text."""
    assert page.run(_ESCAPED.replace("\n", " ")) == []
    assert page.run("typeof planted") == "undefined"
    # No violation of the policy was reported; the page itself may be a refusal.
    assert [each for each in page.complaints() if "status of 4" not in each] == []
    return page.run(_TEXT_OF_PAGE.replace("\n", " "))


def test_pages_of_the_console_show_planted_text_and_do_not_execute_it(console, origin, victims):
    queries = [f"users?q={quote(CORPUS)}", f"users?q={quote(LINK)}"]
    queries.append(f"users/{victims[0].id}?done={quote(CORPUS)}&kind={quote(CORPUS)}")
    start = [f"{origin}/console", *(f"{origin}/console/{query}" for query in queries)]
    text_of_page = {url: look(console) for url in crawl(console, origin, *start)}
    assert sum(re.search("/applications/[0-9a-f-]{36}$", url) is not None for url in text_of_page) == len(
        victims
    )
    for person, text in zip(victims, (CORPUS, LINK), strict=True):
        page_text, values = text_of_page[f"{origin}/console/users/{person.id}"], planted(text)
        for field in FIELDS - _FIELDS_OF_CLIENT - {"plan", "name", "url", "description", "action"}:
            assert values[field] in page_text or quoted(values[field]) in page_text, field
