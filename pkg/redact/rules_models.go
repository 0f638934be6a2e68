package redact

// modelKeys are keys of those who serve models.
var modelKeys = []Rule{
	{
		ID:       "anthropic-key",
		Keywords: []string{"sk-ant-"},
		Pattern:  `\bsk-ant-[a-z0-9]{2,10}-[A-Za-z0-9_-]{20,}`,
		Hits:     []string{"«sk-ant-api03-{b93}AA»", "key «sk-ant-oat01-{b60}»."},
		Misses:   []string{"sk-ant-api03-…", "sk-ant-<key>"},
	}, {
		ID:       "openrouter-key",
		Keywords: []string{"sk-or-"},
		Pattern:  `\bsk-or-v[0-9]-[0-9a-f]{40,}`,
		Hits:     []string{"«sk-or-v1-{h64}»"},
		Misses:   []string{"sk-or-v1-key"},
	}, {
		ID:       "openai-key",
		Keywords: []string{"sk-", "sess-"},
		Pattern:  `\b(?:sk|sess)-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{20,}`,
		Digits:   2, Entropy: 3,
		Hits:   []string{"«sk-proj-{b48}»", "OPENAI «sk-{a48}»,", "«sk-svcacct-{b74}»", "«sess-{a40}»"},
		Misses: []string{"task-{a48}", "sk-learn-is-a-library-for-python", "sk-…"},
	}, {
		ID:       "groq-key",
		Keywords: []string{"gsk_"},
		Pattern:  `\bgsk_[A-Za-z0-9]{40,}`,
		Hits:     []string{"«gsk_{a52}»"},
		Misses:   []string{"gsk_model_name"},
	}, {
		ID:       "xai-key",
		Keywords: []string{"xai-"},
		Pattern:  `\bxai-[A-Za-z0-9]{40,}`,
		Hits:     []string{"«xai-{a80}»"},
		Misses:   []string{"xai-grok-code-fast"},
	}, {
		ID:       "perplexity-key",
		Keywords: []string{"pplx-"},
		Pattern:  `\bpplx-[A-Za-z0-9]{40,}`,
		Hits:     []string{"«pplx-{a48}»"},
		Misses:   []string{"pplx-70b-online"},
	}, {
		ID:       "huggingface-token",
		Keywords: []string{"hf_", "api_org_"},
		Pattern:  `\b(?:hf|api_org)_[A-Za-z0-9]{30,}`,
		Hits:     []string{"«hf_{a34}»"},
		Misses:   []string{"hf_transfer", "half_open"},
	}, {
		ID:       "replicate-token",
		Keywords: []string{"r8_"},
		Pattern:  `\br8_[A-Za-z0-9]{30,}`,
		Hits:     []string{"«r8_{a37}»"},
		Misses:   []string{"r8_small"},
	}, {
		ID:       "cursor-key",
		Keywords: []string{"crsr_", "key_"},
		Pattern:  `\b(?:crsr_[A-Za-z0-9]{32,}|key_[0-9a-f]{64})\b`,
		Hits:     []string{"«crsr_{a40}»", "«key_{h64}»"},
		Misses:   []string{"key_0123456789abcdef", "crsr_position"},
	}, {
		ID:       "fireworks-key",
		Keywords: []string{"fw_"},
		Pattern:  `\bfw_[A-Za-z0-9]{24,}`,
		Digits:   2,
		Hits:     []string{"«fw_{a24}»"},
		Misses:   []string{"fw_version"},
	}, {
		ID:       "google-api-key",
		Keywords: []string{"AIza"},
		Pattern:  `\bAIza[0-9A-Za-z_-]{35}`,
		Hits:     []string{"?key=«AIza{b35}»&x"},
		Misses:   []string{"AIzaShort"},
	}, {
		ID:       "google-oauth-token",
		Keywords: []string{"ya29."},
		Pattern:  `\bya29\.[0-9A-Za-z_-]{20,}`,
		Hits:     []string{"«ya29.{b120}»"},
		Misses:   []string{"ya29.txt"},
	}, {
		ID:       "google-client-secret",
		Keywords: []string{"GOCSPX-"},
		Pattern:  `\bGOCSPX-[0-9A-Za-z_-]{24,}`,
		Hits:     []string{"«GOCSPX-{b28}»"},
		Misses:   []string{"GOCSPX-"},
	},
}
