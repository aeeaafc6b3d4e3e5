-- name: select_organization(id uuid, slug text) -> row?
SELECT o.id, o.slug, o.name, organization_object(o)::text AS organization_object, o.app_metadata::jsonb
  FROM organizations AS o
 WHERE (o.id = :id OR o.slug = :slug) AND o.ended_at IS NULL;

-- name: select_member(caller_id uuid, caller_session_id uuid, id uuid, slug text)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, method?, aal?, session_created_at?, refreshed_at?,
--            ended_at?, first_passkey_at?, reauthenticated_at?, factor_proved_at?, code_given_at?, opened_by?,
--            resource?, authenticated_at?, id?, slug?, name?, requires?, membership?, organization_object?)
-- Each route about an organization reads the caller, with what decides about a proof, and the organization if the caller
-- is a member.
SELECT caller.*, s.reauthenticated_at, s.factor_proved_at, s.code_given_at, s.opened_by, s.resource,
       authenticated_at(s) AS authenticated_at, organization.*
  FROM caller_facts(:caller_id, :caller_session_id) AS caller
  LEFT JOIN sessions AS s ON s.id = :caller_session_id AND s.user_id = :caller_id
  LEFT JOIN (SELECT o.id, o.slug, o.name, requirement_of(o) AS requires, m.role AS membership,
                    organization_object(o)::text AS organization_object
               FROM organizations AS o
               JOIN memberships AS m ON m.organization_id = o.id AND m.user_id = :caller_id
              WHERE (o.id = :id OR o.slug = :slug) AND o.ended_at IS NULL) AS organization ON true;

-- name: select_own_organizations(caller_id uuid, caller_session_id uuid)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, method?, aal?, session_created_at?, refreshed_at?,
--            ended_at?, first_passkey_at?, authenticated_at?)
-- The caller's memberships, as the user object has them, and the proved address's open invitations to others.
SELECT caller.*, authenticated_at(s) AS authenticated_at, memberships.member AS memberships,
       (SELECT coalesce(jsonb_agg(invitation_object(i) || jsonb_build_object(
                          'organization', jsonb_build_object('id', o.id, 'slug', o.slug, 'name', o.name))
                          ORDER BY i.created_at DESC, i.id), '[]')::text
          FROM organization_invitations AS i
          JOIN organizations AS o ON o.id = i.organization_id AND o.ended_at IS NULL
         WHERE u.email_proved AND i.email = u.email AND i.expires_at > now()
           AND NOT EXISTS (SELECT FROM memberships AS m WHERE m.organization_id = o.id AND m.user_id = u.id)) AS invitations
  FROM caller_facts(:caller_id, :caller_session_id) AS caller
  JOIN users AS u ON u.id = :caller_id
  LEFT JOIN sessions AS s ON s.id = :caller_session_id AND s.user_id = :caller_id
 CROSS JOIN memberships_of(:caller_id, true) AS memberships;

-- name: sample_organizations(id uuid, q text, most integer) -> row
-- How many of the first organizations a search finds; ids are random.
SELECT count(*) AS matches
  FROM (SELECT * FROM organizations ORDER BY id LIMIT :most) AS o
 WHERE organization_is_listed(o, :id, :q);

-- name: list_organizations(id uuid, q text, page_size integer, page_offset bigint, most integer,
--                          most_members integer) -> row
-- Reads organizations in their order until the page is full, and counts others up to `most`. Because of `coalesce`,
-- Postgres expects many matches, and uses no index of names.
SELECT (SELECT coalesce(jsonb_agg(organization_object(page.o) || jsonb_build_object('members', counted.members)
                                  ORDER BY (page.o).created_at DESC, (page.o).id DESC), '[]')::text
          FROM (SELECT o
                  FROM organizations AS o
                 WHERE o.ended_at IS NULL AND (:q IS NULL OR coalesce(organization_is_listed(o, :id, :q), false))
                 ORDER BY o.created_at DESC, o.id DESC
                 LIMIT :page_size OFFSET :page_offset) AS page
         CROSS JOIN LATERAL (
               SELECT count(*) AS members
                 FROM (SELECT FROM memberships AS m WHERE m.organization_id = (page.o).id LIMIT :most_members) AS first
              ) AS counted) AS organizations,
       (SELECT count(*)
          FROM (SELECT
                  FROM organizations AS o
                 WHERE o.ended_at IS NULL AND (:q IS NULL OR coalesce(organization_is_listed(o, :id, :q), false))
                 LIMIT :most) AS counted) AS total;

