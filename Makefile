# House commands; ./run installs what they need. Meson does the building.
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
PREFIX ?= /usr/local
SOURCES := $(shell find include src python tests fuzz examples -name '*.[ch]' ! -name '*tables*' 2>/dev/null)

.PHONY: all build test test-long demo bench lint format docs install clean

all build: build/build.ninja
	@ninja -C build --quiet
	@echo "$(CURDIR)/build/python" >"$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/squall.pth"

build/build.ninja: $(BIN)/meson
	@meson setup build >/dev/null

$(BIN)/meson:
	@echo "no .venv: ./run build makes it" >&2; exit 1

test: build
	@$(BIN)/python tests/run.py

# from a clean clone, too: ./run installs what is missing, torch among it, and comes back
test-long:
	@if cmp -s tests/requirements-long.txt .venv/requirements-long.txt; then \
		make --no-print-directory build && $(BIN)/python tests/run.py --long; else ./run test-long; fi

demo: build
	@$(BIN)/python tests/support/demo.py

bench: build
	@$(BIN)/python bench/run.py

lint: build
	@sh tools/lint.sh

format:
	@clang-format -i $(SOURCES)
	@ruff format -q python tests gen bench tools docs/*.py 2>/dev/null || true

docs: build
	@$(BIN)/python tools/site.py

install: build
	@meson configure build -Dprefix="$(PREFIX)"
	@DESTDIR="$(DESTDIR)" meson install -C build --quiet

clean:
	rm -rf build build-asan build-tsan build-fuzz
