"""What an operator runs: the worker that gunicorn starts, and the embedded Postgres."""
