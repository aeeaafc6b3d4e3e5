"""How the Supabase clients decode errors, from their sources: the members and types that they demand, and how they
recognise weak passwords and ended sessions.

Left out are the clients for Go (`gotrue-go`, `auth-go`) and C# (`gotrue-csharp`): both show the body as text.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

HEADER = "X-Supabase-Api-Version"
VERSION = "2024-01-01"
_TEXTS = dict.fromkeys(("msg", "message", "error_description", "error"), str)
_ENDED = {"session_not_found", "session_expired", "refresh_token_not_found", "refresh_token_already_used"}


class Read(NamedTuple):
    """What an application learns of an error."""

    kind: Literal["error", "weak password", "session ended", "try again"]
    code: str | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reader:
    """One client. `code_in` is the member with the code. `dated` reads `code` if the response has the version, else
    `error_code`; `dated, or error_code` reads `error_code` even then if `code` is missing or a number.
    """

    code_in: Literal["code", "error_code", "dated", "dated, or error_code"]
    sends: str | None = VERSION
    # Members with another type, or without a required one, make the error unreadable.
    optional: Mapping[str, type] = field(default_factory=lambda: _TEXTS)
    required: Mapping[str, type] = field(default_factory=dict)
    # The codes after which the client signs the user out.
    ended: Collection[str] = ()
    tries_again: Collection[int] = ()

    @property
    def headers(self) -> dict[str, str]:
        return {HEADER: self.sends} if self.sends else {}

    def read(self, status: int, headers: Mapping[str, str], body: Any) -> Read:
        if status in self.tries_again:
            return Read("try again")
        for name, kind in self.required.items():
            assert type(body.get(name)) is kind, f"{name}: {body.get(name)!r}"
        for name, kind in self.optional.items():
            assert body.get(name) is None or type(body[name]) is kind, f"{name}: {body[name]!r}"
        code = self._code(headers, body)
        if code == "weak_password":
            reasons = body["weak_password"]["reasons"]
            assert isinstance(reasons, list)
            assert all(isinstance(reason, str) for reason in reasons)
            return Read("weak password", code, tuple(reasons))
        return Read("session ended" if code in self.ended else "error", code)

    def _code(self, headers: Mapping[str, str], body: Any) -> str | None:
        echoed = headers.get(HEADER, "")
        is_dated = re.fullmatch(r"2\d{3}-\d\d-\d\d", echoed) is not None and echoed >= VERSION
        name = self.code_in
        if name.startswith("dated"):
            is_text = isinstance(body.get("code"), str)
            name = "code" if is_dated and (is_text or self.code_in == "dated") else "error_code"
        code = body.get(name)
        return code if isinstance(code, str) else None


READERS = {
    # supabase-swift, Sources/Auth/Internal/APIClient.swift (52eec30c, August 2026).
    "Swift": Reader(
        "dated, or error_code",
        optional=_TEXTS | {"code": str, "error_code": str, "weak_password": dict},
        ended=_ENDED,
    ),
    # supabase-flutter, packages/supabase_auth/lib/src/fetch.dart (6969eb38, August 2026).
    "Dart": Reader("code", tries_again=range(500, 600)),
    # The same before the major version that renamed the package, packages/gotrue/lib/src/fetch.dart (2.27.2).
    "Dart, gotrue": Reader("dated", tries_again=range(500, 600)),
    # @supabase/auth-js 2.119.1, lib/fetch.
    "JavaScript": Reader(
        "dated, or error_code", ended={"session_not_found"}, tries_again=[*range(500, 505), *range(520, 531)]
    ),
    # supabase-auth 2.34.1, helpers.py.
    "Python": Reader("dated, or error_code", tries_again=[502, 503, 504, *range(520, 525), 530]),
    # supabase-kt 3.7, GoTrueErrorResponse.kt and AuthImpl.kt.
    "Kotlin": Reader("error_code", sends=None, ended={"session_not_found"}),
    # supabase-auth-rs 0.10, error.rs.
    "Rust": Reader("error_code", sends=None, required={"code": int, "msg": str}),
}