-- name: find_organizations(id uuid, q text, page_size integer, page_offset bigint, most integer,
--                          most_members integer) -> row
-- Collects up to `most` organizations that the indexes find, and sorts them.
WITH matches AS MATERIALIZED (
  SELECT o.id, o.created_at
    FROM organizations AS o
   WHERE o.ended_at IS NULL AND organization_is_listed(o, :id, :q)
   LIMIT :most
)
SELECT (SELECT coalesce(jsonb_agg(organization_object(o) || jsonb_build_object('members', counted.members)
                                  ORDER BY o.created_at DESC, o.id DESC), '[]')::text
          FROM (SELECT id
                  FROM matches
                 ORDER BY created_at DESC, id DESC
                 LIMIT :page_size OFFSET :page_offset) AS page
          JOIN organizations AS o ON o.id = page.id
         CROSS JOIN LATERAL (
               SELECT count(*) AS members
                 FROM (SELECT FROM memberships AS m WHERE m.organization_id = o.id LIMIT :most_members) AS first
              ) AS counted) AS organizations,
       (SELECT count(*) FROM matches) AS total;

-- name: sample_members(organization_id uuid, q text, with_addresses boolean, few integer, most integer)
--   -> row (matches?)
-- How many of `most` members a search finds: the least of the four quarters of the organization's time. Null for an
-- organization with up to `few` members.
SELECT CASE WHEN has_more_members(:organization_id, :few)
       THEN (SELECT min(quarter.matches)
               FROM (SELECT min(created_at) AS first, max(created_at) AS last
                       FROM memberships
                      WHERE organization_id = :organization_id) AS span
              CROSS JOIN generate_series(0, 3) AS number
              CROSS JOIN LATERAL (
                    SELECT count(*) FILTER (WHERE (SELECT member_is_listed(u, :q, :with_addresses)
                                                     FROM users AS u
                                                    WHERE u.id = m.user_id)) AS matches
                      FROM (SELECT user_id
                              FROM memberships
                             WHERE organization_id = :organization_id
                               AND created_at >= span.first + (span.last - span.first) / 4 * number
                             ORDER BY created_at, user_id
                             LIMIT :most) AS m) AS quarter)
       END AS matches;

-- name: list_members(organization_id uuid, q text, with_addresses boolean, page_size integer, page_offset bigint,
--                    most bigint) -> row
-- Reads members in their order until `most` match. The subquery in the condition reads users by their ids, one by one.
WITH matches AS MATERIALIZED (
  SELECT m.user_id, m.created_at
    FROM memberships AS m
   WHERE m.organization_id = :organization_id
     AND (:q IS NULL OR (SELECT member_is_listed(u, :q, :with_addresses) FROM users AS u WHERE u.id = m.user_id))
   ORDER BY m.created_at, m.user_id
   LIMIT :most
)
SELECT (SELECT coalesce(jsonb_agg(member_object(m, u, own.oldest IS NOT NULL, :with_addresses)
                                  ORDER BY m.created_at, m.user_id), '[]')::text
          FROM (SELECT user_id
                  FROM matches
                 ORDER BY created_at, user_id
                 LIMIT :page_size OFFSET :page_offset) AS page
          JOIN memberships AS m ON m.user_id = page.user_id AND m.organization_id = :organization_id
          JOIN users AS u ON u.id = m.user_id
         CROSS JOIN factors_of(u.id) AS own) AS members,
       (SELECT count(*) FROM matches) AS total;

