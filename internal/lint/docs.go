package lint

import (
	"fmt"
	"strings"
)

// GitHub returns the finding as a workflow command, which GitHub Actions shows
// as an annotation of the line.
func (f Finding) GitHub() string {
	level := string(f.Severity)
	if f.Severity == Info {
		level = "notice"
	}
	text := f.Message
	if f.Path != "" {
		text = "at " + f.Path + ": " + text
	}
	if f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	name := ""
	for _, r := range Rules {
		if r.ID == f.Rule {
			name = " " + r.Name
		}
	}
	return fmt.Sprintf("::%s file=%s,line=%d,title=%s::%s", level, property(f.File), f.Line, property(f.Rule+name), data(text))
}

// data escapes what GitHub reads as the end of a command, property what it
// reads as the end of a property, too.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(s))
}

// anchor is the rule's heading in docs/rules.md, as links name it.
func (r Rule) anchor() string { return strings.ToLower(r.ID) + "-" + r.Name }

// Markdown returns docs/rules.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Rules of transcript-lint\n\n" +
		"Written by `transcript-lint rules --format markdown`; do not edit.\n\n" +
		"An *error* makes a transcript unfit and `check` exit with 3; a *warning* is worth a reviewer's look, an *info* is advice.\n" +
		"A finding is put aside by its fingerprint (`--format json` tells it): in the file itself, as `metadata.lint.suppress`,\n" +
		"a list of fingerprints or of `{\"fingerprint\":…,\"reason\":…}`; or in a baseline, see [ci.md](ci.md). `--disable RULE` leaves out a rule.\n\n" +
		"| rule | severity | finds |\n|---|---|---|\n")
	for _, r := range Rules {
		fmt.Fprintf(&b, "| [%s %s](#%s) | %s | %s |\n", r.ID, r.Name, r.anchor(), r.Severity, markdown(r.What))
	}
	for _, r := range Rules {
		fmt.Fprintf(&b, "\n## %s %s\n\n%s: %s %s\n", r.ID, r.Name, strings.ToUpper(string(r.Severity[:1]))+string(r.Severity[1:]), markdown(r.What), markdown(r.Why))
	}
	return b.String()
}

func markdown(s string) string {
	return strings.NewReplacer("<", "&lt;", "|", `\|`, "*", `\*`).Replace(s)
}
