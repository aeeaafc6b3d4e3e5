ALTER TABLE oauth_clients
  ADD COLUMN gate_origin text CONSTRAINT oauth_clients_gate_origin_key UNIQUE;
