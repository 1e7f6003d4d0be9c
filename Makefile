# Two commands: `make book` builds the site into _build/html, `make test` runs every test.
# Each makes the environment it needs in .venv first; nothing has to be activated.
#
#   make test ONLY=tests/unit        only those tests, in the order given
#   make book PYTHON=/path/to/python  the Python that a new .venv is made from

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup book test cuda tokamax library records validate-estimator gates bench \
  bench-gpu serve clean pins extras

PORT ?= 8000
# Cheap tests first: what fails, fails early.
ONLY ?= tests/unit tests/practice tests/ladder tests/bugs tests/exhibits tests/book tests/browser

# No chapter or test needs an accelerator; without this line JAX looks for one.
export JAX_PLATFORMS ?= cpu
# A Python of another project's settings must not reach the kernels of the notebooks.
unexport PYTHONPATH PYTHONHOME

help:
	@echo "make setup   make the environment alone, into .venv: enough to climb a kernel"
	@echo "make book    build the site into _build/html"
	@echo "make test    run every test, the book build among them"
	@echo "make cuda    install the CUDA compiler for the tests that need it (150 MB)"
	@echo "make tokamax install the library of kernels that some pages read (make book does, too)"
	@echo "make validate-estimator  add estimates to the record of that (hours; WITH=\"--sample 20\")"
	@echo "make records ask the compilers anew what the book keeps records of"
	@echo "make gates   estimate both sides of each gate whose record is missing or void (minutes)"
	@echo "make bench-gpu  measure the kernels on a GPU or TPU, if there is one (8 minutes at most)"
	@echo "make serve   build the site and show it at http://127.0.0.1:$(PORT)/"
	@echo "make bench   measure the build, the compiler worker and the pages (records/bench.json)"
	@echo "make pins    recompile requirements*.txt from requirements*.in"
	@echo "make clean   remove what was built; .venv stays"

setup:
	@.venv/bin/python tools/set_up.py --check 2>/dev/null || { \
	  python=$$(sh tools/find_python.sh) && "$$python" tools/set_up.py; }

book: setup library
	@.venv/bin/python tools/build_book.py

# All tests bring the two extras along; a part of the tests takes what is there.
test: setup $(if $(filter file,$(origin ONLY)),extras)
	@.venv/bin/python tools/run_tests.py $(ONLY)

# What some pages read; without it they are built with a remark in place of their outputs.
library: setup
	@.venv/bin/python tools/tokamax_extra.py || \
	  echo "note: without tokamax, the pages that read it are not executed" >&2

extras: setup
	@.venv/bin/python tools/cuda_extra.py && .venv/bin/python tools/tokamax_extra.py || \
	  echo "note: without the extras above, the tests that need them are left out" >&2

cuda: setup
	@.venv/bin/python tools/cuda_extra.py

tokamax: setup
	@.venv/bin/python tools/tokamax_extra.py

# WITH="--sample 20 --chip v5e" does a part; what the record has is not done again.
validate-estimator: tokamax
	@.venv/bin/python tools/validate_estimator.py $(WITH)

records: cuda library
	@.venv/bin/python tools/renew_records.py $(WITH)

# WITH="--all" or WITH="softmax"; what the record has and what still holds is not done again.
gates: setup
	@.venv/bin/python tools/renew_gates.py $(WITH)

bench: setup
	@.venv/bin/python -m bench

# Any Python whose JAX has the device: make bench-gpu GPU_PYTHON=python3. Without one, no record
# is touched.
GPU_PYTHON ?= .venv/bin/python
bench-gpu: setup
	@env -u JAX_PLATFORMS $(GPU_PYTHON) tools/bench_device.py $(WITH)

serve: book
	@echo "the site is at http://127.0.0.1:$(PORT)/ (Ctrl-C ends)"
	@.venv/bin/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

pins: setup
	@.venv/bin/python tools/compile_pins.py

clean:
	rm -rf _build exhibits/dist
