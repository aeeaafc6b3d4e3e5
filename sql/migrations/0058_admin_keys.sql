-- Usable from 0055
CREATE TABLE admin_keys (
  id            uuid PRIMARY KEY,
  name          text NOT NULL CONSTRAINT admin_keys_name_key UNIQUE,
  key_mac       bytea NOT NULL,
  scopes        text[] NOT NULL CHECK (cardinality(scopes) > 0),
  created_at    timestamptz NOT NULL DEFAULT now(),
  created_by    uuid,
  expires_at    timestamptz,
  last_used_on  date
);
ALTER TABLE users ADD COLUMN password_by_key boolean, ADD COLUMN email_by_key text, ADD COLUMN phone_by_key text;
ALTER DOMAIN session_end_reason DROP CONSTRAINT session_end_reason_check;
ALTER DOMAIN session_end_reason ADD CONSTRAINT session_end_reason_check CHECK (
  VALUE IN ('logout', 'ended_by_user', 'ended_by_admin', 'refresh_token_reused', 'password_changed',
            'email_changed', 'banned', 'address_proved', 'email_restored',
            'authorization_code_reused', 'too_many_sessions', 'way_to_sign_in_removed', 'change_undone',
            'factor_added', 'others_signed_out', 'phone_changed', 'identity_linked', 'recovered',
            'reset_by_admin', 'access_lost', 'restored', 'provider_disabled', 'promoted')
);
