# How to run OpenCode's server against a scripted model. Sourced by
# scripts/record.sh, which sets home, model_url and cache. The orchestrator
# drives it, or, with CLIENT=vendor, OpenCode's own SDK.

pin opencode_version opencode-ai 1.18.33
opencode_sdk_version=1.19.3

# provider_install puts the pinned binary into the cache, and the SDK where it
# is the client.
provider_install() {
	npm_cached "opencode-ai-$opencode_version" "opencode-ai@$opencode_version"
	if [[ ${CLIENT:-} == vendor ]]; then
		npm_cached "opencode-sdk-$opencode_sdk_version" "@opencode-ai/sdk@$opencode_sdk_version"
	fi
}

# opencode_setup writes the configuration and sets binary and env.
opencode_setup() {
	for binary in "$cache/npm/opencode-ai-$opencode_version"/node_modules/opencode-linux-*/bin/opencode; do
		[[ -x $binary && $binary != *-baseline/* && $binary != *-musl/* ]] && break
	done
	cat >"$home/opencode.json" <<-JSON
		{
		  "autoupdate": false,
		  "share": "disabled",
		  "model": "scripted/scripted",
		  "small_model": "scripted/scripted",
		  "enabled_providers": ["scripted"],
		  "provider": {"scripted": {
		    "npm": "@ai-sdk/openai-compatible",
		    "name": "Scripted",
		    "options": {"baseURL": "$model_url/v1", "apiKey": "none"},
		    "models": {"scripted": {"name": "Scripted", "tool_call": true, "reasoning": true, "limit": {"context": 128000, "output": 8192}}}
		  }},
		  "permission": {"bash": "ask", "edit": "ask"}
		}
	JSON
	env=(
		"OPENCODE_CONFIG=$home/opencode.json"
		OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1
	)
}

# provider_setup sets command and env; the client brings the arguments.
provider_setup() {
	opencode_setup
	command=("$binary")
}

# provider_driver sets how the recorder stands in, and who talks to it.
provider_driver() {
	tap=http
	driver=(node "$root/scripts/drivers/opencode.mjs" "$cache/npm/opencode-sdk-$opencode_sdk_version/node_modules/@opencode-ai/sdk")
}
