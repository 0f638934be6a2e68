#!/usr/bin/env bash
# Runs every fuzz target for a while: scripts/fuzz.sh [TIME], 60s by default.
# Two targets at a time, one core each.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}

targets() {
	grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
		sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(f \*testing\.F).*/\1/p' "$file" | sed "s|^|$(dirname "$file") |"
	done | sort
}

[ -n "$(targets)" ] || { echo "no fuzz target found" >&2; exit 1; }
targets | xargs -P 2 -L 1 sh -c '
	if out=$(go test -run "^$" -fuzz "^$2\$" -fuzztime "$0" -parallel 1 "$1" 2>&1); then
		printf "%s %s: %s\n" "$1" "$2" "$(printf "%s\n" "$out" | grep "^fuzz: elapsed" | tail -n 1)"
	else
		printf "%s %s FAILED\n%s\n" "$1" "$2" "$out"
		exit 255
	fi' "$time"
