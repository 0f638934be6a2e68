#!/usr/bin/env bash
# Fetches what a provider itself publishes about its messages, for
# transcript-lint check --provider-schemas DIR:
#   scripts/schemas.sh codex|acp|opencode DIR
# Codex writes its schemas, OpenCode serves them at /doc, ACP's are part of its
# npm package: all pinned, installed into ${REPLAYPEER_CACHE:-~/.cache/replaypeer}
# and run with a private home in a network namespace without any network. What
# is written is the provider's: never commit it.
set -euo pipefail

die() {
	echo "schemas: $1" >&2
	exit "${2:-1}"
}

acp_version=2.4.0

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${REPLAYPEER_CACHE:-$HOME/.cache/replaypeer}
# shellcheck source=npm.sh
source "$root/scripts/npm.sh"

# offline runs a provider in a namespace, in a scratch home.
offline() {
	"$root/scripts/loopback.sh" env -i HOME="$scratch/home" TMPDIR="$scratch/tmp" PATH="$PATH" LANG=C.UTF-8 TZ=UTC SHELL=/bin/bash "$@"
}

codex_schemas() {
	# shellcheck source=providers/codex.sh
	source "$root/scripts/providers/codex.sh"
	provider_install
	local binary
	binary=$(codex_binary "$cache/npm/codex-$codex_version")
	offline "$binary" app-server generate-json-schema --out "$dir/stable" 2>"$scratch/log" &&
		offline "$binary" app-server generate-json-schema --experimental --out "$dir/experimental" 2>"$scratch/log" ||
		die "codex wrote no schemas: $(tail -n 3 "$scratch/log")"
	echo "codex $codex_version" >"$dir/VERSION"
}

acp_schemas() {
	npm_cached "acp-sdk-$acp_version" "@agentclientprotocol/sdk@$acp_version"
	local version
	for version in v1 v2; do
		cp "$cache/npm/acp-sdk-$acp_version/node_modules/@agentclientprotocol/sdk/schema/$version/schema.json" "$dir/$version.json"
	done
	echo "@agentclientprotocol/sdk $acp_version" >"$dir/VERSION"
}

opencode_schemas() {
	# shellcheck source=providers/opencode.sh
	source "$root/scripts/providers/opencode.sh"
	provider_install
	home=$scratch/home model_url=http://127.0.0.1:9
	opencode_setup
	# The server is asked for its description as soon as it tells its address.
	offline "${env[@]}" node -e '
		const {spawn} = require("node:child_process"), {writeFileSync} = require("node:fs");
		const server = spawn(process.argv[1], ["serve", "--hostname=127.0.0.1", "--port=0"], {stdio: ["ignore", "pipe", "inherit"]});
		const late = setTimeout(() => { console.error("no address within two minutes"); server.kill("SIGKILL"); process.exitCode = 1; }, 120000);
		let said = "", asked = false;
		server.stdout.on("data", async bytes => {
			const url = /http:\S+/.exec(said += bytes);
			if (!url || asked || !said.includes("\n", url.index)) return;
			asked = true;
			try {
				const doc = await (await fetch(url[0] + "/doc")).json();
				writeFileSync(process.argv[2], JSON.stringify(doc));
			} catch (e) { console.error(e); process.exitCode = 1; }
			server.kill();
		});
		server.on("exit", () => clearTimeout(late));
	' "$binary" "$dir/doc.json" 2>"$scratch/log" || die "opencode described nothing: $(tail -n 3 "$scratch/log")"
	[[ -s $dir/doc.json ]] || die "opencode described nothing: $(tail -n 3 "$scratch/log")"
	echo "opencode-ai $opencode_version" >"$dir/VERSION"
}

[[ $# -eq 2 ]] || die "usage: scripts/schemas.sh codex|acp|opencode DIR" 2
declare -F "$1_schemas" >/dev/null || die "no schemas of $1: want codex, acp or opencode" 2
provider=$1
scratch=$(mktemp -d "${TMPDIR:-/tmp}/replaypeer-schemas.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/home" "$scratch/tmp" "$2"
dir=$scratch/new
mkdir "$dir"
"${provider}_schemas"
rm -rf "${2:?}/$provider"
mv "$dir" "$2/$provider"
echo "schemas: $2/$provider: $(cat "$2/$provider/VERSION")" >&2
