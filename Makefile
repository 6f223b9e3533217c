# make          what there is to make
# make book     the book, and opens it
# make test     every check that there is
# Needs Python 3.11 to 3.14; everything else goes into .venv. Without make: see README.md.

PYTHON = .venv/bin/python
BOOK = _build/html

help:
	@echo 'make book   build the book into $(BOOK) and open it'
	@echo 'make test   run every check: style, package, notebooks, book in a browser'
	@echo 'make lab    open the lessons in JupyterLab'
	@echo 'make bench  time the package'
	@echo 'make store  run the lessons again and store what they print'
	@echo 'make env    only make .venv with everything in it'
	@echo 'make clean  remove all that was made here, except your progress in the exercises'

env: .venv/made

.venv/made: requirements.txt pyproject.toml
	@for python in python3 python python3.14 python3.13 python3.12 python3.11; do \
	  if $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then \
	    exec $$python tools/make_env.py; \
	  fi; \
	done; \
	echo "cotune needs Python 3.11 to 3.14; found `(python3 --version || echo none) 2>/dev/null`." >&2; exit 1

html: env
	@.venv/bin/jupyter-book build . -W --keep-going || { rm -rf _build/.doctrees; exit 1; }  # else the next one passes

book: html
	@$(PYTHON) tools/open_page.py $(BOOK)/index.html

style: env
	@$(PYTHON) -m ruff check --quiet .
	@$(PYTHON) -m ruff format --quiet --check .

test: style html
	@COTUNE_BROWSER="`$(PYTHON) tools/get_browser.py`" && export COTUNE_BROWSER && \
	  COTUNE_BOOK=$(BOOK) $(PYTHON) -m pytest --nbval --numprocesses 2 --dist loadfile

lab: env
	@JUPYTER_CONFIG_PATH="$$PWD/tools/jupyter" $(PYTHON) -m jupyterlab notebooks

bench: env
	@$(PYTHON) -m pytest tests/bench/bench_*.py --benchmark-columns=median,iqr,rounds --benchmark-group-by=func

store: env
	@$(PYTHON) tools/store.py notebooks/*.ipynb

clean:
	rm -rf _build .venv .vendor .pytest_cache .ruff_cache .hypothesis .benchmarks *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} + -o -name .ipynb_checkpoints -prune -exec rm -rf {} +

.PHONY: help env html book style test lab bench store clean
