#!/usr/bin/env bash
# Says what changed in the providers' protocols since the transcripts were
# recorded: runs scenarios on the real provider, with the scripted model, and
# compares by meaning:
#   scripts/drift.sh [PROVIDER [SCENARIO]]
# The pinned version, or another one: CODEX_VERSION=0.170.0 scripts/drift.sh codex;
# CODEX_VERSION=latest is what npm calls so.
# DRIFT=DIR keeps drift.ndjson (one object a pair), drift.md (tables fit for an
# issue) and the new recordings. Exit 3 when something drifted, 1 when a
# scenario could not be run.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${DRIFT:-}
if [ -z "$dir" ]; then
	dir=$(mktemp -d "${TMPDIR:-/tmp}/replaypeer-drift.XXXXXX")
	trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir"
dir=$(realpath "$dir")
recorded=0
scripts/rerecord.sh "$dir" "$@" >&2 || recorded=1
scripts/compare.sh "$dir" || drifted=$?
[ "$recorded" = 0 ] || exit 1
exit "${drifted:-0}"
