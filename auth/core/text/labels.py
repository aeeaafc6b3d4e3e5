"""Labels for stored names. The tests know all of these names."""

import re
from collections.abc import Mapping

from auth.core import normalize
from auth.core.text.catalogues import DEFAULT, built_in, string
from auth.core.text.moments import until

# The members of `details` whose values have labels, and the tables of these labels.
_VALUES = {
    "because": "because",
    "by": "origins",
    "factor_type": "factors",
    "kind": "messages",
    "method": "methods",
    "purpose": "messages",
    "reason": "disabled",
    "scope": "scopes",
    "type": "messages",
}
# Titles that replace the names of members.
_TITLES = {"by": "created", "is_sent": "sent", "of": "limit"}
_INITIALS = re.compile(r"\b(?:id|ip|url)\b")


def label(table: str, name: str, /, **values: str) -> str:
    """Return the label of a name, or the name itself, which may be of a later version.

    Labels of `acts` include `values`: `signed in with a password`.
    """
    key = f"{table}.{name}"
    return string("console", DEFAULT, key).render(values) if _has_label(table, name) else spaced(name)


def names(*tables: str) -> set[str]:
    keys = (key.partition(".") for key in built_in("console")[DEFAULT])
    return {name for table, _, name in keys if table in tables}


def _has_label(table: str, name: str) -> bool:
    return f"{table}.{name}" in built_in("console")[DEFAULT]


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 session`, `1,000 sessions`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def spaced(name: str) -> str:
    return name.replace("_", " ")


def values_of(details: Mapping[str, object]) -> dict[str, str]:
    """Return the details of an act or a refusal, for people."""
    return {name: _value(name, value) for name, value in details.items()}


def details(members: Mapping[str, object], line: str = "") -> str:
    """Return details such as `session ID: 1f0c…, method: a link or code`, without those in their `line`."""
    values = values_of({name: value for name, value in members.items() if value is not None})
    if {"tries", "of"} <= values.keys():
        values["attempt"] = label("details", "attempt", tries=values.pop("tries"), of=values.pop("of"))
    by_title = {
        _TITLES.get(name) or _INITIALS.sub(lambda match: match[0].upper(), spaced(name)): value
        for name, value in values.items()
        if value not in line
    }
    return string("console", DEFAULT, "details.named").render(values=by_title)


def quoted(text: str) -> str:
    """Return text from users, in quotes unless it is one word, so that it cannot look like a part of the
    sentence: `Laptop, by the service role key`."""
    printable = normalize.in_one_line(text)
    if re.fullmatch(r"[\w@.+:/-]+", printable):
        return printable
    return "“" + re.sub("[“”]", '"', printable) + "”"


def _value(name: str, value: object) -> str:
    if isinstance(value, list):
        # The additions that were undone: `phone +4917012345`, `authenticator app`.
        parts = [item.partition(" ") for item in value]
        additions = [label("factors", kind) + (f" {quoted(name)}" if name else "") for kind, _, name in parts]
        return string("console", DEFAULT, "details.listed").render(values=additions)
    if isinstance(value, bool):
        return label("details", "yes" if value else "no")
    # The log has the id and the slug of an organization.
    text = str(value["slug"] if isinstance(value, dict) and "slug" in value else value)
    if name == "banned_until":
        return until(text)
    table = _VALUES.get(name, "")
    return label(table, text) if _has_label(table, text) else text and quoted(text)
