#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# run_system.sh PYTEST-WORD...: runs the system tests. Five at most may fail beside others and are then run once more, one by one, as a
# busy machine can be late: whatever fails twice fails, and what passes alone is named as unsteady. What a sanitizer finds fails at once.
# Tests that took SLOW_SECONDS or more, 20 unless set, are named with their seconds.

set -o pipefail
python=${PYTHON:-python3}
place=$(mktemp -d) || exit 1
trap 'rm -rf "$place"' EXIT
# Sessions mostly wait for each other: two files of tests at a time for each processor, where pytest can do that.
beside_others=()
"$python" -c 'import xdist' 2>/dev/null && beside_others=(-n $((2 * $(nproc))) --dist loadfile)

# Modules are served as nobody, and some tests run the program as nobody: who may not enter where it was built gets a copy.
if [ "$(id -u)" -eq 0 ] && [ -n "${HUAI:-}" ] && ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$HUAI"; then
	chmod 755 "$place" && cp "$HUAI" "$place/rsync-huai" && chmod 755 "$place/rsync-huai" || exit 1
	HUAI=$place/rsync-huai
fi

run() { # LOG PYTEST-WORD...
	local log=$1
	shift
	"$python" -m pytest -q -rfEs --durations=0 --durations-min="${SLOW_SECONDS:-20}" -o cache_dir="$place/cache" "$@" 2>&1 | tee "$log"
}

run "$place/first" "${beside_others[@]}" "$@"
code=$?
sed -nE 's/^([0-9]+)\.[0-9]+s (call|setup|teardown) +/slow, \1 s: /p' "$place/first"
[ "$code" -eq 1 ] && ! grep -qaE '(ERROR|WARNING|SUMMARY): [A-Za-z]+Sanitizer|runtime error:' "$place/first" || exit "$code"
failures=$(grep -acE '^(FAILED|ERROR) ' "$place/first")
[ "$failures" -ge 1 ] && [ "$failures" -le 5 ] || exit 1
run "$place/second" --last-failed "$@" || exit 1
sed -nE 's/^(FAILED|ERROR) /unsteady, passed when run alone: /p' "$place/first"
