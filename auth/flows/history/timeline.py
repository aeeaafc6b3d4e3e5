from typing import TypeAlias

from auth.core.json_bodies import JsonObject
from auth.core.text.labels import label, quoted, values_of
from auth.core.text.moments import clock
from auth.core.text.names import provider
from auth.core.text.user_agents import device
from auth.flows.history.mentions import NO_MENTIONS, Mentions, provider_id_of
from sql import queries

TimelineEntry: TypeAlias = (
    "queries.ListTimeline | queries.ListTimelineBefore | queries.ListRequestActs | queries.ListMessagesTo"
    " | queries.SearchAudit"
)
# Acts of users who have no session yet. Nodes of 0.7.x wrote them as those of an anonymous actor.
OWN_ACTS = {"signed_in", "api_key_used", "user_created", "identity_linked", "membership_added"}
# Refusals whose number of attempts is in the log.
_GUESSES = {
    "invalid_credentials", "current_password_invalid", "otp_expired", "reauthentication_not_valid",
    "mfa_verification_failed",
}  # fmt: skip


def item(row: "queries.ListTimeline", mentions: Mentions) -> JsonObject:
    members = row._asdict()
    del members["user_id"]
    return {"text": sentence(row, mentions)} | members


def is_by_user(row: "TimelineEntry") -> bool:
    """Whether the user whom an entry is about acted."""
    if row.user_id is None:
        return False
    return row.actor_id == row.user_id or (row.actor == "anonymous" and row.name in OWN_ACTS)


def sentence(row: "TimelineEntry", mentions: Mentions = NO_MENTIONS) -> str:
    """Return a sentence such as `sign-in failed: wrong password, attempt 3 of 10, from 198.51.100.7`."""
    if row.kind in ("message", "event"):
        return sentence_of_message(row)
    browser = device(row.user_agent) if row.ip else None
    origin = f", from {row.ip}" if row.ip else ""
    return what(row, mentions) + _actor(row) + origin + (f" ({browser})" if browser else "")


def sentence_of_message(row: "TimelineEntry | queries.SelectLastMessage") -> str:
    details, name = row.details, f"event ({label('events', row.name)})"
    if row.kind == "message":
        name = message(details["channel"], row.name)
    return f"{name} to {details['recipient']} {outcome(details)}"


def what(row: "TimelineEntry", mentions: Mentions = NO_MENTIONS) -> str:
    """Return the sentence of an act, a refusal or a session without its actor and network."""
    return {"act": _act, "refusal": _refusal, "session": _session}[row.kind](row, mentions)


def message(channel: str, kind: str) -> str:
    """Return the name of a message: `email (password recovery)`."""
    return f"{label('channels', channel)} ({label('messages', kind)})"


def _act(row: "TimelineEntry", mentions: Mentions) -> str:
    values = _values(row.details, mentions)
    # The rows of one act share its details: `email_changed` says nothing of the phone.
    changed = row.name.partition("_")[0]
    for age in ("old", "new"):
        values[age] = values.get(f"{age}_{changed}") or values.get(f"{age}_address", "")
    if is_by_user(row):
        values["is_own"] = "yes"
    return label("acts", row.name, **values)


def _refusal(row: "TimelineEntry", mentions: Mentions) -> str:
    details = row.details
    text = f"{label('refused', row.name)}: {label('reasons', row.reason or '')}"
    if at := mentions.provider(details.get("provider")):
        text += f", at {at.text}"
    if row.reason in _GUESSES and details.get("tries") and details.get("of"):
        text += f", attempt {details['tries']} of {details['of']}"
    if details.get("hook"):
        text += f": {details['hook']}, {quoted(details['said'])}"
    if details.get("problem"):
        text += f": {quoted(details['client'])}, {details['problem']}"
    return text + (f" ({row.count} times in a minute)" if row.count > 1 else "")


def _session(row: "TimelineEntry", mentions: Mentions) -> str:
    if row.name == "began":
        values = _values(row.details, mentions)
        return f"session started with {values.get('provider') or values['method']}"
    if row.name == "expired":
        return "session expired"
    sessions = "session" if row.count == 1 else f"{row.count} sessions"
    return f"{sessions} ended: {label('end_reasons', row.reason or '')}"


def _values(details: JsonObject, mentions: Mentions) -> dict[str, str]:
    values = {name: value for name, value in details.items() if value is not None}
    mention = mentions.providers.get(provider_id_of(details) or "")
    name = mention.text if mention else provider(details.get("provider"), {})
    return values_of(values) | {"provider": name or ""}


def outcome(details: JsonObject) -> str:
    attempts = "1 attempt" if details["attempts"] == 1 else f"{details['attempts']} attempts"
    error = f": {details['last_error']}" if details["last_error"] else ""
    match details["outcome"]:
        case "sent":
            by = " by" if details["channel"] == "email" else ":"
            after = f", after {attempts}" if details["attempts"] > 1 else ""
            if details["response"] == "standard output":
                return "printed in the terminal"
            return f"accepted{by} {details['response']}{after}"
        case "waiting" if details["attempts"] == 0:
            return "waiting to be sent"
        case "waiting":
            return f"to be retried at {clock(details['next_attempt_at'])}, after {attempts}{error}"
        case "void" if details["channel"] == "webhook":
            return "not sent: the webhook was deleted"
        case "void":
            return "not sent: its link or code was already used or voided"
        case "expired":
            return f"not sent before it expired{error}"
        case _:
            return f"failed after {attempts}{error}"


def key_of(row: "TimelineEntry | queries.ListEntriesOfProvider") -> str | None:
    """Return the administrative key that acted, if one did: `key billing`."""
    if row.actor != "service_role" or row.actor_id is None:
        return None
    return f"key {quoted(row.details.get('administrator', '').removeprefix('key '))}"


def _actor(row: "TimelineEntry") -> str:
    # "user created by an administrator, carol@example.com" has its "by" already.
    by = "" if row.details.get("by") == "administrator" else "by "
    if row.actor == "user" and row.details.get("administrator"):
        return f", {by and 'by administrator '}{row.details['administrator']}"
    if key := key_of(row):
        return f", {by}the {key}"
    if row.actor == "user" and row.actor_id != row.user_id:
        return f", {by}user {row.actor_id}"
    if row.actor in (None, "user", "anonymous"):
        return ""
    ran = row.details.get("system_user")
    return f", {by}{label('actors', row.actor)}" + (f" of {quoted(ran)}" if ran else "")
