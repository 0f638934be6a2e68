# How to run codex-acp, which puts ACP before Codex, against a scripted model.
# Sourced by scripts/record.sh, which sets home, work, model_url and cache.

# shellcheck source=codex.sh
source "$(dirname "${BASH_SOURCE[0]}")/codex.sh" # for the catalog

pin codex_acp_version @agentclientprotocol/codex-acp 2.6.0
codex_acp_codex_version=0.166.0 # which it starts
families=(acp)

# provider_install puts the pinned versions into the cache.
provider_install() {
	npm_cached "codex-acp-$codex_acp_version" "@agentclientprotocol/codex-acp@$codex_acp_version" "@openai/codex@$codex_acp_codex_version"
}

# provider_setup writes the configuration and sets command and env.
provider_setup() {
	mkdir -p "$home/.codex"
	echo 00000000-0000-4000-8000-000000000001 >"$home/.codex/installation_id"
	codex_catalog
	cat >"$home/.codex/config.toml" <<-TOML
		model = "scripted-model"
		model_provider = "scripted"
		model_catalog_json = "$home/.codex/models.json"
		approval_policy = "on-request"
		approvals_reviewer = "user"
		sandbox_mode = "workspace-write"
		check_for_update_on_startup = false

		[model_providers.scripted]
		name = "scripted"
		base_url = "$model_url/v1"
		wire_api = "responses"
		env_key = "SCRIPTED_KEY"
		request_max_retries = 0
		stream_max_retries = 0

		[analytics]
		enabled = false

		[features]
		plugins = false

		[projects."$work"]
		trust_level = "trusted"
	TOML
	command=(node "$cache/npm/codex-acp-$codex_acp_version/node_modules/@agentclientprotocol/codex-acp/dist/index.js")
	env=("CODEX_HOME=$home/.codex" SCRIPTED_KEY=none OPENAI_API_KEY=none RUST_LOG=warn NO_BROWSER=1)
}

# provider_driver sets how the recorder stands in, and who talks to it.
provider_driver() {
	tap=stdio
	driver=(node "$root/scripts/drivers/acp.mjs")
}
