# Every target makes its own virtual environment in .venv; nothing outside this folder is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
WORKERS ?= 2

.PHONY: demo test test-slow lint types bench bench-slurm bench-kueue bench-openb bench-search bench-coupled bench-optima bench-backfill bench-schedule bench-replay clean

demo: $(READY)            ## place the waiting gangs of a real 2,048-node cluster and show the answer
	$(BIN)/kant-opt place instances/slurm-2048.json.gz; test $$? -le 1  # 1: some gangs have to wait

test: $(READY) lint types ## everything that must hold before a commit
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not bench" tests

test-slow: $(READY)       ## the long suites
	$(BIN)/python -m pytest -n $(WORKERS) -m "slow and not bench" tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)           ## times of docs/benchmarks.md
	$(BIN)/python -m pytest -m bench tests

bench-kueue: $(READY)     ## figures of docs/benchmarks/kueue.md, then what must hold on all six clusters
	PYTHONPATH=tests $(BIN)/python -m kueue.report
	$(BIN)/python -m pytest -m bench tests/kueue

bench-slurm: $(READY)     ## the table of docs/benchmarks/slurm.md
	PYTHONPATH=tests $(BIN)/python -m peers.slurm_report

bench-openb: $(READY)     ## the tables of docs/benchmarks/openb.md
	PYTHONPATH=tests $(BIN)/python -m bench.openb_report

bench-search: $(READY)    ## the table of docs/benchmarks/search.md
	PYTHONPATH=tests $(BIN)/python -m bench.search_report

bench-coupled: $(READY)   ## the tables of docs/benchmarks/coupled.md; runs are kept, a second call goes on
	PYTHONPATH=tests $(BIN)/python -m bench.coupled_report run --out .benchmarks/coupled.jsonl --seconds 10
	PYTHONPATH=tests $(BIN)/python -m bench.coupled_report table --out .benchmarks/coupled.jsonl --seconds 10

bench-optima: $(READY)    ## the table of docs/benchmarks/known-optima.md
	PYTHONPATH=tests $(BIN)/python -m benchmarks.report

bench-backfill: $(READY)  ## the tables of docs/benchmarks/backfill.md
	$(BIN)/python -m tests.bench.backfill_report logs
	$(BIN)/python -m tests.bench.backfill_report queue

bench-schedule: $(READY)  ## the tables of docs/benchmarks/schedule.md
	$(BIN)/python -m tests.benchmarks_time.psplib_report j30 --work 3
	$(BIN)/python -m tests.benchmarks_time.psplib_report j60 --work 1
	$(BIN)/python -m tests.benchmarks_time.psplib_report j120 --work 1
	$(BIN)/python -m tests.benchmarks_time.strip_report --most 60 --work 0.3
	$(BIN)/python -m tests.benchmarks_time.queue_report 60 --seconds 30

bench-replay: $(READY)    ## the tables of docs/benchmarks/replay.md
	PYTHONPATH=tests $(BIN)/python -m bench.replay_report logs
	PYTHONPATH=tests $(BIN)/python -m bench.replay_report kant

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) dist build .hypothesis .mypy_cache .ruff_cache .benchmarks
