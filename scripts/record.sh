#!/usr/bin/env bash
# Records a scenario with the real provider against a scripted model, offline:
#   scripts/record.sh PROVIDER SCENARIO [OUT]
# or plays such a recording to the vendor's own client, and wants it to pass:
#   scripts/record.sh --replay PROVIDER SCENARIO TRANSCRIPT
#
# The orchestrator of this repository has the conversation, or the vendor's own
# client: with CLIENT=vendor, where the recipe names one. It sends the scenario's
# messages. OUT must not exist. By default it is
# transcripts/SCENARIO/PROVIDER.ndjson, with the vendor's client
# transcripts/recorded/PROVIDER/SCENARIO.ndjson. The provider is installed into
# ${REPLAYPEER_CACHE:-~/.cache/replaypeer} and runs with a private home in a
# network namespace without any other network.
# A scenario of several provider instances wants INSTANCES="NAME=PROVIDER …" for
# the others; they are recorded beside OUT, each to NAME.ndjson.
# The model says what stands in model.PROVIDER.yaml, else in model.FAMILY.yaml
# for one of the recipe's families, else in model.yaml: tools have other names
# with every provider.
# RECORD_BIN names a folder with the tools, built; otherwise they are built first.
# KEEP=1 keeps the scratch folder, with the log of what the model was asked.
set -euo pipefail

port=8700 # fixed: it is part of what the provider says

