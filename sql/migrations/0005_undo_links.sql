ALTER TABLE one_time_tokens ADD COLUMN restores jsonb;
ALTER TABLE one_time_tokens
  DROP CONSTRAINT one_time_tokens_purpose_check,
  ADD CONSTRAINT one_time_tokens_purpose_check CHECK (
    purpose IN ('signup', 'sms_signup', 'invite', 'magiclink', 'recovery', 'sms', 'email_change',
                'phone_change', 'email_restore', 'reauthentication', 'undo')
  );

ALTER DOMAIN session_end_reason DROP CONSTRAINT session_end_reason_check;
ALTER DOMAIN session_end_reason ADD CONSTRAINT session_end_reason_check CHECK (
  VALUE IN ('logout', 'ended_by_user', 'ended_by_admin', 'refresh_token_reused', 'password_changed',
            'email_changed', 'banned', 'address_proved', 'email_restored',
            'authorization_code_reused', 'too_many_sessions', 'way_to_sign_in_removed', 'change_undone')
);
