package lint

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/schemas"
)

// clockSkew is how far a recording machine's clock may be ahead.
const clockSkew = 5 * time.Minute

func checkHeaderField(_ *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		for _, f := range [][2]string{
			{"provider", h.Provider}, {"protocol", h.Protocol}, {"version", h.Version}, {"scenario", h.Scenario},
		} {
			if f[1] != strings.TrimSpace(f[1]) {
				found(h.Line, f[0], "", "%q has white space around it", f[1])
			}
		}
	}}
}

func checkMetadataMissing(c *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		for _, p := range metadataProblems(c, h) {
			if p.Keyword == "required" {
				found(h.Line, metadataPath(p.Pointer), "", "%s", p.Message)
			}
		}
	}}
}

func checkMetadataInvalid(c *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		for _, p := range metadataProblems(c, h) {
			if p.Keyword != "required" {
				found(h.Line, metadataPath(p.Pointer), "", "%s", p.Message)
			}
		}
	}}
}

// metadataProblems checks the metadata against the schema of the protocol, or
// the common one where the protocol has none. No metadata is an empty object.
func metadataProblems(c *run, h *envelope.Header) []schemas.Problem {
	if c.problems == nil {
		c.problems = append([]schemas.Problem{}, validateMetadata(c, h)...)
	}
	return c.problems
}

func validateMetadata(c *run, h *envelope.Header) []schemas.Problem {
	name := "metadata"
	if c.flavor != nil {
		own := "metadata." + cmp.Or(c.flavor.Metadata, c.flavor.Providers[0])
		if slices.Contains(schemas.Names(), own) {
			name = own
		}
	}
	doc := h.Metadata
	if doc == nil {
		doc = json.RawMessage("{}")
	}
	var invalid *schemas.InvalidError
	if err := schemas.Validate(name, doc); errors.As(err, &invalid) {
		return invalid.Problems
	}
	return nil
}

// metadataPath turns a JSON pointer below metadata into a path.
func metadataPath(pointer string) string {
	path := "metadata"
	if pointer == "" {
		return path
	}
	for key := range strings.SplitSeq(pointer[1:], "/") {
		path += "." + pathKey(strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
	}
	return path
}

func checkCapturedAt(c *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		text, _ := metadataString(h, "capturedAt")
		at, err := time.Parse(time.RFC3339, text)
		if err == nil && at.After(c.now.Add(clockSkew)) {
			found(h.Line, "metadata.capturedAt", "", "%s is later than now", text)
		}
	}}
}

func checkIncomplete(_ *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		if gjson.GetBytes(h.Metadata, "incomplete").Type == gjson.True {
			found(h.Line, "metadata.incomplete", "record it again", "the recording is incomplete")
		}
	}}
}

// metadataString returns a metadata value that is a string.
func metadataString(h *envelope.Header, key string) (string, bool) {
	v := gjson.GetBytes(h.Metadata, key)
	return v.Str, v.Type == gjson.String
}

func checkProtocol(c *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		if c.flavor == nil {
			found(h.Line, "protocol", "", "protocol %q is not known: rules about frames, ids and answers are skipped", h.Protocol)
		}
	}}
}

func checkProvider(c *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		if c.flavor != nil && !slices.Contains(c.flavor.Providers, h.Provider) {
			found(h.Line, "provider", "", "provider %q does not speak %s: want %s",
				h.Provider, h.Protocol, strings.Join(c.flavor.Providers, ", "))
		}
	}}
}

// checkVersion compares what frames tell with header and metadata, each
// differing version once. A header version without a dot is a protocol's
// number, not a provider's version.
func checkVersion(c *run, found report) checker {
	told := map[string]bool{}
	return checker{entry: func(s *step) {
		if s.frame == nil {
			return
		}
		version := ""
		switch f := c.flavor; {
		case f.Version != nil:
			version = f.Version(s.dir, *s.frame)
		case f.Probe != nil:
			version = f.Probe(s.dir, *s.frame)["providerVersion"]
		}
		if version == "" || told[version] {
			return
		}
		told[version] = true
		if h := c.hdr.Version; h != version && strings.Contains(h, ".") {
			found(s.line, "frame", "", "the provider says it is %s, the header's version is %s", version, h)
		}
		if m, ok := metadataString(c.hdr, "providerVersion"); ok && m != version {
			found(s.line, "frame", "", "the provider says it is %s, metadata.providerVersion is %s", version, m)
		}
	}}
}
