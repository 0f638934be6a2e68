#!/usr/bin/env bash
# The live suite: records every scenario anew from the real, pinned provider
# against the scripted model, replays what came out, and runs the real clients
# of the providers against replay-peer. Needs Linux, npm and a registry that
# answers; says loudly when it did not run.
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
for scenario in transcripts/*/scenario.yaml; do
	name=$(basename "$(dirname "$scenario")")
	instances=$(sed -n 's/^      \([a-z-]*\): {provider: \([a-z-]*\),.*/\1=\2/p' "$scenario")
	for transcript in "transcripts/$name"/*.ndjson; do
		provider=$(basename "$transcript" .ndjson)
		grep -q "^$provider=" <<<"$instances" && continue # recorded with the scenario's own provider
		[ -f "scripts/providers/$provider.sh" ] || continue
		grep -q '"source":"scripted-model"' "$transcript" || continue
		mkdir -p "$dir/transcripts/$name"
		cp "transcripts/$name/"*.yaml "$dir/transcripts/$name/"
		INSTANCES=$instances scripts/record.sh "$provider" "$name" "$dir/transcripts/$name/$provider.ndjson"
	done
done
# What the orchestrator did not complete with the real provider has ended this
# script already. These must have been among it.
for name in simple turn_interrupt approval_request; do
	for provider in codex claude; do
		[ -f "$dir/transcripts/$name/$provider.ndjson" ] || {
			echo "live: $name was not completed with the real $provider" >&2
			exit 1
		}
	done
done
go run ./cmd/transcript-lint check "$dir/transcripts"
go run ./cmd/orch-run run --dir "$dir/transcripts"
[ -n "${REPLAYPEER_CURSOR_BACKEND:-}" ] ||
	printf '\n!! CURSOR WAS NOT TESTED LIVE: REPLAYPEER_CURSOR_BACKEND names no stand-in for its backend\n\n'
scripts/live/opencode/install.sh
go test -count=1 -tags live -run Live ./...
