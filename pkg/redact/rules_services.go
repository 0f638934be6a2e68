package redact

// serviceKeys are keys of other services.
var serviceKeys = []Rule{
	{
		ID:       "slack-token",
		Keywords: []string{"xox", "xapp-"},
		Pattern:  `\b(?:xox[abeoprs]|xapp)-(?:[0-9]-)?[A-Za-z0-9.-]{10,}`,
		Digits:   2,
		Hits:     []string{"«xoxb-{d12}-{d12}-{a24}»", "«xapp-1-A{u10}-{d13}-{h64}»"},
		Misses:   []string{"xoxo-hugs-and-kisses"},
	}, {
		ID:       "slack-webhook",
		Keywords: []string{"hooks.slack.com"},
		Pattern:  `https://hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,})`,
		Hits:     []string{"https://hooks.slack.com/services/«T{u8}/B{u10}/{a24}»"},
		Misses:   []string{"https://hooks.slack.com/services/"},
	}, {
		ID:       "discord-webhook",
		Keywords: []string{"/api/webhooks/"},
		Pattern:  `discord(?:app)?\.com/api/webhooks/([0-9]{15,}/[A-Za-z0-9_-]{40,})`,
		Hits:     []string{"https://discord.com/api/webhooks/«{d18}/{b68}»"},
		Misses:   []string{"https://discord.com/api/webhooks/id/token"},
	}, {
		ID:       "telegram-token",
		Keywords: []string{":AA"},
		Pattern:  `\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,33}`,
		Hits:     []string{"bot «{d10}:AA{b33}»"},
		Misses:   []string{"12:AA"},
	}, {
		ID:       "stripe-key",
		Keywords: []string{"_live_", "_test_", "whsec_"},
		Pattern:  `\b(?:[spr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,})`,
		Digits:   2,
		Hits:     []string{"«sk_live_{a24}»", "«rk_test_{a24}»", "«whsec_{a32}»"},
		Misses:   []string{"sk_test_helper_functions", "whsec_"},
	}, {
		ID:       "twilio-key",
		Keywords: []string{"SK", "AC"},
		Pattern:  `\b(?:SK|AC)[0-9a-f]{32}\b`,
		Hits:     []string{"«SK{h32}»"},
		Misses:   []string{"SKIPPED", "ACDC"},
	}, {
		ID:       "sendgrid-key",
		Keywords: []string{"SG."},
		Pattern:  `\bSG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}`,
		Hits:     []string{"«SG.{b22}.{b43}»"},
		Misses:   []string{"SG.a.b"},
	}, {
		ID:       "mailgun-key",
		Keywords: []string{"key-"},
		Pattern:  `\bkey-[0-9a-f]{32}\b`,
		Hits:     []string{"«key-{h32}»"},
		Misses:   []string{"key-value"},
	}, {
		ID:       "mailchimp-key",
		Keywords: []string{"-us"},
		Pattern:  `\b[0-9a-f]{32}-us[0-9]{1,2}\b`,
		Hits:     []string{"«{h32}-us12»"},
		Misses:   []string{"us-east-us1"},
	}, {
		ID:       "linear-key",
		Keywords: []string{"lin_api_", "lin_oauth_"},
		Pattern:  `\blin_(?:api|oauth)_[A-Za-z0-9]{32,}`,
		Hits:     []string{"«lin_api_{a40}»"},
		Misses:   []string{"lin_api_version"},
	}, {
		ID:       "notion-token",
		Keywords: []string{"ntn_", "secret_"},
		Pattern:  `\b(?:ntn_[0-9]{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43})\b`,
		Hits:     []string{"«ntn_{d11}{a35}»", "«secret_{a43}»"},
		Misses:   []string{"secret_name", "ntn_x"},
	}, {
		ID:       "shopify-token",
		Keywords: []string{"shpat_", "shpca_", "shppa_", "shpss_"},
		Pattern:  `\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}`,
		Hits:     []string{"«shpat_{h32}»"},
		Misses:   []string{"shpat_x"},
	}, {
		ID:       "postman-key",
		Keywords: []string{"PMAK-"},
		Pattern:  `\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}`,
		Hits:     []string{"«PMAK-{h24}-{h34}»"},
		Misses:   []string{"PMAK-1"},
	}, {
		ID:       "sentry-token",
		Keywords: []string{"sntrys_", "sntryu_"},
		Pattern:  `\bsntry[su]_[A-Za-z0-9+/=_-]{40,}`,
		Hits:     []string{"«sntrys_{b90}»", "«sntryu_{h64}»"},
		Misses:   []string{"sntrys_"},
	}, {
		ID:       "new-relic-key",
		Keywords: []string{"NRAK-", "NRJS-", "NRAL"},
		Pattern:  `\b(?:NRAK-[A-Z0-9]{27}|NRJS-[0-9a-f]{19}|[0-9a-f]{36}NRAL)\b`,
		Hits:     []string{"«NRAK-{u27}»"},
		Misses:   []string{"NRAK-1"},
	}, {
		ID:       "grafana-token",
		Keywords: []string{"glsa_", "glc_"},
		Pattern:  `\b(?:glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{32,}={0,2})`,
		Hits:     []string{"«glsa_{a32}_{h8}»"},
		Misses:   []string{"glsa_x"},
	}, {
		ID:       "square-token",
		Keywords: []string{"sq0", "EAAA"},
		Pattern:  `\b(?:sq0[a-z]{3}-[A-Za-z0-9_-]{22,43}|EAAA[A-Za-z0-9_-]{60})`,
		Hits:     []string{"«sq0csp-{b43}»"},
		Misses:   []string{"sq0-1"},
	}, {
		ID:       "atlassian-okta-token",
		Keywords: []string{"ssws"}, Fold: true,
		Pattern: `(?i)\bSSWS[ \t]+([A-Za-z0-9_-]{30,})`,
		Context: true,
		Hits:    []string{"Authorization: SSWS «00{b40}»"},
		Misses:  []string{"SSWS token"},
	},
}