-- name: find_members(organization_id uuid, q text, with_addresses boolean, page_size integer, page_offset bigint,
--                    most integer) -> row
-- Collects `most` users that the index of words finds, or all for an organization with more members, and sorts those who
-- are members. The subquery with OFFSET looks up memberships one by one.
WITH found AS MATERIALIZED (
  SELECT u.id, :with_addresses OR has_name(u, :q) AS is_match
    FROM users AS u
   WHERE words_of(u) @@ query_of(:q)
   LIMIT CASE WHEN NOT has_more_members(:organization_id, :most) THEN :most END
), matches AS MATERIALIZED (
  SELECT m.user_id, m.created_at
    FROM found
   CROSS JOIN LATERAL (
         SELECT user_id, created_at
           FROM memberships
          WHERE user_id = found.id AND organization_id = :organization_id
         OFFSET 0) AS m
   WHERE found.is_match
)
SELECT (SELECT coalesce(jsonb_agg(member_object(m, u, own.oldest IS NOT NULL, :with_addresses)
                                  ORDER BY m.created_at, m.user_id), '[]')::text
          FROM (SELECT user_id
                  FROM matches
                 ORDER BY created_at, user_id
                 LIMIT :page_size OFFSET :page_offset) AS page
          JOIN memberships AS m ON m.user_id = page.user_id AND m.organization_id = :organization_id
          JOIN users AS u ON u.id = m.user_id
         CROSS JOIN factors_of(u.id) AS own) AS members,
       (SELECT count(*) FROM matches) AS total, (SELECT count(*) FROM found) AS collected;

-- name: list_invitations(organization_id uuid) -> row
SELECT coalesce(jsonb_agg(invitation_object(i) ORDER BY i.created_at DESC, i.id), '[]')::text AS invitations
  FROM organization_invitations AS i
 WHERE i.organization_id = :organization_id AND i.expires_at > now();

-- name: list_audit_of_organization(organization_id uuid, days integer, page_size integer, page_offset bigint,
--                                  most integer) -> row
-- The entries of the last `days`, or all. Owners read that an operator acted, or was refused, but not which one. A refusal
-- shows nothing about the account, nor the id of a user who is not a member, such as another administrator.
SELECT (SELECT count(*)
          FROM (SELECT
                  FROM audit_log AS a
                 WHERE a.details ? 'organization' AND a.details #>> '{organization,id}' = :organization_id::text
                   AND (:days IS NULL OR a.at >= now() - make_interval(days => :days))
                 LIMIT :most) AS entries) AS total,
       (SELECT coalesce(jsonb_agg(entry_object(a) - ARRAY['ip', 'user_agent', 'request_id']
                                  || jsonb_build_object('details', CASE WHEN a.reason IS NULL
                                          THEN a.details - ARRAY['administrator', 'system_user']
                                          ELSE jsonb_strip_nulls(jsonb_build_object(
                                            'organization', a.details -> 'organization',
                                            'because', a.details -> 'because')) END)
                                  || CASE WHEN a.details ? 'administrator'
                                          THEN jsonb_build_object('actor', 'service_role', 'actor_id', NULL,
                                            'user_id', CASE WHEN a.reason IS NULL OR EXISTS (
                                              SELECT FROM memberships AS m
                                               WHERE m.organization_id = :organization_id AND m.user_id = a.user_id)
                                            THEN nullif(a.user_id, a.actor_id) END)
                                          ELSE '{}' END
                                  ORDER BY a.at DESC, a.id DESC), '[]')::text
          FROM (SELECT *
                  FROM audit_log AS listed
                 WHERE listed.details ? 'organization' AND listed.details #>> '{organization,id}' = :organization_id::text
                   AND (:days IS NULL OR listed.at >= now() - make_interval(days => :days))
                   AND :page_offset < :most
                 ORDER BY listed.at DESC, listed.id DESC
                 LIMIT :page_size OFFSET :page_offset) AS a) AS entries;

-- name: list_people_of_audit(organization_id uuid, ids text[]) -> rows (name?, email?)
-- The names and addresses of members. Of former members, the address that the log has, not the present one.
SELECT person.id, name_of(u.user_metadata) AS name, coalesce(u.email, former.email) AS email
  FROM unnest(:ids::uuid[]) AS person (id)
  LEFT JOIN memberships AS m ON m.organization_id = :organization_id AND m.user_id = person.id
  LEFT JOIN users AS u ON u.id = m.user_id
  LEFT JOIN LATERAL (SELECT a.details ->> 'email' AS email
                       FROM audit_log AS a
                      WHERE m.user_id IS NULL AND a.user_id = person.id AND a.details ? 'organization'
                        AND a.details #>> '{organization,id}' = :organization_id::text AND a.details ? 'email'
                      ORDER BY a.at DESC, a.id DESC
                      LIMIT 1) AS former ON true;

