"""What an operator runs: the embedded Postgres and the processes of the service."""
