package redact

// codeHostKeys are tokens of code hosts and package registries.
var codeHostKeys = []Rule{
	{
		ID:       "github-token",
		Keywords: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"},
		Pattern:  `\bgh[pousr]_[A-Za-z0-9]{30,255}`,
		Hits:     []string{"«ghp_{a36}»", "https://x-access-token:«ghs_{a36}»@github.com/o/r", "token \"«gho_{a36}»\""},
		Misses:   []string{"ghp_short", "weighs_{a36}"},
	}, {
		ID:       "github-pat",
		Keywords: []string{"github_pat_"},
		Pattern:  `\bgithub_pat_[A-Za-z0-9_]{36,255}`,
		Hits:     []string{"«github_pat_{a22}_{a59}»"},
		Misses:   []string{"github_pat_"},
	}, {
		ID:       "gitlab-token",
		Keywords: []string{"glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-", "gloas-"},
		Pattern:  `\bgl(?:pat|dt|rt|ptt|cbt|ft|oas)-[A-Za-z0-9_-]{20,}`,
		Hits:     []string{"«glpat-{b20}»", "«glrt-{b24}»"},
		Misses:   []string{"glpat-short"},
	}, {
		ID:       "bitbucket-token",
		Keywords: []string{"ATBB", "ATCTT3", "ATATT3"},
		Pattern:  `\b(?:ATBB[A-Za-z0-9]{28,}|AT(?:CTT|ATT)3[A-Za-z0-9_=-]{60,})`,
		Hits:     []string{"«ATBB{a32}»", "«ATATT3{b180}»"},
		Misses:   []string{"ATBB"},
	}, {
		ID:       "npm-token",
		Keywords: []string{"npm_"},
		Pattern:  `\bnpm_[A-Za-z0-9]{36}`,
		Hits:     []string{"//registry.npmjs.org/:_authToken=«npm_{a36}»"},
		Misses:   []string{"npm_config_registry", "npm_lifecycle_event"},
	}, {
		ID:       "pypi-token",
		Keywords: []string{"pypi-"},
		Pattern:  `\bpypi-[A-Za-z0-9_-]{50,}`,
		Hits:     []string{"«pypi-AgEIcHlwaS5vcmc{b80}»"},
		Misses:   []string{"pypi-mirror-of-the-company"},
	}, {
		ID:       "rubygems-key",
		Keywords: []string{"rubygems_"},
		Pattern:  `\brubygems_[0-9a-f]{40,}`,
		Hits:     []string{"«rubygems_{h48}»"},
		Misses:   []string{"rubygems_version"},
	}, {
		ID:       "docker-token",
		Keywords: []string{"dckr_"},
		Pattern:  `\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}`,
		Hits:     []string{"«dckr_pat_{b27}»"},
		Misses:   []string{"dckr_pat_"},
	}, {
		ID:       "crates-token",
		Keywords: []string{"cio"},
		Pattern:  `\bcio[A-Za-z0-9]{32}\b`,
		Digits:   3,
		Hits:     []string{"«cio{a32}»"},
		Misses:   []string{"ciovalue"},
	},
}
