"""Creates users from the entries of a file, and says what became of each entry."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

import psycopg2
from psycopg2.errors import ProgramLimitExceeded, UniqueViolation

from auth.core import json_bodies
from auth.core.passwords.legacy import UnusableHash
from auth.ops.transfer import InvalidRecord, Loaded, products, records
from auth.ops.transfer.reading import Entry
from auth.web.context import Latchkey
from sql import Database, acts, queries

_BATCH = 500
_MOST_METADATA = 8192
_EXISTS = "a user with this id, email, phone, identity or credential already exists"
_TWICE = "has the same id, email, phone, identity or credential as {}"
_TAKEN = {"identities_provider_subject_key", "factors_credential_id_key"}
# Exceptions of a mapping for an entry of an unexpected shape.
_SHAPES = (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)


@dataclass(frozen=True)
class ImportOutcome:
    """The outcome of an entry: `created`, `exists` or `refused`, the last two with a reason.

    `user_id` is missing for a refused entry, for one that a dry run would create, and for a user whom another
    process created meanwhile. `signs_in_with` lists what signs a new administrator in, with its age.
    """

    place: str
    name: str | None
    status: str
    reason: str | None = None
    user_id: str | None = None
    signs_in_with: list[str] | None = None


@dataclass(eq=False, repr=False)
class Import:
    """Creates users from entries. Existing users are not changed, so an import can be repeated."""

    database: Database
    parts: Latchkey
    choices: records.Choices
    hash_config: Mapping[str, str]
    is_dry_run: bool
    # The product that wrote the export, as the first entry says.
    _product: str | None = field(default=None, init=False)
    # The id of the import in the audit log.
    _id: str = field(default_factory=lambda: str(uuid.uuid4()), init=False)
    # The place of the first entry with each key.
    _places: dict[str, str] = field(default_factory=dict, init=False)

    def run(self, entries: Iterable[Entry]) -> Iterator[ImportOutcome]:
        """Yield the outcome of each entry, in order. Raises `psycopg2.OperationalError`."""
        checked = self._checked(entries)
        while batch := list(islice(checked, _BATCH)):
            rows = [row for _entry, row in batch if not isinstance(row, str)]
            owners = self._owners_of_keys(rows)
            problems = self._insert([row for row in rows if owners.keys().isdisjoint(records.keys(row))])
            yield from (self._outcome(entry, row, problems, owners) for entry, row in batch)

    def _checked(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Loaded | str]]:
        """Yield each entry with the row to insert, or the reason to refuse it."""
        for entry in entries:
            if entry.problem is None and self._product is None:
                self._product = products.detect(entry.value)
            # Django's dumpdata has rows of other models, too.
            fields = entry.value.get("fields")
            if self._product == "django" and isinstance(fields, dict) and "password" not in fields:
                continue
            try:
                row: Loaded | str = self._row(entry)
            except (InvalidRecord, UnusableHash) as error:
                row = str(error)
            yield entry, row

    def _row(self, entry: Entry) -> Loaded:
        if entry.problem:
            raise InvalidRecord(entry.problem)
        try:
            record = products.PRODUCTS[self._product or "latchkey"](entry.value, self.hash_config)
        except (InvalidRecord, UnusableHash):
            raise
        except _SHAPES as error:
            problem = f"is not a user as {self._product} exports it ({type(error).__name__}: {error})"
            raise InvalidRecord(problem) from None
        row = records.row(record, self.parts, self.choices)
        _check_storage(row)
        for key in records.keys(row):
            if (place := self._places.setdefault(key, entry.place)) != entry.place:
                raise InvalidRecord(_TWICE.format(place))
        return row

    def _owners_of_keys(self, rows: list[Loaded]) -> dict[str, str]:
        """Return the ids of existing users, by the keys that they share with rows."""
        identities = [identity for row in rows for identity in row["identities"]]
        with self.database.transaction() as tx:
            queries.begin_import(tx)
            owners = queries.find_taken_keys(
                tx,
                ids=[row["id"] for row in rows],
                addresses=_addresses(rows),
                providers=sorted({identity["provider"] for identity in identities}),
                subjects=[identity["subject"] for identity in identities],
                credential_ids=[each for row in rows for each in records.credential_ids(row)],
            )
        return {row.key: row.user_id for row in owners}

    def _insert(self, rows: list[Loaded]) -> dict[str, str | None]:
        """Return, by id, None for an inserted user, or the reason why Postgres refused it."""
        if self.is_dry_run or not rows:
            return {row["id"]: None for row in rows}
        try:
            with acts.begin(self.database) as act:
                queries.begin_import(act)
                queries.make_way(act, addresses=_addresses(rows))
                inserted = queries.import_users(act, users={"users": rows}, import_id=self._id)
                created = {row.id for row in inserted}
                factors = [factor for row in rows if row["id"] in created for factor in row["factors"]]
                queries.import_factors(act, factors={"factors": factors})
                api_keys = [key for row in rows if row["id"] in created for key in row["api_keys"]]
                queries.import_api_keys(act, api_keys={"api_keys": api_keys})
        except (psycopg2.DataError, psycopg2.IntegrityError, ProgramLimitExceeded) as error:
            if len(rows) == 1:
                # The error of an entry that is too long for an index names the constraint, too.
                is_taken = isinstance(error, UniqueViolation) and error.diag.constraint_name in _TAKEN
                return {rows[0]["id"]: _EXISTS if is_taken else error.diag.message_primary or "is refused"}
            # Halve the batch until the invalid row is isolated.
            middle = len(rows) // 2
            return self._insert(rows[:middle]) | self._insert(rows[middle:])
        return {row.id: None for row in inserted}

    def _outcome(
        self,
        entry: Entry,
        row: Loaded | str,
        problems: Mapping[str, str | None],
        owners: Mapping[str, str],
    ) -> ImportOutcome:
        if isinstance(row, str):
            addresses = [entry.value.get(name) for name in ("email", "user_email", "phone", "phoneNumber")]
            name = next((text for text in addresses if isinstance(text, str) and text), None)
            return ImportOutcome(entry.place, name, "refused", row)
        name = row["email"] or row["phone"] or row["id"]
        problem = problems.get(row["id"], _EXISTS)
        if problem is None:
            ways = records.ways_to_sign_in(row) if row["role"] == "admin" else None
            id = None if self.is_dry_run else row["id"]
            return ImportOutcome(entry.place, name, "created", user_id=id, signs_in_with=ways)
        if problem != _EXISTS:
            return ImportOutcome(entry.place, name, "refused", problem)
        user_id = next((owners[key] for key in records.keys(row) if key in owners), None)
        return ImportOutcome(entry.place, name, "exists", problem, user_id)


def _addresses(rows: list[Loaded]) -> list[str]:
    return [address for row in rows for address in (row["email"], row["phone"]) if address]


def _check_storage(row: Loaded) -> None:
    """Raise `InvalidRecord` for values that Postgres would refuse."""
    try:
        text = json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidRecord("contains text that is not valid Unicode") from None
    except RecursionError:
        raise InvalidRecord("contains an object that is nested too deeply") from None
    if rb"\u0000" in text:
        raise InvalidRecord("contains a null character")
    objects = [("user_metadata", row["user_metadata"]), ("app_metadata", row["app_metadata"])]
    objects += [("identities.identity_data", identity["identity_data"]) for identity in row["identities"]]
    for name, value in objects:
        content = json.dumps(value, ensure_ascii=False).encode()
        if len(content) > _MOST_METADATA:
            raise InvalidRecord(f"{name}: must be at most {_MOST_METADATA} bytes")
        try:
            json_bodies.decode(content)
        except json_bodies.InvalidJson as error:
            raise InvalidRecord(f"{name}: {str(error).removeprefix('the body ')}") from None
