PYTHON ?= python3
ARGS ?=
# Written at the end of an installation.
CLIENTS = $(addsuffix /node_modules/.package-lock.json,tests/system/clients examples/express)

.DEFAULT_GOAL := help
.PHONY: help targets run test test-all test-source test-system wheels test-browser test-clients test-interop test-faults test-trials bench bench-large lint lint-openapi queries budgets format lock audit release

help:
	@echo 'make run      start the service on http://localhost:8000, with an embedded Postgres unless DATABASE_URL is set'
	@echo 'make test     run the tests of one process on all cores, with temporary Postgres servers unless TEST_DATABASE_URL is set;'
	@echo '              ARGS="-k token -x" is passed to pytest; ARGS="-n 0" runs them in one process;'
	@echo '              TEST_SHUFFLE=7 runs them in another order, the same for each number'
	@echo 'make test-all run these, tests/source, and tests/system, which start programs, in nine minutes; skips what needs programs that'
	@echo '              are missing'
	@echo 'make lint     check formatting, style and types, and run tests/source, which read the code and the documents'
	@echo 'make format   format the code'
	@echo
	@echo 'make targets  lists the others: parts of the tests, benchmarks, and what a release needs'
	@echo
	@echo 'Each target first installs its dependencies into .venv. PYTHON=python3.12 selects the interpreter (3.11 to 3.14).'
	@echo 'Settings are environment variables or lines of .env; see docs/settings.md.'

targets:
	@echo 'make test-source   run tests/source; test-system: run tests/system'
	@echo 'make test-browser  test the pages, the JavaScript client of Supabase, and applications that sign users in here, in Chromium'
	@echo 'make test-clients  test the JavaScript clients of Supabase, and the example for Express, with Node.js'
	@echo 'make test-interop  test the Supabase clients for Go, Rust and Kotlin, the example for Spring, and OpenID applications'
	@echo 'make test-faults   kill, freeze, disconnect and starve the service'
	@echo 'make test-trials   install, upgrade, back up, restore, rotate and fuzz the service under load, for minutes, as in CI'
	@echo 'make bench         measure the performance, in 15 minutes; bench-large: with a million users, which it creates first'
	@echo 'make lint-openapi  check openapi.yaml with Redocly CLI, which needs Node.js'
	@echo 'make queries       write sql/queries.pyi, the types of the statements'
	@echo 'make budgets       write tests/system/reached.json, what requests may run'
	@echo 'make wheels        ask the package index for wheels of all packages, for each machine and Python that is promised'
	@echo 'make lock          write requirements.lock, the hashes of the packages that a release installs, with constraints.txt'
	@echo 'make audit         ask for advisories about them'
	@echo 'make release       build the wheel and the list of what it installs, after both, into dist'

# exec replaces the shell, so that signals from make reach gunicorn.
run:
	@$(PYTHON) make_venv.py --serves
	@exec .venv/bin/gunicorn wsgi:app

# With bytecode, in which pytest keeps the rewritten assertions: to rewrite them takes each worker ten seconds.
test:
	@$(PYTHON) make_venv.py test
	@exec env PYTHONDONTWRITEBYTECODE= .venv/bin/pytest -n auto $(ARGS)

# Even if some fail. What alone takes minutes is in tests/system/trials, which CI runs too.
test-all:
	@$(MAKE) --keep-going test test-source test-system

test-source:
	@$(PYTHON) make_venv.py test
	@exec .venv/bin/pytest tests/source $(ARGS)

%/node_modules/.package-lock.json: %/package-lock.json
	npm ci --prefix $*

# Those of examples/spring need Maven, and belong to test-interop.
test-system:
	@$(PYTHON) make_venv.py test
	@if command -v npm >/dev/null; then $(MAKE) $(CLIENTS); fi
	@export PYTHONDONTWRITEBYTECODE=; failed=; .venv/bin/pytest -n auto tests/system -k 'not spring' $(ARGS) || failed=yes; \
	  .venv/bin/pytest -n auto tests/system/faults $(ARGS) || failed=yes; test -z "$$failed"

