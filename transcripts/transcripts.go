// Package transcripts holds the recorded conversations and the scenarios they
// belong to, one folder each: scenario.yaml beside PROVIDER.ndjson.
package transcripts

import "embed"

// FS holds NAME/scenario.yaml and NAME/PROVIDER.ndjson.
//
//go:embed */*.yaml */*.ndjson
var FS embed.FS
