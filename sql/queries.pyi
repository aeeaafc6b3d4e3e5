"""The types of the named statements. Written by `make queries`; do not edit."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sql import Runner

class InsertAddressedUser(NamedTuple):
    id: str

def insert_addressed_user(on: Runner, /, *, new_id: str | None, email: str | None, phone: str | None, password_hash: str | None, user_metadata: Any | None, app_metadata: Any | None, made_by: str | None, is_invited: bool | None, by_key: bool | None) -> InsertAddressedUser | None: ...

def take_over_unconfirmed(on: Runner, /, *, user_id: str | None, user_metadata: Any | None, is_invited: bool | None) -> int: ...

def request_email_change(on: Runner, /, *, user_id: str | None, new_email: str | None) -> int: ...

def renew_invitation(on: Runner, /, *, user_id: str | None, user_metadata: Any | None, app_metadata: Any | None) -> int: ...

def forget_sign_up(on: Runner, /, *, user_id: str | None) -> int: ...

def withdraw_email(on: Runner, /, *, user_id: str | None, target: str | None) -> int: ...

def withdraw_changes(on: Runner, /, *, user_id: str | None, purposes: Sequence[str | None] | None) -> int: ...

def remove_unproved(on: Runner, /, *, user_id: str | None, kind: str | None) -> int: ...

def set_address(on: Runner, /, *, user_id: str | None, kind: str | None, address: str | None, is_confirmed: bool | None, is_proved: bool | None, by_key: bool | None) -> int: ...

def set_password(on: Runner, /, *, user_id: str | None, password_hash: str | None, by_key: bool | None) -> int: ...

def make_way(on: Runner, /, *, addresses: Sequence[str | None] | None) -> int: ...

class SelectHolders(NamedTuple):
    ids: list[str]
    now: datetime

def select_holders(on: Runner, /, *, addresses: Sequence[str | None] | None) -> SelectHolders: ...

class CreateUser(NamedTuple):
    id: str

def create_user(on: Runner, /, *, id: str | None, email: str | None, phone: str | None, password_hash: str | None, role: str | None, user_metadata: Any | None, app_metadata: Any | None, email_confirmed_at: datetime | str | None, phone_confirmed_at: datetime | str | None, banned_until: datetime | str | None, is_vouched: bool | None, by_key: bool | None) -> CreateUser: ...

class SelectAnyUser(NamedTuple):
    user_object: str

def select_any_user(on: Runner, /, *, id: str | None) -> SelectAnyUser | None: ...

class SelectAddresses(NamedTuple):
    email: str | None
    phone: str | None

def select_addresses(on: Runner, /, *, id: str | None) -> SelectAddresses | None: ...

def set_confirmed_at(on: Runner, /, *, user_id: str | None, kind: str | None, confirmed_at: datetime | str | None) -> int: ...

def set_ban(on: Runner, /, *, id: str | None, banned_until: datetime | str | None) -> int: ...

def update_any_user(on: Runner, /, *, id: str | None, role: str | None, user_metadata: Any | None, app_metadata: Any | None, vouches_password: bool | None) -> int: ...

def end_refused_sessions(on: Runner, /, *, user_id: str | None, reason: str | None, reach: str | None, keys_up_to: str | None, with_grants: bool | None) -> int: ...

class SampleUsers(NamedTuple):
    total: int

def sample_users(on: Runner, /, *, q: str | None) -> SampleUsers: ...

class ListUsers(NamedTuple):
    users: str
    total: int

def list_users(on: Runner, /, *, email: str | None, role: str | None, q: str | None, is_anonymous: bool | None, sort: str | None, descending: bool | None, page_size: int | None, page_offset: int | None, most: int | None) -> ListUsers: ...

class FindUsers(NamedTuple):
    users: str
    total: int

def find_users(on: Runner, /, *, email: str | None, role: str | None, q: str | None, is_anonymous: bool | None, sort: str | None, descending: bool | None, page_size: int | None, page_offset: int | None) -> FindUsers: ...

class UseAdminKey(NamedTuple):
    name: str
    scopes: list[str]
    expires_at: datetime | None
    now: datetime

def use_admin_key(on: Runner, /, *, id: str | None, key_macs: Sequence[bytes | memoryview | None] | None) -> UseAdminKey | None: ...

class SelectAdminKey(NamedTuple):
    scopes: list[str]
    expires_at: datetime | None
    now: datetime

def select_admin_key(on: Runner, /, *, id: str | None) -> SelectAdminKey | None: ...

class ListAdminKeys(NamedTuple):
    id: str
    name: str
    scopes: list[str]
    expires_at: datetime | None
    created_at: str
    created_by: str | None
    last_used_on: str | None
    unused_since: datetime
    now: datetime

def list_admin_keys(on: Runner, /) -> list[ListAdminKeys]: ...

def lock_admin_keys(on: Runner, /) -> int: ...

class CountAdminKeys(NamedTuple):
    total: int

def count_admin_keys(on: Runner, /) -> CountAdminKeys: ...

def insert_admin_key(on: Runner, /, *, id: str | None, name: str | None, key_mac: bytes | memoryview | None, scopes: Sequence[str | None] | None, lifetime: int | None, created_by: str | None) -> int: ...

class DeleteAdminKey(NamedTuple):
    name: str

def delete_admin_key(on: Runner, /, *, id: str | None) -> DeleteAdminKey | None: ...

class SelectApiKeys(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    now: datetime
    method: str | None
    aal: str | None
    session_created_at: datetime | None
    refreshed_at: datetime | None
    ended_at: datetime | None
    first_passkey_at: datetime | None
    api_keys: str

def select_api_keys(on: Runner, /, *, caller_id: str | None, caller_session_id: str | None) -> SelectApiKeys | None: ...

class ListApiKeys(NamedTuple):
    api_keys: str

def list_api_keys(on: Runner, /, *, user_id: str | None) -> ListApiKeys: ...

class WriteApiKey(NamedTuple):
    object: Any

def write_api_key(on: Runner, /, *, id: str | None, user_id: str | None, session_id: str | None, aal: str | None, name: str | None, key_mac: bytes | memoryview | None, scopes: Sequence[str | None] | None, lifetime: int | None) -> WriteApiKey: ...

class CountApiKeys(NamedTuple):
    total: int
    live: int

def count_api_keys(on: Runner, /, *, user_id: str | None) -> CountApiKeys: ...

class RemoveApiKeys(NamedTuple):
    id: str
    name: str

def remove_api_keys(on: Runner, /, *, user_id: str | None, ids: Sequence[str | None] | None) -> list[RemoveApiKeys]: ...

class SelectApiKeyToUse(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    key_aal: str
    key_expires_at: datetime | None
    user_id: str
    api_key_id: str
    name: str
    scopes: list[str]
    refreshes: int
    counted_until: datetime
    is_used_today: bool
    user_object: str
    memberships: str
    now: datetime

def select_api_key_to_use(on: Runner, /, *, id: str | None, key_macs: Sequence[bytes | memoryview | None] | None) -> SelectApiKeyToUse | None: ...

def count_use_of_api_key(on: Runner, /, *, id: str | None, key_mac: bytes | memoryview | None, refreshes: int | None, counted_until: datetime | str | None) -> int: ...

def record_use_of_api_key(on: Runner, /, *, id: str | None) -> int: ...

class SelectOwnerOfApiKey(NamedTuple):
    user_id: str
    is_right: bool

def select_owner_of_api_key(on: Runner, /, *, id: str | None, key_macs: Sequence[bytes | memoryview | None] | None) -> SelectOwnerOfApiKey | None: ...

class SelectApiKey(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    now: datetime
    key_aal: str
    key_expires_at: datetime | None
    user_id: str
    scopes: list[str]
    created_at: int
    expires_at: int | None

def select_api_key(on: Runner, /, *, id: str | None, key_macs: Sequence[bytes | memoryview | None] | None) -> SelectApiKey | None: ...

class SelectUserOfApiKey(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    now: datetime
    key_aal: str | None
    key_expires_at: datetime | None
    user_object: str
    memberships: str

def select_user_of_api_key(on: Runner, /, *, user_id: str | None, api_key_id: str | None) -> SelectUserOfApiKey | None: ...

class RecordRefusal(NamedTuple):
    recorded: str

def record_refusal(on: Runner, /, *, user_id: str | None, address: str | None, token_hash: bytes | memoryview | None, action: str | None, reason: str | None, details: Any | None) -> RecordRefusal | None: ...

def record_acts(on: Runner, /, *, user_id: str | None, email: str | None, acts: Sequence[str | None] | None, events: Sequence[str | None] | None, details: Any | None) -> int: ...

class ListAudit(NamedTuple):
    entries: str

def list_audit(on: Runner, /, *, subject: str | None, action: str | None, since: datetime | str | None, until: datetime | str | None, request_id: str | None, organization: str | None, page_size: int | None, page_offset: int | None) -> ListAudit: ...

class TakeMinuteOfAudit(NamedTuple):
    entries: str

def take_minute_of_audit(on: Runner, /) -> TakeMinuteOfAudit | None: ...

class ListActivity(NamedTuple):
    entries: str

def list_activity(on: Runner, /, *, user_id: str | None, most: int | None) -> ListActivity: ...

class CountAudit(NamedTuple):
    total: int

def count_audit(on: Runner, /, *, subject: str | None, action: str | None, since: datetime | str | None, until: datetime | str | None, request_id: str | None, organization: str | None, most: int | None) -> CountAudit: ...

class SearchAudit(NamedTuple):
    id: str
    at: str
    kind: str
    name: str
    reason: str | None
    count: int  # type: ignore[assignment]
    user_id: str | None
    actor: str
    actor_id: str | None
    ip: str
    user_agent: str
    request_id: str
    details: Any
    address: str | None
    actor_address: str | None
    has_actor: bool
    has_user: bool

def search_audit(on: Runner, /, *, first_subject: str | None, first_done_by: str | None, first_action: str | None, first_request_id: str | None, first_organization: str | None, subject: str | None, done_by: str | None, action: str | None, organization: str | None, since: datetime | str | None, until: datetime | str | None, before_at: datetime | str | None, before_id: str | None, reach: int | None, most: int | None) -> list[SearchAudit]: ...

class SelectReachOfAudit(NamedTuple):
    at: str
    id: str

def select_reach_of_audit(on: Runner, /, *, first_subject: str | None, first_done_by: str | None, first_action: str | None, first_request_id: str | None, first_organization: str | None, since: datetime | str | None, until: datetime | str | None, before_at: datetime | str | None, before_id: str | None, reach: int | None) -> SelectReachOfAudit | None: ...

class ListAuditActions(NamedTuple):
    action: str

def list_audit_actions(on: Runner, /) -> list[ListAuditActions]: ...

class ListOrganizationsCalled(NamedTuple):
    id: str
    slug: str
    name: str
    created_at: str
    has_slug: bool

def list_organizations_called(on: Runner, /, *, text: str | None, lower_text: str | None, most: int | None) -> list[ListOrganizationsCalled]: ...

def write_authorization_code(on: Runner, /, *, user_id: str | None, code_hash: bytes | memoryview | None, code_challenge: str | None, method: str | None, authorization_code_lifetime: int | None, opened_by: str | None, authenticated_at: datetime | str | None, provider: str | None, provider_term: str | None, by_key: bool | None, network: str | None) -> int: ...

class SelectAuthorizationCode(NamedTuple):
    user_id: str
    code_challenge: str
    method: str
    session_id: str | None
    opened_by: str | None
    provider: str | None
    provider_term: str | None
    is_over: bool
    authenticated_at: datetime | None
    expires_at: datetime
    is_by_key: bool

def select_authorization_code(on: Runner, /, *, code_hash: bytes | memoryview | None) -> SelectAuthorizationCode | None: ...

def mark_authorization_code_used(on: Runner, /, *, code_hash: bytes | memoryview | None, session_id: str | None) -> int: ...

class ExportSnapshot(NamedTuple):
    snapshot: str
    created_at: str
    schema_version: int
    schema: str
    postgres: int

def export_snapshot(on: Runner, /) -> ExportSnapshot: ...

class ComposeCountOfRows(NamedTuple):
    statement: str

def compose_count_of_rows(on: Runner, /) -> ComposeCountOfRows: ...

class ComposeGrantsOfOperator(NamedTuple):
    statement: str

def compose_grants_of_operator(on: Runner, /, *, role: str | None, tables: Sequence[str | None] | None) -> ComposeGrantsOfOperator: ...

class SelectRestoreTarget(NamedTuple):
    name: str
    has_tables: bool
    is_replaceable: bool
    clients: int

def select_restore_target(on: Runner, /) -> SelectRestoreTarget: ...

class SelectPlace(NamedTuple):
    schema: str | None
    role: str
    expected: str

def select_place(on: Runner, /, *, expected: str | None) -> SelectPlace: ...

class SelectDatabase(NamedTuple):
    exists: bool

def select_database(on: Runner, /, *, name: str | None) -> SelectDatabase: ...

class TryLockRestore(NamedTuple):
    is_ours: bool

def try_lock_restore(on: Runner, /) -> TryLockRestore: ...

def void_restored(on: Runner, /, *, resend: bool | None) -> int: ...

def end_all_access(on: Runner, /, *, reason: str | None, reach: str | None, keys_up_to: str | None, with_grants: bool | None) -> int: ...

class ListSealedSecrets(NamedTuple):
    kind: str
    id: str
    secret: memoryview

def list_sealed_secrets(on: Runner, /) -> list[ListSealedSecrets]: ...

class CountStaleUserObjects(NamedTuple):
    total: int

def count_stale_user_objects(on: Runner, /) -> CountStaleUserObjects: ...

class ListDecidingUsers(NamedTuple):
    id: str
    name: str
    terms: Any

def list_deciding_users(on: Runner, /, *, after: str | None, most: int | None, with_sessions: bool | None) -> list[ListDecidingUsers]: ...

class ListDecidingMemberships(NamedTuple):
    id: str
    name: str
    terms: Any
    user_id: str
    organization_id: str

def list_deciding_memberships(on: Runner, /, *, after_user: str | None, after_organization: str | None, most: int | None) -> list[ListDecidingMemberships]: ...

class ListDecidingOrganizations(NamedTuple):
    id: str
    name: str
    terms: Any

def list_deciding_organizations(on: Runner, /) -> list[ListDecidingOrganizations]: ...

class ListDecidingInvitations(NamedTuple):
    id: str
    name: str
    terms: Any
    organization_id: str

def list_deciding_invitations(on: Runner, /) -> list[ListDecidingInvitations]: ...

class ListDecidingDomains(NamedTuple):
    id: str
    name: str
    terms: Any
    organization_id: str
    domain: str

def list_deciding_domains(on: Runner, /) -> list[ListDecidingDomains]: ...

class ListDecidingProviders(NamedTuple):
    id: str
    name: str
    organization_id: str | None
    terms: Any

def list_deciding_providers(on: Runner, /) -> list[ListDecidingProviders]: ...

class ListDecidingClients(NamedTuple):
    id: str
    name: str
    terms: Any

def list_deciding_clients(on: Runner, /) -> list[ListDecidingClients]: ...

class ListDecidingAdminKeys(NamedTuple):
    id: str
    name: str
    terms: Any

def list_deciding_admin_keys(on: Runner, /) -> list[ListDecidingAdminKeys]: ...

class ListDecidingWebhooks(NamedTuple):
    id: str
    name: str
    terms: Any

def list_deciding_webhooks(on: Runner, /) -> list[ListDecidingWebhooks]: ...

class ListDecidingOpenidKeys(NamedTuple):
    id: str
    name: str
    terms: Any

def list_deciding_openid_keys(on: Runner, /) -> list[ListDecidingOpenidKeys]: ...

def insert_browser_session(on: Runner, /, *, token_hash: bytes | memoryview | None, session_id: str | None) -> int: ...

def know_browser(on: Runner, /, *, session_id: str | None, browser: str | None) -> int: ...

class SelectBrowserSession(NamedTuple):
    session_id: str
    method: str
    aal: str
    session_created_at: datetime
    refreshed_at: datetime
    ended_at: datetime | None
    reauthenticated_at: datetime | None
    first_passkey_at: datetime | None
    opened_by: str | None
    amr: Any
    user_id: str
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    email: str | None
    phone: str | None
    name: str | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    now: datetime

def select_browser_session(on: Runner, /, *, token_hash: bytes | memoryview | None) -> SelectBrowserSession | None: ...

def keep_session(on: Runner, /, *, session_id: str | None) -> int: ...

class SelectEndOfBrowserSession(NamedTuple):
    reason: str | None

def select_end_of_browser_session(on: Runner, /, *, token_hash: bytes | memoryview | None) -> SelectEndOfBrowserSession | None: ...

class SelectIsCurrentCookie(NamedTuple):
    is_current: bool

def select_is_current_cookie(on: Runner, /, *, session_id: str | None, token_hash: bytes | memoryview | None) -> SelectIsCurrentCookie: ...

def expect_site(on: Runner, /, *, session_id: str | None, lifetime: int | None) -> int: ...

def meet_site(on: Runner, /, *, session_id: str | None) -> int: ...

class SelectOpener(NamedTuple):
    methods: Any
    factor_id: str | None
    provider_term: str | None

def select_opener(on: Runner, /, *, session_id: str | None) -> SelectOpener: ...

class SelectSecondSteps(NamedTuple):
    apps: Any
    keys: Any
    has_passkey: bool
    has_unused_passkey: bool
    recovery_codes: int

def select_second_steps(on: Runner, /, *, user_id: str | None, added_before: datetime | str | None) -> SelectSecondSteps: ...

def insert_spent_captcha(on: Runner, /, *, nonce: bytes | memoryview | None, expires_at: int | None) -> int: ...

class CountHours(NamedTuple):
    is_complete: bool

def count_hours(on: Runner, /) -> CountHours: ...

def count_active_users(on: Runner, /) -> int: ...

class ListDailyCounts(NamedTuple):
    day: str
    sign_ins: int
    sign_ups: int
    refused: int

def list_daily_counts(on: Runner, /, *, days: int | None) -> list[ListDailyCounts]: ...

class ListFailures(NamedTuple):
    name: str
    today: int
    before: int

def list_failures(on: Runner, /) -> list[ListFailures]: ...

class SelectHealth(NamedTuple):
    postgres: str
    schema_version: int
    delivered_at: str | None
    is_delivering: bool | None
    backed_up_at: str | None
    is_backed_up: bool | None
    counted_at: str | None
    waiting_messages: int
    waiting_events: int
    waiting_since: str | None
    is_late: bool | None
    failing_webhooks: int
    users: int
    is_counted_hourly: bool
    active_users: int | None

def select_health(on: Runner, /, *, most: int | None) -> SelectHealth: ...

class SearchClients(NamedTuple):
    id: str
    details: Any

def search_clients(on: Runner, /, *, before_at: datetime | str | None, before_id: str | None, most: int | None, counted: int | None, searched: int | None) -> list[SearchClients]: ...

class SelectClientUse(NamedTuple):
    grants: int
    last_used_at: str | None

def select_client_use(on: Runner, /, *, id: str | None, counted: int | None, searched: int | None) -> SelectClientUse: ...

class SearchClientGrants(NamedTuple):
    id: str
    user_id: str
    address: str
    is_administrator: bool
    details: Any

def search_client_grants(on: Runner, /, *, client_id: str | None, before_at: datetime | str | None, before_id: str | None, most: int | None) -> list[SearchClientGrants]: ...

class ListGrantsOfUser(NamedTuple):
    id: str
    name: str
    scopes: list[str]
    granted_at: str
    last_used_at: str

def list_grants_of_user(on: Runner, /, *, user_id: str | None, most: int | None) -> list[ListGrantsOfUser]: ...

class SelectGrantOfUser(NamedTuple):
    id: str
    name: str
    sessions: int

def select_grant_of_user(on: Runner, /, *, user_id: str | None, client_id: str | None) -> SelectGrantOfUser | None: ...

class ListMentions(NamedTuple):
    kind: str
    id: str
    name: str | None
    organization_id: str | None
    organization: str | None
    is_present: bool

def list_mentions(on: Runner, /, *, providers: Sequence[str | None] | None, organizations: Sequence[str | None] | None) -> list[ListMentions]: ...

class ListProvidersCalled(NamedTuple):
    id: str
    identifier: str
    name: str
    slug: str | None
    rank: int

def list_providers_called(on: Runner, /, *, text: str | None, lower_text: str | None, identifier: str | None, most: int | None) -> list[ListProvidersCalled]: ...

class ListEntriesOfProvider(NamedTuple):
    name: str
    at: str
    actor: str
    actor_id: str | None
    details: Any
    actor_address: str | None
    has_actor: bool

def list_entries_of_provider(on: Runner, /, *, id: str | None) -> list[ListEntriesOfProvider]: ...

class CountOpenedByProvider(NamedTuple):
    sessions: int
    of_applications: int
    api_keys: int
    members: int
    has_more: bool

def count_opened_by_provider(on: Runner, /, *, id: str | None, reach: int | None) -> CountOpenedByProvider | None: ...

class CountUnendedOfProvider(NamedTuple):
    sessions_left: int
    api_keys_left: int

def count_unended_of_provider(on: Runner, /, *, id: str | None, reach: int | None) -> CountUnendedOfProvider | None: ...

class SelectRequirementOfProvider(NamedTuple):
    needs_own_provider: bool
    has_another: bool

def select_requirement_of_provider(on: Runner, /, *, id: str | None) -> SelectRequirementOfProvider | None: ...

class ListRequirementsOnMember(NamedTuple):
    id: str
    slug: str
    name: str
    level: str
    needs_own_provider: bool
    max_age: int | None
    has_factor: bool
    own: list[str]
    on: list[str]
    off: list[str]

def list_requirements_on_member(on: Runner, /, *, user_id: str | None) -> list[ListRequirementsOnMember]: ...

class SelectUserFacts(NamedTuple):
    user_metadata: Any
    app_metadata: Any
    invited_at: str | None
    invitation_lasts: int | None
    identities: Any
    factors: Any

def select_user_facts(on: Runner, /, *, id: str | None) -> SelectUserFacts | None: ...

class ListAnySessions(NamedTuple):
    id: str
    ip: str
    user_agent: str
    aal: str
    is_of_client: bool
    provider: str | None
    created_at: str
    refreshed_at: str

def list_any_sessions(on: Runner, /, *, user_id: str | None, most: int | None) -> list[ListAnySessions]: ...

class SelectAnySession(NamedTuple):
    id: str
    user_id: str
    user_agent: str
    refreshed_at: str
    opened: int

def select_any_session(on: Runner, /, *, user_id: str | None, id: str | None) -> SelectAnySession | None: ...

class ListMessagesOf(NamedTuple):
    id: str
    kind: str
    recipient: str
    created_at: str
    outcome: str
    last_error: str | None
    response: str | None

def list_messages_of(on: Runner, /, *, user_id: str | None, most: int | None) -> list[ListMessagesOf]: ...

class SelectEffects(NamedTuple):
    id: str
    role: str
    email: str | None
    new_email: str | None
    phone: str | None
    new_phone: str | None
    user_metadata: Any
    app_metadata: Any
    banned_until: str | None
    sessions: int
    client_sessions: int
    links: int
    identities: int
    api_keys: int
    factors: int

def select_effects(on: Runner, /, *, id: str | None) -> SelectEffects | None: ...

def bound_search(on: Runner, /, *, seconds: float | None, in_order: bool | None) -> int: ...

class SplitWords(NamedTuple):
    rare: str | None
    common: str | None

def split_words(on: Runner, /, *, search: str | None) -> SplitWords: ...

class FewUsers(NamedTuple):
    ids: list[str] | None

def few_users(on: Runner, /, *, filters: Any | None, few: int | None) -> FewUsers: ...

class FewUsersOfProvider(NamedTuple):
    ids: list[str] | None

def few_users_of_provider(on: Runner, /, *, filters: Any | None, few: int | None) -> FewUsersOfProvider | None: ...

class FewUsersWithFactor(NamedTuple):
    ids: list[str]

def few_users_with_factor(on: Runner, /, *, filters: Any | None, few: int | None) -> FewUsersWithFactor | None: ...

class FewLockedUsers(NamedTuple):
    ids: list[str] | None

def few_locked_users(on: Runner, /, *, filters: Any | None, few: int | None) -> FewLockedUsers | None: ...

class FewUsersBySignIn(NamedTuple):
    ids: list[str]

def few_users_by_sign_in(on: Runner, /, *, filters: Any | None, few: int | None) -> FewUsersBySignIn | None: ...

class SearchUsers(NamedTuple):
    id: str
    place: str

def search_users(on: Runner, /, *, filters: Any | None, among: Sequence[str | None] | None, sort: str | None, place: str | None, id: str | None, page_size: int | None) -> list[SearchUsers]: ...

class EstimateUsers(NamedTuple):
    total: int

def estimate_users(on: Runner, /) -> EstimateUsers: ...

class DescribeUsers(NamedTuple):
    id: str
    email: str | None
    phone: str | None
    name: str | None
    role: str
    is_anonymous: bool
    is_confirmed: bool
    is_invited: bool
    invitation_lasts: int | None
    is_banned: bool
    is_locked: bool
    has_factor: bool
    providers: list[str]
    created_at: str
    last_sign_in_at: str | None

def describe_users(on: Runner, /, *, ids: Sequence[str | None] | None, locks: Any | None) -> list[DescribeUsers]: ...

class ListUserIds(NamedTuple):
    id: str

def list_user_ids(on: Runner, /, *, filters: Any | None, after: str | None, most: int | None) -> list[ListUserIds]: ...

def record_export(on: Runner, /, *, filters: Any | None) -> int: ...

class SelectChosen(NamedTuple):
    ids: list[str]
    names: list[str]
    changeable: int
    sessions: int
    api_keys: int

def select_chosen(on: Runner, /, *, ids: Sequence[str | None] | None) -> SelectChosen: ...

class CreateBulkAct(NamedTuple):
    id: str

def create_bulk_act(on: Runner, /, *, user_id: str | None, act: str | None, targets: Sequence[str | None] | None, options: Any | None) -> CreateBulkAct: ...

class SelectBulkAct(NamedTuple):
    id: str
    act: str
    targets: list[str]
    options: Any
    position: int
    refused: Any

def select_bulk_act(on: Runner, /, *, id: str | None, user_id: str | None) -> SelectBulkAct | None: ...

def advance_bulk_act(on: Runner, /, *, id: str | None, position: int | None, refusal: Any | None) -> int: ...

class ListGroups(NamedTuple):
    groups: list[str]

def list_groups(on: Runner, /, *, most_users: int | None, most: int | None) -> ListGroups: ...

class SelectServer(NamedTuple):
    encoding: str
    is_read_only: bool
    role: str
    free_connections: int
    clock: float
    address: str | None

def select_server(on: Runner, /) -> SelectServer: ...

class SelectCollation(NamedTuple):
    recorded: str | None
    actual: str | None
    remedy: str

def select_collation(on: Runner, /) -> SelectCollation: ...

def touch_users_and_sessions(on: Runner, /) -> int: ...

class ListBlockers(NamedTuple):
    pid: int
    remedy: str
    application: str | None
    role: str
    seconds: int | None
    query: str | None
    waiting: int
    longest: int
    waiting_query: str | None

def list_blockers(on: Runner, /) -> list[ListBlockers]: ...

class SelectRole(NamedTuple):
    name: str
    owns_tables: bool
    may_create: bool
    remedy: str

def select_role(on: Runner, /) -> SelectRole: ...

class SelectSchemaVersion(NamedTuple):
    version: int
    usable_from: int

def select_schema_version(on: Runner, /) -> SelectSchemaVersion | None: ...

class ListKeyAges(NamedTuple):
    setting: str
    days: int

def list_key_ages(on: Runner, /) -> list[ListKeyAges]: ...

def record_done(on: Runner, /, *, task: str | None) -> int: ...

class SelectLastDone(NamedTuple):
    seconds_ago: int

def select_last_done(on: Runner, /, *, task: str | None) -> SelectLastDone | None: ...

class SelectLateMessages(NamedTuple):
    total: int
    oldest: int | None
    reason: str | None

def select_late_messages(on: Runner, /, *, late: int | None) -> SelectLateMessages: ...

class CountOutcomesOfADay(NamedTuple):
    failed: int
    total: int
    reason: str | None

def count_outcomes_of_a_day(on: Runner, /) -> CountOutcomesOfADay: ...

class ListFailingWebhooks(NamedTuple):
    id: str
    origin: str
    disabled_reason: str | None
    days: int

def list_failing_webhooks(on: Runner, /, *, failing: int | None) -> list[ListFailingWebhooks]: ...

def create_probe(on: Runner, /, *, token_hash: bytes | memoryview | None, lifetime: int | None) -> int: ...

def answer_probe(on: Runner, /, *, token_hash: bytes | memoryview | None, request: Any | None) -> int: ...

class TakeProbe(NamedTuple):
    request: Any

def take_probe(on: Runner, /, *, token_hash: bytes | memoryview | None) -> TakeProbe: ...

def record_mail_proof(on: Runner, /, *, user_id: str | None, network: str | None) -> int: ...

def forget_mail_proofs(on: Runner, /, *, user_id: str | None) -> int: ...

class CountVerifiedFactors(NamedTuple):
    enrolled: int
    total: int
    names: list[str] | None

def count_verified_factors(on: Runner, /, *, user_id: str | None) -> CountVerifiedFactors: ...

def insert_factor(on: Runner, /, *, id: str | None, user_id: str | None, factor_type: str | None, friendly_name: str | None, secret: bytes | memoryview | None, by_key: bool | None) -> int: ...

class SelectFactor(NamedTuple):
    id: str
    factor_type: str
    friendly_name: str
    is_verified: bool
    secret: memoryview | None
    last_step: int | None
    created_at: datetime
    is_begun_here: bool
    now: datetime

def select_factor(on: Runner, /, *, id: str | None, user_id: str | None, session_id: str | None) -> SelectFactor | None: ...

class ListTotpFactors(NamedTuple):
    id: str
    factor_type: str
    friendly_name: str
    is_verified: bool
    secret: memoryview
    last_step: int | None
    now: datetime

def list_totp_factors(on: Runner, /, *, user_id: str | None, verified_before: datetime | str | None) -> list[ListTotpFactors]: ...

def forget_factors(on: Runner, /, *, user_id: str | None) -> int: ...

def try_challenge(on: Runner, /, *, id: str | None, user_id: str | None, session_id: str | None, factor_id: str | None) -> int: ...

class SelectChallenge(NamedTuple):
    is_open: bool

def select_challenge(on: Runner, /, *, id: str | None, user_id: str | None, session_id: str | None, factor_id: str | None) -> SelectChallenge: ...

def delete_challenge(on: Runner, /, *, id: str | None) -> int: ...

def use_totp_step(on: Runner, /, *, id: str | None, step: int | None) -> int: ...

def activate_factor(on: Runner, /, *, id: str | None, user_id: str | None, credential_id: bytes | memoryview | None, public_key: bytes | memoryview | None, sign_count: int | None, transports: Sequence[str | None] | None, aaguid: str | None, backup_eligible: bool | None, backed_up: bool | None, by_key: bool | None) -> int: ...

class RenameFactor(NamedTuple):
    factor_type: str
    friendly_name: str
    old_name: str
    object: str

def rename_factor(on: Runner, /, *, id: str | None, user_id: str | None, friendly_name: str | None) -> RenameFactor | None: ...

class ListFactorsById(NamedTuple):
    id: str
    user_id: str
    factor_type: str
    friendly_name: str

def list_factors_by_id(on: Runner, /, *, user_id: str | None, ids: Sequence[str | None] | None) -> list[ListFactorsById]: ...

class ListFactorsAndPasskeys(NamedTuple):
    id: str
    factor_type: str

def list_factors_and_passkeys(on: Runner, /, *, user_id: str | None) -> list[ListFactorsAndPasskeys]: ...

def remove_factors(on: Runner, /, *, user_id: str | None, ids: Sequence[str | None] | None, verified_before: datetime | str | None, kept_until: datetime | str | None) -> int: ...

class ListFactors(NamedTuple):
    id: str
    factors: str

def list_factors(on: Runner, /, *, user_id: str | None) -> ListFactors | None: ...

class SelectHasRecoveryCodes(NamedTuple):
    has_codes: bool

def select_has_recovery_codes(on: Runner, /, *, user_id: str | None) -> SelectHasRecoveryCodes: ...

class ReplaceRecoveryCodes(NamedTuple):
    friendly_name: str
    replaced: bool

def replace_recovery_codes(on: Runner, /, *, user_id: str | None, code_macs: Sequence[bytes | memoryview | None] | None, friendly_name: str | None, by_key: bool | None) -> ReplaceRecoveryCodes: ...

def delete_recovery_codes(on: Runner, /, *, user_id: str | None) -> int: ...

class SelectRecoveryCode(NamedTuple):
    code_mac: memoryview

def select_recovery_code(on: Runner, /, *, user_id: str | None, code_macs: Sequence[bytes | memoryview | None] | None, made_before: datetime | str | None) -> SelectRecoveryCode | None: ...

class UseRecoveryCode(NamedTuple):
    remaining: int

def use_recovery_code(on: Runner, /, *, user_id: str | None, code_mac: bytes | memoryview | None) -> UseRecoveryCode | None: ...

class SelectRecoveryCodes(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    now: datetime
    method: str | None
    aal: str | None
    session_created_at: datetime | None
    refreshed_at: datetime | None
    ended_at: datetime | None
    first_passkey_at: datetime | None
    total: int
    remaining: int

def select_recovery_codes(on: Runner, /, *, caller_id: str | None, caller_session_id: str | None) -> SelectRecoveryCodes | None: ...

class SelectToken(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    aal: str | None
    methods: Any
    authenticated_at: datetime | None
    user_object: str
    memberships: str
    now: datetime

def select_token(on: Runner, /, *, user_id: str | None, session_id: str | None) -> SelectToken | None: ...

class SelectDeciding(NamedTuple):
    id: str
    role: str
    email: str | None
    email_confirmed_at: datetime | None
    phone: str | None
    phone_confirmed_at: datetime | None
    app_metadata: Any
    banned_until: datetime | None
    made_by: str
    converted_at: datetime | None
    created_at: datetime
    providers: list[str]
    factors: Any
    memberships: Any
    session_id: str | None
    aal: str | None
    ended_at: datetime | None
    factor_id: str | None
    amr: Any
    now: datetime

def select_deciding(on: Runner, /, *, user_id: str | None, session_id: str | None) -> SelectDeciding | None: ...

class BoundHook(NamedTuple):
    timeout: str

def bound_hook(on: Runner, /) -> BoundHook: ...

class SelectFunction(NamedTuple):
    remedy: str
    is_allowed: bool | None

def select_function(on: Runner, /, *, schema: str | None, name: str | None) -> SelectFunction: ...

class ListIdentityProviders(NamedTuple):
    id: str
    identifier: str
    name: str
    enabled: bool
    domains: list[str]
    users: int
    created_at: str
    provider_object: str
    is_blocked: bool
    organization_id: str | None
    organization: str | None

def list_identity_providers(on: Runner, /, *, after: datetime | str | None, after_id: str | None, most: int | None) -> list[ListIdentityProviders]: ...

class SelectIdentityProvider(NamedTuple):
    id: str
    identifier: str
    name: str
    issuer: str
    discovery_url: str
    client_id: str
    client_secret: memoryview
    acceptable_client_ids: list[str]
    scopes: list[str]
    authorization_params: Any
    attribute_mapping: Any
    custom_claims_allowlist: list[str]
    enabled: bool
    domains: list[str]
    organization_id: str | None
    is_blocked: bool
    tried_at: datetime | None
    member_role: str | None
    version: str
    provider_object: str
    has_domain_by_command: bool

def select_identity_provider(on: Runner, /, *, identifier: str | None, id: str | None) -> SelectIdentityProvider | None: ...

class ListAllProviders(NamedTuple):
    id: str
    name: str
    issuer: str
    enabled: bool
    organization_id: str | None
    slug: str | None
    is_required: bool
    has_domain_by_command: bool

def list_all_providers(on: Runner, /) -> list[ListAllProviders]: ...

def begin_term(on: Runner, /, *, id: str | None) -> int: ...

class SelectProviderOfDomain(NamedTuple):
    identifier: str
    issuer: str
    enabled: bool
    organization_id: str | None
    has_domain_by_command: bool

def select_provider_of_domain(on: Runner, /, *, domain: str | None) -> SelectProviderOfDomain | None: ...

class SelectProviderName(NamedTuple):
    name: str

def select_provider_name(on: Runner, /, *, id: str | None) -> SelectProviderName | None: ...

def insert_identity_provider(on: Runner, /, *, id: str | None, identifier: str | None, name: str | None, issuer: str | None, discovery_url: str | None, client_id: str | None, client_secret: bytes | memoryview | None, acceptable_client_ids: Sequence[str | None] | None, scopes: Sequence[str | None] | None, authorization_params: Any | None, attribute_mapping: Any | None, custom_claims_allowlist: Sequence[str | None] | None, enabled: bool | None, organization_id: str | None, member_role: str | None, is_blocked: bool | None, session_id: str | None) -> int: ...

class SelectProviderFacts(NamedTuple):
    identifier: str
    issuer: str
    enabled: bool
    version: str
    domains: list[str]
    organization_id: str | None
    is_blocked: bool
    tried_at: datetime | None
    has_domain_by_command: bool
    has_identities: bool
    now: datetime

def select_provider_facts(on: Runner, /, *, id: str | None) -> SelectProviderFacts | None: ...

class SelectHasAdministrators(NamedTuple):
    has_administrators: bool

def select_has_administrators(on: Runner, /, *, id: str | None) -> SelectHasAdministrators: ...

class SelectProviderOfIssuer(NamedTuple):
    enabled: bool
    is_blocked: bool
    domains: list[str]
    organization_id: str | None
    member_role: str | None
    term: str
    is_by_key: bool

def select_provider_of_issuer(on: Runner, /, *, id: str | None, issuer: str | None) -> SelectProviderOfIssuer | None: ...

def update_identity_provider(on: Runner, /, *, id: str | None, name: str | None, issuer: str | None, discovery_url: str | None, client_id: str | None, client_secret: bytes | memoryview | None, acceptable_client_ids: Sequence[str | None] | None, scopes: Sequence[str | None] | None, authorization_params: Any | None, attribute_mapping: Any | None, custom_claims_allowlist: Sequence[str | None] | None, enabled: bool | None, is_blocked: bool | None, tried_at: datetime | str | None, member_role: str | None, session_id: str | None) -> int: ...

def remove_domains_of_provider(on: Runner, /, *, id: str | None, domains: Sequence[str | None] | None) -> int: ...

def add_domains_of_provider(on: Runner, /, *, id: str | None, domains: Sequence[str | None] | None) -> int: ...

def delete_flows_of_provider(on: Runner, /, *, id: str | None) -> int: ...

def delete_adoptions_of_provider(on: Runner, /, *, id: str | None) -> int: ...

def remove_users_of_provider(on: Runner, /, *, id: str | None, batch: int | None) -> int: ...

def delete_identity_provider(on: Runner, /, *, id: str | None) -> int: ...

def adopt_user(on: Runner, /, *, user_id: str | None, provider_id: str | None) -> int: ...

def spend_adoption(on: Runner, /, *, user_id: str | None, provider_id: str | None) -> int: ...

class ListSealedProviders(NamedTuple):
    id: str
    sealed: memoryview

def list_sealed_providers(on: Runner, /, *, newest: bytes | memoryview | None, after: str | None, batch: int | None) -> list[ListSealedProviders]: ...

def reseal_provider(on: Runner, /, *, id: str | None, old: bytes | memoryview | None, sealed: bytes | memoryview | None) -> int: ...

class CountUsersOfProvider(NamedTuple):
    total: int

def count_users_of_provider(on: Runner, /, *, id: str | None) -> CountUsersOfProvider: ...

def end_opened_by_provider(on: Runner, /, *, user_id: str | None, provider_id: str | None, reason: str | None) -> int: ...

def end_what_is_over(on: Runner, /, *, batch: int | None, reason: str | None) -> int: ...

class SelectProviderOfUser(NamedTuple):
    id: str
    identifier: str
    name: str
    issuer: str
    domain: str
    enabled: bool
    organization_id: str | None
    has_domain_by_command: bool
    is_linked: bool
    is_adopted: bool
    joins: str | None

def select_provider_of_user(on: Runner, /, *, user_id: str | None) -> SelectProviderOfUser | None: ...

class TryLockJanitor(NamedTuple):
    is_ours: bool

def try_lock_janitor(on: Runner, /) -> TryLockJanitor: ...

def delete_expired_request_counts(on: Runner, /, *, batch: int | None) -> int: ...

def delete_expired_failure_counts(on: Runner, /, *, batch: int | None) -> int: ...

def delete_expired_one_time_tokens(on: Runner, /, *, batch: int | None) -> int: ...

def delete_expired_typed_addresses(on: Runner, /, *, batch: int | None) -> int: ...

def delete_expired_authorization_codes(on: Runner, /, *, batch: int | None) -> int: ...

def delete_expired_oauth_flows(on: Runner, /, *, batch: int | None) -> int: ...

def delete_expired_oauth_requests(on: Runner, /, *, batch: int | None) -> int: ...

def delete_unallowed_clients(on: Runner, /, *, batch: int | None) -> int: ...

def forget_previous_secrets(on: Runner, /) -> int: ...

def delete_expired_api_keys(on: Runner, /, *, batch: int | None) -> int: ...

def delete_expired_factor_challenges(on: Runner, /, *, batch: int | None) -> int: ...

def delete_unverified_factors(on: Runner, /, *, batch: int | None) -> int: ...

def delete_unused_passkeys(on: Runner, /, *, batch: int | None) -> int: ...

def delete_expired_id_tokens(on: Runner, /, *, batch: int | None) -> int: ...

def delete_expired_captchas(on: Runner, /, *, batch: int | None) -> int: ...

def delete_old_sessions(on: Runner, /, *, batch: int | None) -> int: ...

def delete_expired_sessions(on: Runner, /, *, batch: int | None) -> int: ...

def delete_old_messages(on: Runner, /, *, batch: int | None) -> int: ...

def delete_old_bulk_acts(on: Runner, /, *, batch: int | None) -> int: ...

def delete_old_networks(on: Runner, /, *, batch: int | None) -> int: ...

def delete_old_audit_rows(on: Runner, /, *, batch: int | None) -> int: ...

def delete_anonymous_users(on: Runner, /, *, batch: int | None) -> int: ...

def delete_unused_users(on: Runner, /, *, batch: int | None) -> int: ...

class CountNeedsOfSecret(NamedTuple):
    what: str
    rows: int

def count_needs_of_secret(on: Runner, /, *, key_ids: Sequence[bytes | memoryview | None] | None, used_from: float | None, used_until: float | None) -> list[CountNeedsOfSecret]: ...

class ListSealedFactors(NamedTuple):
    id: str
    sealed: memoryview

def list_sealed_factors(on: Runner, /, *, newest: bytes | memoryview | None, after: str | None, batch: int | None) -> list[ListSealedFactors]: ...

def reseal_factor(on: Runner, /, *, id: str | None, old: bytes | memoryview | None, sealed: bytes | memoryview | None) -> int: ...

class ListSealedRemovedFactors(NamedTuple):
    id: str
    sealed: memoryview

def list_sealed_removed_factors(on: Runner, /, *, newest: bytes | memoryview | None, after: str | None, batch: int | None) -> list[ListSealedRemovedFactors]: ...

def reseal_removed_factor(on: Runner, /, *, id: str | None, old: bytes | memoryview | None, sealed: bytes | memoryview | None) -> int: ...

class CountSessionsOfOldKeys(NamedTuple):
    total: int

def count_sessions_of_old_keys(on: Runner, /, *, user_id: str | None, used_since: float | None) -> CountSessionsOfOldKeys: ...

class CountRequest(NamedTuple):
    count: int  # type: ignore[assignment]
    seconds_left: float

def count_request(on: Runner, /, *, key: str | None, amount: int | None, seconds: int | None) -> CountRequest: ...

class SelectRequestCount(NamedTuple):
    count: int  # type: ignore[assignment]
    seconds_left: float

def select_request_count(on: Runner, /, *, key: str | None) -> SelectRequestCount | None: ...

class ListKnownNetworks(NamedTuple):
    network: str
    passed_at: datetime | None
    mail_proved_at: datetime | None
    now: datetime

def list_known_networks(on: Runner, /, *, user_id: str | None) -> list[ListKnownNetworks]: ...

class RecordVerdict(NamedTuple):
    refused_by: str | None
    refused_for: float | None
    count: int | None  # type: ignore[assignment]
    seconds_left: float | None

def record_verdict(on: Runner, /, *, kinds: Sequence[str | None] | None, subjects: Sequence[str | None] | None, networks: Sequence[str | None] | None, amounts: Sequence[int | None] | None, seconds: Sequence[int | None] | None, tries: int | None, is_right: bool | None) -> RecordVerdict: ...

class SelectCredentials(NamedTuple):
    user_id: str | None
    password_hash: str | None
    networks: Any
    counts: Any
    now: datetime

def select_credentials(on: Runner, /, *, email: str | None, phone: str | None, network: str | None) -> SelectCredentials: ...

def clear_failures(on: Runner, /, *, user_id: str | None) -> int: ...

def lock_users(on: Runner, /, *, ids: Sequence[str | None] | None) -> int: ...

def share_client(on: Runner, /, *, id: str | None) -> int: ...

def lock_client(on: Runner, /, *, id: str | None) -> int: ...

def share_provider(on: Runner, /, *, id: str | None) -> int: ...

def lock_provider(on: Runner, /, *, id: str | None) -> int: ...

class LockAdministrators(NamedTuple):
    locked: bool

def lock_administrators(on: Runner, /) -> LockAdministrators: ...

def lock_organizations(on: Runner, /, *, ids: Sequence[str | None] | None) -> int: ...

def hold_session(on: Runner, /, *, session_id: str | None) -> int: ...

class LockSession(NamedTuple):
    session_id: str
    user_id: str
    is_of_client: bool
    resource: str | None
    method: str
    aal: str
    session_created_at: datetime
    refreshed_at: datetime
    ended_at: datetime | None
    first_passkey_at: datetime | None
    counter: int
    used_counter: int | None
    successor_counter: int | None
    refreshes: int
    counted_until: datetime
    echoes: Any
    is_same_client: bool
    amr: Any
    authenticated_at: datetime
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    user_object: str
    memberships: str
    now: datetime

def lock_session(on: Runner, /, *, session_id: str | None, ip: str | None, user_agent: str | None) -> LockSession | None: ...

class LockClientSession(NamedTuple):
    session_id: str
    user_id: str
    resource: str | None
    scopes: list[str]
    method: str
    aal: str
    session_created_at: datetime
    refreshed_at: datetime
    ended_at: datetime | None
    first_passkey_at: datetime | None
    counter: int
    used_counter: int | None
    successor_counter: int | None
    refreshes: int
    counted_until: datetime
    echoes: Any
    is_same_client: bool
    amr: Any
    auth_time: int | None
    client_id: str
    token_lifetime: int | None
    id_token_signed_response_alg: str
    grant_types: list[str]
    client_scopes: list[str]
    refreshes_tokens: bool
    token_endpoint_auth_method: str
    accepts_either_method: bool
    secret_hash: memoryview | None
    previous_secret_hash: memoryview | None
    previous_secret_expires_at: datetime | None
    allowed_roles: list[str]
    resources: list[str]
    is_dynamic: bool
    is_blocked: bool
    organization_id: str | None
    for_organization_id: str | None
    memberships: str
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    app_metadata: Any
    email_proved: bool
    phone_proved: bool
    oldest_factor_at: datetime | None
    has_second_step: bool
    user_object: str
    issued_at: int
    now: datetime

def lock_client_session(on: Runner, /, *, session_id: str | None, client_id: str | None, ip: str | None, user_agent: str | None) -> LockClientSession | None: ...

def lock_request(on: Runner, /, *, id: str | None) -> int: ...

class CountMessage(NamedTuple):
    is_proved: bool
    amount: int | None
    remaining: int | None
    resets_in: float | None
    of_network: int | None
    seconds_left: float | None

def count_message(on: Runner, /, *, address: str | None, windows: Any | None, site: str | None, channel: str | None, seconds: int | None) -> CountMessage: ...

class CountInTotal(NamedTuple):
    count: int  # type: ignore[assignment]
    seconds_left: float

def count_in_total(on: Runner, /, *, kind: str | None, seconds: int | None) -> CountInTotal: ...

class SelectWait(NamedTuple):
    seconds: float

def select_wait(on: Runner, /, *, windows: Any | None) -> SelectWait: ...

def write_token(on: Runner, /, *, token_id: str | None, user_id: str | None, purpose: str | None, target: str | None, token_hash: bytes | memoryview | None, link_lifetime: int | None, code_mac: bytes | memoryview | None, code_lifetime: int | None, redirect_to: str | None, code_challenge: str | None, session_id: str | None, password_hash: str | None, user_metadata: Any | None, user_agent: str | None, browser_hash: bytes | memoryview | None, ip: str | None, by_key: bool | None) -> int: ...

def write_message(on: Runner, /, *, message_id: str | None, user_id: str | None, kind: str | None, recipient: str | None, message_variables: Any | None, message_secret: bytes | memoryview | None, token_id: str | None, lifetime: int | None, longest_delay: float | None, is_notice: bool | None) -> int: ...

def join_notice(on: Runner, /, *, user_id: str | None, kind: str | None, recipient: str | None, change: Any | None) -> int: ...

def insert_oauth_flow(on: Runner, /, *, id: str | None, state_hash: bytes | memoryview | None, browser_hash: bytes | memoryview | None, provider: str | None, secrets: bytes | memoryview | None, redirect_to: str | None, code_challenge: str | None, user_id: str | None, session_id: str | None, lifetime: int | None) -> int: ...

class SelectLinkingFlow(NamedTuple):
    user_id: str
    session_id: str
    provider: str
    redirect_to: str | None
    code_challenge: str | None
    email: str | None
    phone: str | None
    known_by: str | None
    known_as: str | None

def select_linking_flow(on: Runner, /, *, state_hash: bytes | memoryview | None) -> SelectLinkingFlow | None: ...

class BindOauthFlow(NamedTuple):
    id: str
    secrets: memoryview

def bind_oauth_flow(on: Runner, /, *, state_hash: bytes | memoryview | None, browser_hash: bytes | memoryview | None, new_state_hash: bytes | memoryview | None) -> BindOauthFlow | None: ...

class SpendOauthFlow(NamedTuple):
    id: str
    provider: str
    secrets: memoryview
    redirect_to: str | None
    code_challenge: str | None
    user_id: str | None
    session_id: str | None
    created_at: datetime
    is_live: bool

def spend_oauth_flow(on: Runner, /, *, state_hash: bytes | memoryview | None, browser_hashes: Sequence[bytes | memoryview | None] | None) -> SpendOauthFlow | None: ...

class SelectOauthFlow(NamedTuple):
    redirect_to: str | None
    code_challenge: str | None

def select_oauth_flow(on: Runner, /, *, state_hash: bytes | memoryview | None) -> SelectOauthFlow | None: ...

def spend_id_token(on: Runner, /, *, token_hash: bytes | memoryview | None, expires_at: int | None) -> int: ...

class SelectSpentIdToken(NamedTuple):
    expires_at: datetime

def select_spent_id_token(on: Runner, /, *, token_hash: bytes | memoryview | None) -> SelectSpentIdToken | None: ...

class SelectOwnerOfIdentity(NamedTuple):
    user_id: str | None

def select_owner_of_identity(on: Runner, /, *, provider: str | None, subject: str | None, email: str | None) -> SelectOwnerOfIdentity: ...

class SelectIdentityOf(NamedTuple):
    is_by_key: bool

def select_identity_of(on: Runner, /, *, user_id: str | None, provider: str | None, subject: str | None) -> SelectIdentityOf | None: ...

def use_identity(on: Runner, /, *, user_id: str | None, provider: str | None, subject: str | None, identity_data: Any | None) -> int: ...

def insert_identity(on: Runner, /, *, user_id: str | None, provider: str | None, subject: str | None, identity_data: Any | None, last_sign_in_at: datetime | str | None, by_key: bool | None, is_first_proof: bool | None) -> int: ...

class RemoveIdentity(NamedTuple):
    created_at: datetime
    is_first_proof: bool

def remove_identity(on: Runner, /, *, user_id: str | None, provider: str | None) -> RemoveIdentity | None: ...

def create_user_by_identity(on: Runner, /, *, user_id: str | None, email: str | None, is_proved: bool | None, user_metadata: Any | None, provider: str | None, subject: str | None, identity_data: Any | None, by_key: bool | None) -> int: ...

def convert_by_identity(on: Runner, /, *, user_id: str | None, email: str | None, is_proved: bool | None, by_key: bool | None) -> int: ...

def add_email_of_identity(on: Runner, /, *, user_id: str | None, email: str | None) -> int: ...

class SelectRequest(NamedTuple):
    user_agent: str | None
    signed_up_at: str
    session_id: str | None
    is_by_key: bool
    own_password_hash: str | None

def select_request(on: Runner, /, *, user_id: str | None, purpose: str | None, browser_hash: bytes | memoryview | None) -> SelectRequest | None: ...

class ListUsersOfLink(NamedTuple):
    id: str

def list_users_of_link(on: Runner, /, *, token_hash: bytes | memoryview | None, id: str | None) -> list[ListUsersOfLink]: ...

class SelectLink(NamedTuple):
    id: str
    user_id: str
    purpose: str
    target: str
    created_at: datetime
    expires_at: datetime
    spent_at: datetime | None
    is_of_sign_up: bool
    newer: int
    code_expires_at: datetime | None
    browser_hash: memoryview | None
    was_mailed: bool
    is_by_key: bool
    is_over: bool
    redirect_to: str | None
    code_challenge: str | None
    session_id: str | None
    password_hash: str | None
    user_agent: str | None
    ip: str | None
    email: str | None
    phone: str | None
    asked_at: str
    signup_user_agent: str | None
    signup_ip: str | None
    signed_up_at: str
    now: datetime

def select_link(on: Runner, /, *, token_hash: bytes | memoryview | None, id: str | None) -> SelectLink | None: ...

class ListCodes(NamedTuple):
    id: str
    user_id: str
    purpose: str
    created_at: datetime
    expires_at: datetime
    spent_at: datetime | None
    is_of_sign_up: bool
    newer: int
    code_mac: memoryview
    code_expires_at: datetime | None
    browser_hash: memoryview | None
    now: datetime

def list_codes(on: Runner, /, *, target: str | None) -> list[ListCodes]: ...

def spend_link(on: Runner, /, *, id: str | None) -> int: ...

def unspend_link(on: Runner, /, *, id: str | None) -> int: ...

def delete_link(on: Runner, /, *, id: str | None) -> int: ...

def void_tokens(on: Runner, /, *, user_id: str | None) -> int: ...

def forget_password_of_link(on: Runner, /, *, id: str | None) -> int: ...

def take_data_of_link(on: Runner, /, *, user_id: str | None, id: str | None) -> int: ...

def write_client(on: Runner, /, *, id: str | None, name: str | None, uri: str | None, logo_uri: str | None, policy_uri: str | None, tos_uri: str | None, secret_hash: bytes | memoryview | None, token_endpoint_auth_method: str | None, accepts_either_method: bool | None, is_dynamic: bool | None, redirect_uris: Sequence[str | None] | None, post_logout_redirect_uris: Sequence[str | None] | None, grant_types: Sequence[str | None] | None, scopes: Sequence[str | None] | None, resources: Sequence[str | None] | None, allowed_roles: Sequence[str | None] | None, require_pkce: bool | None, skip_consent: bool | None, introspects_sessions: bool | None, token_lifetime: int | None, id_token_signed_response_alg: str | None, backchannel_logout_uri: str | None, is_blocked: bool | None, organization_id: str | None) -> int: ...

def delete_surplus_clients(on: Runner, /) -> int: ...

def keep_client_document(on: Runner, /, *, id: str | None, metadata_url: str | None, lifetime: int | None) -> int: ...

def replace_client_secret(on: Runner, /, *, id: str | None, secret_hash: bytes | memoryview | None, previous_secret_hash: bytes | memoryview | None, previous_secret_expires_at: datetime | str | None) -> int: ...

def end_previous_client_secret(on: Runner, /, *, id: str | None) -> int: ...

class SelectClient(NamedTuple):
    id: str
    name: str
    uri: str
    logo_uri: str
    policy_uri: str
    tos_uri: str
    secret_hash: memoryview | None
    previous_secret_hash: memoryview | None
    previous_secret_expires_at: datetime | None
    token_endpoint_auth_method: str
    accepts_either_method: bool
    is_dynamic: bool
    redirect_uris: list[str]
    post_logout_redirect_uris: list[str]
    grant_types: list[str]
    scopes: list[str]
    resources: list[str]
    allowed_roles: list[str]
    require_pkce: bool
    skip_consent: bool
    introspects_sessions: bool
    token_lifetime: int | None
    id_token_signed_response_alg: str
    backchannel_logout_uri: str
    is_blocked: bool
    organization_id: str | None
    metadata_url: str | None
    is_current: bool
    created_at: datetime
    updated_at: datetime
    issued_at: int
    now: datetime

def select_client(on: Runner, /, *, id: str | None) -> SelectClient | None: ...

class CountClients(NamedTuple):
    total: int

def count_clients(on: Runner, /) -> CountClients: ...

class ListClients(NamedTuple):
    id: str
    name: str
    uri: str
    logo_uri: str
    policy_uri: str
    tos_uri: str
    secret_hash: memoryview | None
    previous_secret_expires_at: datetime | None
    token_endpoint_auth_method: str
    accepts_either_method: bool
    is_dynamic: bool
    redirect_uris: list[str]
    post_logout_redirect_uris: list[str]
    grant_types: list[str]
    scopes: list[str]
    resources: list[str]
    allowed_roles: list[str]
    require_pkce: bool
    skip_consent: bool
    introspects_sessions: bool
    token_lifetime: int | None
    id_token_signed_response_alg: str
    backchannel_logout_uri: str
    is_blocked: bool
    organization_id: str | None
    metadata_url: str | None
    created_at: datetime
    updated_at: datetime

def list_clients(on: Runner, /, *, page_size: int | None, page_offset: int | None) -> list[ListClients]: ...

def delete_requests_to_other_uris(on: Runner, /, *, client_id: str | None, redirect_uris: Sequence[str | None] | None) -> int: ...

class HasGrants(NamedTuple):
    has_grants: bool

def has_grants(on: Runner, /, *, client_id: str | None) -> HasGrants: ...

class HasLostAccess(NamedTuple):
    has_lost_access: bool

def has_lost_access(on: Runner, /, *, client_id: str | None) -> HasLostAccess: ...

class EndLostAccess(NamedTuple):
    after: datetime
    after_id: str

def end_lost_access(on: Runner, /, *, client_id: str | None, after: datetime | str | None, after_id: str | None, size: int | None, reason: str | None, reach: str | None, keys_up_to: str | None, with_grants: bool | None) -> EndLostAccess | None: ...

def end_access_of_documents(on: Runner, /, *, batch: int | None, reason: str | None, reach: str | None, keys_up_to: str | None, with_grants: bool | None) -> int: ...

class ListUsersOfClient(NamedTuple):
    user_id: str

def list_users_of_client(on: Runner, /, *, client_id: str | None) -> list[ListUsersOfClient]: ...

class DeleteClient(NamedTuple):
    id: str
    name: str

def delete_client(on: Runner, /, *, id: str | None) -> DeleteClient | None: ...

def insert_device_request(on: Runner, /, *, client_id: str | None, code_hash: bytes | memoryview | None, user_code_mac: bytes | memoryview | None, scopes: Sequence[str | None] | None, resource: str | None, ip: str | None, user_agent: str | None, poll_interval: int | None, code_lifetime: int | None) -> int: ...

class FindDeviceCode(NamedTuple):
    id: str
    user_id: str | None

def find_device_code(on: Runner, /, *, code_hash: bytes | memoryview | None, client_id: str | None) -> FindDeviceCode | None: ...

class SelectPoll(NamedTuple):
    polled_at: datetime | None
    poll_interval: int
    decision: str | None
    code_expires_at: datetime
    has_session: bool
    now: datetime

def select_poll(on: Runner, /, *, id: str | None) -> SelectPoll | None: ...

def record_poll(on: Runner, /, *, id: str | None, poll_interval: int | None) -> int: ...

class SelectUserCode(NamedTuple):
    id: str
    session_id: str | None
    decision: str | None
    code_expires_at: datetime
    now: datetime

def select_user_code(on: Runner, /, *, macs: Sequence[bytes | memoryview | None] | None) -> SelectUserCode | None: ...

class FindDeviceRequest(NamedTuple):
    client_id: str

def find_device_request(on: Runner, /, *, id: str | None) -> FindDeviceRequest | None: ...

class SelectDeviceRequest(NamedTuple):
    id: str
    client_id: str
    user_id: str | None
    session_id: str | None
    decision: str | None
    code_expires_at: datetime
    scopes: list[str]
    resource: str | None
    redirect_uri: str | None
    client_redirect_uris: list[str] | None
    ip: str | None
    user_agent: str | None
    asked_at: str
    grant_scopes: list[str] | None
    granted_at: datetime | None
    grant_redirect_uris: list[str] | None
    opened_scopes: list[str]
    memberships: str
    now: datetime

def select_device_request(on: Runner, /, *, id: str | None) -> SelectDeviceRequest | None: ...

def decide_device_request(on: Runner, /, *, id: str | None, decision: str | None, organization_id: str | None) -> int: ...

def write_grant(on: Runner, /, *, user_id: str | None, client_id: str | None, scopes: Sequence[str | None] | None, redirect_uris: Sequence[str | None] | None) -> int: ...

class SelectGrant(NamedTuple):
    id: str

def select_grant(on: Runner, /, *, user_id: str | None, client_id: str | None) -> SelectGrant | None: ...

class RemoveGrants(NamedTuple):
    client_id: str
    name: str

def remove_grants(on: Runner, /, *, user_id: str | None, ids: Sequence[str | None] | None, client_id: str | None) -> list[RemoveGrants]: ...

class SelectGrants(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    now: datetime
    method: str | None
    aal: str | None
    session_created_at: datetime | None
    refreshed_at: datetime | None
    ended_at: datetime | None
    first_passkey_at: datetime | None
    grants: str

def select_grants(on: Runner, /, *, caller_id: str | None, caller_session_id: str | None) -> SelectGrants | None: ...

class ListOpenidKeys(NamedTuple):
    id: str
    algorithm: str
    sealed: memoryview
    active_from: str

def list_openid_keys(on: Runner, /) -> list[ListOpenidKeys]: ...

def lock_openid_keys(on: Runner, /) -> int: ...

def insert_openid_key(on: Runner, /, *, id: str | None, algorithm: str | None, sealed: bytes | memoryview | None, active_from: float | None) -> int: ...

def delete_openid_key(on: Runner, /, *, id: str | None) -> int: ...

class SelectLongestClientToken(NamedTuple):
    lifetime: int | None

def select_longest_client_token(on: Runner, /, *, access_token_lifetime: int | None, id_token_lifetime: int | None) -> SelectLongestClientToken: ...

class ListSealedOpenidKeys(NamedTuple):
    id: str
    sealed: memoryview

def list_sealed_openid_keys(on: Runner, /, *, newest: bytes | memoryview | None, after: str | None, batch: int | None) -> list[ListSealedOpenidKeys]: ...

def reseal_openid_key(on: Runner, /, *, id: str | None, old: bytes | memoryview | None, sealed: bytes | memoryview | None) -> int: ...

def insert_oauth_request(on: Runner, /, *, id_hash: bytes | memoryview | None, client_id: str | None, browser_hash: bytes | memoryview | None, redirect_uri: str | None, state: str | None, scopes: Sequence[str | None] | None, resource: str | None, nonce: str | None, code_challenge: str | None, prompts: Sequence[str | None] | None, max_age: int | None, login_hint: str | None, hinted_id: str | None, lifetime: int | None) -> int: ...

class TakeOauthRequest(NamedTuple):
    client_id: str
    redirect_uri: str
    state: str | None
    scopes: list[str]
    resource: str | None
    nonce: str | None
    code_challenge: str | None
    prompts: list[str]
    max_age: int | None
    login_hint: str | None
    hinted_id: str | None

def take_oauth_request(on: Runner, /, *, id_hash: bytes | memoryview | None) -> TakeOauthRequest | None: ...

class FindOauthRequest(NamedTuple):
    id: str
    client_id: str

def find_oauth_request(on: Runner, /, *, id_hash: bytes | memoryview | None) -> FindOauthRequest | None: ...

class SelectOauthRequest(NamedTuple):
    id: str
    client_id: str
    browser_hash: memoryview
    redirect_uri: str
    state: str | None
    scopes: list[str]
    resource: str | None
    prompts: list[str]
    max_age: int | None
    login_hint: str | None
    user_id: str | None
    client_redirect_uris: list[str] | None
    is_pending: bool
    created_at: datetime
    expires_at: datetime
    grant_scopes: list[str] | None
    granted_at: datetime | None
    grant_redirect_uris: list[str] | None
    opened_scopes: list[str]
    memberships: str
    now: datetime

def select_oauth_request(on: Runner, /, *, id_hash: bytes | memoryview | None, user_id: str | None) -> SelectOauthRequest | None: ...

def bind_oauth_request(on: Runner, /, *, id: str | None, user_id: str | None, session_id: str | None) -> int: ...

def approve_oauth_request(on: Runner, /, *, id: str | None, user_id: str | None, session_id: str | None, organization_id: str | None, approval_hash: bytes | memoryview | None) -> int: ...

class GiveOauthCode(NamedTuple):
    redirect_uri: str
    state: str | None
    is_dynamic: bool

def give_oauth_code(on: Runner, /, *, id_hash: bytes | memoryview | None, browser_hash: bytes | memoryview | None, approval_hash: bytes | memoryview | None, code_hash: bytes | memoryview | None, code_lifetime: int | None, lifetime: int | None) -> GiveOauthCode | None: ...

def delete_oauth_request(on: Runner, /, *, id: str | None) -> int: ...

class SelectTime(NamedTuple):
    seconds: int

def select_time(on: Runner, /) -> SelectTime: ...

class FindOwnerOfCode(NamedTuple):
    user_id: str

def find_owner_of_code(on: Runner, /, *, code_hash: bytes | memoryview | None) -> list[FindOwnerOfCode]: ...

class SelectOauthCode(NamedTuple):
    id: str
    redirect_uri: str | None
    resource: str | None
    nonce: str | None
    code_challenge: str | None
    user_id: str
    session_id: str | None
    opened_session_id: str | None
    decision: str | None
    code_expires_at: datetime
    is_of_device: bool
    scopes: list[str]
    client_id: str
    grant_types: list[str]
    client_scopes: list[str]
    grant_id: str | None
    allowed_roles: list[str]
    resources: list[str]
    is_dynamic: bool
    is_blocked: bool
    organization_id: str | None
    for_organization_id: str | None
    memberships: str
    now: datetime

def select_oauth_code(on: Runner, /, *, code_hash: bytes | memoryview | None, client_id: str | None) -> SelectOauthCode | None: ...

class ListSessionsOfGrant(NamedTuple):
    id: str
    created_at: datetime

def list_sessions_of_grant(on: Runner, /, *, grant_id: str | None) -> list[ListSessionsOfGrant]: ...

class OpenClientSession(NamedTuple):
    session_id: str
    user_id: str
    counter: int
    scopes: list[str]
    resource: str | None
    aal: str
    amr: Any
    auth_time: int
    client_id: str
    token_lifetime: int | None
    id_token_signed_response_alg: str
    refreshes_tokens: bool
    issued_at: int
    now: datetime
    user_object: str
    for_organization_id: str | None
    memberships: str
    email_proved: bool
    phone_proved: bool
    recorded: str

def open_client_session(on: Runner, /, *, request_id: str | None, grant_id: str | None, auth_time: datetime | str | None, ip: str | None, user_agent: str | None) -> OpenClientSession | None: ...

class SelectClientCaller(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    now: datetime
    app_metadata: Any
    method: str | None
    aal: str | None
    session_created_at: datetime | None
    refreshed_at: datetime | None
    ended_at: datetime | None
    first_passkey_at: datetime | None
    resource: str | None
    scopes: list[str] | None
    amr: Any
    auth_time: int | None
    allowed_roles: list[str] | None
    resources: list[str] | None
    is_dynamic: bool | None
    is_blocked: bool | None
    organization_id: str | None
    for_organization_id: str | None
    memberships: str
    email_proved: bool
    phone_proved: bool
    user_object: str

def select_client_caller(on: Runner, /, *, user_id: str | None, session_id: str | None, client_id: str | None) -> SelectClientCaller | None: ...

class FindClientSession(NamedTuple):
    user_id: str

def find_client_session(on: Runner, /, *, session_id: str | None, client_id: str | None) -> list[FindClientSession]: ...

class SelectClientSession(NamedTuple):
    user_id: str
    email: str | None
    ended_at: datetime | None
    now: datetime

def select_client_session(on: Runner, /, *, session_id: str | None) -> SelectClientSession | None: ...

class SelectOrganization(NamedTuple):
    id: str
    slug: str
    name: str
    organization_object: str
    app_metadata: Any

def select_organization(on: Runner, /, *, id: str | None, slug: str | None) -> SelectOrganization | None: ...

class SelectMember(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    now: datetime
    method: str | None
    aal: str | None
    session_created_at: datetime | None
    refreshed_at: datetime | None
    ended_at: datetime | None
    first_passkey_at: datetime | None
    reauthenticated_at: datetime | None
    factor_proved_at: datetime | None
    code_given_at: datetime | None
    opened_by: str | None
    resource: str | None
    authenticated_at: datetime | None
    id: str | None
    slug: str | None
    name: str | None
    requires: Any
    membership: str | None
    organization_object: str | None

def select_member(on: Runner, /, *, caller_id: str | None, caller_session_id: str | None, id: str | None, slug: str | None) -> SelectMember | None: ...

class SelectOwnOrganizations(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    now: datetime
    method: str | None
    aal: str | None
    session_created_at: datetime | None
    refreshed_at: datetime | None
    ended_at: datetime | None
    first_passkey_at: datetime | None
    authenticated_at: datetime | None
    memberships: str
    invitations: str

def select_own_organizations(on: Runner, /, *, caller_id: str | None, caller_session_id: str | None) -> SelectOwnOrganizations | None: ...

class SampleOrganizations(NamedTuple):
    matches: int

def sample_organizations(on: Runner, /, *, id: str | None, q: str | None, most: int | None) -> SampleOrganizations: ...

class ListOrganizations(NamedTuple):
    organizations: str
    total: int

def list_organizations(on: Runner, /, *, id: str | None, q: str | None, page_size: int | None, page_offset: int | None, most: int | None, most_members: int | None) -> ListOrganizations: ...

class FindOrganizations(NamedTuple):
    organizations: str
    total: int

def find_organizations(on: Runner, /, *, id: str | None, q: str | None, page_size: int | None, page_offset: int | None, most: int | None, most_members: int | None) -> FindOrganizations: ...

class SampleMembers(NamedTuple):
    matches: int | None

def sample_members(on: Runner, /, *, organization_id: str | None, q: str | None, with_addresses: bool | None, few: int | None, most: int | None) -> SampleMembers: ...

class ListMembers(NamedTuple):
    members: str
    total: int

def list_members(on: Runner, /, *, organization_id: str | None, q: str | None, with_addresses: bool | None, page_size: int | None, page_offset: int | None, most: int | None) -> ListMembers: ...

class FindMembers(NamedTuple):
    members: str
    total: int
    collected: int

def find_members(on: Runner, /, *, organization_id: str | None, q: str | None, with_addresses: bool | None, page_size: int | None, page_offset: int | None, most: int | None) -> FindMembers: ...

class ListInvitations(NamedTuple):
    invitations: str

def list_invitations(on: Runner, /, *, organization_id: str | None) -> ListInvitations: ...

class ListAuditOfOrganization(NamedTuple):
    total: int
    entries: str

def list_audit_of_organization(on: Runner, /, *, organization_id: str | None, days: int | None, page_size: int | None, page_offset: int | None, most: int | None) -> ListAuditOfOrganization: ...

class ListPeopleOfAudit(NamedTuple):
    id: str
    name: str | None
    email: str | None

def list_people_of_audit(on: Runner, /, *, organization_id: str | None, ids: Sequence[str | None] | None) -> list[ListPeopleOfAudit]: ...

class ListMemberships(NamedTuple):
    id: str
    added_by: str
    created_at: datetime
    now: datetime

def list_memberships(on: Runner, /, *, user_id: str | None) -> list[ListMemberships]: ...

class SelectOrganizationFacts(NamedTuple):
    id: str
    slug: str
    name: str
    level: str
    needs_own_provider: bool
    next_provider_id: str
    requires: Any
    providers: list[str]
    max_age: int | None
    email: str | None
    role: str | None
    actor_role: str | None
    members: int
    other_owners: int
    invitations: int
    now: datetime

def select_organization_facts(on: Runner, /, *, id: str | None, user_id: str | None, actor_id: str | None) -> SelectOrganizationFacts | None: ...

class CountMemberships(NamedTuple):
    total: int

def count_memberships(on: Runner, /, *, user_id: str | None) -> CountMemberships: ...

class CountFounded(NamedTuple):
    total: int

def count_founded(on: Runner, /, *, user_id: str | None) -> CountFounded: ...

class SelectInvitation(NamedTuple):
    id: str
    email: str
    role: str
    expires_at: datetime
    organization_id: str
    slug: str
    name: str
    ended_at: datetime | None
    membership: str | None
    now: datetime

def select_invitation(on: Runner, /, *, id: str | None, user_id: str | None) -> SelectInvitation | None: ...

class SelectInvitedAddress(NamedTuple):
    role: str | None
    expires_at: datetime | None
    member_id: str | None
    member_role: str | None

def select_invited_address(on: Runner, /, *, organization_id: str | None, email: str | None) -> SelectInvitedAddress: ...

class ListOwners(NamedTuple):
    id: str

def list_owners(on: Runner, /, *, organization_id: str | None) -> list[ListOwners]: ...

def insert_organization(on: Runner, /, *, id: str | None, slug: str | None, name: str | None, app_metadata: Any | None, founded_by: str | None) -> int: ...

def update_organization(on: Runner, /, *, id: str | None, slug: str | None, name: str | None, level: str | None, needs_own_provider: bool | None, max_age: int | None, app_metadata: Any | None) -> int: ...

def end_organization(on: Runner, /, *, id: str | None) -> int: ...

def write_membership(on: Runner, /, *, user_id: str | None, organization_id: str | None, role: str | None, added_by: str | None) -> int: ...

class JoinOrganization(NamedTuple):
    role: str

def join_organization(on: Runner, /, *, user_id: str | None, organization_id: str | None, role: str | None) -> JoinOrganization | None: ...

class RemoveMembership(NamedTuple):
    role: str

def remove_membership(on: Runner, /, *, user_id: str | None, organization_id: str | None, provider_id: str | None) -> RemoveMembership | None: ...

class WriteInvitation(NamedTuple):
    invitation_object: str

def write_invitation(on: Runner, /, *, id: str | None, organization_id: str | None, email: str | None, role: str | None, invited_by: str | None, lifetime: int | None) -> WriteInvitation: ...

class TakeInvitation(NamedTuple):
    role: str

def take_invitation(on: Runner, /, *, id: str | None) -> TakeInvitation | None: ...

class WithdrawInvitation(NamedTuple):
    email: str
    role: str

def withdraw_invitation(on: Runner, /, *, id: str | None, organization_id: str | None) -> WithdrawInvitation | None: ...

def withdraw_invitations_by(on: Runner, /, *, user_id: str | None, organization_id: str | None) -> int: ...

def record_organization_act(on: Runner, /, *, user_id: str | None, email: str | None, entry: str | None, event: str | None, organization: Any | None, role: str | None, details: Any | None) -> int: ...

def end_members_of_ended_organizations(on: Runner, /, *, batch: int | None, reason: str | None, reach: str | None, keys_up_to: str | None, with_grants: bool | None) -> int: ...

def delete_clients_of_ended_organizations(on: Runner, /, *, batch: int | None) -> int: ...

def delete_ended_organizations(on: Runner, /, *, batch: int | None) -> int: ...

def delete_expired_invitations(on: Runner, /, *, batch: int | None) -> int: ...

class SelectInvited(NamedTuple):
    is_invited: bool

def select_invited(on: Runner, /, *, email: str | None) -> SelectInvited: ...

class SelectMemberOf(NamedTuple):
    id: str
    role: str
    email: str | None
    name: str | None

def select_member_of(on: Runner, /, *, organization_id: str | None, user_id: str | None) -> SelectMemberOf | None: ...

class ListMembershipsOfUser(NamedTuple):
    memberships: str

def list_memberships_of_user(on: Runner, /, *, user_id: str | None) -> ListMembershipsOfUser: ...

class ListExported(NamedTuple):
    slug: str
    line: str

def list_exported(on: Runner, /, *, after_slug: str | None, most: int | None) -> list[ListExported]: ...

class SelectRoles(NamedTuple):
    roles: list[str]

def select_roles(on: Runner, /, *, organization_id: str | None, most: int | None) -> SelectRoles: ...

class CountAllMembers(NamedTuple):
    total: int

def count_all_members(on: Runner, /, *, organization_id: str | None) -> CountAllMembers: ...

class CountOrganizations(NamedTuple):
    total: int

def count_organizations(on: Runner, /) -> CountOrganizations: ...

class CountMembers(NamedTuple):
    members: int
    without_factor: int

def count_members(on: Runner, /, *, organization_id: str | None, most: int | None) -> CountMembers: ...

class ListWithoutFactor(NamedTuple):
    members: int
    lacking: int
    listed: str

def list_without_factor(on: Runner, /, *, organization_id: str | None, most: int | None, page_size: int | None, page_offset: int | None) -> ListWithoutFactor: ...

class ListWithoutOwnSignIn(NamedTuple):
    members: int
    lacking: int
    unable: int
    listed: str

def list_without_own_sign_in(on: Runner, /, *, organization_id: str | None, most: int | None, page_size: int | None, page_offset: int | None) -> ListWithoutOwnSignIn: ...

class CountOlderSignIns(NamedTuple):
    members: int
    older: Any

def count_older_sign_ins(on: Runner, /, *, organization_id: str | None, ages: Sequence[int | None] | None, most: int | None) -> CountOlderSignIns: ...

class CountWhatEnds(NamedTuple):
    members: int
    invitations: int
    providers: int

def count_what_ends(on: Runner, /, *, organization_id: str | None, most: int | None) -> CountWhatEnds: ...

class ListDomains(NamedTuple):
    domains: str

def list_domains(on: Runner, /, *, organization_id: str | None) -> ListDomains: ...

class SelectDomain(NamedTuple):
    token: str
    proved_at: datetime | None
    missing_since: datetime | None
    domain_object: str
    now: datetime

def select_domain(on: Runner, /, *, organization_id: str | None, domain: str | None) -> SelectDomain | None: ...

class ListProvedDomains(NamedTuple):
    domains: list[str]

def list_proved_domains(on: Runner, /, *, organization_id: str | None, by_command: bool | None) -> ListProvedDomains: ...

class CountDomains(NamedTuple):
    total: int

def count_domains(on: Runner, /, *, organization_id: str | None) -> CountDomains: ...

class SelectDomainOfOthers(NamedTuple):
    is_taken: bool

def select_domain_of_others(on: Runner, /, *, organization_id: str | None, domain: str | None) -> SelectDomainOfOthers: ...

class SelectHolderByCommand(NamedTuple):
    id: str

def select_holder_by_command(on: Runner, /, *, organization_id: str | None, domain: str | None) -> SelectHolderByCommand | None: ...

class SelectHasDomainByCommand(NamedTuple):
    has_domain_by_command: bool

def select_has_domain_by_command(on: Runner, /, *, organization_id: str | None, domains: Sequence[str | None] | None) -> SelectHasDomainByCommand: ...

class SelectNextProvider(NamedTuple):
    id: str

def select_next_provider(on: Runner, /, *, organization_id: str | None) -> SelectNextProvider | None: ...

def replace_next_provider(on: Runner, /, *, organization_id: str | None, provider_id: str | None) -> int: ...

def insert_domain(on: Runner, /, *, organization_id: str | None, domain: str | None, token: str | None) -> int: ...

def record_lookup(on: Runner, /, *, organization_id: str | None, domain: str | None, is_held: bool | None, is_missing: bool | None) -> int: ...

def prove_domain_by_command(on: Runner, /, *, organization_id: str | None, domain: str | None) -> int: ...

class DeleteDomain(NamedTuple):
    proved_at: datetime | None

def delete_domain(on: Runner, /, *, organization_id: str | None, domain: str | None) -> DeleteDomain | None: ...

class TakeDomainFromProvider(NamedTuple):
    is_blocked: bool

def take_domain_from_provider(on: Runner, /, *, organization_id: str | None, domain: str | None) -> TakeDomainFromProvider | None: ...

class ListProvidersOfOrganization(NamedTuple):
    id: str
    issuer: str
    has_domain_by_command: bool
    provider_object: str

def list_providers_of_organization(on: Runner, /, *, organization_id: str | None) -> list[ListProvidersOfOrganization]: ...

class ListWaysIn(NamedTuple):
    organization_id: str | None
    issuer: str
    has_domain_by_command: bool

def list_ways_in(on: Runner, /, *, organization_id: str | None) -> list[ListWaysIn]: ...

class SelectMembershipRole(NamedTuple):
    role: str

def select_membership_role(on: Runner, /, *, organization_id: str | None, user_id: str | None) -> SelectMembershipRole | None: ...

class SelectOrganizationOfProvider(NamedTuple):
    name: str
    organization_id: str | None
    slug: str | None
    role: str | None

def select_organization_of_provider(on: Runner, /, *, provider_id: str | None, user_id: str | None) -> SelectOrganizationOfProvider | None: ...

def mark_provider_tried(on: Runner, /, *, id: str | None, version: str | None) -> int: ...

def add_by_provider(on: Runner, /, *, user_id: str | None, organization_id: str | None, provider_id: str | None, role: str | None) -> int: ...

class ListMembersOfProvider(NamedTuple):
    user_id: str
    organization_id: str

def list_members_of_provider(on: Runner, /, *, provider_id: str | None, most: int | None) -> list[ListMembersOfProvider]: ...

class ListIdentitiesAtOrganization(NamedTuple):
    provider: str
    created_at: datetime
    is_first_proof: bool
    provider_id: str
    organization_id: str | None
    member_role: str | None
    enabled: bool
    domains: list[str]
    issuer: str
    has_domain_by_command: bool

def list_identities_at_organization(on: Runner, /, *, user_id: str | None, organization_id: str | None) -> list[ListIdentitiesAtOrganization]: ...

class ListJoinableProviders(NamedTuple):
    member_role: str | None
    enabled: bool
    domains: list[str]
    organization_id: str | None
    issuer: str
    has_domain_by_command: bool

def list_joinable_providers(on: Runner, /, *, organization_id: str | None) -> list[ListJoinableProviders]: ...

def keep_membership(on: Runner, /, *, user_id: str | None, organization_id: str | None, provider_id: str | None, heir_id: str | None) -> int: ...

class ListDomainsToLookUp(NamedTuple):
    organization_id: str
    slug: str
    name: str
    domain: str
    token: str

def list_domains_to_look_up(on: Runner, /, *, most: int | None) -> list[ListDomainsToLookUp]: ...

def disable_providers_of_organization(on: Runner, /, *, organization_id: str | None) -> int: ...

def disable_providers_of_ended_organizations(on: Runner, /, *, batch: int | None) -> int: ...

def remove_users_of_ended_providers(on: Runner, /, *, batch: int | None) -> int: ...

def delete_providers_of_ended_organizations(on: Runner, /, *, batch: int | None) -> int: ...

class ClaimMessage(NamedTuple):
    id: str
    channel: str
    kind: str
    recipient: str
    variables: Any
    secret: memoryview | None
    attempts: int
    created_at: datetime
    expires_at: datetime | None
    outcome: str | None
    last_error: str | None
    target: str
    waits: bool

def claim_message(on: Runner, /, *, channel: str | None, lease: int | None, slow_targets: Sequence[str | None] | None, from_slow: bool | None, is_notice: bool | None) -> ClaimMessage | None: ...

class SelectMessageForHook(NamedTuple):
    variables: Any
    user_object: str | None

def select_message_for_hook(on: Runner, /, *, id: str | None) -> SelectMessageForHook | None: ...

def finish_message(on: Runner, /, *, id: str | None, outcome: str | None, reason: str | None, response: str | None) -> int: ...

def defer_message(on: Runner, /, *, id: str | None, attempts: int | None, delay: float | None, reason: str | None) -> int: ...

def expire_messages(on: Runner, /) -> int: ...

def keep_in_dev_inbox(on: Runner, /, *, id: str | None, sealed: bytes | memoryview | None, keep: int | None) -> int: ...

class SelectDevInbox(NamedTuple):
    id: str
    sealed: memoryview
    channel: str | None
    kind: str
    recipient: str | None
    outcome: str | None
    last_error: str | None
    response: str | None
    created_at: str

def select_dev_inbox(on: Runner, /, *, recipient: str | None) -> list[SelectDevInbox]: ...

class SelectDevInboxMessage(NamedTuple):
    id: str
    sealed: memoryview

def select_dev_inbox_message(on: Runner, /, *, id: str | None) -> SelectDevInboxMessage | None: ...

class ListSealedMessages(NamedTuple):
    id: str
    sealed: memoryview

def list_sealed_messages(on: Runner, /, *, newest: bytes | memoryview | None, after: str | None, batch: int | None) -> list[ListSealedMessages]: ...

def reseal_message(on: Runner, /, *, id: str | None, old: bytes | memoryview | None, sealed: bytes | memoryview | None) -> int: ...

class MeasureOutbox(NamedTuple):
    channel: str
    waiting: int
    oldest_seconds: float
    overdue_seconds: float

def measure_outbox(on: Runner, /, *, most: int | None) -> list[MeasureOutbox]: ...

class MeasureTotals(NamedTuple):
    name: str
    count: int  # type: ignore[assignment]

def measure_totals(on: Runner, /, *, names: Sequence[str | None] | None, seconds: Sequence[int | None] | None) -> list[MeasureTotals]: ...

class MeasureUpkeep(NamedTuple):
    failing_webhooks: int
    backup_age: float | None
    backup_verified_age: float | None

def measure_upkeep(on: Runner, /) -> MeasureUpkeep: ...

class SearchMessages(NamedTuple):
    id: str
    user_id: str | None
    kind: str
    details: Any
    has_user: bool

def search_messages(on: Runner, /, *, states: Sequence[str | None] | None, recipient: str | None, before_at: datetime | str | None, before_id: str | None, most: int | None) -> list[SearchMessages]: ...

class CountMessages(NamedTuple):
    state: str
    total: int

def count_messages(on: Runner, /, *, states: Sequence[str | None] | None, most: int | None) -> list[CountMessages]: ...

class WriteChallenge(NamedTuple):
    id: str
    expires_at: int

def write_challenge(on: Runner, /, *, user_id: str | None, session_id: str | None, factor_id: str | None, purpose: str | None, challenge: bytes | memoryview | None, lifetime: int | None) -> WriteChallenge: ...

class SpendChallenge(NamedTuple):
    challenge: memoryview
    purpose: str
    is_live: bool

def spend_challenge(on: Runner, /, *, challenge_id: str | None, user_id: str | None, session_id: str | None, factor_id: str | None, purposes: Sequence[str | None] | None) -> SpendChallenge | None: ...

def void_challenges(on: Runner, /, *, user_id: str | None) -> int: ...

class ListCredentials(NamedTuple):
    id: str
    credential_id: memoryview
    transports: list[str]
    factor_type: str

def list_credentials(on: Runner, /, *, user_id: str | None) -> list[ListCredentials]: ...

class SelectCredential(NamedTuple):
    id: str
    user_id: str
    public_key: memoryview
    friendly_name: str
    verified_at: datetime | None
    is_by_key: bool

def select_credential(on: Runner, /, *, credential_id: bytes | memoryview | None, factor_type: str | None) -> SelectCredential | None: ...

class SelectCounter(NamedTuple):
    sign_count: int | None
    backup_eligible: bool | None

def select_counter(on: Runner, /, *, id: str | None) -> SelectCounter | None: ...

def use_credential(on: Runner, /, *, id: str | None, sign_count: int | None, backed_up: bool | None) -> int: ...

class WritePasskey(NamedTuple):
    id: str
    object: str

def write_passkey(on: Runner, /, *, user_id: str | None, friendly_name: str | None, credential_id: bytes | memoryview | None, public_key: bytes | memoryview | None, sign_count: int | None, transports: Sequence[str | None] | None, aaguid: str | None, backup_eligible: bool | None, backed_up: bool | None, by_key: bool | None) -> WritePasskey: ...

class WriteUnusedPasskey(NamedTuple):
    id: str
    object: str

def write_unused_passkey(on: Runner, /, *, user_id: str | None, friendly_name: str | None, credential_id: bytes | memoryview | None, public_key: bytes | memoryview | None, sign_count: int | None, transports: Sequence[str | None] | None, aaguid: str | None, backup_eligible: bool | None, backed_up: bool | None, by_key: bool | None) -> WriteUnusedPasskey: ...

def verify_passkey(on: Runner, /, *, user_id: str | None, passkey_id: str | None) -> int: ...

class RemoveUnusedPasskeys(NamedTuple):
    friendly_name: str

def remove_unused_passkeys(on: Runner, /, *, user_id: str | None, kept_id: str | None) -> list[RemoveUnusedPasskeys]: ...

def record_first_passkey(on: Runner, /, *, session_id: str | None, passkey_id: str | None) -> int: ...

class ListPasskeys(NamedTuple):
    passkeys: str

def list_passkeys(on: Runner, /, *, user_id: str | None) -> ListPasskeys: ...

class SelectPasskey(NamedTuple):
    id: str
    friendly_name: str
    is_verified: bool

def select_passkey(on: Runner, /, *, user_id: str | None, passkey_id: str | None) -> SelectPasskey | None: ...

class RenamePasskey(NamedTuple):
    object: str

def rename_passkey(on: Runner, /, *, user_id: str | None, passkey_id: str | None, friendly_name: str | None) -> RenamePasskey: ...

class SelectPerson(NamedTuple):
    id: str
    role: str
    made_by: str
    created_at: datetime
    converted_at: datetime | None
    banned_until: datetime | None
    last_sign_in_at: datetime | None
    email: str | None
    email_confirmed_at: datetime | None
    email_proved: bool
    new_email: str | None
    phone: str | None
    phone_confirmed_at: datetime | None
    phone_proved: bool
    new_phone: str | None
    email_added_at: datetime
    phone_added_at: datetime
    password_hash: str | None
    sign_up_hash: str | None
    is_password_vouched: bool
    password_leaked_at: datetime | None
    is_password_by_key: bool
    is_email_by_key: bool
    invited_at: datetime | None
    user_metadata: Any
    app_metadata: Any
    first_factor_at: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    method: str | None
    aal: str | None
    session_created_at: datetime | None
    refreshed_at: datetime | None
    ended_at: datetime | None
    reauthenticated_at: datetime | None
    factor_proved_at: datetime | None
    code_given_at: datetime | None
    first_passkey_at: datetime | None
    opened_by: str | None
    resource: str | None
    amr: Any
    authenticated_at: datetime | None
    is_session_by_key: bool
    now: datetime

def select_person(on: Runner, /, *, user_id: str | None, session_id: str | None) -> SelectPerson | None: ...

class FindHolder(NamedTuple):
    id: str | None

def find_holder(on: Runner, /, *, address: str | None) -> FindHolder: ...

class FindRecipient(NamedTuple):
    holder_id: str | None
    waiting_id: str | None

def find_recipient(on: Runner, /, *, address: str | None, purpose: str | None) -> FindRecipient: ...

class SelectMessage(NamedTuple):
    id: str
    user_id: str
    channel: str
    kind: str
    recipient: str
    variables: Any
    one_time_token_id: str | None
    code_challenge: str | None
    browser_hash: memoryview | None
    user_agent: str | None
    ip: str | None
    outcome: str
    has_user: bool
    is_for_administrator: bool
    has_link: bool

def select_message(on: Runner, /, *, id: str | None) -> SelectMessage | None: ...

class HurryMessage(NamedTuple):
    notified: str
    record_acts_at: str

def hurry_message(on: Runner, /, *, id: str | None) -> HurryMessage | None: ...

def renew_undo_token(on: Runner, /, *, id: str | None, token_hash: bytes | memoryview | None) -> int: ...

def copy_notice(on: Runner, /, *, id: str | None, new_id: str | None, secret: bytes | memoryview | None) -> int: ...

class Ping(NamedTuple):
    answer: int

def ping(on: Runner, /) -> Ping: ...

class ReadTime(NamedTuple):
    now: datetime

def read_time(on: Runner, /) -> ReadTime: ...

class SelectDatabaseHealth(NamedTuple):
    is_writable: bool
    has_waits: bool

def select_database_health(on: Runner, /) -> SelectDatabaseHealth: ...

class CountLockWaits(NamedTuple):
    total: int

def count_lock_waits(on: Runner, /) -> CountLockWaits: ...

class WriteARow(NamedTuple):
    is_writable: bool

def write_a_row(on: Runner, /) -> WriteARow: ...

class WriteToDisk(NamedTuple):
    written: int

def write_to_disk(on: Runner, /) -> WriteToDisk: ...

class SelectIsCurrent(NamedTuple):
    is_current: bool

def select_is_current(on: Runner, /, *, not_before: int | None, expires_at: int | None) -> SelectIsCurrent: ...

class SelectBackendPid(NamedTuple):
    pid: int

def select_backend_pid(on: Runner, /) -> SelectBackendPid: ...

class LockKeyFingerprints(NamedTuple):
    locked: bool

def lock_key_fingerprints(on: Runner, /) -> LockKeyFingerprints | None: ...

class ListKeyFingerprints(NamedTuple):
    setting: str
    fingerprints: list[str]

def list_key_fingerprints(on: Runner, /) -> list[ListKeyFingerprints]: ...

def replace_key_fingerprints(on: Runner, /, *, setting: str | None, fingerprints: Sequence[str | None] | None) -> int: ...

def move_session(on: Runner, /, *, session_id: str | None, counter: int | None, used_counter: int | None, successor_counter: int | None, refreshed_at: datetime | str | None, refreshes: int | None, counted_until: datetime | str | None, echoes: Any | None) -> int: ...

def count_refresh(on: Runner, /, *, session_id: str | None, refreshes: int | None, counted_until: datetime | str | None) -> int: ...

class SelectSessions(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    now: datetime
    method: str | None
    aal: str | None
    session_created_at: datetime | None
    refreshed_at: datetime | None
    ended_at: datetime | None
    first_passkey_at: datetime | None
    total: int
    openers: Any
    sessions: str

def select_sessions(on: Runner, /, *, caller_id: str | None, caller_session_id: str | None, page_size: int | None, page_offset: int | None) -> SelectSessions | None: ...

class SelectEarlierSignIns(NamedTuple):
    sessions: Any
    is_known: bool

def select_earlier_sign_ins(on: Runner, /, *, user_id: str | None, network: str | None, browser: str | None) -> SelectEarlierSignIns: ...

def record_sign_in(on: Runner, /, *, user_id: str | None, identity: str | None, password_hash: str | None, network: str | None) -> int: ...

class SelectAdministrator(NamedTuple):
    admin_since: str | None

def select_administrator(on: Runner, /, *, id: str | None) -> SelectAdministrator | None: ...

class InsertSession(NamedTuple):
    counter: int
    authenticated_at: datetime
    user_object: str
    memberships: str

def insert_session(on: Runner, /, *, session_id: str | None, user_id: str | None, method: str | None, aal: str | None, amr: Any | None, factor_id: str | None, opened_by: str | None, reauthenticated_at: datetime | str | None, factor_proved_at: datetime | str | None, by_key: bool | None, provider_term: str | None, ip: str | None, user_agent: str | None) -> InsertSession: ...

class RaiseSession(NamedTuple):
    session_id: str
    counter: int
    aal: str
    lacks_step: bool
    amr: Any
    issued_at: int
    user_object: str
    memberships: str

def raise_session(on: Runner, /, *, session_id: str | None, method: str | None, factor_id: str | None, network: str | None) -> RaiseSession: ...

def record_reauthentication(on: Runner, /, *, session_id: str | None, is_by_code: bool | None, is_by_factor: bool | None) -> int: ...

def renew_session_credentials(on: Runner, /, *, user_id: str | None, session_id: str | None, token_hash: bytes | memoryview | None) -> int: ...

class EndHoldings(NamedTuple):
    ended: bool
    voided: str | None

def end_holdings(on: Runner, /, *, user_id: str | None, session_id: str | None, reason: str | None, reach: str | None, keys_up_to: str | None, with_grants: bool | None, voids: bool | None, forgets: bool | None, known_here: Sequence[str | None] | None) -> EndHoldings: ...

class LockTestDatabases(NamedTuple):
    pg_advisory_lock: str

def lock_test_databases(on: Runner, /) -> LockTestDatabases | None: ...

class ListTestDatabases(NamedTuple):
    name: str
    is_used: bool

def list_test_databases(on: Runner, /, *, mark: str | None) -> list[ListTestDatabases]: ...

class ListTimeline(NamedTuple):
    at: str
    kind: str
    name: str
    reason: str | None
    count: int  # type: ignore[assignment]
    actor: str | None
    actor_id: str | None
    ip: str | None
    user_agent: str | None
    request_id: str | None
    details: Any
    user_id: str

def list_timeline(on: Runner, /, *, user_id: str | None, page_size: int | None, page_offset: int | None) -> list[ListTimeline]: ...

class ListTimelineBefore(NamedTuple):
    at: str
    place: int
    id: str
    kind: str
    name: str
    reason: str | None
    count: int  # type: ignore[assignment]
    actor: str | None
    actor_id: str | None
    ip: str | None
    user_agent: str | None
    request_id: str | None
    details: Any
    user_id: str

def list_timeline_before(on: Runner, /, *, user_id: str | None, kind: str | None, before_at: datetime | str | None, before_place: int | None, before_id: str | None, page_size: int | None) -> list[ListTimelineBefore]: ...

class CountTimeline(NamedTuple):
    addresses: list[str] | None
    total: int

def count_timeline(on: Runner, /, *, user_id: str | None, most: int | None) -> CountTimeline: ...

class ListRequestActs(NamedTuple):
    at: str
    kind: str
    name: str
    reason: str | None
    count: int  # type: ignore[assignment]
    actor: str
    actor_id: str | None
    ip: str
    user_agent: str
    request_id: str
    details: Any
    user_id: str | None
    address: str | None

def list_request_acts(on: Runner, /, *, request_id: str | None, most: int | None) -> list[ListRequestActs]: ...

class ListMessagesTo(NamedTuple):
    at: str
    kind: str
    name: str
    reason: str | None
    count: int  # type: ignore[assignment]
    actor: str | None
    actor_id: str | None
    ip: str | None
    user_agent: str | None
    request_id: str | None
    details: Any
    user_id: str

def list_messages_to(on: Runner, /, *, recipient: str | None, most: int | None) -> list[ListMessagesTo]: ...

class SelectLastMessage(NamedTuple):
    id: str
    kind: str
    name: str
    details: Any
    is_stuck: bool

def select_last_message(on: Runner, /, *, user_id: str | None, kinds: Sequence[str | None] | None) -> SelectLastMessage | None: ...

class SelectSummary(NamedTuple):
    id: str
    email: str | None
    phone: str | None
    role: str
    made_by: str
    is_anonymous: bool
    has_password: bool
    new_email: str | None
    new_phone: str | None
    providers: list[str]
    factors: list[str]
    has_passkey: bool
    recovery_codes: int
    created_at: str
    email_confirmed_at: str | None
    phone_confirmed_at: str | None
    last_sign_in_at: str | None
    banned_until: str | None
    live_sessions: int
    applications: list[str]
    sessions_of_applications: int
    sessions_of_applications_below: int
    api_keys: int
    api_keys_below: int

def select_summary(on: Runner, /, *, id: str | None, email: str | None, phone: str | None) -> SelectSummary | None: ...

class SelectRefusalByHook(NamedTuple):
    hook: str
    said: str
    at: str

def select_refusal_by_hook(on: Runner, /, *, user_id: str | None, reasons: Sequence[str | None] | None) -> SelectRefusalByHook | None: ...

class ListPendingUsers(NamedTuple):
    id: str
    email: str
    phone: str | None

def list_pending_users(on: Runner, /, *, address: str | None) -> list[ListPendingUsers]: ...

class SelectFailureCounts(NamedTuple):
    kind: str
    subject: str | None
    network: str | None
    seconds: int | None
    count: int  # type: ignore[assignment]
    until: str

def select_failure_counts(on: Runner, /, *, subjects: Sequence[str | None] | None) -> list[SelectFailureCounts]: ...

class BeginImport(NamedTuple):
    scans: str
    timeout: str

def begin_import(on: Runner, /) -> BeginImport: ...

class FindTakenKeys(NamedTuple):
    key: str
    user_id: str

def find_taken_keys(on: Runner, /, *, ids: Sequence[str | None] | None, addresses: Sequence[str | None] | None, providers: Sequence[str | None] | None, subjects: Sequence[str | None] | None, credential_ids: Sequence[str | None] | None) -> list[FindTakenKeys]: ...

class ImportUsers(NamedTuple):
    id: str

def import_users(on: Runner, /, *, users: Any | None, import_id: str | None) -> list[ImportUsers]: ...

def import_factors(on: Runner, /, *, factors: Any | None) -> int: ...

def import_api_keys(on: Runner, /, *, api_keys: Any | None) -> int: ...

class ExportUsers(NamedTuple):
    id: str
    record: str
    factors: str | None
    api_keys: str | None

def export_users(on: Runner, /, *, after: str | None, page_size: int | None) -> list[ExportUsers]: ...

class HasUsers(NamedTuple):
    any: bool

def has_users(on: Runner, /) -> HasUsers: ...

class ListFactorsOfUndo(NamedTuple):
    id: str
    user_id: str
    factor_type: str
    friendly_name: str
    secret: memoryview | None
    last_step: int | None
    credential_id: memoryview | None
    public_key: memoryview | None
    sign_count: int | None
    transports: list[str] | None
    backup_eligible: bool | None
    verified_at: datetime
    removed_at: datetime | None
    now: datetime

def list_factors_of_undo(on: Runner, /, *, user_id: str | None) -> list[ListFactorsOfUndo]: ...

class ListAcceptedCredentials(NamedTuple):
    id: str
    credential_id: memoryview
    is_removed: bool

def list_accepted_credentials(on: Runner, /, *, user_id: str | None) -> list[ListAcceptedCredentials]: ...

def restore_factors(on: Runner, /, *, user_id: str | None, ids: Sequence[str | None] | None, codes_before: datetime | str | None) -> int: ...

def void_undo_links(on: Runner, /, *, user_id: str | None, moment: datetime | str | None) -> int: ...

class CompareSignUp(NamedTuple):
    has_same_password: bool
    has_same_data: bool

def compare_sign_up(on: Runner, /, *, user_id: str | None, password_hash: str | None, user_metadata: Any | None) -> CompareSignUp | None: ...

def dispute_sign_up(on: Runner, /, *, user_id: str | None, password_hash: str | None) -> int: ...

class InsertSignUp(NamedTuple):
    is_created: bool
    id: str
    user_object: str

def insert_sign_up(on: Runner, /, *, user_id: str | None, email: str | None, phone: str | None, password_hash: str | None, user_metadata: Any | None, is_confirmed: bool | None, user_agent: str | None) -> InsertSignUp: ...

def insert_anonymous_user(on: Runner, /, *, user_id: str | None, user_metadata: Any | None) -> int: ...

def convert_user(on: Runner, /, *, user_id: str | None) -> int: ...

class SelectUserOfAddress(NamedTuple):
    id: str
    role: str
    email_proved: bool

def select_user_of_address(on: Runner, /, *, address: str | None) -> SelectUserOfAddress | None: ...

def record_refused_sign_up(on: Runner, /, *, user_id: str | None, reason: str | None) -> int: ...

class SelectUser(NamedTuple):
    role: str
    made_by: str
    converted_at: datetime | None
    banned_until: datetime | None
    oldest_factor_at: datetime | None
    has_second_step: bool
    now: datetime
    method: str | None
    aal: str | None
    session_created_at: datetime | None
    refreshed_at: datetime | None
    ended_at: datetime | None
    first_passkey_at: datetime | None
    authenticated_at: datetime | None
    user_object: str
    memberships: str

def select_user(on: Runner, /, *, caller_id: str | None, caller_session_id: str | None) -> SelectUser | None: ...

def mark_password_leaked(on: Runner, /, *, user_id: str | None) -> int: ...

class ChangeUser(NamedTuple):
    user_object: str
    memberships: str

def change_user(on: Runner, /, *, user_id: str | None, user_metadata: Any | None, new_email: str | None, new_phone: str | None) -> ChangeUser: ...

def delete_user(on: Runner, /, *, user_id: str | None, because: str | None) -> int: ...

class CountAdministrators(NamedTuple):
    total: int

def count_administrators(on: Runner, /, *, without: str | None) -> CountAdministrators: ...

class KeepTypedAddress(NamedTuple):
    id: str

def keep_typed_address(on: Runner, /, *, browser_hash: bytes | memoryview | None, address: str | None, has_asked: bool | None, lifetime: int | None) -> KeepTypedAddress: ...

class SelectTypedAddress(NamedTuple):
    id: str
    address: str
    has_asked: bool

def select_typed_address(on: Runner, /, *, id: str | None, browser_hash: bytes | memoryview | None) -> SelectTypedAddress | None: ...

class SelectUsedLink(NamedTuple):
    user_id: str

def select_used_link(on: Runner, /, *, browser_hash: bytes | memoryview | None, target: str | None, purpose: str | None) -> SelectUsedLink | None: ...

class SelectNewestCode(NamedTuple):
    code_mac: memoryview

def select_newest_code(on: Runner, /, *, target: str | None, browser_hash: bytes | memoryview | None) -> SelectNewestCode | None: ...

class ListAdditions(NamedTuple):
    id: str
    type: str
    label: str
    added_at: datetime
    is_unused: bool
    now: datetime

def list_additions(on: Runner, /, *, user_id: str | None) -> list[ListAdditions]: ...

class ListAddedSince(NamedTuple):
    type: str

def list_added_since(on: Runner, /, *, user_id: str | None, moment: datetime | str | None) -> list[ListAddedSince]: ...

class ListWaysToSignIn(NamedTuple):
    id: str
    provider: str

def list_ways_to_sign_in(on: Runner, /, *, user_id: str | None, ids: Sequence[str | None] | None) -> list[ListWaysToSignIn]: ...

def remove_ways_to_sign_in(on: Runner, /, *, user_id: str | None, ids: Sequence[str | None] | None, providers: Sequence[str | None] | None) -> int: ...

class SelectWaysToSignIn(NamedTuple):
    providers: list[str]
    has_passkey: bool

def select_ways_to_sign_in(on: Runner, /, *, user_id: str | None) -> SelectWaysToSignIn: ...

class ListAllWaysToSignIn(NamedTuple):
    type: str
    label: str | None
    added_at: datetime | None
    is_by_key: bool

def list_all_ways_to_sign_in(on: Runner, /, *, user_id: str | None) -> list[ListAllWaysToSignIn]: ...

def remove_before_promotion(on: Runner, /, *, user_id: str | None) -> int: ...

def lock_webhooks(on: Runner, /) -> int: ...

class CountWebhooks(NamedTuple):
    total: int

def count_webhooks(on: Runner, /) -> CountWebhooks: ...

class CreateWebhook(NamedTuple):
    webhook_object: str
    recorded: str

def create_webhook(on: Runner, /, *, id: str | None, url: str | None, description: str | None, events: Sequence[str | None] | None, secret: bytes | memoryview | None) -> CreateWebhook: ...

class ListWebhooks(NamedTuple):
    total: int
    webhooks: str

def list_webhooks(on: Runner, /, *, page_size: int | None, page_offset: int | None) -> ListWebhooks: ...

class SelectWebhook(NamedTuple):
    webhook_object: str

def select_webhook(on: Runner, /, *, id: str | None) -> SelectWebhook | None: ...

class UpdateWebhook(NamedTuple):
    webhook_object: str
    recorded: str

def update_webhook(on: Runner, /, *, id: str | None, url: str | None, events: Sequence[str | None] | None, sets_description: bool | None, description: str | None, is_disabled: bool | None, new_secret: bytes | memoryview | None, overlap: int | None) -> UpdateWebhook | None: ...

class DeleteWebhook(NamedTuple):
    recorded: str

def delete_webhook(on: Runner, /, *, id: str | None, batch: int | None) -> DeleteWebhook | None: ...

class ListDeliveries(NamedTuple):
    total: int
    deliveries: str

def list_deliveries(on: Runner, /, *, id: str | None, page_size: int | None, page_offset: int | None) -> ListDeliveries | None: ...

class RedeliverEvent(NamedTuple):
    is_disabled: bool
    delivery: str | None
    recorded: str

def redeliver_event(on: Runner, /, *, id: str | None, delivery_id: str | None) -> RedeliverEvent | None: ...

class SendTestEvent(NamedTuple):
    is_disabled: bool
    delivery: str | None
    recorded: str

def send_test_event(on: Runner, /, *, id: str | None, event: str | None, user_id: str | None, email: str | None) -> SendTestEvent | None: ...

class ClaimEvent(NamedTuple):
    id: str
    channel: str
    kind: str
    recipient: str
    variables: Any
    secret: memoryview | None
    attempts: int
    created_at: datetime
    expires_at: datetime | None
    outcome: str | None
    last_error: str | None
    target: str

def claim_event(on: Runner, /, *, lease: int | None, slow_targets: Sequence[str | None] | None, from_slow: bool | None) -> ClaimEvent | None: ...

class SelectEndpoint(NamedTuple):
    url: str
    secret: memoryview
    is_failing: bool
    previous_secret: memoryview | None

def select_endpoint(on: Runner, /, *, id: str | None) -> SelectEndpoint | None: ...

def record_webhook_success(on: Runner, /, *, id: str | None) -> int: ...

class RecordWebhookFailure(NamedTuple):
    is_news: bool
    disabled_reason: str | None
    mails: int | None
    recorded: str

def record_webhook_failure(on: Runner, /, *, id: str | None, is_gone: bool | None, shortest: int | None, longest: int | None, retry_after: float | None, most_mails: int | None) -> RecordWebhookFailure | None: ...

class ListSealedWebhooks(NamedTuple):
    id: str
    sealed: memoryview

def list_sealed_webhooks(on: Runner, /, *, newest: bytes | memoryview | None, after: str | None, batch: int | None) -> list[ListSealedWebhooks]: ...

def reseal_webhook(on: Runner, /, *, id: str | None, old: bytes | memoryview | None, sealed: bytes | memoryview | None) -> int: ...

def finish_stale_events(on: Runner, /, *, batch: int | None) -> int: ...

class ListWebhookStates(NamedTuple):
    id: str
    origin: str
    description: str | None
    events: list[str]
    disabled_reason: str | None
    failing_since: str | None
    retry_at: str | None
    disabled_at: str | None
    created_at: str
    previous_secret_expires_at: str | None
    waiting: int

def list_webhook_states(on: Runner, /, *, id: str | None, most: int | None) -> list[ListWebhookStates]: ...

class SearchDeliveries(NamedTuple):
    id: str
    user_id: str | None
    details: Any
    has_user: bool
    address: str | None

def search_deliveries(on: Runner, /, *, webhook_id: str | None, outcome: str | None, before_at: datetime | str | None, before_id: str | None, most: int | None) -> list[SearchDeliveries]: ...

class SelectDelivery(NamedTuple):
    details: Any
    variables: Any

def select_delivery(on: Runner, /, *, webhook_id: str | None, id: str | None) -> SelectDelivery | None: ...
