CREATE TABLE key_fingerprints (
  setting      text NOT NULL,
  fingerprint  text NOT NULL,
  PRIMARY KEY (setting, fingerprint)
);
