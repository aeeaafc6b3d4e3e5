-- Usable from 0061
-- See factors in schema.sql.
ALTER TABLE factors DROP CONSTRAINT factors_factor_type_check;
ALTER TABLE factors ADD CONSTRAINT factors_factor_type_check CHECK (
    CASE factor_type
      WHEN 'totp' THEN secret IS NOT NULL AND credential_id IS NULL
      WHEN 'webauthn' THEN secret IS NULL AND (verified_at IS NULL) = (credential_id IS NULL)
      WHEN 'passkey' THEN secret IS NULL AND credential_id IS NOT NULL
      ELSE false
    END
  );
ALTER TABLE factor_challenges DROP CONSTRAINT factor_challenges_purpose_check;
ALTER TABLE factor_challenges ADD CONSTRAINT factor_challenges_purpose_check CHECK (
  purpose IN ('totp', 'webauthn', 'passkey_registration', 'passkey_upgrade', 'passkey_authentication')
);
DROP INDEX factors_unverified;
CREATE INDEX factors_unverified ON factors (created_at) WHERE verified_at IS NULL AND factor_type <> 'passkey';
CREATE INDEX factors_unused_passkeys ON factors (created_at) WHERE verified_at IS NULL AND factor_type = 'passkey';
