# How to run OpenCode as an ACP agent against a scripted model. Sourced by
# scripts/record.sh, which sets home, model_url and cache. The orchestrator
# drives it, or, with CLIENT=vendor, acpx.

# shellcheck source=opencode.sh
source "$(dirname "${BASH_SOURCE[0]}")/opencode.sh"

name=opencode flags=(--provider opencode --protocol acp.ndjson-jsonrpc)
acpx_version=0.19.1
families=(acp)

# provider_install puts the pinned versions, and a Node that acpx accepts, into
# the cache.
provider_install() {
	npm_cached "opencode-ai-$opencode_version" "opencode-ai@$opencode_version"
	npm_cached "acpx-$acpx_version" --omit=optional "acpx@$acpx_version"
	node_24_install
}

# provider_setup sets command and env.
provider_setup() {
	opencode_setup
	command=("$binary" acp)
}

# provider_driver sets how the recorder stands in, and who talks to it.
provider_driver() {
	tap=stdio
	driver=(bash "$root/scripts/drivers/acpx.sh" "$cache/npm/$node_24" "$cache/npm/acpx-$acpx_version/node_modules/acpx/dist/cli.js")
}
