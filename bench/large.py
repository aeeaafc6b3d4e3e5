"""Latency with a million users, three million sessions and ten million audit rows, against a thousand users.

Postgres seeds the database once, in a directory that is kept. Both services run at the same time and get
requests in turn.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext

from psycopg2.extensions import cursor as Cursor

from bench import load
from bench.figures import Figure, Pace, against, alone
from bench.load import Load
from bench.people import People, refresh
from bench.service import RAISED, BenchService, new_state_dir
from tests.support.processes import CHECKOUT

DIRECTORY = CHECKOUT / "var" / "bench-large"
USERS = 1_000_000
FEW = 1_000
_SECONDS = 3
_SERVICE_ROLE_KEY = "bench-0123456789-abcdefghijklmnopqrstuvwxyz"
_AUDIT_ROWS = """
INSERT INTO audit_log (id, at, action, user_id, actor, actor_id, ip, network, user_agent, request_id, count, details)
SELECT md5('audit' || n)::uuid, now() - n * interval '3 seconds', (ARRAY['signed_in', 'signed_out', 'user_changed'])[1 + n %% 3],
       md5('user' || 1 + n %% %s)::uuid, 'user', md5('user' || 1 + n %% %s)::uuid, '127.0.0.1', '127.0.0.1', 'Mozilla/5.0', md5('request' || n), 1, '{}'
  FROM generate_series(1, %s) AS n
"""


def measure(pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    failures = 0
    taken: dict[str, dict[str, list[Load]]] = defaultdict(lambda: defaultdict(list))
    with ExitStack() as stack:
        both = {
            "large": stack.enter_context(large_service("large", pace)),
            "small": stack.enter_context(large_service("small", pace)),
        }
        people = {
            "large": seed(both["large"], pace.number(USERS, brief=2 * FEW)),
            "small": seed(both["small"], FEW),
        }
        requests = {size: _requests(both[size], people[size], pace.seconds(_SECONDS)) for size in both}
        for round_number in range(pace.warm_ups + pace.rounds):
            for name in requests["large"]:
                for size in both:
                    answered = requests[size][name]()
                    failures += answered.failures
                    # The first round only warms up the caches.
                    if round_number >= pace.warm_ups:
                        taken[name][size].append(answered)
    for name, target in _TARGETS.items():
        yield against(
            f"{name}, p50 in ms in a large database, against a small one",
            [one.percentile(50) for one in taken[name]["large"]],
            [one.percentile(50) for one in taken[name]["small"]],
            target,
        )
    yield alone("failed requests", failures, "≤ 0")


_TARGETS = {
    "GET /user": "≤ 1.2",
    "refresh": "≤ 1.2",
    "log-in": "≤ 1.2",
    "list page 1": "≤ 1.2",
    "prefix search": "≤ 3",
    "list page 1,000": "≤ 3",
}


def _requests(service: BenchService, people: People, seconds: float) -> dict[str, Callable[[], Load]]:
    last = min(1000, people.users // 20)

    # Few connections: with many, waiting for a core would hide the time of a slower statement.
    def ask(requests: list[str], connections: int = 4, *, renews: bool = False) -> Load:
        return load.run(service.port, requests, seconds=seconds, connections=connections, renews=renews)

    def users() -> Load:
        tokens = people.access_tokens(people.refresh_tokens_by_chance(500))
        return ask([load.get("/user", token=token) for token in tokens])

    def listing(query: str) -> Callable[[], Load]:
        return lambda: ask([load.get(f"/admin/users?{query}", token=_SERVICE_ROLE_KEY)])

    # Each round picks other users at random, whose rows were not read a moment ago.
    return {
        "GET /user": users,
        "refresh": lambda: ask(list(map(refresh, people.refresh_tokens_by_chance(2000))), renews=True),
        "log-in": lambda: ask(people.log_ins(500), 2),
        "list page 1": listing("per_page=20"),
        "prefix search": listing("per_page=20&q=user77"),
        "list page 1,000": listing(f"per_page=20&page={last}"),
    }


@contextmanager
def large_service(size: str, pace: Pace) -> Iterator[BenchService]:
    """Run the service with a database that is kept, unless the pace is brief."""
    with new_state_dir() if pace.is_brief else nullcontext(DIRECTORY / size) as state_dir:
        state_dir.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        with BenchService(state_dir, AUTH_SERVICE_ROLE_KEY=_SERVICE_ROLE_KEY, **RAISED) as service:
            yield service


def seed(service: BenchService, users: int) -> People:
    """Seed the database unless it is large enough, and return its users."""
    sessions, audit_rows = users * 3, users * 10
    people = People(service, users)
    people.sessions = service.value("SELECT count(*) FROM sessions")
    # The janitor has deleted the sessions if the database was seeded more than a month ago.
    if people.sessions < sessions:
        print(f"  Seeding {users:,} users …", flush=True)
        with service.database() as connection, connection.cursor() as cursor:
            cursor.execute("TRUNCATE users CASCADE")
        people.sessions = 0
        people.insert()
        people.insert_sessions(sessions)
    if service.value("SELECT count(*) FROM audit_log") < audit_rows:
        print(f"  Seeding {audit_rows:,} audit rows …", flush=True)
        with service.database() as connection, connection.cursor() as cursor:
            cursor.execute("TRUNCATE audit_log")
            with _without_indexes(cursor, "audit_log"):
                cursor.execute(_AUDIT_ROWS, (users, users, audit_rows))
    connection = service.database()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
    connection.close()
    return people


@contextmanager
def _without_indexes(cursor: Cursor, table: str) -> Iterator[None]:
    """Drop a table's indexes and create them again at the end: updating them row by row takes hours."""
    cursor.execute("SET maintenance_work_mem = '1GB'")
    cursor.execute(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'p'",
        (table,),
    )
    constraints = cursor.fetchall()
    for name, _ in constraints:
        cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    cursor.execute("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s", (table,))
    indexes = cursor.fetchall()
    for name, _ in indexes:
        cursor.execute(f"DROP INDEX {name}")
    yield
    for name, definition in constraints:
        cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
    for _, definition in indexes:
        cursor.execute(definition)
