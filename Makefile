# Two commands set up everything on a fresh machine with Python 3.11 to 3.13: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
DEMO_OUTPUT ?= demo_output
CORPUS ?=

.PHONY: demo test test-interop lint docs gpu clean help

help:            ## What can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 16

demo: $(VENV)/.run  ## Raw text in, a small BERT out, pre-trained and fine-tuned; CORPUS=folder takes your own text
	$(RUN) -m demo.run --output_dir=$(DEMO_OUTPUT) $(if $(CORPUS),--corpus=$(CORPUS))

test: $(VENV)/.test  ## The tests, in parallel
	$(RUN) -m pytest

test-interop: $(VENV)/.interop  ## The tests against transformers and PyTorch, which it installs (CPU is enough)
	$(RUN) -m pytest tests/interop -n 1 -rs

lint: $(VENV)/.test  ## Style (ruff) and types (mypy)
	$(RUN) -m ruff check .
	$(RUN) -m mypy

docs: $(VENV)/.run  ## Writes docs/flags.md from the settings
	$(RUN) -m docs.make_flags

gpu: | $(VENV)/.python  ## Adds the CUDA libraries for an NVIDIA GPU to the environment (docs/cloud.md)
	$(RUN) -m pip install --quiet -r requirements-gpu.txt

clean:           ## Removes the environment and what the demo made
	rm -rf $(VENV) $(DEMO_OUTPUT)

$(VENV)/.python:
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else \
	    "error: Python 3.11 to 3.13 is needed, this is %d.%d. Name one: make PYTHON=python3.11" % v)'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/.run: requirements.txt | $(VENV)/.python
	$(RUN) -m pip install --quiet -r requirements.txt
	touch $@

$(VENV)/.test: requirements.txt requirements-test.txt | $(VENV)/.python
	$(RUN) -m pip install --quiet -r requirements.txt -r requirements-test.txt
	touch $@

$(VENV)/.interop: requirements-interop.txt $(VENV)/.test
	$(RUN) -m pip install --quiet -r requirements.txt -r requirements-test.txt -r requirements-interop.txt
	touch $@
