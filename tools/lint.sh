#!/bin/sh
# Every lint; the first that finds something ends the run. Needs a build folder (its compile_commands.json).
set -eu
cd "$(dirname "$0")/.."

python=.venv/bin/python
# generated tables are data: nothing to say about their layout
sources=$(find include src python tests fuzz examples -name '*.[ch]' ! -name '*tables*' 2>/dev/null)

echo "lint: include rule"
$python tools/check_includes.py
echo "lint: public headers as C99 and C++"
for header in include/squall/*.h; do
    cc -std=c99 -Wall -Wextra -pedantic -Werror -fsyntax-only -Iinclude -x c "$header"
    clang++-14 -std=c++11 -Wall -Wextra -pedantic -Werror -fsyntax-only -Iinclude -x c++-header "$header"
done
echo "lint: format"
# shellcheck disable=SC2086 # a list of files
clang-format-14 --dry-run --Werror $sources
echo "lint: ruff"
.venv/bin/ruff check -q .
echo "lint: cppcheck"
cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 --suppress=missingIncludeSystem \
    --suppress=normalCheckLevelMaxBranches -j 2 -Iinclude -Isrc -D__x86_64__ \
    $(find src -name '*tables*.c' -printf ' -i %p') src
echo "lint: clang-tidy"
find src -name '*.c' ! -name '*tables*' | xargs -P 2 -n 8 clang-tidy-14 -quiet -p build 2>/dev/null
echo "lint: nothing found"