test-browser:
	@$(PYTHON) make_venv.py test
	@if command -v npm >/dev/null; then $(MAKE) $(firstword $(CLIENTS)); fi
	@exec .venv/bin/pytest -n auto tests/system/browser $(ARGS)

test-clients:
	@$(PYTHON) make_venv.py test
	@$(MAKE) $(CLIENTS)
	@exec .venv/bin/pytest tests/system/clients tests/system/examples -k 'javascript or express' $(ARGS)

test-interop:
	@$(PYTHON) make_venv.py test
	@if command -v npm >/dev/null; then for each in mcp applications/authjs ../clients; do \
	  npm ci --ignore-scripts --prefix tests/system/interop/$$each || exit; done; fi
	@.venv/bin/pytest tests/system/interop $(ARGS)
	@exec .venv/bin/pytest tests/system/examples -k spring $(ARGS)

test-faults:
	@$(PYTHON) make_venv.py test
	@exec .venv/bin/pytest -n auto tests/system/faults $(ARGS)

test-trials:
	@$(PYTHON) make_venv.py test
	@exec .venv/bin/pytest -n auto tests/system/trials $(ARGS)

lint:
	@$(PYTHON) make_venv.py test lint
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/pytest -q tests/source

# After a change of a statement or the schema: Postgres describes the statements.
queries:
	@$(PYTHON) make_venv.py test
	@exec .venv/bin/python -m tests.support.query_stubs

# After a change that lets a request run more. Not on two cores: these tests write one file.
budgets:
	@$(PYTHON) make_venv.py test
	@exec env WRITE_BUDGETS=1 .venv/bin/pytest -q -n 0 tests/system/test_walkthrough.py tests/system/test_python_calls*.py

# Before a release. For each machine and Python, it takes pip a minute.
wheels:
	@$(PYTHON) make_venv.py test
	@exec .venv/bin/python -m tests.support.promised_wheels

lint-openapi:
	@cd tests/contract && npm ci --ignore-scripts
	REDOCLY_TELEMETRY=off tests/contract/node_modules/.bin/redocly lint openapi.yaml

format:
	@$(PYTHON) make_venv.py lint
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

bench:
	@$(PYTHON) make_venv.py
	@exec .venv/bin/python -m bench report

bench-large:
	@$(PYTHON) make_venv.py
	@.venv/bin/python -m bench report-large
	@exec .venv/bin/python -m bench report-console

# For every promised Python and machine: uv writes markers where packages differ.
lock:
	@$(PYTHON) make_venv.py release
	@.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command 'make lock' \
	  --constraint constraints.txt --output-file requirements.lock setup.cfg > /dev/null

# First of a package with a known vulnerability: a mirror without advisories would find none in ours either. pip-audit skips lines
# with markers of other Pythons, so they go.
audit:
	@$(PYTHON) make_venv.py release
	@mkdir -p build
	@echo jinja2==2.10 > build/vulnerable.txt
	@.venv/bin/pip-audit --disable-pip --no-deps --requirement build/vulnerable.txt --aliases on > build/audit.txt 2>&1; \
	  grep -q CVE-2019-10906 build/audit.txt || \
	  { cat build/audit.txt; echo 'NOTHING WAS AUDITED: pypi.org, as reached from here, has no advisory about jinja2 2.10.'; exit 1; }
	@sed 's/ ;[^\\]*/ /' requirements.lock > build/audited.txt
	@exec .venv/bin/pip-audit --disable-pip --require-hashes --requirement build/audited.txt --strict

# Of committed files only: others of this folder may be secrets.
release: lock audit
	git diff --exit-code HEAD
	@$(PYTHON) make_venv.py test release
	rm -rf dist build/release
	mkdir -p build/release
	git archive HEAD | tar -x -C build/release
	.venv/bin/python -m build --wheel --outdir dist build/release
	.venv/bin/python -m tests.support.release_contents dist/latchkey_auth-*.whl
	cd dist && sha256sum latchkey_auth-* > SHA256SUMS
