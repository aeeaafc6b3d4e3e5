"""The form of commands' messages: the problem, its consequence, and the remedy."""

import re

# Words of a sentence that does not name its actor, and of one that is no English.
_VAGUE = r"\b([Ww]ho(ever|m)?|[Ww]hatever|[Nn]obody|[Ss]omebody|[Aa]nybody|[Ee]verybody)\b"
# A line to paste: a command, a statement, a setting, a header or records of DNS.
_LINE = r"(latchkey|systemctl|journalctl|chmod|certbot|timedatectl|SELECT|CREATE|REINDEX|REVOKE|GRANT|[A-Z_]+=\S|https://|X-|\S+ TXT|the DKIM)"
# The beginnings of a remedy: the operator's act, or the requirement of a value.
_ACT = (
    r"(If|To|Before|Until|Without|On|For|After)? ?([^.:?]+, )?([Aa]dd|[Aa]nswer|Check|Choose|Copy|Correct|Create|Find|Free|Generate|Give|Install|"
    r"Keep|Leave|[Ll]et|Look|Make|Fix|Mount|[Mm]ust (be|have|end)|Name|Percent-encode|Remove|Replace|Report|Restore|Rotate|"
    r"[Rr]un|See|[Ss]et|Start|Stop|Try|Unset|Upgrade|Use|Wait|Did you mean)\b"
)


def problem(text: str) -> str | None:
    """Return the mistake in a sentence about a fault, or None."""
    if not re.fullmatch(r"[^\n]{10,}[.?]", text):
        return "does not end with a full stop"
    # Messages of other programs are quoted after a colon.
    return "is vague" if re.search(_VAGUE, text.partition(": ")[0]) else None


def begins_with_act(text: str) -> bool:
    return re.match(_ACT, text) is not None


def problem_of_remedy(text: str | None) -> str | None:
    """Return the mistake in a remedy: it must begin with a verb, and end with a full stop or a line to paste."""
    if not text or not re.match(r"(If .+, )?[A-Z]?[a-z]+ ?", text):
        return "does not begin with a word"
    if not text.endswith(".") and not re.search(rf": {_LINE}[^\n]*$", text):
        return "ends with neither a full stop nor a line to paste"
    return "is vague" if re.search(_VAGUE, text) else None


def problem_of_failure(text: str) -> str | None:
    """Return the mistake in a line with a failure and its remedy; {} is a value."""
    sentences = re.split(r"(?<=[.?:}]) |\n *", text)
    # A remedy on a separate line has its own tests.
    if not any(re.match(_ACT, sentence) for sentence in sentences) and not text.endswith("\n  {}"):
        return "has no remedy"
    if not re.search(rf"([.?{{}}…]|: {_LINE}[^\n]*)$", text):
        return "ends with neither a full stop nor a line to paste"
    return "is vague" if re.search(_VAGUE, text) else None
