#!/usr/bin/env bash
# Installs the real clients of OpenCode that the live tests run, pinned, and
# without running anything of theirs.
set -euo pipefail
cache=${REPLAYPEER_CACHE:-$HOME/.cache/replaypeer}/npm
for package in @opencode-ai/sdk@1.19.3 opencode-ai@1.18.33; do
	name=${package#@opencode-ai/}
	[[ $package == @* ]] && name=opencode-$name
	dir=$cache/${name%@*}-${name#*@}
	[ -d "$dir/node_modules" ] && continue
	mkdir -p "$dir"
	npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --silent "$package"
done
