# How to run claude-agent-acp, which puts ACP before Claude Code, against a
# scripted model. Sourced by scripts/record.sh, which sets home, model_url and
# cache. The orchestrator drives it, or, with CLIENT=vendor, a plain client.

pin claude_acp_version @agentclientprotocol/claude-agent-acp 0.101.0
families=(acp claude)

# provider_install puts the pinned version, and a Node that it accepts, into
# the cache. The binary of Claude Code comes along as a platform package.
provider_install() {
	npm_cached "claude-agent-acp-$claude_acp_version" "@agentclientprotocol/claude-agent-acp@$claude_acp_version"
	node_24_install
}

# provider_setup sets command and env. What a user's folders would add is
# switched off, and so is all traffic but the model's. IS_SANDBOX lets root
# have full access.
provider_setup() {
	mkdir -p "$home/.claude"
	command=("$cache/npm/$node_24" "$cache/npm/claude-agent-acp-$claude_acp_version/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js")
	env=(
		"CLAUDE_CONFIG_DIR=$home/.claude"
		"ANTHROPIC_BASE_URL=$model_url" ANTHROPIC_API_KEY=none
		CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 CLAUDE_CODE_MAX_RETRIES=1
		CLAUDE_CODE_DISABLE_AUTO_MEMORY=1 CLAUDE_CODE_DISABLE_BUNDLED_SKILLS=1
		CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION=false IS_SANDBOX=1
	)
}

# provider_driver sets how the recorder stands in, and who talks to it.
provider_driver() {
	tap=stdio
	driver=(node "$root/scripts/drivers/acp.mjs")
}
