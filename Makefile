# Plain POSIX make. Each step leaves a stamp in $(VENV), so a second call goes straight to its work.
#   make run        install what is needed, fetch the Spark packages once, serve http://127.0.0.1:8175 with the demo
#   make test       the suite                make test-soak   random programs, queries and streams; kills; load
#   make test-long  all of both, with the tests that take minutes
#   make test-cluster  cases, suites and kills on a Spark cluster that is started for it; needs root
#   make lint       flake8 and mypy          make bench       the benchmark table
#   make clean      remove the environment and caches (the data folder .thalweg/ stays)
# Settings: PYTHON=python3.12 (else the first fitting one is used), ARGS='--port 9000' for run, TESTS='-k windows' for test.
.POSIX:

VENV = .venv
BIN = $(VENV)/bin
PYTHON =
ARGS =
TESTS =
# Memory that a small statement of DuckDB frees is kept at hand for the next, as in Spark's workers (engine/spark/settings.py).
MALLOC = GLIBC_TUNABLES=$${GLIBC_TUNABLES:-glibc.malloc.tcache_count=2000}
PYTEST = $(MALLOC) $(BIN)/python -m pytest -q
BESIDE = -n 2 --dist loadfile --no-loadscope-reorder
CLUSTER = $(MALLOC) $(BIN)/python -m tests.cluster $(BIN)/python -m pytest -q
SUITE = $(MALLOC) $(BIN)/python -m tests.conformance
SHARED = $${THALWEG_SHARED:-../shared/data}
PIP = $(BIN)/python -m pip --disable-pip-version-check --no-input

all: install

install: $(VENV)/.installed

run: $(VENV)/.spark
	@echo "==> starting Thalweg (stop it with Ctrl-C)"
	@exec $(BIN)/thalweg serve --demo $(ARGS)

test: $(VENV)/.dev $(VENV)/.spark
	@$(PYTEST) $(BESIDE) $(TESTS)

test-soak: $(VENV)/.dev $(VENV)/.spark
	@$(PYTEST) $(BESIDE) -m "soak and not long" $(TESTS)

# Beside a cluster on this machine, whose workers see nothing of the driver's but one folder; needs root.
test-cluster: $(VENV)/.dev $(VENV)/.spark
	@$(CLUSTER) tests/server/test_on_cluster.py
	@$(CLUSTER) tests/test_cases_on_spark.py tests/test_cases_by_spark_sql.py
	@$(SUITE) csrbench $(SHARED)/csrbench --executor cluster
	@$(SUITE) lubm $(SHARED)/lubm --executor cluster
	@$(SUITE) owl2rl $(SHARED)/w3c-owl2-rl --executor cluster

test-long: $(VENV)/.dev $(VENV)/.spark
	@THALWEG_HYPOTHESIS=long $(PYTEST) -m "long or not long" $(TESTS)

lint: $(VENV)/.dev
	@echo "==> flake8"
	@$(BIN)/python -m flake8 engine grammar server tests .ci/smoke.py
	@echo "==> mypy"
	@$(BIN)/python -m mypy

bench: $(VENV)/.dev $(VENV)/.spark
	@$(MALLOC) $(BIN)/python -m tests.bench $(ARGS)

clean:
	rm -rf $(VENV) build dist thalweg.egg-info .pytest_cache .mypy_cache .hypothesis .coverage htmlcov
	find engine grammar server tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment: Python 3.11 or 3.12 that has the venv module. The system's comes first: distributions build it with profile-guided
# optimisation; pyenv's default build has none, and is up to a third slower.
$(VENV)/.made:
	@found=; why=; \
	for python in $(PYTHON) $${PYTHON:-/usr/bin/python3.11 /usr/bin/python3.12 python3.11 python3.12 python3 python}; do \
	    version=`$$python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null` || continue; \
	    case $$version in \
	        3.11|3.12) ;; \
	        *) why="$$why; $$python is $$version"; continue ;; \
	    esac; \
	    if $$python -c 'import venv, ensurepip' 2>/dev/null; then found=$$python; break; fi; \
	    why="$$why; $$python ($$version) has no venv module (Debian, Ubuntu: apt-get install python$$version-venv)"; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "Thalweg needs Python 3.11 or 3.12 with its venv module. None was found$$why." >&2; \
	    echo "Debian, Ubuntu: apt-get install python3 python3-venv. Another place: make PYTHON=/path/to/python3.11 ..." >&2; \
	    exit 1; \
	fi; \
	echo "==> [1/3] making $(VENV) with $$found (Python $$version)"; \
	rm -rf $(VENV); $$found -m venv $(VENV) && touch $@

$(VENV)/.installed: $(VENV)/.made setup.cfg pyproject.toml
	@echo "==> [2/3] installing the pinned packages (some 600 MB the first time, a few minutes)"
	@what=. ; $(INSTALL)
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	@echo "==> installing the packages for tests"
	@what='.[dev]'; $(INSTALL)
	@touch $@

# Shows the large files as they come; the whole of pip's words is in install.log.
INSTALL = { $(PIP) install -e "$$what" 2>&1; echo $$? > $(VENV)/install.status; } | tee $(VENV)/install.log | \
	awk '/^ *(Downloading|Using cached) .*MB\)/ { print "      " $$0 } /^ *Building wheel/ { print "      " $$0 } { fflush() }'; \
	if [ "`cat $(VENV)/install.status`" != 0 ]; then \
	    echo "pip failed; the end of $(VENV)/install.log:" >&2; tail -n 20 $(VENV)/install.log >&2; exit 1; \
	fi

# Java is found (or installed), the JVM half of GraphFrames fetched, and all is tried once.
$(VENV)/.spark: $(VENV)/.installed
	@echo "==> [3/3] preparing Spark"
	@$(BIN)/python -m engine.spark.session
	@touch $@
