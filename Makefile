PYTHON ?= python3
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test test-browser test-faults bench bench-large lint format

help:
	@echo 'make run      start the service on http://localhost:8000, with a Postgres of its own unless DATABASE_URL is set'
	@echo 'make test     run the tests on all cores, on Postgres servers of their own unless TEST_DATABASE_URL is set;'
	@echo '              ARGS="-k token -x" goes to pytest, ARGS="-n 0" runs them in one process'
	@echo 'make test-browser  run the tests of the pages in Chromium'
	@echo 'make test-faults  kill, stop, cut off and starve the service under load, for an hour; ARGS=--selection is what CI runs, in minutes'
	@echo 'make bench    measure how fast it is, in ten minutes; bench-large: with a million users, for which it first makes them'
	@echo 'make lint     check format, style and types'
	@echo 'make format   put the code into that format'
	@echo
	@echo 'Each one first installs what it needs into .venv. PYTHON=python3.12 chooses the interpreter (3.11 or newer).'
	@echo 'Settings are environment variables, or lines in .env: see docs/settings.md.'

# exec: gunicorn takes the place of the shell, so that the signals make passes on reach it.
run:
	@$(PYTHON) make_venv.py
	@exec .venv/bin/gunicorn wsgi:app

test:
	@$(PYTHON) make_venv.py test
	@exec .venv/bin/pytest -n auto -m 'not browser' $(ARGS)

test-browser:
	@$(PYTHON) make_venv.py test
	@exec .venv/bin/pytest -m browser $(ARGS)

test-faults:
	@$(PYTHON) make_venv.py test
	@exec .venv/bin/pytest tests/faults $(ARGS)

lint:
	@$(PYTHON) make_venv.py test lint
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy

format:
	@$(PYTHON) make_venv.py lint
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

bench:
	@$(PYTHON) make_venv.py
	@exec .venv/bin/python -m bench report

bench-large:
	@$(PYTHON) make_venv.py
	@exec .venv/bin/python -m bench report-large