-- Facts of acts. The organizations are locked.

-- name: list_memberships(user_id uuid) -> rows
SELECT m.organization_id AS id, m.added_by, m.created_at, clock_timestamp() AS now
  FROM memberships AS m
  JOIN organizations AS o ON o.id = m.organization_id
 WHERE m.user_id = :user_id AND o.ended_at IS NULL
 ORDER BY o.slug;

-- name: select_organization_facts(id uuid, user_id uuid, actor_id uuid) -> row? (max_age?, email?, role?, actor_role?)
-- `role` is the user's, `members` ends at 2, and `other_owners` is 1 if another owner can sign in.
SELECT o.id, o.slug, o.name, o.level, o.needs_own_provider, o.next_provider_id, requirement_of(o) AS requires, providers_of(o) AS providers,
       extract(epoch FROM o.max_age)::integer AS max_age, u.email, m.role, actor.role AS actor_role,
       (SELECT count(*)
          FROM (SELECT FROM memberships AS member WHERE member.organization_id = o.id LIMIT 2) AS first) AS members,
       (SELECT count(*)
          FROM (SELECT
                  FROM memberships AS other
                  JOIN users ON users.id = other.user_id
                 WHERE other.organization_id = o.id AND other.role = 'owner' AND other.user_id IS DISTINCT FROM :user_id
                   AND NOT is_banned(users)
                 LIMIT 1) AS first) AS other_owners,
       (SELECT count(*)
          FROM organization_invitations AS i
         WHERE i.organization_id = o.id AND i.expires_at > clock_timestamp()) AS invitations,
       clock_timestamp() AS now
  FROM organizations AS o
  LEFT JOIN users AS u ON u.id = :user_id
  LEFT JOIN memberships AS m ON m.organization_id = o.id AND m.user_id = :user_id
  LEFT JOIN memberships AS actor ON actor.organization_id = o.id AND actor.user_id = :actor_id
 WHERE o.id = :id AND o.ended_at IS NULL;

-- name: count_memberships(user_id uuid) -> row
SELECT count(*) AS total
  FROM memberships AS m
  JOIN organizations AS o ON o.id = m.organization_id
 WHERE m.user_id = :user_id AND o.ended_at IS NULL;

-- name: count_founded(user_id uuid) -> row
-- Counts organizations that the user founded, even if the user has left them.
SELECT count(*) AS total FROM organizations AS o WHERE o.founded_by = :user_id AND o.ended_at IS NULL;

-- name: select_invitation(id uuid, user_id uuid) -> row? (ended_at?, membership?)
-- An invitation, with the role that a user has already. The foreign key keeps the organization.
SELECT i.id, i.email, i.role, i.expires_at, i.organization_id, o.slug, o.name, o.ended_at, m.role AS membership,
       clock_timestamp() AS now
  FROM organization_invitations AS i
  JOIN organizations AS o ON o.id = i.organization_id
  LEFT JOIN memberships AS m ON m.organization_id = o.id AND m.user_id = :user_id
 WHERE i.id = :id;

-- name: select_invited_address(organization_id uuid, email text)
--   -> row (role?, expires_at?, member_id?, member_role?)
-- The invitation of an address, if any, and the member who has proved it.
SELECT i.role, i.expires_at, m.user_id AS member_id, m.role AS member_role
  FROM (SELECT) AS address
  LEFT JOIN organization_invitations AS i ON i.organization_id = :organization_id AND i.email = :email
  LEFT JOIN users AS u ON u.email = :email AND u.email_proved
  LEFT JOIN memberships AS m ON m.organization_id = :organization_id AND m.user_id = u.id;

-- name: list_owners(organization_id uuid) -> rows
SELECT m.user_id AS id FROM memberships AS m WHERE m.organization_id = :organization_id AND m.role = 'owner'
 ORDER BY m.user_id;

-- Effects.

-- name: insert_organization(id uuid, slug text, name text, app_metadata jsonb, founded_by uuid,
--                           acted_at timestamptz)
-- A short name that is taken violates a constraint.
INSERT INTO organizations (id, slug, name, app_metadata, founded_by, created_at, updated_at)
VALUES (:id, :slug, :name, :app_metadata, :founded_by, :acted_at, :acted_at);

