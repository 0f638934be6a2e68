# How to run Codex against a scripted model. Sourced by scripts/record.sh,
# which sets home, model_url and cache.

pin codex_version @openai/codex 0.171.0

# provider_install puts the pinned version into the cache.
provider_install() {
	local dir=$cache/npm/codex-$codex_version
	if ! codex_binary "$dir" >/dev/null; then
		echo "record: installing @openai/codex@$codex_version" >&2
		npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund "@openai/codex@$codex_version" >&2
		codex_binary "$dir" >/dev/null || {
			echo "record: no codex binary below $dir" >&2
			return 1
		}
	fi
}

# codex_binary prints the real binary: the package's own is a launcher.
codex_binary() {
	local file
	for file in "$1"/node_modules/@openai/codex-*/vendor/*/bin/codex; do
		[[ -x $file ]] && echo "$file" && return
	done
	return 1
}

# codex_catalog writes a catalog with one model.
codex_catalog() {
	cat >"$home/.codex/models.json" <<-'JSON'
		{"models": [{
		  "slug": "scripted-model",
		  "display_name": "Scripted model",
		  "base_instructions": "Answer as the script says.",
		  "supported_reasoning_levels": [{"effort": "low", "description": "low"}, {"effort": "medium", "description": "medium"}],
		  "default_reasoning_level": "low",
		  "shell_type": "unified_exec",
		  "apply_patch_tool_type": "freeform",
		  "multi_agent_version": "v2",
		  "visibility": "list",
		  "supported_in_api": true,
		  "priority": 1,
		  "support_verbosity": false,
		  "truncation_policy": {"mode": "tokens", "limit": 10000},
		  "experimental_supported_tools": [],
		  "input_modalities": ["text"],
		  "context_window": 100000
		}]}
	JSON
}

# provider_setup writes the configuration and sets command and env. A fixed
# installation id, an own model catalog and no plugins keep recordings alike
# and offline.
provider_setup() {
	local binary
	binary=$(codex_binary "$cache/npm/codex-$codex_version")
	mkdir -p "$home/.codex"
	echo 00000000-0000-4000-8000-000000000001 >"$home/.codex/installation_id"
	codex_catalog
	cat >"$home/.codex/config.toml" <<-TOML
		model = "scripted-model"
		model_provider = "scripted"
		model_catalog_json = "$home/.codex/models.json"
		check_for_update_on_startup = false
		web_search = "disabled"

		[model_providers.scripted]
		name = "scripted"
		base_url = "$model_url/v1"
		wire_api = "responses"
		request_max_retries = 0
		stream_max_retries = 0

		[analytics]
		enabled = false

		[features]
		plugins = false

		[tools.update_plan]
		enabled = true
	TOML
	command=("$binary" app-server)
	env=(
		"CODEX_HOME=$home/.codex"
		"PATH=$PATH:$(dirname "$(dirname "$binary")")/codex-resources"
	)
}
