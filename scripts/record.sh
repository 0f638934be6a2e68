#!/usr/bin/env bash
# Records a scenario with the real provider against a scripted model, offline:
#   scripts/record.sh PROVIDER SCENARIO [OUT]
#
# OUT is transcripts/SCENARIO/PROVIDER.ndjson by default and must not exist.
# The provider is installed into ${REPLAYPEER_CACHE:-~/.cache/replaypeer} and
# runs with a private home in a network namespace without any other network.
# A scenario of several provider instances wants INSTANCES="NAME=PROVIDER …" for
# the others; they are recorded beside OUT, each to NAME.ndjson.
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
	[[ -e $out ]] && die "$out exists: remove it first"
	provider_install
	local pair
	for pair in ${INSTANCES:-}; do
		use "${pair#*=}"
		provider_install
	done
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/replaypeer.XXXXXX")
	trap 'leave' EXIT
	mkdir -p "$scratch/bin" "$scratch/home" "$scratch/tmp"
	(cd "$root" && go build -o "$scratch/bin/" ./cmd/replay-record ./cmd/replay-peer ./cmd/orch-run)
	"$root/scripts/loopback.sh" env -i \
		HOME="$scratch/home" TMPDIR="$scratch/tmp" PATH="$scratch/bin:/usr/local/bin:/usr/bin:/bin" \
		LANG=C.UTF-8 TZ=UTC SHELL=/bin/bash \
		RECORD_SCRATCH="$scratch" REPLAYPEER_CACHE="$cache" INSTANCES="${INSTANCES:-}" \
		bash "${BASH_SOURCE[0]}" "$provider" "$scenario" "$out"
	echo "record: $out" >&2
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
	unset RECORD_SCRATCH REPLAYPEER_CACHE INSTANCES
	env "${all[@]}" "${env[@]}" orch-run live "${others[@]}" --dir "$root/transcripts" --scenario "$scenario" --provider "$provider" \
		--record "$out" --source scripted-model -- "${command[@]}" || status=$?
	exec {input}>&-
	wait "$model" || die "the scripted model failed"
	return "$status"
}

[[ $# -eq 2 || $# -eq 3 ]] || die "usage: scripts/record.sh PROVIDER SCENARIO [OUT]" 2
provider=$1 scenario=$2
out=$(realpath -m "${3:-$root/transcripts/$scenario/$provider.ndjson}")
script=$root/transcripts/$scenario/model.yaml
cache=${REPLAYPEER_CACHE:-$HOME/.cache/replaypeer}
[[ -f $script ]] || die "scenario $scenario has no model.yaml" 2

# use takes a provider's recipe.
use() {
	local recipe=$root/scripts/providers/$1.sh
	[[ -f $recipe ]] || die "no recipe for $1: want $(cd "$root/scripts/providers" && echo *.sh)" 2
	# shellcheck source=providers/codex.sh
	source "$recipe"
}
use "$provider"

if [[ -n ${RECORD_SCRATCH:-} ]]; then
	inside
else
	outside
fi
