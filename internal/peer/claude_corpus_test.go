//go:build unix

package peer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/replay"
)

func claudeCorpus(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("TRANSCRIPT_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "claude.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no corpus beside the repository")
	}
	for i := range files {
		if files[i], err = filepath.Abs(files[i]); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Recordings of another tool replay as they are, over the wire of the
// provider; with one value changed they do not.
func TestClaudeCorpus(t *testing.T) {
	testClaudeFiles(t, claudeCorpus(t))
}

// The same for hand-written transcripts of all that a client and a provider
// ask each other.
func TestClaudeTranscripts(t *testing.T) {
	files, err := filepath.Glob(claudeTranscript(t, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	testClaudeFiles(t, files)
}

func testClaudeFiles(t *testing.T, files []string) {
	exe := buildPeer(t)
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(file, ".ndjson"), "/claude")
		name = filepath.Base(name)
		entries := readClaude(t, file)
		for _, session := range []string{"", "99999999-8888-4777-8666-555555555555"} {
			if session != "" && !gjson.Get(entries[0].frame, "options.sessionId").Exists() {
				continue
			}
			t.Run(strings.TrimSuffix(name+"/own session "+session, "/own session "), func(t *testing.T) {
				c := &claudeClient{t: t, exe: exe, dir: t.TempDir(), file: file, session: session}
				err := c.play(entries)
				r, _ := c.outcome()
				if err != nil || r.Verdict != replay.Passed {
					t.Errorf("%v\n%s", err, r.Text())
				}
			})
		}
		for i, e := range entries {
			if !e.out {
				continue
			}
			for _, path := range changeable(e) {
				t.Run(fmt.Sprintf("%s/%d %s", name, i+2, path), func(t *testing.T) {
					changed := slices.Clone(entries)
					changed[i].frame = change(t, e.frame, path)
					changed[i].typ = gjson.Get(changed[i].frame, "type").Str
					c := &claudeClient{t: t, exe: exe, dir: t.TempDir(), file: file}
					err := c.play(changed)
					r, code := c.outcome()
					if err == nil || r.Verdict != replay.Mismatch || code != replay.ExitFailed {
						t.Errorf("verdict %s, exit code %d, client's error %v", r.Verdict, code, err)
					}
				})
			}
		}
	}
}

// changeable lists the scalars of an outbound frame that a client sends as
// they are. Its own session id is not one: it may choose another.
func changeable(e claudeEntry) []string {
	var paths []string
	var walk func(at string, v gjson.Result)
	walk = func(at string, v gjson.Result) {
		if v.IsObject() || v.IsArray() {
			v.ForEach(func(k, item gjson.Result) bool {
				if v.IsArray() {
					k.Str = fmt.Sprint(k.Int())
				}
				walk(strings.TrimPrefix(at+"."+k.Str, "."), item)
				return true
			})
			return
		}
		switch at {
		case "options.sessionId", "message.type", "options.tools.type", "options.tools.preset",
			"message.uuid", "options.agents.0", "options.hooks.PreToolUse":
		case "type":
			if strings.HasPrefix(e.typ, "query.") && e.typ != "query.open" {
				paths = append(paths, at)
			}
		default:
			paths = append(paths, at)
		}
	}
	walk("", gjson.Parse(e.frame))
	return paths
}

// change puts another value of the same type at a path.
func change(t *testing.T, frame, path string) string {
	t.Helper()
	v := gjson.Get(frame, path)
	other := `"other"`
	switch {
	case path == "type":
		other = `"query.other"`
	case v.Type == gjson.True:
		other = "false"
	case v.Type == gjson.Number:
		other = v.Raw + "1"
	case v.Type == gjson.Null:
		other = `"toolu_other"`
	case v.Type == gjson.String:
		other = v.Raw[:len(v.Raw)-1] + `!"`
	default:
		t.Fatalf("no other value for %s", v.Raw)
	}
	return frame[:v.Index] + other + frame[v.Index+len(v.Raw):]
}
