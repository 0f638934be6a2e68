package lint

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// maxAge is how old a recording may get by default.
const maxAge = 180 * 24 * time.Hour

func checkAge(c *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		limit := c.opts.MaxAge
		if limit == 0 {
			limit = maxAge
		}
		text, _ := metadataString(h, "capturedAt")
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || limit < 0 || !recorded(h) {
			return
		}
		if age := c.now.Sub(at); age > limit {
			found(h.Line, "metadata.capturedAt", c.again(), "recorded %d days ago: the limit is %d", days(age), days(limit))
		}
	}}
}

func days(d time.Duration) int { return int(d / (24 * time.Hour)) }

// recorded says whether a provider stood behind the file.
func recorded(h *envelope.Header) bool {
	source, _ := metadataString(h, "source")
	return source != "hand-written"
}

func checkVersionGap(c *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		version, _ := metadataString(h, "providerVersion")
		current := c.opts.Current[c.provider()]
		if gap := versionGap(version, current); gap != "" && recorded(h) {
			found(h.Line, "metadata.providerVersion", c.again(), "recorded with %s %s, which is %s behind %s", c.provider(), version, gap, current)
		}
	}}
}

// gaps is how far each part of a version may be behind.
var gaps = []struct {
	name string
	most int
}{{"major version", 0}, {"minor version", 10}, {"patch release", 150}}

// versionGap says how far old is behind today's version, "" where that is
// near enough, newer, or cannot be told.
func versionGap(old, current string) string {
	a, b := versionParts(old), versionParts(current)
	for i := 0; i < len(gaps) && i < len(a) && i < len(b); i++ {
		switch gap := b[i] - a[i]; {
		case gap < 0 || gap > 0 && gap <= gaps[i].most:
			return ""
		case gap == 1:
			return "1 " + gaps[i].name
		case gap > 1:
			return fmt.Sprintf("%d %ss", gap, gaps[i].name)
		}
	}
	return ""
}

func versionParts(v string) (parts []int) {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
	for part := range strings.SplitSeq(v, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		parts = append(parts, n)
	}
	return parts
}

// provider is the name that recording recipes have for the transcript's.
func (c *run) provider() string {
	if c.flavor != nil && c.flavor.Metadata == "" {
		return c.flavor.Providers[0]
	}
	return c.hdr.Provider
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)

// again is the command that records the file anew.
func (c *run) again() string {
	words := []string{"scripts/record.sh", c.provider(), c.hdr.Scenario}
	own := "transcripts/" + c.hdr.Scenario + "/" + c.provider() + Extension
	file := filepath.ToSlash(c.name)
	if strings.HasSuffix(file, Extension) && file != own {
		words = append(words, file)
	}
	for i, w := range words {
		if !plainName.MatchString(w) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return "record it again: " + strings.Join(words, " ")
}