-- name: update_organization(id uuid, slug text, name text, level text, needs_own_provider boolean,
--                           max_age integer, app_metadata jsonb, acted_at timestamptz)
-- Changes no row if all values are the same. A `max_age` of 0 seconds lifts the requirement.
UPDATE organizations
   SET slug = coalesce(:slug, slug), name = coalesce(:name, name), level = coalesce(:level, level),
       needs_own_provider = coalesce(:needs_own_provider, needs_own_provider),
       max_age = CASE WHEN :max_age IS NULL THEN max_age ELSE nullif(make_interval(secs => :max_age), '0') END,
       app_metadata = coalesce(:app_metadata, app_metadata), updated_at = :acted_at
 WHERE id = :id
   AND (:slug <> slug OR :name <> name OR :level <> level OR :needs_own_provider <> needs_own_provider
        OR nullif(make_interval(secs => :max_age), '0') IS DISTINCT FROM max_age AND :max_age IS NOT NULL
        OR :app_metadata <> app_metadata);

-- name: end_organization(id uuid, acted_at timestamptz)
-- Every other statement leaves out an ended organization.
UPDATE organizations SET ended_at = :acted_at, updated_at = :acted_at WHERE id = :id AND ended_at IS NULL;

-- name: write_membership(user_id uuid, organization_id uuid, role text, added_by text, acted_at timestamptz)
-- A member has nothing left to accept.
WITH answered AS (
  DELETE FROM organization_invitations AS i
   USING users AS u
   WHERE u.id = :user_id AND u.email_proved AND i.email = u.email AND i.organization_id = :organization_id
)
INSERT INTO memberships AS m (user_id, organization_id, role, added_by, created_at, updated_at)
VALUES (:user_id, :organization_id, :role, :added_by, :acted_at, :acted_at)
ON CONFLICT (user_id, organization_id) DO UPDATE SET role = excluded.role, updated_at = :acted_at;

-- name: join_organization(user_id uuid, organization_id uuid, role text, acted_at timestamptz) -> row?
-- A member keeps the role.
INSERT INTO memberships (user_id, organization_id, role, added_by, created_at, updated_at)
VALUES (:user_id, :organization_id, :role, 'invitation', :acted_at, :acted_at)
ON CONFLICT DO NOTHING
RETURNING role;

-- name: remove_membership(user_id uuid, organization_id uuid, provider_id uuid) -> row?
-- With a provider, removes a membership only if that provider added it: a user who was removed may have
-- joined again. An invitation of an address that the member has proved since would let the user in again.
WITH removed AS (
  DELETE FROM memberships
   WHERE user_id = :user_id AND organization_id = :organization_id
     AND (:provider_id IS NULL OR provider_id = :provider_id)
  RETURNING role
), answered AS (
  DELETE FROM organization_invitations AS i
   USING removed, users AS u
   WHERE u.id = :user_id AND u.email_proved AND i.email = u.email AND i.organization_id = :organization_id
)
SELECT role FROM removed;

-- name: write_invitation(id uuid, organization_id uuid, email text, role text, invited_by uuid, lifetime integer,
--                        acted_at timestamptz) -> row
-- An open invitation gets another seven days. With another role, it becomes the invitation of the user who
-- changed it.
INSERT INTO organization_invitations AS i (id, organization_id, email, role, invited_by, created_at, expires_at)
VALUES (:id, :organization_id, :email, :role, :invited_by, :acted_at, :acted_at + make_interval(secs => :lifetime))
ON CONFLICT (organization_id, email) DO UPDATE
   SET role = excluded.role, expires_at = excluded.expires_at,
       invited_by = CASE WHEN i.expires_at > :acted_at AND i.role = excluded.role
                         THEN i.invited_by ELSE excluded.invited_by END,
       created_at = CASE WHEN i.expires_at > :acted_at AND i.role = excluded.role
                         THEN i.created_at ELSE excluded.created_at END
RETURNING invitation_object(i)::text AS invitation_object;

