# How to run Claude Code against a scripted model. Sourced by
# scripts/record.sh, which sets home, model_url and cache.

claude_version=2.1.332
claude_package=0.3.332 # of the Agent SDK's platform package, which is that binary

# provider_install puts the pinned binary into the cache. It is never part of
# this repository.
provider_install() {
	local dir
	dir=$cache/npm/$(claude_platform)-$claude_package
	if [[ ! -x $(claude_binary) ]]; then
		echo "record: installing @anthropic-ai/$(claude_platform)@$claude_package" >&2
		npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund \
			"@anthropic-ai/$(claude_platform)@$claude_package" >&2
		[[ -x $(claude_binary) ]] || {
			echo "record: no claude binary below $dir" >&2
			return 1
		}
	fi
}

claude_platform() {
	echo "claude-agent-sdk-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')"
}

claude_binary() {
	echo "$cache/npm/$(claude_platform)-$claude_package/node_modules/@anthropic-ai/$(claude_platform)/claude"
}

# provider_setup sets command and env; the orchestrator brings the arguments.
# What a user's folders would add is switched off, and so is all traffic but
# the model's. IS_SANDBOX lets root have full access.
provider_setup() {
	mkdir -p "$home/.claude"
	command=("$(claude_binary)")
	env=(
		"CLAUDE_CONFIG_DIR=$home/.claude"
		"ANTHROPIC_BASE_URL=$model_url" ANTHROPIC_API_KEY=none
		CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 CLAUDE_CODE_MAX_RETRIES=1
		CLAUDE_CODE_DISABLE_AUTO_MEMORY=1 CLAUDE_CODE_DISABLE_BUNDLED_SKILLS=1
		IS_SANDBOX=1
	)
}
