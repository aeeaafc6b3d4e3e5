"""The steps of every request, and the declarations of routes."""

from auth.web.application import answered_by, current_g, current_request, g
from auth.web.declarations import (
    Level,
    View,
    accepts_forms,
    answers_frames,
    any_origin,
    asks_more,
    audited,
    counted,
    refuses_by_page,
    takes_foreign_forms,
    takes_metadata,
    takes_tokens,
)

__all__ = [
    "Level", "View", "accepts_forms", "answered_by", "answers_frames", "any_origin",
    "asks_more", "audited", "counted", "current_g", "current_request", "g", "refuses_by_page",
    "takes_foreign_forms", "takes_metadata", "takes_tokens",
]  # fmt: skip
