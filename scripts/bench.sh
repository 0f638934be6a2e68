#!/usr/bin/env bash
# Measures replay-peer, and the recorder's tap, against a bare child that echoes,
# in one run, and prints ratios; then the Go benchmarks. Flags go to the driver: scripts/bench.sh -big 0
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# As released: without the Markdown code that the flag library brings along.
go build -tags urfave_cli_no_docs -o "$dir/" ./cmd/replay-peer ./cmd/replay-record
go build -o "$dir/bench" ./scripts/bench
"$dir/bench" -peer "$dir/replay-peer" -record "$dir/replay-record" "$@"
go test -run '^$' -bench . -benchmem ./pkg/envelope ./internal/replay | grep -E '^(Benchmark|pkg:)'
