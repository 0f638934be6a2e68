package redact

// cloudKeys are keys of clouds and of what runs there.
var cloudKeys = []Rule{
	{
		ID:       "aws-access-key",
		Keywords: []string{"AKIA", "ASIA", "ABIA", "ACCA"},
		Pattern:  `\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b`,
		Hits:     []string{"«AKIA{x16}»", "AWS_ACCESS_KEY_ID=«ASIA{x16}»"},
		Misses:   []string{"AKIA", "PAKIA{x16}"},
	}, {
		ID:       "aws-secret-key",
		Keywords: []string{"aws"}, Fold: true,
		Pattern: `(?i)aws.{0,24}?(?:secret|sk|key).{0,24}?["'=: \t]([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)`,
		Digits:  2, Entropy: 4, Context: true,
		Hits:   []string{"aws secret key: «{c40}»", "export AWS_SECRET_ACCESS_KEY=«{c40}»"},
		Misses: []string{"aws secret key: none", "awsome sk {l40}"},
	}, {
		ID:       "azure-client-secret",
		Keywords: []string{"8Q~", "7Q~"},
		Pattern:  `\b[A-Za-z0-9_~.]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}`,
		Hits:     []string{"«{a3}8Q~{b34}»"},
		Misses:   []string{"8Q~"},
	}, {
		ID:       "azure-account-key",
		Keywords: []string{"accountkey", "sharedaccesskey", "sharedsecret"}, Fold: true,
		Pattern: `(?i)\b(?:AccountKey|SharedAccessKey|SharedSecret)=([A-Za-z0-9+/]{40,}={0,2})`,
		Context: true,
		Hits:    []string{"AccountName=x;AccountKey=«{c86}==»;EndpointSuffix=core"},
		Misses:  []string{"AccountKey=none"},
	}, {
		ID:       "digitalocean-token",
		Keywords: []string{"dop_v1_", "doo_v1_", "dor_v1_"},
		Pattern:  `\bdo[opr]_v1_[0-9a-f]{64}`,
		Hits:     []string{"«dop_v1_{h64}»"},
		Misses:   []string{"dop_v1_token"},
	}, {
		ID:       "vault-token",
		Keywords: []string{"hvs.", "hvb.", "hvr."},
		Pattern:  `\bhv[sbr]\.[A-Za-z0-9_-]{24,}`,
		Hits:     []string{"«hvs.{b90}»"},
		Misses:   []string{"hvs.txt"},
	}, {
		ID:       "terraform-token",
		Keywords: []string{".atlasv1."},
		Pattern:  `\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}`,
		Hits:     []string{"«{a14}.atlasv1.{b64}»"},
		Misses:   []string{"x.atlasv1.y"},
	}, {
		ID:       "databricks-token",
		Keywords: []string{"dapi"},
		Pattern:  `\bdapi[0-9a-f]{32}(?:-[0-9])?\b`,
		Hits:     []string{"«dapi{h32}»"},
		Misses:   []string{"dapio", "rapidapi"},
	}, {
		ID:       "doppler-token",
		Keywords: []string{"dp."},
		Pattern:  `\bdp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}`,
		Hits:     []string{"«dp.pt.{a43}»"},
		Misses:   []string{"dp.pt.x"},
	}, {
		ID:       "netlify-token",
		Keywords: []string{"nfp_", "nfc_"},
		Pattern:  `\bnf[pc]_[A-Za-z0-9]{36}`,
		Hits:     []string{"«nfp_{a36}»"},
		Misses:   []string{"nfp_x"},
	}, {
		ID:       "cloudflare-key",
		Keywords: []string{"v1.0-"},
		Pattern:  `\bv1\.0-[0-9a-f]{24}-[0-9a-f]{146}`,
		Hits:     []string{"«v1.0-{h24}-{h146}»"},
		Misses:   []string{"v1.0-beta"},
	}, {
		ID:       "heroku-key",
		Keywords: []string{"HRKU-"},
		Pattern:  `\bHRKU-[A-Za-z0-9_-]{30,}`,
		Hits:     []string{"«HRKU-{b60}»"},
		Misses:   []string{"HRKU-"},
	}, {
		ID:       "age-secret-key",
		Keywords: []string{"AGE-SECRET-KEY-1"},
		Pattern:  `\bAGE-SECRET-KEY-1[0-9A-Z]{58}`,
		Hits:     []string{"«AGE-SECRET-KEY-1{u58}»"},
		Misses:   []string{"AGE-SECRET-KEY-1"},
	},
}
