#!/usr/bin/env bash
# Records scenarios anew from the real providers, three at a time (RECORD_JOBS),
# below a folder:
#   scripts/rerecord.sh DIR [PROVIDER [SCENARIO]]
# DIR/transcripts takes the recordings, beside their scenario files;
# DIR/live.ndjson says for each whether it passed; DIR/log keeps what was said.
# Another version of a provider is chosen with its variable, as in
# CODEX_VERSION=0.170.0. Exit 1 when one failed.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] && [ $# -le 3 ] || { echo "usage: scripts/rerecord.sh DIR [PROVIDER [SCENARIO]]" >&2; exit 2; }
dir=$(realpath -m "$1")
shift
[ ! -e "$dir/live.ndjson" ] || { echo "rerecord: $dir has recordings already: name another folder" >&2; exit 2; }
mkdir -p "$dir/transcripts" "$dir/log"
: >"$dir/live.ndjson"
export dir RECORD_BIN=$dir/bin
mkdir -p "$RECORD_BIN"
go build -o "$RECORD_BIN/" ./cmd/replay-record ./cmd/replay-peer ./cmd/orch-run
go run ./scripts/suite pairs "$@" >"$dir/pairs"
one() {
	local scenario=$1 provider=$2 try
	local to=$dir/transcripts/$scenario scratch=$dir/try/$scenario.$provider log=$dir/log/$scenario.$provider
	mkdir -p "$to"
	cp "transcripts/$scenario/"*.yaml "$to/"
	for try in 1 2; do # real providers have bad moments; a second try is told
		rm -rf "$scratch"
		mkdir -p "$scratch"
		if INSTANCES=$3 scripts/record.sh "$provider" "$scenario" "$scratch/$provider.ndjson" >"$log.$try" 2>&1; then
			mv "$scratch"/*.ndjson "$to/"
			printf '{"scenario":"%s","provider":"%s","live":"passed","tries":%d}\n' "$scenario" "$provider" "$try" >>"$dir/live.ndjson"
			echo "recorded $scenario/$provider$([ "$try" = 1 ] || printf ' at the second try, after\n%s' "$(sed 's/^/  /' "$log.1")")"
			return
		fi
	done
	printf '{"scenario":"%s","provider":"%s","live":"failed"}\n' "$scenario" "$provider" >>"$dir/live.ndjson"
	printf 'NOT RECORDED %s/%s\n%s\n' "$scenario" "$provider" "$(sed 's/^/  /' "$log.1" "$log.2")"
}
export -f one
# The first pair of each provider alone: it installs the provider.
tr '\t' ';' <"$dir/pairs" | sort -t';' -k2,2 -u >"$dir/first"
while IFS=';' read -r scenario provider instances; do
	one "$scenario" "$provider" "$instances" </dev/null
done <"$dir/first"
tr '\t' ';' <"$dir/pairs" | grep -vxFf "$dir/first" |
	xargs -r -P "${RECORD_JOBS:-3}" -I{} bash -c 'IFS=";" read -r s p i <<<"{}"; one "$s" "$p" "$i"' || true
! grep -q '"failed"' "$dir/live.ndjson"
