# One entry point for everything: `make help` lists the targets.
# The first call that needs it makes .venv from requirements.lock; later calls start at once.

PYTHON ?= python3
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

READY := .venv/ready
HUB := .venv/hub/ready
# Tests start `nbgrader` and `jupyter` by name, so the environment comes first on the path.
VENV := PATH="$(CURDIR)/.venv/bin:$$PATH"
# Another environment may be active. IPython would warn about it, and tests treat warnings as errors.
unexport VIRTUAL_ENV
PIP_INSTALL := -m pip install -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint test-processor test-browser pictures lab instructor hub as-root site dist build check model bench gpu lock clean python

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do \
		printf '  make %-14s  %s\n' "$$name" "$$what"; done

demo: $(READY) ## grade a sample class in a scratch folder
	@$(VENV) python examples/demo.py

# Three workers share what are often two cores. If each also started a thread for every core,
# they would wait for one another, and torch would add up floats in another order. (A lesson, and all
# that imports autograde.notebook, computes on one thread anyway; this is for NumPy and the rest.)
test test-all lint: export OMP_NUM_THREADS = 1
test: lint ## lint, type check, then the tests for every change
	@$(VENV) python -m pytest -m 'not nightly'

test-all: lint ## the same and all slow tests: attacks, crashes, whole stories in a browser
	@$(VENV) python -m pytest

lint: $(READY)
	@$(VENV) ruff check --quiet .
	@$(VENV) ruff format --check --quiet . || { echo 'Not formatted; run: .venv/bin/ruff format .' >&2; exit 1; }
	@$(VENV) mypy --no-error-summary

# torch's last bits differ between processors; these variables make this one compute like an older one.
test-processor: export OMP_NUM_THREADS = 1
test-processor: export MKL_CBWR = COMPATIBLE
test-processor: export ATEN_CPU_CAPABILITY = default
test-processor: export ONEDNN_MAX_CPU_ISA = SSE41
test-processor: $(READY) ## what is committed, judged as on another processor
	@$(VENV) python -m pytest solutions tests/test_lesson.py tests/test_judge.py \
		tests/test_build.py::test_what_is_committed_is_up_to_date

test-browser: $(READY) ## the tests that open pages in Chromium
	@$(VENV) python -m pytest --numprocesses=0 tests/browser

pictures: $(READY) ## retake docs/pictures in Chromium; needs bubblewrap
	@$(VENV) python -m pytest --numprocesses=0 --pictures \
		tests/browser/test_story.py tests/browser/test_pages.py tests/browser/test_explorer.py

lab: $(READY) ## open JupyterLab on the lessons, in a working copy in work/
	@$(VENV) autograde lab

site: $(READY) ## the lessons as pages to read, without answers, in build/site
	@$(VENV) autograde site

instructor: $(READY) ## open JupyterLab with Formgrader on this course
	@$(VENV) autograde instructor

hub: PORT ?= 8000
hub: as-root $(HUB) ## a JupyterHub with three students, to try; needs root, Node and npm
	@exec env $(VENV) python deploy/hub/hub.py $(PORT) $(OPTIONS)

as-root:
	@test "$$(id -u)" -eq 0 || { echo 'A hub adds users to the system, so it needs root: sudo make hub' >&2; exit 1; }

dist: $(READY) ## a wheel with the lessons in dist/, all that a student installs
	@$(VENV) autograde dist

build: $(READY) ## make notebooks/ and solutions/ from source/
	@$(VENV) autograde build

check: $(READY) ## run every right and wrong variant against its rubric
	@$(VENV) autograde check

model: $(READY) ## train the models that come with the course; eight minutes
	@$(VENV) python model/train_model.py

bench: $(READY) ## seconds per submission, next to nbgrader's; needs bubblewrap
	@$(VENV) python benchmarks/speed.py

gpu: $(READY) ## write docs/gpu.md: rubrics, outputs and times on this machine's GPU; four minutes
	@mkdir -p build
	@$(VENV) python benchmarks/gpu.py >build/gpu.md && mv build/gpu.md docs/gpu.md

# Resolves pyproject.toml from scratch, in an environment of its own. torch stays at its version,
# because stored outputs and tolerances were measured with it; to move it, edit its line first.
# soupsieve stays too: version 3 needs the `re` of Python 3.11.5, and Debian 12 has 3.11.2.
# The part after "+" in a version and the CUDA libraries are left out: they depend on the machine.
lock: python ## pin the newest versions that fit pyproject.toml; torch stays
	@rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	@grep -E '^(torch|soupsieve)==' requirements.lock > .venv-lock/stay.txt
	@.venv-lock/bin/python $(PIP_INSTALL) -c .venv-lock/stay.txt -e '.[dev]'
	@{ grep '^#' requirements.lock; \
		.venv-lock/bin/python -m pip freeze --all --exclude-editable --exclude pip --exclude wheel \
		| sed 's/+.*//' | grep -vE '^(nvidia|cuda|triton)'; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock && rm -rf .venv-lock
	@echo 'requirements.lock is new. Give environment.yml the same versions.'

clean: ## remove the environment and the caches, never grades or submissions
	@rm -rf .venv .venv-lock build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml
	@test -x .venv/bin/pip || $(MAKE) --no-print-directory python
	@test -x .venv/bin/pip || $(PYTHON) -m venv .venv
	@echo 'Setting up .venv: 1.9 GB on disk with PyTorch for CPUs, more where pip brings CUDA.' \
		'The first time takes a few minutes.' >&2
	@.venv/bin/python $(PIP_INSTALL) -r requirements.lock
	@.venv/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@ln -sfn "$(CURDIR)/autograde/workspace/jupyter/labextensions/autograde-page" \
		.venv/share/jupyter/labextensions/autograde-page  # an editable install leaves it out
	@.venv/bin/python -m compileall -q autograde attention_course  # a read-only container cannot do it later
	@touch $@

$(HUB): $(READY) deploy/hub/requirements.lock deploy/hub/package-lock.json
	@command -v npm >/dev/null || { \
		echo 'The proxy of a hub needs Node 18 or newer and npm.' \
			'On Debian and Ubuntu: sudo apt-get install nodejs npm' >&2; exit 1; }
	@.venv/bin/python $(PIP_INSTALL) -r deploy/hub/requirements.lock
	@mkdir -p .venv/hub && cp deploy/hub/package*.json .venv/hub
	@npm ci --silent --no-audit --no-fund --prefix .venv/hub
	@touch $@

# Says what to do when this machine's Python cannot make the environment.
python:
	@command -v $(PYTHON) >/dev/null || { \
		echo '$(PYTHON) was not found. Install Python 3.11 or newer,' \
			'or name one: make PYTHON=/path/to/python3.11 test' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$$($(PYTHON) --version) is too old, 3.11 or newer is needed." \
			'If you have a newer one, name it: make PYTHON=python3.11 test' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo 'Python is here, but not its venv module.' \
			'On Debian and Ubuntu: sudo apt-get install python3-venv' >&2; exit 1; }
