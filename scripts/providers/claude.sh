# How to run Claude Code against a scripted model. Sourced by
# scripts/record.sh, which sets home, model_url and cache. The orchestrator
# drives it, or, with CLIENT=vendor, the Agent SDK.

pin claude_package @anthropic-ai/claude-agent-sdk 0.3.332 # and of its platform package, which is the binary
claude_version=2.1.${claude_package##*.}

# provider_install puts the pinned binary into the cache, and the SDK where it
# is the client. Neither is ever part of this repository.
provider_install() {
	npm_cached "$(claude_platform)-$claude_package" "@anthropic-ai/$(claude_platform)@$claude_package"
	if [[ ${CLIENT:-} == vendor ]]; then
		npm_cached "claude-agent-sdk-$claude_package" --omit=optional --omit=peer --legacy-peer-deps \
			"@anthropic-ai/claude-agent-sdk@$claude_package"
	fi
}

claude_platform() {
	echo "claude-agent-sdk-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')"
}

# provider_setup sets command and env; the client brings the arguments. What a
# user's folders would add is switched off, and so is all traffic but the
# model's. IS_SANDBOX lets root have full access.
provider_setup() {
	mkdir -p "$home/.claude"
	command=("$cache/npm/$(claude_platform)-$claude_package/node_modules/@anthropic-ai/$(claude_platform)/claude")
	env=(
		"CLAUDE_CONFIG_DIR=$home/.claude"
		"ANTHROPIC_BASE_URL=$model_url" ANTHROPIC_API_KEY=none
		CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 CLAUDE_CODE_MAX_RETRIES=1
		CLAUDE_CODE_DISABLE_AUTO_MEMORY=1 CLAUDE_CODE_DISABLE_BUNDLED_SKILLS=1
		CLAUDE_CODE_ENABLE_TODO_TOOLS=1 IS_SANDBOX=1
	)
}

# provider_driver sets how the recorder stands in, and who talks to it.
provider_driver() {
	tap=stdio
	driver=(node "$root/scripts/drivers/claude.mjs" "$cache/npm/claude-agent-sdk-$claude_package/node_modules/@anthropic-ai/claude-agent-sdk")
}
