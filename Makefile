# `make help` lists the targets. Everything runs in .venv, which `make setup` makes from pyproject.toml and constraints.txt.
# `make setup PYTHON=/path/to/python3.12` picks another Python than the first one found.
python := .venv/bin/python
# The modules of a site put packages of a different Python on PYTHONPATH, and these would come before those of .venv.
unexport PYTHONPATH PYTHONHOME
PORT ?=
ADDRESS ?=
COPY ?=
# The tests end after this many seconds, whatever hangs.
TEST_SECONDS ?= 5000
limit = $(if $(shell command -v timeout),timeout --kill-after=30 $(TEST_SECONDS))
# Three processes on two cores, for most tests wait more than they compute; tests/conftest.py says who gets what.
PROCESSES ?= 3
PYTEST_OPTIONS ?= --verbose --durations=25 --reruns=1 --numprocesses=$(PROCESSES)

.DEFAULT_GOAL := help
.PHONY: help setup lab test test-all test-weekly nbval lint mutants notebooks notebooks-check slides site times clean

help:
	@echo "make lab              set up, and open the first lesson in JupyterLab (PORT=8899, COPY=~/mine)"
	@echo "make test             set up, and run the tests (with CI=true, a missing browser is a failure)"
	@echo "make test-all         run the long tests too, as CI does: the whole website, Slurm jobs, some decks"
	@echo "make test-weekly      run the tests that both leave out: the other decks, solutions and answers"
	@echo "make nbval            run every notebook with nbval and compare its outputs (LESSONS='04 05')"
	@echo "make setup            only set up: make .venv, with the exact versions of constraints.txt"
	@echo "                      (without a network: WHEELS=FOLDER, which tools/fetch-wheels FOLDER fills)"
	@echo "make lint             check style (ruff), types (mypy) and the direction of imports (import-linter)"
	@echo "make mutants          find mistakes that the checks overlook; takes minutes (MUTANTS=NAME)"
	@echo "make notebooks        build notebooks, exercises and solutions from their src folders"
	@echo "make notebooks-check  fail if a committed notebook differs from what its source gives"
	@echo "make slides           build the slides and, if Chromium is installed, PDFs: slides, notes, handouts"
	@echo "make site             run all lessons and build a website from them: site/build"
	@echo "make times            run every page and print its seconds and its slowest cell (LESSONS='04 05')"
	@echo "make clean            remove everything that was built here, .venv included; notebooks stay"

setup: export PYTHONPATH := $(PYTHONPATH)
setup:
	@tools/set-up

lab: setup
	@$(if $(PYTHONPATH),echo "PYTHONPATH is set aside. To keep it: .venv/bin/python -m course_utils.lab" >&2;) \
	$(python) -m course_utils.lab $(if $(PORT),--port $(PORT)) $(if $(ADDRESS),--address $(ADDRESS)) $(if $(COPY),--copy '$(COPY)')

test: WHICH = -m "not long and not weekly"
test-all: WHICH = -m "not weekly"
test-weekly: WHICH = -m weekly
test test-all test-weekly: setup
	@$(limit) $(MAKE) --no-print-directory checks-and-tests WHICH='$(WHICH)'

.PHONY: checks-and-tests
checks-and-tests: notebooks-check lint
	$(python) -m pytest $(WHICH) $(PYTEST_OPTIONS)

nbval: setup
	@$(python) tests/run_notebook.py $(LESSONS)

lint: setup
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy
	.venv/bin/lint-imports --no-cache --no-logo

mutants: setup
	$(python) -m workshop.mutants $(MUTANTS)

notebooks: setup
	$(python) -m workshop.publish build

notebooks-check: setup
	$(python) -m workshop.publish check

slides: setup
	$(python) -m workshop.publish slides

site: setup
	@tools/set-up-beside site
	$(python) -m workshop.publish site

times: setup
	@$(python) -m workshop.publish times $(LESSONS)

clean:
	rm -rf .venv site/build slides/build .mypy_cache .pytest_cache .ruff_cache build *.egg-info tests/screenshots
