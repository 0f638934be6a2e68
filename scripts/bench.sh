#!/usr/bin/env bash
# Measures replay-peer, and the recorder's tap, against a bare child that echoes,
# and transcript-lint against gitleaks, in one run, and prints ratios; then the Go
# benchmarks. Flags go to the driver: scripts/bench.sh -big 0 -corpus 50000000, or
# scripts/bench.sh -only lint. The linter's corpus of 500 MB goes to the temporary
# folder.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# As released: without the Markdown code that the flag library brings along.
go build -tags urfave_cli_no_docs -o "$dir/" ./cmd/replay-peer ./cmd/replay-record ./cmd/transcript-lint
go build -o "$dir/bench" ./scripts/bench
TMPDIR=$dir "$dir/bench" -peer "$dir/replay-peer" -record "$dir/replay-record" -lint "$dir/transcript-lint" "$@"
case " $* " in *" -only "*) exit ;; esac
go test -run '^$' -bench . -benchmem ./pkg/envelope ./internal/replay | grep -E '^(Benchmark|pkg:)'
