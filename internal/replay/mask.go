package replay

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// A mismatch prints what a client sent, and that may hold credentials. These
// shapes never reach a terminal or a report.
// They are compiled at first use: a peer that does not fail starts without.
var (
	secretShape = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}` +
			`|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}` +
			`|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}` +
			`|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+` +
			`|(?i:bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,}`)
	})
	secretKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(?:password|passwd|secret|api[-_]?key|access[-_]?key|private[-_]?key|authorization|credential|(?:access|auth|refresh|id|api|bearer|session)[-_]?token)$`)
	})
)

const masked = "<masked>"

// secretMarks are texts of which every secret's shape holds one. Looking for
// them first spares long frames the expressions.
var secretMarks = []string{
	"sk-", "pk-", "rk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "AKIA", "AIza", "eyJ",
	"earer", "EARER", "asic", "ASIC",
}

// maskText returns text with the shapes of credentials replaced.
func maskText(text string) string {
	for _, mark := range secretMarks {
		if strings.Contains(text, mark) {
			return secretShape().ReplaceAllString(text, masked)
		}
	}
	return text
}

// mask returns raw with credentials in its strings replaced. Values under keys
// that name a secret are replaced whole, whatever they hold.
func mask(raw []byte) []byte {
	if !json.Valid(raw) {
		return []byte(maskText(string(raw)))
	}
	var out []byte
	kept := 0 // raw up to here is in out
	put := func(from, to int, s string) {
		out = envelope.AppendString(append(out, raw[kept:from]...), s)
		kept = to
	}
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i++
			continue
		}
		end := envelope.SkipString(raw, i)
		text := envelope.Unquote(raw[i:end])
		if safe := maskText(text); safe != text {
			put(i, end, safe)
		}
		i = end
		if v := memberValue(raw, end); v > 0 && secretKey().MatchString(text) && tells(raw[v]) {
			i = envelope.SkipValue(raw, v)
			put(v, i, masked)
		}
	}
	if kept == 0 {
		return raw
	}
	return append(out, raw[kept:]...)
}

// tells says whether a value that starts with c may hold a secret.
func tells(c byte) bool { return c != 't' && c != 'f' && c != 'n' }

// Masked returns the report with credentials replaced in every frame and
// value it holds.
func (r *Report) Masked() *Report {
	if r.Failure == nil {
		return r
	}
	m, f := *r, *r.Failure
	f.Actual = maskRaw(f.Actual)
	f.Differences = maskDifferences(f.Differences)
	if f.Nearest != nil {
		n := *f.Nearest
		n.Differences = maskDifferences(n.Differences)
		f.Nearest = &n
	}
	f.Queued = nil
	for _, q := range r.Failure.Queued {
		f.Queued = append(f.Queued, maskRaw(q))
	}
	f.Message = maskText(f.Message)
	m.Failure = &f
	return &m
}

func maskRaw(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	return mask(raw)
}

func maskDifferences(list []Difference) []Difference {
	var out []Difference
	for _, d := range list {
		if slices.ContainsFunc(strings.Split(d.Path, "."), secretKey().MatchString) {
			d.Expected, d.Actual = maskWhole(d.Expected), maskWhole(d.Actual)
		}
		d.Expected, d.Actual = maskRaw(d.Expected), maskRaw(d.Actual)
		out = append(out, d)
	}
	return out
}

func maskWhole(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || !tells(raw[0]) {
		return raw
	}
	return json.RawMessage(`"` + masked + `"`)
}
