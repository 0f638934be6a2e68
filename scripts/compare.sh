#!/usr/bin/env bash
# Compares what rerecord.sh put into DIR with the committed transcripts:
#   scripts/compare.sh DIR
# Prints the drift, keeps it as DIR/drift.ndjson and DIR/drift.md, and exits 3
# when there is some.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(realpath "$1")
go build -o "$dir/lint" ./cmd/transcript-lint
: >"$dir/drift.ndjson"
: >"$dir/drift.md"
status=0
while IFS=$'\t' read -r scenario provider instances; do
	for name in "$provider" $instances; do
		name=${name%%=*}
		new=$dir/transcripts/$scenario/$name.ndjson
		[ -e "$new" ] || continue
		old=transcripts/$scenario/$name.ndjson
		# Three forms of one comparison: 3 is drift, anything else a failure.
		printf '{"scenario":"%s","provider":"%s","drift":' "$scenario" "$name" >>"$dir/drift.ndjson"
		for to in /dev/stdout:text "$dir/drift.ndjson:json" "$dir/drift.md:markdown"; do
			code=0
			"$dir/lint" diff --drift --format "${to##*:}" "$old" "$new" >>"${to%:*}" || code=$?
			[ "$code" = 0 ] || [ "$code" = 3 ] || exit 1
			[ "$code" = 0 ] || status=3
		done
		sed -i '$s/$/}/' "$dir/drift.ndjson"
	done
done <"$dir/pairs"
exit "$status"