-- name: take_invitation(id uuid, acted_at timestamptz) -> row?
-- Returns the present role, for the first of two requests alone.
DELETE FROM organization_invitations WHERE id = :id AND expires_at > :acted_at RETURNING role;

-- name: withdraw_invitation(id uuid, organization_id uuid) -> row?
DELETE FROM organization_invitations
 WHERE id = :id AND organization_id = :organization_id
RETURNING email, role;

-- name: withdraw_invitations_by(user_id uuid, organization_id uuid)
DELETE FROM organization_invitations WHERE invited_by = :user_id AND organization_id = :organization_id;

-- name: record_organization_act(user_id uuid, email text, entry text, event text, organization jsonb, role text,
--                               details jsonb, origin jsonb, acted_at timestamptz)
-- The entry of the audit log, and the event, which says the organization and the role besides the user.
WITH event AS MATERIALIZED (
  SELECT gen_random_uuid() AS id WHERE :event IS NOT NULL
), written AS (
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables)
  SELECT gen_random_uuid(), :user_id, 'webhook', :event, w.id,
         jsonb_build_object('event_id', event.id, 'timestamp', iso_8601(:acted_at), 'data',
           jsonb_build_object('organization', :organization)
           || CASE WHEN :user_id IS NULL THEN '{}'
                   ELSE jsonb_build_object(
                          'role', :role, 'user', jsonb_build_object('id', :user_id, 'email', :email)) END)
    FROM event
    JOIN webhooks AS w ON :event = ANY (w.events) AND w.disabled_at IS NULL
)
SELECT record_acts_at(:acted_at, :origin, :user_id, :email, ARRAY[:entry], '{}', :details);

-- For the janitor.

-- name: end_members_of_ended_organizations(batch integer, reason text, reach text, keys_up_to text, with_grants boolean)
-- Removes memberships, and ends the users' sessions of applications for the organization, or of applications
-- that admit its members alone.
WITH batch AS MATERIALIZED (
  SELECT m.user_id, m.organization_id
    FROM memberships AS m
    JOIN organizations AS o ON o.id = m.organization_id AND o.ended_at IS NOT NULL
   LIMIT :batch
), locked AS MATERIALIZED (
  SELECT u FROM users AS u WHERE u.id = ANY (ARRAY(SELECT user_id FROM batch)) ORDER BY u.id FOR UPDATE OF u
), ended AS MATERIALIZED (
  SELECT (locked.u).id AS user_id,
         end_lost_sessions(locked.u, :reason, :reach, :keys_up_to, :with_grants, clock_timestamp())
    FROM locked
)
DELETE FROM memberships AS m
 USING batch
  JOIN ended ON ended.user_id = batch.user_id
 WHERE m.user_id = batch.user_id AND m.organization_id = batch.organization_id;

-- name: delete_clients_of_ended_organizations(batch integer, origin jsonb)
DELETE FROM oauth_clients AS c
 WHERE c.id = ANY (ARRAY(
         SELECT own.id
           FROM oauth_clients AS own
           JOIN organizations AS o ON o.id = own.organization_id AND o.ended_at IS NOT NULL
          WHERE NOT EXISTS (SELECT FROM memberships AS m WHERE m.organization_id = o.id)
          LIMIT :batch FOR UPDATE OF own SKIP LOCKED))
RETURNING record_acts_at(now(), :origin, NULL, NULL, '{client_deleted}', '{}',
                         jsonb_build_object('client_id', c.id, 'client', c.name) || '{"because": "organization_ended"}');

-- name: delete_ended_organizations(batch integer)
-- Afterwards the short name is free again.
DELETE FROM organizations AS o
 WHERE o.id = ANY (ARRAY(
         SELECT ended.id
           FROM organizations AS ended
          WHERE ended.ended_at IS NOT NULL
            AND NOT EXISTS (SELECT FROM memberships AS m WHERE m.organization_id = ended.id)
            AND NOT EXISTS (SELECT FROM oauth_clients AS c WHERE c.organization_id = ended.id)
            AND NOT EXISTS (SELECT FROM identity_providers AS p WHERE p.organization_id = ended.id)
          LIMIT :batch FOR UPDATE OF ended SKIP LOCKED));

