ALTER TABLE users ADD COLUMN first_factor_at timestamptz;
UPDATE users AS u
   SET first_factor_at = first.at
  FROM (SELECT user_id, min(verified_at) AS at FROM factors WHERE verified_at IS NOT NULL GROUP BY user_id)
         AS first
 WHERE u.id = first.user_id;
CREATE INDEX sessions_user_id_ended_at ON sessions (user_id, ended_at) WHERE ended_at IS NOT NULL;
