-- name: record_refusal(user_id uuid, address text, token_hash bytea, action text, reason text, details jsonb,
--                      origin jsonb)
-- Commits asynchronously: the row acknowledges nothing, and a flood must not keep the disk busy.
SELECT set_config('synchronous_commit', 'off', true) AS setting,
       record_refusal(:origin,
                      coalesce(:user_id,
                               (SELECT id FROM users WHERE email = :address OR phone = :address),
                               (SELECT user_id FROM one_time_tokens WHERE token_hash = :token_hash)),
                      :action, :reason, :details) AS recorded;

-- name: record_acts(user_id uuid, email text, acts text[], events text[], details jsonb, origin jsonb)
SELECT record_acts(:origin, :user_id, :email, :acts, :events, :details);
