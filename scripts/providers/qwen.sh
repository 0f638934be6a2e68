# How to run Qwen Code as an ACP agent against a scripted model. Sourced by
# scripts/record.sh, which sets home, model_url and cache.

pin qwen_version @qwen-code/qwen-code 0.24.4
families=(acp)

# provider_install puts the pinned version, and a Node that it accepts, into
# the cache.
provider_install() {
	npm_cached "qwen-code-$qwen_version" "@qwen-code/qwen-code@$qwen_version"
	node_24_install
}

# provider_setup writes the configuration and sets command and env.
provider_setup() {
	mkdir -p "$home/.qwen"
	cat >"$home/.qwen/settings.json" <<-JSON
		{
		  "security": {"auth": {"selectedType": "openai"}},
		  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
		  "privacy": {"usageStatisticsEnabled": false},
		  "telemetry": {"enabled": false},
		  "ui": {"enableFollowupSuggestions": false},
		  "model": {"name": "scripted"},
		  "memory": {"enableManagedAutoMemory": false, "enableManagedAutoDream": false},
		  "tools": {"approvalMode": "default"}
		}
	JSON
	command=("$cache/npm/$node_24" "$cache/npm/qwen-code-$qwen_version/node_modules/@qwen-code/qwen-code/cli-entry.js" --acp)
	env=(
		"OPENAI_BASE_URL=$model_url/v1" OPENAI_API_KEY=none OPENAI_MODEL=scripted
		QWEN_CODE_NO_RELAUNCH=true QWEN_TELEMETRY_ENABLED=false
	)
}

# provider_driver sets how the recorder stands in, and who talks to it.
provider_driver() {
	tap=stdio
	driver=(node "$root/scripts/drivers/acp.mjs")
}
