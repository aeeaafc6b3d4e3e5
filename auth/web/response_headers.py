"""Headers that every response has, whether the application makes it or gunicorn's worker."""

SECURITY = (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"))
CORS_EXPOSED = [
    "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After", "X-Request-Id", "X-Total-Count", "Link",
]  # fmt: skip
# What any page may read, whatever its origin; said without asking Flask-CORS, for whom it is work.
CORS_FOR_ALL = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", ", ".join(CORS_EXPOSED)))
