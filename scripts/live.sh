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
# instances_of SCENARIO PROVIDER lists the other instances that a scenario goes
# to when the provider plays it, as NAME=PROVIDER.
instances_of() {
	awk -v wanted="$2:" '
		/^[^ ]/ { inside = $1 == "providers:" }
		inside && /^  [^ ]/ { provider = $1 }
		inside && provider == wanted && /^      [^ ]/ && match($0, /provider: [a-z-]+/) {
			name = $1; sub(/:$/, "", name); print name "=" substr($0, RSTART + 10, RLENGTH - 10)
		}' "transcripts/$1/scenario.yaml" | paste -sd ' ' -
}

for scenario in transcripts/*/scenario.yaml; do
	name=$(basename "$(dirname "$scenario")")
	for transcript in "transcripts/$name"/*.ndjson; do
		provider=$(basename "$transcript" .ndjson)
		[ -f "scripts/providers/$provider.sh" ] || continue
		grep -q "^  $provider:" "$scenario" || continue # an instance: recorded with its main one
		grep -q '"source":"scripted-model"' "$transcript" || continue
		mkdir -p "$dir/transcripts/$name"
		cp "transcripts/$name/"*.yaml "$dir/transcripts/$name/"
		INSTANCES=$(instances_of "$name" "$provider") scripts/record.sh "$provider" "$name" "$dir/transcripts/$name/$provider.ndjson"
	done
done
go run ./cmd/transcript-lint check "$dir/transcripts"
go run ./cmd/orch-run run --dir "$dir/transcripts"
[ -n "${REPLAYPEER_CURSOR_BACKEND:-}" ] ||
	printf '\n!! CURSOR WAS NOT TESTED LIVE: REPLAYPEER_CURSOR_BACKEND names no stand-in for its backend\n\n'
scripts/live/opencode/install.sh
go test -count=1 -tags live -run Live ./...