die() {
	echo "record: $1" >&2
	exit "${2:-1}"
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# outside has the network: it installs, builds, and starts the inside.
outside() {
	[[ -n $replay || ! -e $out ]] || die "$out exists: remove it first"
	provider_install
	local pair
	for pair in ${INSTANCES:-}; do
		use "${pair#*=}"
		provider_install
	done
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/replaypeer.XXXXXX")
	trap 'leave' EXIT
	mkdir -p "$scratch/bin" "$scratch/home" "$scratch/tmp"
	if [[ -n ${RECORD_BIN:-} ]]; then
		cp "$RECORD_BIN"/{replay-record,replay-peer,orch-run} "$scratch/bin/"
	else
		(cd "$root" && go build -o "$scratch/bin/" ./cmd/replay-record ./cmd/replay-peer ./cmd/orch-run)
	fi
	local place=$scratch enter=() packages=$cache
	if [[ -n $driven ]]; then
		# Always the same paths, whatever a provider makes of them, and a process
		# namespace, with which everything ends.
		place=/srv
		packages=/srv/home/.cache/replaypeer
		mkdir -p "$scratch/work" "$scratch/tap" "$scratch/home/.cache/replaypeer"
		enter=(unshare --mount --pid --fork --mount-proc
			sh -c 'mount --bind "$1" /srv && mount --bind "$2" /srv/home/.cache/replaypeer && shift 2 && exec "$@"' sh "$scratch" "$cache")
	fi
	mkdir -p "$(dirname "$out")"
	"$root/scripts/loopback.sh" "${enter[@]}" env -i \
		HOME="$place/home" TMPDIR="$place/tmp" PATH="$place/bin:/usr/local/bin:/usr/bin:/bin" \
		LANG=C.UTF-8 TZ=UTC SHELL=/bin/bash \
		"${pins[@]}" RECORD_SCRATCH="$place" REPLAYPEER_CACHE="$packages" INSTANCES="${INSTANCES:-}" CLIENT="${CLIENT:-}" \
		bash "${BASH_SOURCE[0]}" $replay "$provider" "$scenario" "$out"
	[[ -e $out ]] || die "the recorder kept nothing: KEEP=1 and orch-run live --keep tell more"
	echo "record: ${replay:+replayed }$out" >&2
}

leave() {
	local status=$?
	if [[ -n ${KEEP:-} ]]; then
		echo "record: kept $scratch" >&2
	else
		rm -rf "$scratch"
	fi
	exit "$status"
}

# inside has loopback only: it serves the model and runs the scenario.
inside() {
	home=$HOME
	work=$RECORD_SCRATCH/work
	if [[ -n $replay ]]; then
		play
		return
	fi
	coproc MODEL {
		exec replay-record model --script "$script" --listen "127.0.0.1:$port" \
			--log "$RECORD_SCRATCH/model.ndjson" --until-eof
	}
	local model=$MODEL_PID input=${MODEL[1]}
	read -r model_url <&"${MODEL[0]}" || die "the scripted model did not start"
	local status=0 pair others=() all=()
	for pair in ${INSTANCES:-}; do
		use "${pair#*=}"
		provider_setup
		others+=(--instance "${pair%%=*}=${command[*]}")
		all+=("${env[@]}")
	done
	use "$provider"
	provider_setup
	if [[ -n $driven ]]; then
		drive || status=$?
		exec {input}>&-
		wait "$model" || die "the scripted model failed"
		return "$status"
	fi
	local log=$RECORD_SCRATCH/model.ndjson
	unset RECORD_SCRATCH REPLAYPEER_CACHE INSTANCES CLIENT
	env "${all[@]}" "${env[@]}" orch-run live --model-log "$log" "${others[@]}" --dir "$root/transcripts" --scenario "$scenario" --provider "$provider" \
		--record "$out" --source scripted-model -- "${command[@]}" || status=$?
	exec {input}>&-
	wait "$model" || die "the scripted model failed"
	return "$status"
}

# drive lets the vendor's client talk to the recorder, which has the name of the
# provider. Clients may give up the recorder before it has finished.
drive() {
	provider_driver
	fake env "${env[@]}" replay-record "$tap" "${flags[@]}" --scenario "recorded_$scenario" -o "$out" \
		--source scripted-model --workspace "$work" -- "${command[@]}"
	client || die "the client failed"
	local lock
	lock=$(dirname "$out")/.$(basename "$out").lock
	for _ in {1..200}; do
		[[ -e $lock ]] || break
		sleep 0.1
	done
	[[ -e $out ]] || die "no transcript: $(echo "${out%.ndjson}".*)"
}

# play lets the same client talk to the transcript.
play() {
	provider_driver
	fake replay-peer serve --report "$RECORD_SCRATCH/report/report.json" --workspace "$work" "$out" --
	mkdir "$RECORD_SCRATCH/report"
	client || echo "record: the client failed" >&2
	for _ in {1..100}; do # the peer may outlive its client for a moment
		! grep -q '"verdict":"running"' "$RECORD_SCRATCH/report/report.json" || sleep 0.1
	done
	replay-peer reports "$RECORD_SCRATCH/report" >&2
}

# fake makes a program with the name of the provider that runs a command.
fake() {
	printf '#!/bin/sh\nexec%s "$@"\n' "$(printf ' %q' "$@")" >"$RECORD_SCRATCH/tap/$name"
	chmod +x "$RECORD_SCRATCH/tap/$name"
}

# client runs the vendor's client in a workspace that is always the same.
client() {
	cd "$work"
	GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z HOME=$work \
		sh -c 'git init -q -b main && git -c user.name=recorder -c user.email=recorder@localhost commit -q --allow-empty -m start'
	PATH=$RECORD_SCRATCH/tap:$PATH timeout 180 "${driver[@]}" "$root/transcripts/$scenario/scenario.yaml" "$RECORD_SCRATCH/tap/$name" >&2
}

replay=
if [[ ${1:-} == --replay ]]; then
	replay=--replay
	shift
	[[ $# -eq 3 ]] || die "usage: scripts/record.sh --replay PROVIDER SCENARIO TRANSCRIPT" 2
fi
[[ $# -eq 2 || $# -eq 3 ]] || die "usage: scripts/record.sh PROVIDER SCENARIO [OUT]" 2
provider=$1 scenario=$2
cache=${REPLAYPEER_CACHE:-$HOME/.cache/replaypeer}
# shellcheck source=npm.sh
source "$root/scripts/npm.sh"

# use takes a provider's recipe.
use() {
	local recipe=$root/scripts/providers/$1.sh
	[[ -f $recipe ]] || die "no recipe for $1: want $(cd "$root/scripts/providers" && echo *.sh)" 2
	# shellcheck source=providers/codex.sh
	source "$recipe"
}
families=() # that a provider belongs to, the closest first
name=$provider flags=(--provider "$provider") # of the program, for the recorder
use "$provider"
for kind in ".$provider" "${families[@]/#/.}" ""; do
	script=$root/transcripts/$scenario/model$kind.yaml
	[[ ! -f $script ]] || break
done
[[ -f $script ]] || die "scenario $scenario has no model.yaml" 2
driven=
if [[ ${CLIENT:-} == vendor ]] && declare -F provider_driver >/dev/null; then
	driven=1
fi
out=transcripts/$scenario/$provider.ndjson
[[ -n $driven ]] && out=transcripts/recorded/$provider/$scenario.ndjson
out=$(realpath -m "${3:-$root/$out}")

if [[ -n ${RECORD_SCRATCH:-} ]]; then
	inside
else
	outside
fi
