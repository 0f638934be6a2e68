package redact

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// directory is one way to write a directory of the recording machine.
type directory struct {
	text  string
	name  string // workspace, home or tmp
	coded bool   // not as a path
}

// directories returns the forms of the configured directories, the longest
// first: as they are, with symbolic links resolved, and as one file name, the
// way tools name a folder after a folder. Directories that say nothing about
// the machine are left alone.
func directories(c *Config) []directory {
	var list []directory
	add := func(d directory) {
		if !slices.ContainsFunc(list, func(o directory) bool { return o.text == d.text }) {
			list = append(list, d)
		}
	}
	for _, d := range []directory{{text: c.Workspace, name: "workspace"}, {text: c.Home, name: "home"}, {text: c.Tmp, name: "tmp"}} {
		if d.text == "" {
			continue
		}
		forms := []string{d.text}
		if abs, err := filepath.Abs(d.text); err == nil {
			forms = append(forms, abs)
			if real, err := filepath.EvalSymlinks(abs); err == nil {
				forms = append(forms, real)
			}
		}
		for _, dir := range forms {
			dir = filepath.Clean(dir)
			if !filepath.IsAbs(dir) || dir == filepath.VolumeName(dir)+string(filepath.Separator) || slices.Contains([]string{"/tmp", "/var/tmp", "/root"}, dir) {
				continue
			}
			add(directory{text: dir, name: d.name})
			if strings.Count(dir, string(filepath.Separator)) > 1 {
				add(directory{text: folded.Replace(dir), name: d.name, coded: true})
				add(directory{text: strings.ReplaceAll(dir, "/", "-"), name: d.name, coded: true})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b directory) int { return cmp.Compare(len(b.text), len(a.text)) })
	return list
}

// folded is how Claude names a project's folder.
var folded = strings.NewReplacer("/", "-", ".", "-", "_", "-", `\`, "-", ":", "-")

// scanDirectories calls add for the directories in a text, the longest at
// each place.
func scanDirectories(list []directory, text string, add func(start, end int, d directory)) {
	next := make([]int, 0, 16) // per form, where it stands next; past the end for nowhere
	for _, d := range list {
		next = append(next, find(text, d.text, 0))
	}
	for at := 0; ; {
		best := -1
		for k, d := range list {
			if next[k] < at {
				next[k] = find(text, d.text, at)
			}
			if next[k] < len(text) && (best < 0 || next[k] < next[best]) {
				best = k
			}
		}
		if best < 0 {
			return
		}
		d := list[best]
		start := next[best]
		end := start + len(d.text)
		if !leftBoundary(text, start) || !rightBoundary(text, end, d.coded) {
			next[best] = find(text, d.text, start+1)
			continue
		}
		add(start, end, d)
		at = end
	}
}

// find is strings.Index from an offset, past the end when there is none.
func find(text, sub string, from int) int {
	if from <= len(text) {
		if i := strings.Index(text[from:], sub); i >= 0 {
			return from + i
		}
	}
	return len(text) + 1
}

// glued is what may stand right before a path although it ends in a name's
// character or a slash: a URL's scheme, a one-letter flag, a colour sequence.
var glued = regexp.MustCompile(`(?:[A-Za-z]://|(?:^|[\s"'=])-[A-Za-z]|\x1b\[[0-9;]*[A-Za-z])$`)

// leftBoundary says whether a path that starts at text[i] starts there as a
// whole: "/ws" does in "cwd=/ws" and not in "/my/ws".
func leftBoundary(text string, i int) bool {
	if i == 0 || !nameByte(text[i-1]) && text[i-1] != '/' {
		return true
	}
	if text[i] == '-' && text[i-1] == '/' { // a folder named after a folder
		return true
	}
	return glued.MatchString(text[max(0, i-24):i])
}

// rightBoundary says the same of its end. A full stop that ends a sentence
// does not go on with a name. A folder named after a folder below goes on.
func rightBoundary(text string, i int, coded bool) bool {
	if coded && i < len(text) && text[i] == '-' {
		return true
	}
	rest := strings.TrimLeft(text[i:], ".")
	return rest == "" || !nameByte(rest[0]) && (len(rest) == len(text)-i || rest[0] != '/')
}

func nameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= 0x80 ||
		c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
