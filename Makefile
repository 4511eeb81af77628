# Every target makes its own environment in .venv; nothing but Python >= 3.11 and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests start hundreds of processes: each would compile the project anew where the shell forbids Python to keep bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-system test-argos test-ray test-runtime test-container test-office test-faults mutants fuzz lint bench bench-peers bench-deploying results results-quick soak reference docs site docs-messages dist clean

setup: $(READY)

# An environment with PACKAGES, in the folder of the target. pip comes first, because Python 3.11's knows no dependency
# groups, then torch at its pin: any other requirement that reaches it would bring another build.
# Only .venv is compiled when it is installed: few tests run in the others, for which Python compiles what they import.
INSTALL = $(@D)/bin/python -m pip install --quiet $(if $(filter $(VENV),$(@D)),,--no-compile)
define environment
	$(PYTHON) -m venv $(@D)
	$(INSTALL) "$$(grep '^pip==' constraints.txt)"
	$(INSTALL) "$$(grep '^torch==' constraints.txt)" -c constraints.txt
	$(INSTALL) -c constraints.txt $(PACKAGES)
endef

$(READY): PACKAGES := -e . --group dev
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("headway needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(environment)
	touch $@

demo: setup
	$(BIN)/headway demo

# A core for each process: two threads of one process would wait for each other most of the time. In the order of their
# names: otherwise files of few tests come last, and of these some take minutes, in which the other core waits.
PYTEST_ON_EACH_CORE := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# Tests that need a command line, a browser, node or the libraries that we export to, or minutes.
SYSTEM := tests/system tests/page tests/interop tests/exercises tests/test_examples.py tests/cli/test_how_to.py

test: setup
	$(PYTEST_ON_EACH_CORE) $(SYSTEM:%=--ignore %) --ignore tests/faults

# What tests need of npm, where it is installed: 130 MB.
NODE_PACKAGES := tests/node_modules/.package-lock.json
$(NODE_PACKAGES): tests/package-lock.json
	npm ci --silent --no-audit --no-fund --prefix tests

# The guide's environment, with Sphinx and Jupyter: 150 MB. The notebooks run in it, too.
DOCS := .venv-docs
$(DOCS)/.ready: PACKAGES := -e . --group docs
$(DOCS)/.ready: pyproject.toml constraints.txt
	$(environment)
	touch $@

# Tests of response times run last and alone: other processes would take cores from the browser.
TIMES := tests/system/test_glass_times.py

test-system: setup $(DOCS)/.ready $(if $(shell command -v npm),$(NODE_PACKAGES))
	$(PYTEST_ON_EACH_CORE) $(SYSTEM) --ignore $(TIMES)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(TIMES)

# What Argos Translate does with our package, in an environment of its own: it brings 1.5 GB.
ARGOS := .venv-argos
$(ARGOS)/.ready: PACKAGES := -e '.[torch]' argostranslate==1.11.0 pytest hypothesis
$(ARGOS)/.ready: pyproject.toml constraints.txt
	$(environment)
	touch $@

test-argos: $(ARGOS)/.ready
	$(ARGOS)/bin/python -m pytest -q -m argos tests/interop/test_argos.py

# Translating on a cluster, with a Ray of two workers, in an environment of its own: it brings 300 MB.
RAY := .venv-ray
$(RAY)/.ready: PACKAGES := -e '.[torch,ray,zst]' pytest hypothesis
$(RAY)/.ready: pyproject.toml constraints.txt
	$(environment)
	touch $@

test-ray: $(RAY)/.ready
	OMP_NUM_THREADS=1 $(RAY)/bin/python -m pytest -q -m ray tests/cluster

# What works without torch, in an environment that has none. The fixtures of the other tests need it.
RUNTIME := .venv-runtime
$(RUNTIME)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(@D)
	$(INSTALL) -c constraints.txt -e '.[serve,zst]' pytest
	touch $@

test-runtime: $(RUNTIME)/.ready
	OMP_NUM_THREADS=1 $(RUNTIME)/bin/python -m pytest -q -m runtime --confcutdir tests/runtime tests/runtime

# The steps of deploy/Dockerfile in a Debian root, as root, with debootstrap.
test-container: setup
	$(BIN)/python -m pytest -q -m container tests/container

# Documents of LibreOffice, translated and read by it again: needs soffice and pdftohtml, of Debian's libreoffice-writer,
# libreoffice-calc, libreoffice-impress and poppler-utils, 300 MB. A minute.
test-office: setup
	$(BIN)/python -m pytest -q -m office tests/office

# The full counts of docs/reliability.md; half an hour.
test-faults: setup
	$(BIN)/python -m pytest -q -s tests/faults
	$(BIN)/python -m pytest -q --hypothesis-profile full tests/properties

# Do the unit tests notice when the code is changed? 60 changes, two at a time; SEED=... draws others. Half an hour.
SEED := 2017
mutants: setup
	$(BIN)/python -m tests.mutants --count 60 --seed $(SEED) --jobs 2 --least 0.95

# Ten minutes, by coverage, in an environment of its own; one target at a time: config, decoding, header, subwords, words.
FUZZ := .venv-fuzz
TARGET := subwords
FUZZ_SECONDS := 600
$(FUZZ)/.ready: PACKAGES := -e . --group dev atheris==3.0.0
$(FUZZ)/.ready: pyproject.toml constraints.txt
	$(environment)
	touch $@

fuzz: $(FUZZ)/.ready
	PYTHONPATH=. $(FUZZ)/bin/python tests/faults/fuzz_atheris.py $(FUZZ)/inputs $(TARGET) -max_total_time=$(FUZZ_SECONDS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest -q tests/test_prose.py

reference: setup
	$(BIN)/python docs/make_reference.py

# The guide in both languages, docs/guide/_build/html: every chapter runs while it is built, and a warning is an error.
# What the chapters printed is kept in _build/outputs until the code changes, and the model of the live parts in _build/model.
# The pages of the reference come from the code, those of use from docs/; neither has a catalogue.
GUIDE := docs/guide
SPHINX := OMP_NUM_THREADS=1 $(DOCS)/bin/sphinx-build -W --keep-going
SPHINX_MESSAGES := $(SPHINX) -q -b gettext -D exclude_patterns=_build,reference -D suppress_warnings=toc.not_readable
docs: $(DOCS)/.ready
	rm -rf $(GUIDE)/_build/html $(GUIDE)/_build/messages
	$(SPHINX_MESSAGES) $(GUIDE) $(GUIDE)/_build/messages
	$(DOCS)/bin/python $(GUIDE)/check_translation.py $(GUIDE)/_build/messages $(GUIDE)/locale/ko/LC_MESSAGES
	$(SPHINX) -b html $(GUIDE) $(GUIDE)/_build/html/en
	$(SPHINX) -b html -D language=ko -D 'html_title=headway 안내서' $(GUIDE) $(GUIDE)/_build/html/ko
	$(DOCS)/bin/python $(GUIDE)/check_links.py $(GUIDE)/_build/html

# The published site: the guide, all pages of docs/, and the page of the demo.
site: docs demo
	cp $(GUIDE)/site.html $(GUIDE)/_build/html/index.html
	cp headway-demo/page.html $(GUIDE)/_build/html/demo.html
	$(DOCS)/bin/python $(GUIDE)/check_links.py $(GUIDE)/_build/html

# Brings the Korean catalogues up to date with the English chapters: what is new in them waits for its translation.
docs-messages: $(DOCS)/.ready
	$(SPHINX_MESSAGES) $(GUIDE) $(GUIDE)/_build/messages
	$(DOCS)/bin/sphinx-intl update -p $(GUIDE)/_build/messages -d $(GUIDE)/locale -l ko -w 150 --no-obsolete

# Speed, in an hour; leave the machine alone meanwhile. Some translations of a model that was trained for five minutes
# run to the length limit, and a whole batch takes as long as its longest: BENCH_MODEL=... names a better one.
BENCH_MODEL := runs/bench
BENCH_SOURCE := data/multi30k/raw/test_2016_flickr.de

$(BENCH_SOURCE): | setup
	$(BIN)/headway data multi30k

$(BENCH_MODEL)/best.json: | $(BENCH_SOURCE)
	rm -rf $(BENCH_MODEL)
	$(BIN)/headway train recipes/multi30k-de-en.yaml --output $(BENCH_MODEL) training.max_minutes=5

bench: setup $(BENCH_MODEL)/best.json
	$(BIN)/python benchmarks/running.py --conditions quiet busy two
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/training.py --order random
	$(BIN)/python benchmarks/translating.py $(BENCH_MODEL) $(BENCH_SOURCE)
	$(BIN)/python benchmarks/deploying.py $(BENCH_MODEL) $(BENCH_SOURCE)
	$(BIN)/python benchmarks/preparing.py
	$(BIN)/python benchmarks/growing.py $(BENCH_MODEL)
	$(BIN)/python benchmarks/web.py $(BENCH_MODEL) $(BENCH_SOURCE) $(BENCH_SOURCE:.de=.en)

# Quality: trains and scores the models of docs/results.md, goes on where it was cut off, and prints the table: hours.
# The quick one takes minutes. TABLE=benchmarks/ablations.yaml is what was tried.
TABLE := benchmarks/results.yaml
WORK := runs/quality

data/tatoeba-ko-en/test.ko: | setup
	$(BIN)/headway data tatoeba-ko-en

results: setup $(BENCH_SOURCE) data/tatoeba-ko-en/test.ko
	$(BIN)/python benchmarks/quality.py $(TABLE) --work $(WORK)

results-quick: setup $(BENCH_SOURCE) data/tatoeba-ko-en/test.ko
	$(BIN)/python benchmarks/quality.py $(TABLE) --work $(WORK) --quick

# Half an hour of mixed load on a server: does its memory stay?
soak: setup $(BENCH_MODEL)/best.json
	$(BIN)/python benchmarks/serving.py $(BENCH_MODEL) $(BENCH_SOURCE) --only soak --soak 1800

# What a release publishes, in dist/: the source archive and the wheel that is built from it, the same as that of the clone;
# checked, and the wheel installed and used in an empty environment.
DIST := .venv-dist
$(DIST)/.ready:
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/python -m pip install --quiet build==1.6.1 twine==7.0.0
	touch $@

dist: $(DIST)/.ready
	rm -rf dist $(DIST)/direct
	$(DIST)/bin/python -m build --outdir dist
	$(DIST)/bin/python -m build --wheel --outdir $(DIST)/direct
	cmp dist/*.whl $(DIST)/direct/*.whl
	$(DIST)/bin/twine check --strict dist/*
	$(PYTHON) -m venv --clear $(DIST)/installed
	$(DIST)/installed/bin/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)" -c constraints.txt
	$(DIST)/installed/bin/python -m pip install --quiet -c constraints.txt "$$(echo dist/*.whl)[torch]"
	cd $(DIST) && rm -rf tried && installed/bin/headway data dates --output tried/data
	cd $(DIST) && installed/bin/headway train --source tried/data/train.en --target tried/data/train.ko \
		--valid-source tried/data/valid.en --valid-target tried/data/valid.ko --output tried/run \
		model.preset=tiny training.max_steps=20 training.validate_every=20 decoding.max_length=10
	cd $(DIST) && echo "May 5, 2026" | installed/bin/headway translate tried/run
	cd $(DIST) && installed/bin/headway inspect tried/run "May 5, 2026" --output tried/page.html && test -s tried/page.html

# The same against the packages that others use, in an environment of their own.
PEERS := .venv-peers
$(PEERS)/.ready: PACKAGES := -r benchmarks/peers.txt -e '.[torch]'
$(PEERS)/.ready: constraints.txt benchmarks/peers.txt
	$(environment)
	$(PEERS)/bin/python -m pip install --quiet --no-deps joeynmt==2.3.0
	touch $@

bench-peers: $(PEERS)/.ready $(BENCH_MODEL)/best.json
	$(PEERS)/bin/python benchmarks/training.py
	$(PEERS)/bin/python benchmarks/training.py --preset base --rounds 3 --warm-up 2
	$(PEERS)/bin/python benchmarks/translating.py $(BENCH_MODEL) $(BENCH_SOURCE)

# What headway takes where it only translates, beside LibreTranslate and fxtranslate: each in an environment of its own
# that has nothing else, not even pip; 1.2 GB.
DEPLOYED := .venv-deployed
$(DEPLOYED)/.ready: pyproject.toml constraints.txt
	for name in headway headway-serve libretranslate fxtranslate; do $(PYTHON) -m venv --clear $(DEPLOYED)/$$name || exit; done
	$(DEPLOYED)/headway/bin/python -m pip install --quiet -c constraints.txt .
	$(DEPLOYED)/headway-serve/bin/python -m pip install --quiet -c constraints.txt '.[serve]'
	$(DEPLOYED)/libretranslate/bin/python -m pip install --quiet libretranslate==1.9.6
	$(DEPLOYED)/fxtranslate/bin/python -m pip install --quiet fxtranslate==0.5.0
	for python in $(DEPLOYED)/*/bin/python; do $$python -m pip uninstall --quiet --yes setuptools pip || exit; done
	touch $@

bench-deploying: setup $(DEPLOYED)/.ready $(BENCH_MODEL)/best.json
	$(BIN)/python benchmarks/deploying.py $(BENCH_MODEL) $(BENCH_SOURCE) --peers $(DEPLOYED)

clean:
	rm -rf $(VENV) $(PEERS) $(DEPLOYED) $(FUZZ) $(ARGOS) $(RAY) $(RUNTIME) $(DOCS) $(GUIDE)/_build $(DIST) dist .mutants headway-demo tests/node_modules
