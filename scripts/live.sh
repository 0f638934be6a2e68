#!/usr/bin/env bash
# The live suite: records every scenario anew from the real, pinned provider
# against the scripted model, replays what came out, compares it with what is
# committed, and runs the real clients of the providers against replay-peer.
# Prints a table of it all; STATUS=docs/status.md writes it there too. Needs
# Linux, npm and a registry that answers; says loudly when it did not run.
set -euo pipefail
cd "$(dirname "$0")/.."

not_run() {
	printf '\n!! THE LIVE SUITE DID NOT RUN: %s\n\n' "$1"
	exit 0
}
[ "$(uname -s)" = Linux ] || not_run "it needs Linux network namespaces"
command -v npm >/dev/null || not_run "npm is not installed"
timeout 60 npm view @openai/codex@0.171.0 version >/dev/null 2>&1 || not_run "the npm registry does not answer"

dir=$(mktemp -d "${TMPDIR:-/tmp}/replaypeer-live.XXXXXX")
trap 'rm -rf "$dir"' EXIT
failed=

scripts/rerecord.sh "$dir" || failed="some scenarios were not recorded"
# Whatever else is recorded, the orchestrator must complete these live.
for pair in {simple,turn_interrupt}/{codex,claude,cursor,opencode} approval_request/{codex,claude,opencode} {simple,turn_interrupt,approval_request}/{gemini,qwen,opencode-acp,codex-acp,claude-acp}; do
	grep -qF "\"scenario\":\"${pair%/*}\",\"provider\":\"${pair#*/}\",\"live\":\"passed\"," "$dir/live.ndjson" ||
		failed="$pair was not completed with the real provider"
done
# What nobody can record here is played as it is committed.
grep -l '"source":"hand-written"' transcripts/*/*.ndjson | while read -r file; do
	mkdir -p "$dir/$(dirname "$file")"
	cp "$(dirname "$file")"/*.yaml "$file" "$dir/$(dirname "$file")/"
done
go run ./cmd/transcript-lint check "$dir/transcripts"
go run ./cmd/orch-run run --dir "$dir/transcripts" || failed="some new recordings do not replay"
go run ./cmd/orch-run run --json >"$dir/replays.ndjson" || failed="some committed recordings do not replay"

# Drift is news about a provider and no fault of this tree: shown, not fatal.
# scripts/drift.sh is what fails on it.
scripts/compare.sh "$dir" || printf '\n!! THE PROVIDERS DRIFTED from the committed recordings, see above\n\n'

scripts/live/opencode/install.sh
go test -count=1 -tags live -run Live -json ./... >"$dir/clients.ndjson" || failed="some real clients failed"
go run ./scripts/suite clients "$dir"

go run ./scripts/suite status "$dir" >"$dir/status.md"
cat "$dir/status.md"
[ -z "${STATUS:-}" ] || cp "$dir/status.md" "$STATUS"
[ -z "$failed" ] || { echo "live: $failed" >&2; exit 1; }
