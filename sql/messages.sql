-- name: take_from_quota(quota_keys text[], quota_amounts integer[], quota_seconds integer[])
-- Counts a message in each of its windows; `seconds_left` is above 0 when one of them allows no more.
SELECT * FROM take_from_quota(:quota_keys, :quota_amounts, :quota_seconds);

-- name: write_token(token_id uuid, user_id uuid, purpose text, target text, token_hash bytea, link_lifetime integer, code_mac bytea,
--                   code_lifetime integer, redirect_to text, code_challenge text, session_id uuid, password_hash text)
-- Inserts a one-time token; does nothing for a null user, so that a request for an unknown address runs the same statements.
SELECT write_token(:token_id, :user_id, :purpose, :target, :token_hash, :link_lifetime, :code_mac, :code_lifetime, :redirect_to,
                   :code_challenge, :session_id, :password_hash)
 WHERE :user_id IS NOT NULL;

-- name: write_message(message_id uuid, user_id uuid, kind text, recipient text, message_variables jsonb, message_secret bytea,
--                     token_id uuid, lifetime integer)
-- Inserts a mail or an SMS into the outbox. Kind `none` inserts a row that is never sent.
SELECT write_message(:message_id, :user_id, :kind, :recipient, :message_variables, :message_secret, :token_id, :lifetime);
