CREATE TABLE hourly_counts (
  hour   timestamptz NOT NULL,
  name   text NOT NULL,
  count  bigint NOT NULL,
  PRIMARY KEY (hour, name)
);
