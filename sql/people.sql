-- The facts about one person that acts decide about: `Person` and `ProvedSession` of auth/rules.

-- name: select_person(user_id uuid, session_id uuid)
--   -> row? (email?, email_confirmed_at?, new_email?, phone?, phone_confirmed_at?, new_phone?, converted_at?,
--     banned_until?, last_sign_in_at?, password_hash?, sign_up_hash?, password_leaked_at?, invited_at?,
--     first_factor_at?, oldest_factor_at?, method?, aal?, session_created_at?, refreshed_at?, ended_at?,
--     reauthenticated_at?, factor_proved_at?, code_given_at?, first_passkey_at?, opened_by?, resource?, amr?,
--     authenticated_at?)
-- The session's columns are null if the user has none of this id. Acts run it with the user locked.
SELECT u.id, u.role, u.made_by, u.created_at, u.converted_at, u.banned_until, u.last_sign_in_at,
       u.email, u.email_confirmed_at, u.email_proved, u.new_email,
       u.phone, u.phone_confirmed_at, u.phone_proved, u.new_phone,
       coalesce(added.email_at, u.created_at) AS email_added_at,
       coalesce(added.phone_at, u.created_at) AS phone_added_at,
       u.password_hash, u.sign_up_hash, u.password_vouched IS TRUE AS is_password_vouched, u.password_leaked_at,
       u.password_by_key IS TRUE AS is_password_by_key, (u.email = u.email_by_key) IS TRUE AS is_email_by_key,
       u.invited_at,
       u.user_metadata::jsonb, u.app_metadata::jsonb,
       u.first_factor_at, verified.oldest AS oldest_factor_at, verified.has_second_step,
       s.method, s.aal, s.created_at AS session_created_at, s.refreshed_at, end_of(s) AS ended_at, s.reauthenticated_at,
       s.factor_proved_at, s.code_given_at, s.first_passkey_at, s.opened_by, s.resource, s.amr,
       authenticated_at(s) AS authenticated_at,
       -- Nodes of 0.7.0 do not write `by_key`: a key's password or address then makes the session the key's.
       (s.id IS NOT NULL AND coalesce(s.by_key, u.password_by_key OR u.email = u.email_by_key OR u.phone = u.phone_by_key))
         IS TRUE AS is_session_by_key,
       clock_timestamp() AS now
  FROM users AS u
  LEFT JOIN sessions AS s ON s.id = :session_id AND s.user_id = u.id
 CROSS JOIN factors_of(u.id) AS verified
 CROSS JOIN LATERAL (
         SELECT max(i.updated_at) FILTER (WHERE i.provider = 'email'),
                max(i.updated_at) FILTER (WHERE i.provider = 'phone')
           FROM identities AS i
          WHERE i.user_id = u.id
       ) AS added (email_at, phone_at)
 WHERE u.id = :user_id;

-- name: find_holder(address text) -> row (id?)
SELECT (SELECT id FROM users WHERE email = :address OR phone = :address) AS id;

-- name: find_recipient(address text, purpose text) -> row (holder_id?, waiting_id?)
-- The user who has an address, and the last user who waits for it as a new one.
SELECT (SELECT id FROM users WHERE email = :address OR phone = :address) AS holder_id,
       (SELECT id
          FROM users
         WHERE :purpose = 'email_change' AND new_email = :address
            OR :purpose = 'phone_change' AND new_phone = :address
         ORDER BY CASE :purpose WHEN 'email_change' THEN email_change_sent_at
                                WHEN 'phone_change' THEN phone_change_sent_at END DESC
         LIMIT 1) AS waiting_id;
