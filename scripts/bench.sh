#!/usr/bin/env bash
# Measures replay-peer, and the recorder's tap, against a bare child that echoes,
# and the event store against bare inserts, in one run, and prints ratios; then
# the Go benchmarks. Flags go to the driver: scripts/bench.sh -big 0
# A small run of the store alone: -store-only -store-turns 60 -store-events 20000
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/" ./cmd/replay-peer ./cmd/replay-record
go build -o "$dir/bench" ./scripts/bench
"$dir/bench" -peer "$dir/replay-peer" -record "$dir/replay-record" "$@"
go test -run '^$' -bench . -benchmem ./pkg/envelope ./internal/replay | grep -E '^(Benchmark|pkg:)'
