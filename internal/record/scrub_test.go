package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

func scrubberFor(o Options) *scrubber {
	o.Flavor = flavors.Codex
	return newScrubber(&o)
}

func TestScrub(t *testing.T) {
	long := strings.Repeat("You are an agent. ", 50)
	for _, c := range []struct{ name, in, inbound, outbound string }{
		{"untouched", `{ "b":1.0,"a":1e3,"a":[ null],"s":"\u00e9\/ / \ud800"}`, "", ""},
		{"workspace", `"/ws"`, `"<workspace>"`, `"<workspace>"`},
		{"below it", `["cd /ws/a && ls /ws"]`, `["cd <workspace>/a && ls <workspace>"]`, `["cd <workspace>/a && ls <workspace>"]`},
		{"key", `{"/ws/a":{"/h":1}}`, `{"<workspace>/a":{"<home>":1}}`, `{"<workspace>/a":{"<home>":1}}`},
		{"not it", `"/ws2 /ws-a /ws.go /a/ws x/ws"`, "", ""},
		{"end of a sentence", `"in /ws. Or /ws?"`, `"in <workspace>. Or <workspace>?"`, `"in <workspace>. Or <workspace>?"`},
		{"glued", `"file:///ws -I/ws \u001b[1m/ws x=/ws"`,
			`"file://<workspace> -I<workspace> \u001b[1m<workspace> x=<workspace>"`,
			`"file://<workspace> -I<workspace> \u001b[1m<workspace> x=<workspace>"`},
		{"escaped in JSON", `"\/ws\u002fa \u00e9 \ud83d\ude00 \/ws"`, `"<workspace>\u002fa \u00e9 \ud83d\ude00 <workspace>"`, `"<workspace>\u002fa \u00e9 \ud83d\ude00 <workspace>"`},
		{"JSON in a string", `"{\"cwd\":\"/ws\",\"c\":\"\\/ws\\/a\"}"`,
			`"{\"cwd\":\"<workspace>\",\"c\":\"<workspace>\\/a\"}"`, `"{\"cwd\":\"<workspace>\",\"c\":\"<workspace>\\/a\"}"`},
		{"home", `"/h/.codex"`, `"<home>/.codex"`, `"<path>"`},
		{"home in text", `"see /h/.codex, and /t/x"`, `"see <home>/.codex, and <tmp>/x"`, `"see <any>/.codex, and <any>/x"`},
		{"longest first", `"/h/t/x /h/x"`, `"<tmp>/x <home>/x"`, `"<any>/x <any>/x"`},
		{"literal", `"a <any> b <<any>"`, `"a <<any> b <<<any>"`, `"a <<any> b <<<any>"`},
		{"literal, escaped", `"\u003cany\u003e"`, `"<\u003cany\u003e"`, `"<\u003cany\u003e"`},
		{"type as a whole", `["<string>","x <string>","<<string>"]`, `["<<string>","x <string>","<<<string>"]`, `["<<string>","x <string>","<<<string>"]`},
		{"bind and workspace", `"<bind:a-1> <workspace> <bind:>"`, `"<<bind:a-1> <<workspace> <bind:>"`, `"<<bind:a-1> <<workspace> <bind:>"`},
		{"path in brackets", `"see </ws> or </h>"`, `"see <[workspace]> or <<home>>"`, `"<string>"`},
		{"prose", `{"developer_instructions":"` + long + `","other":"` + long + `"}`, `{"developer_instructions":"<vendor-prose>","other":"` + long + `"}`, ""},
		{"short instructions", `{"developer_instructions":"be brief","x":["` + long + `"]}`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for dir, want := range map[envelope.Direction]string{envelope.In: c.inbound, envelope.Out: c.outbound} {
				if want == "" {
					want = c.in
				}
				s := scrubberFor(Options{Workspace: "/ws", Home: "/h", Tmp: "/t"})
				s.add("/h/t", "tmp")
				s.sort()
				got := string(s.frame(dir, json.RawMessage(c.in)))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", dir, diff)
				}
			}
		})
	}
}

func TestScrubFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(link)
	if err != nil {
		t.Fatal(err)
	}
	s := scrubberFor(Options{Workspace: link + "/"})
	raw, _ := json.Marshal([]string{link, real + "/a"})
	if got := string(s.frame(envelope.In, raw)); got != `["<workspace>","<workspace>/a"]` {
		t.Error(got)
	}
	if s.counts["workspace"] != 2 {
		t.Errorf("counts %v", s.counts)
	}
}

func TestScrubLeavesPublicDirectories(t *testing.T) {
	s := scrubberFor(Options{Workspace: "/", Home: "", Tmp: "/tmp"})
	if got := string(s.frame(envelope.In, json.RawMessage(`"/tmp/x /"`))); got != `"/tmp/x /"` {
		t.Error(got)
	}
}
