#!/usr/bin/env bash
# Runs every fuzz target: scripts/fuzz.sh [TIME]. Readers, the matcher, the
# player and every wire decoder run for TIME, 60s by default; the rest for ten
# seconds. Two targets at a time, one core each.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}
long='Reader|ReadLines|Match|Player|Classify|Decode|Route|Redact'

targets() {
	grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
		sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(f \*testing\.F).*/\1/p' "$file" | sed "s|^|$(dirname "$file") |"
	done | sort
}

[ -n "$(targets)" ] || { echo "no fuzz target found" >&2; exit 1; }
targets | while read -r dir target; do
	[[ $target =~ $long ]] && echo "$time $dir $target" || echo "10s $dir $target"
done | xargs -P 2 -L 1 sh -c '
	fuzz() { out=$(go test -run "^$" -fuzz "^$2\$" -fuzztime "$0" -fuzzminimizetime 1x -parallel 1 "$1" 2>&1); }
	# The fuzzer reports its own deadline as a failure where that comes upon an
	# input that is running. One that hangs would be met again.
	if fuzz "$@" || { printf "%s\n" "$out" | grep -q "^ *context deadline exceeded" && fuzz "$@"; }; then
		printf "%s %s: %s\n" "$1" "$2" "$(printf "%s\n" "$out" | grep "^fuzz: elapsed" | tail -n 1)"
	else
		printf "%s %s FAILED\n%s\n" "$1" "$2" "$out"
		exit 255
	fi'
