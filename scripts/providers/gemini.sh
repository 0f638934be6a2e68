# How to run Gemini CLI as an ACP agent against a scripted model. Sourced by
# scripts/record.sh, which sets home, work, model_url and cache.

pin gemini_version @google/gemini-cli 0.61.0
families=(acp)

# provider_install puts the pinned version into the cache.
provider_install() {
	npm_cached "gemini-cli-$gemini_version" "@google/gemini-cli@$gemini_version"
}

# provider_setup writes the configuration and sets command and env.
provider_setup() {
	mkdir -p "$home/.gemini"
	cat >"$home/.gemini/settings.json" <<-JSON
		{
		  "security": {"auth": {"selectedType": "gemini-api-key"}},
		  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false, "checkpointing": {"enabled": false}},
		  "privacy": {"usageStatisticsEnabled": false},
		  "telemetry": {"enabled": false}
		}
	JSON
	echo "{\"$(dirname "$home")\": \"TRUST_FOLDER\"}" >"$home/.gemini/trustedFolders.json"
	command=(node "$cache/npm/gemini-cli-$gemini_version/node_modules/@google/gemini-cli/bundle/gemini.js" --acp -m gemini-2.5-flash)
	env=("GOOGLE_GEMINI_BASE_URL=$model_url" GEMINI_API_KEY=none GEMINI_CLI_NO_RELAUNCH=true GEMINI_TELEMETRY_ENABLED=false)
}

# provider_driver sets how the recorder stands in, and who talks to it.
provider_driver() {
	tap=stdio
	driver=(node "$root/scripts/drivers/acp.mjs")
}
