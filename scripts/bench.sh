#!/usr/bin/env bash
# Measures replay-peer, and the recorder's tap, against a bare child that echoes,
# transcript-lint against gitleaks, and the event store against bare inserts, in
# one run, and prints ratios; then the Go benchmarks. Flags go to the driver:
# scripts/bench.sh -big 0 -corpus 50000000, or -only lint, or -only store with
# -store-turns 60 -store-events 20000 for a small run. The linter's corpus of
# 500 MB goes to the temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# As released: static, and without the Markdown code that the flag library
# brings along.
CGO_ENABLED=0 go build -tags urfave_cli_no_docs -trimpath -ldflags "-s -w" -o "$dir/" ./cmd/replay-peer ./cmd/replay-record ./cmd/transcript-lint
go build -o "$dir/bench" ./scripts/bench
go build -o "$dir/echo" ./scripts/bench/echo
echo "$(go env GOOS)/$(go env GOARCH), $(nproc) cores, $(go env GOVERSION)"
measure() {
	TMPDIR=$dir "$dir/bench" -echo "$dir/echo" -peer "$dir/replay-peer" -record "$dir/replay-record" -lint "$dir/transcript-lint" "$@"
}
case " $* " in *" -only "*) measure "$@"; exit ;; esac
# Each part in a process of its own: a child is born with its parent's peak.
for part in peer lint store; do
	measure -only "$part" "$@"
done
go test -run '^$' -bench . -benchmem ./pkg/envelope ./internal/replay | grep -E '^(Benchmark|pkg:)'
