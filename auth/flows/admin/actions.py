"""What the actions of administrators have in common, at every door and whatever they are about."""

from dataclasses import dataclass

from marshmallow import Schema

from auth.web.schemas import Input


@dataclass(frozen=True, kw_only=True)
class AdminAction:
    """`undo` says how to undo the action, or that this is impossible; `done` is the message after it."""

    title: str
    undo: str
    done: str = ""
    form: type[Schema] = Input
    needs_factor: bool = False
    is_destructive: bool = False
