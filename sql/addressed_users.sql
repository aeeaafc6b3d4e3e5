-- name: insert_addressed_user(new_id uuid, email text, phone text, password_hash text,
--                             user_metadata jsonb, app_metadata jsonb, made_by text,
--                             is_invited boolean, by_key boolean) -> row?
-- Inserts no user without an id, or if the address is taken. It is the first statement of an act, whose time
-- is BEGIN.
WITH created AS (
  INSERT INTO users (id, email, phone, password_hash, user_metadata, app_metadata,
                     made_by, invited_at, confirmation_sent_at, password_vouched, password_by_key)
  SELECT :new_id, :email, :phone, :password_hash,
         merge_metadata('{}', :user_metadata::user_metadata), merge_metadata('{}', :app_metadata::app_metadata),
         :made_by, CASE WHEN :is_invited THEN now() END, now(), :password_hash IS NOT NULL,
         nullif(:by_key, false)
   WHERE :new_id IS NOT NULL
  ON CONFLICT DO NOTHING
  RETURNING users
), identified AS (
  INSERT INTO identities (user_id, provider, subject, identity_data)
  SELECT own.* FROM created CROSS JOIN own_identities(created.users) AS own
)
SELECT (users).id FROM created;

-- name: take_over_unconfirmed(user_id uuid, user_metadata jsonb, is_invited boolean,
--                             acted_at timestamptz)
UPDATE users
   SET user_metadata = merge_metadata(user_metadata, :user_metadata::user_metadata),
       made_by = 'link', password_vouched = password_hash IS NOT NULL,
       invited_at = CASE WHEN :is_invited THEN :acted_at ELSE invited_at END,
       confirmation_sent_at = :acted_at
 WHERE id = :user_id;

-- name: request_email_change(user_id uuid, new_email text, acted_at timestamptz)
UPDATE users SET new_email = :new_email, email_change_sent_at = :acted_at WHERE id = :user_id;

-- name: renew_invitation(user_id uuid, user_metadata jsonb, app_metadata jsonb,
--                        acted_at timestamptz)
-- Groups of several invitations add up.
UPDATE users
   SET user_metadata = merge_metadata(user_metadata, :user_metadata::user_metadata),
       app_metadata = merge_metadata(app_metadata, :app_metadata::app_metadata || (
         SELECT CASE WHEN jsonb_typeof(theirs) = 'array' AND jsonb_typeof(added) = 'array'
                     THEN jsonb_build_object('groups', (SELECT jsonb_agg(DISTINCT name)
                                                          FROM jsonb_array_elements(theirs || added) AS name))
                     ELSE '{}' END
           FROM (SELECT app_metadata -> 'groups' AS theirs, :app_metadata::app_metadata -> 'groups' AS added) AS groups
       )),
       invited_at = :acted_at,
       confirmation_sent_at = :acted_at,
       updated_at = :acted_at
 WHERE id = :user_id;