-- name: delete_expired_invitations(batch integer)
DELETE FROM organization_invitations AS i
 WHERE i.id = ANY (ARRAY(
         SELECT expired.id FROM organization_invitations AS expired WHERE expired.expires_at <= now()
          LIMIT :batch FOR UPDATE OF expired SKIP LOCKED));

-- For pages, the console and commands.

-- name: select_invited(email text) -> row
-- Whether an address has an open invitation, and may therefore have a user while sign-up is closed.
SELECT EXISTS (SELECT
                 FROM organization_invitations AS i
                 JOIN organizations AS o ON o.id = i.organization_id AND o.ended_at IS NULL
                WHERE i.email = :email AND i.expires_at > clock_timestamp()) AS is_invited;

-- name: select_member_of(organization_id uuid, user_id uuid) -> row? (email?, name?)
SELECT m.user_id AS id, m.role, u.email, name_of(u.user_metadata) AS name
  FROM memberships AS m
  JOIN users AS u ON u.id = m.user_id
 WHERE m.organization_id = :organization_id AND m.user_id = :user_id;

-- name: list_memberships_of_user(user_id uuid) -> row
-- A user's memberships with all columns, by name.
SELECT coalesce(jsonb_agg(jsonb_build_object(
                            'id', o.id, 'slug', o.slug, 'name', o.name, 'role', m.role, 'added_by', m.added_by,
                            'created_at', iso_8601(m.created_at)) ORDER BY lower(o.name), o.slug), '[]')::text
         AS memberships
  FROM memberships AS m
  JOIN organizations AS o ON o.id = m.organization_id
 WHERE m.user_id = :user_id AND o.ended_at IS NULL;

-- name: list_exported(after_slug text, most integer) -> rows
-- Organizations with their domains, providers and members, by short name, for a file. No secrets.
SELECT o.slug,
       jsonb_build_object(
         'id', o.id, 'slug', o.slug, 'name', o.name, 'app_metadata', o.app_metadata::jsonb,
         'requires', jsonb_strip_nulls(jsonb_build_object(
            'aal', o.level, 'own_provider', o.needs_own_provider, 'max_age', extract(epoch FROM o.max_age)::integer)),
         'domains', (SELECT coalesce(jsonb_agg(organization_domain(d) ORDER BY d.domain), '[]')
                       FROM organization_domains AS d
                      WHERE d.organization_id = o.id),
         'providers', (SELECT coalesce(jsonb_agg(provider_object(p) ORDER BY p.created_at, p.id), '[]')
                         FROM identity_providers AS p
                        WHERE p.organization_id = o.id),
         'members', (SELECT coalesce(jsonb_agg(jsonb_build_object('user_id', m.user_id, 'email', u.email,
                                                                  'role', m.role)
                                               ORDER BY m.created_at, m.user_id), '[]')
                       FROM memberships AS m
                       JOIN users AS u ON u.id = m.user_id
                      WHERE m.organization_id = o.id))::text AS line
  FROM organizations AS o
 WHERE o.ended_at IS NULL AND o.slug > :after_slug
 ORDER BY o.slug
 LIMIT :most;

-- name: select_roles(organization_id uuid, most integer) -> row
-- The roles in use: those of the first `most` members, and of invitations.
SELECT ARRAY(SELECT first.role
               FROM (SELECT m.role
                       FROM memberships AS m
                      WHERE m.organization_id = :organization_id
                      ORDER BY m.created_at, m.user_id
                      LIMIT :most) AS first
              UNION
             SELECT i.role FROM organization_invitations AS i WHERE i.organization_id = :organization_id
              ORDER BY role) AS roles;

-- name: count_all_members(organization_id uuid) -> row
SELECT count(*) AS total FROM memberships WHERE organization_id = :organization_id;

-- name: count_organizations() -> row
SELECT count(*) AS total FROM organizations WHERE ended_at IS NULL;

-- name: count_members(organization_id uuid, most integer) -> row
-- Counts the first `most` members, and those of them without a second factor or passkey.
SELECT count(*) AS members, count(*) FILTER (WHERE own.oldest IS NULL) AS without_factor
  FROM (SELECT user_id
          FROM memberships
         WHERE organization_id = :organization_id
         ORDER BY created_at, user_id
         LIMIT :most) AS m
 CROSS JOIN factors_of(m.user_id) AS own;
