# How to run the Cursor Agent SDK, behind its bridge, against a scripted model.
# Sourced by scripts/record.sh after npm.sh, which sets home, model_url and
# cache, and by the live test. The orchestrator drives it, or, with
# CLIENT=vendor, a plain client of the bridge.

pin cursor_version @cursor/sdk 1.0.32
cursor_node=node-22/node_modules/node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')/bin/node

# provider_install puts the pinned SDK, and a Node that it accepts, into the
# cache. Neither is ever part of this repository.
provider_install() {
	npm_cached "cursor-sdk-$cursor_version" "@cursor/sdk@$cursor_version"
	npm_cached node-22 "node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')@22"
}

# provider_setup sets command and env. The bridge is copied beside the SDK,
# which looks for its helper programs from there. What stands in for the SDK's
# service asks the scripted model; it lives until this shell, or what it
# becomes, has gone.
provider_setup() {
	local node=$cache/npm/$cursor_node bridges bridge=$home/cursor-bridge url
	bridges=$(dirname "${BASH_SOURCE[0]}")/../bridges
	mkdir -p "$bridge"
	ln -sfn "$cache/npm/cursor-sdk-$cursor_version/node_modules" "$bridge/node_modules"
	cp "$bridges/cursor-bridge.mjs" "$bridge/"
	url=$(mktemp -u "$bridge/url.XXXXXX")
	mkfifo "$url"
	exec {cursor_backend}> >(exec "$node" "$bridges/cursor-backend/main.mjs" --model-url "$model_url" >"$url")
	read -r CURSOR_BACKEND_URL <"$url" || {
		echo "record: what stands in for Cursor's service did not start" >&2
		return 1
	}
	command=("$node" "$bridge/cursor-bridge.mjs")
	env=("CURSOR_BACKEND_URL=$CURSOR_BACKEND_URL" NODE_NO_WARNINGS=1)
}

# provider_driver sets how the recorder stands in, and who talks to it.
provider_driver() {
	tap=stdio
	driver=(node "$root/scripts/drivers/cursor.mjs")
}
