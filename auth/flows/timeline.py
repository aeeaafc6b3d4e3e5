from datetime import datetime
from typing import Any

from auth.delivery.sanitize import browser_and_system, provider
from auth.flows import words
from auth.flows.words import quoted, worded

_GUESSES = {
    *("invalid_credentials", "current_password_invalid", "otp_expired", "reauthentication_not_valid"),
    "mfa_verification_failed",
}
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def item(row: Any) -> dict[str, Any]:
    members = row._asdict()
    del members["user_id"]
    return {"text": sentence(row)} | members


def sentence(row: Any) -> str:
    """Return a sentence such as `sign-in refused: wrong password, third of ten, from 198.51.100.7`."""
    if row.kind in ("message", "event"):
        return _sending(row)
    return what(row) + _actor(row) + _origin(row)


def what(row: Any) -> str:
    """Return the sentence of an act, a refusal or a session without its actor and network."""
    return {"act": _act, "refusal": _refusal, "session": _session}[row.kind](row)


def origin_of_user(made_by: str) -> str:
    """Return how a user came to be: `by signing up`."""
    return words.ORIGINS.get(made_by, f"by {made_by}")


def clock(moment: str) -> str:
    return datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M:%S")


def _act(row: Any) -> str:
    details = row.details
    parts = [worded(words.ACTS, row.name)]
    if row.name in ("signed_in", "email_changed", "phone_changed") and details.get("method"):
        parts.append(f"by {_method(details)}")
    if row.name == "user_created" and details.get("by"):
        parts.append(origin_of_user(details["by"]))
    if row.name == "session_ended" and row.actor_id == row.user_id:
        parts = ["session ended: ended by the user"]
    if row.name == "message_resent":
        parts.append(f"({worded(words.MESSAGES, details['kind'])})")
    if row.name == "signed_out":
        parts.append(words.SCOPES.get(details.get("scope"), ""))
    if row.name.startswith("identity_") and details.get("provider"):
        parts.append(f"({provider(details['provider'], {}) or 'of a provider'})")
    if row.name in ("signed_in", "message_requested", "link_generated") and details.get("purpose"):
        parts.append(f"({worded(words.MESSAGES, details['purpose'])})")
    return " ".join(filter(None, parts)) + _changed(row.name, details)


def _changed(name: str, details: dict[str, Any]) -> str:
    if name == "banned" and details.get("banned_until"):
        forever = details["banned_until"].startswith("9999")
        return " permanently" if forever else f" until {clock(details['banned_until'])}"
    if name == "user_deleted" and details.get("because"):
        return f": {words.BECAUSE.get(details['because'], details['because'])}"
    if name == "change_undone" and details.get("removed"):
        return f", which removed {', '.join(map(_way, details['removed']))}"
    if name.startswith("factor_"):
        kind = words.FACTORS.get(details.get("factor_type", ""), "factor")
        return f": {kind}" + (f" {quoted(details['factor'])}" if details.get("factor") else "")
    if name == "recovery_code_used" and "remaining" in details:
        return f", {details['remaining']} left"
    if name == "message_requested" and details.get("is_sent") is False:
        return ", but not sent"
    if name.startswith("passkey_") and not name.endswith("_removed"):
        was = f" (was {quoted(details['old_passkey'])})" if details.get("old_passkey") else ""
        return f": {quoted(details.get('passkey', 'unknown'))}{was}"
    subject = name.split("_")[0]
    address = "address" if subject in ("email", "phone") else subject
    if name.endswith("_removed"):
        removed = details.get(f"old_{subject}")
        return f": {quoted(removed)}" if removed else ""
    old = details.get(f"old_{subject}") or details.get(f"old_{address}")
    new = details.get(f"new_{subject}") or details.get(f"new_{address}") or details.get(subject)
    if name.endswith(("_changed", "_change_requested")) and subject in ("email", "phone", "role"):
        return (f" from {old}" if old else "") + (f" to {new}" if new else "")
    return ""


def _way(removed: str) -> str:
    kind, _, label = removed.partition(" ")
    return words.FACTORS.get(kind, kind) + (f" {quoted(label)}" if label else "")


def _refusal(row: Any) -> str:
    details = row.details
    reason = worded(words.REASONS, row.reason)
    text = f"{worded(words.REFUSED, row.name)}: {reason}"
    if row.reason in _GUESSES and details.get("tries") and details.get("of"):
        tries, limit = details["tries"], details["of"]
        text += f", {_word(_ORDINALS, tries) or f'number {tries}'} of {_word(_NUMBERS, limit) or limit}"
    return text + (f" ({row.count} times in a minute)" if row.count > 1 else "")


def _session(row: Any) -> str:
    if row.name == "began":
        return f"session began, by {_method(row.details)}"
    if row.name == "expired":
        return "session expired"
    sessions = "session" if row.count == 1 else f"{row.count} sessions"
    return f"{sessions} ended: {worded(words.END_REASONS, row.reason)}"


def _sending(row: Any) -> str:
    details = row.details
    is_event = row.kind == "event"
    what = f"event ({worded(words.EVENTS, row.name)})" if is_event else message(details["channel"], row.name)
    return f"{what} to {details['recipient']} {outcome(details)}"


def message(channel: str, kind: str) -> str:
    """Return the name of a message: `mail (password recovery)`."""
    return f"{words.CHANNELS[channel]} ({worded(words.MESSAGES, kind)})"


def outcome(details: dict[str, Any]) -> str:
    tries = "one try" if details["attempts"] == 1 else f"{details['attempts']} tries"
    error = f": {details['last_error']}" if details["last_error"] else ""
    match details["outcome"]:
        case "sent":
            by = " by" if details["channel"] == "email" else ":"
            after = f", after {tries}" if details["attempts"] > 1 else ""
            return f"accepted{by} {details['response']}{after}"
        case "waiting" if details["attempts"] == 0:
            return "waits to be sent"
        case "waiting":
            return f"waits, after {tries}, until {clock(details['next_attempt_at'])}{error}"
        case "void" if details["channel"] == "webhook":
            return "was not sent: the webhook was deleted"
        case "void":
            return "was not sent: its link or code was used or voided before"
        case "expired":
            return f"was not sent before it expired{error}"
        case _:
            return f"failed after {tries}{error}"


def _actor(row: Any) -> str:
    if row.actor == "user" and row.details.get("administrator"):
        return f", by administrator {row.details['administrator']}"
    if row.actor == "user" and row.actor_id != row.user_id:
        return f", by user {row.actor_id}"
    return f", by {words.ACTORS[row.actor]}" if row.actor in words.ACTORS else ""


def _origin(row: Any) -> str:
    known = " on ".join(name for name in browser_and_system(row.user_agent) if name)
    if not row.ip:
        return ""
    return f", from {row.ip}" + (f" ({known})" if known else "")


def _method(details: dict[str, Any]) -> str:
    return provider(details.get("provider"), {}) or words.METHODS.get(details["method"], details["method"])


def _word(numerals: list[str], number: int) -> str | None:
    return numerals[number - 1] if 1 <= number <= len(numerals) else None
