package redact

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// frame redacts one frame from the wire.
func (r *Redactor) frame(dir envelope.Direction, raw string) string {
	return string(r.rewrite(context{dir: dir, binds: true, wire: r.config.Wire}, json.RawMessage(raw), nil, 0))
}

func TestDirectories(t *testing.T) {
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
				r := New(Config{
					Workspace: "/ws", Home: "/h", Tmp: "/t", Wire: true,
					ProseKeys: map[string]bool{"developer_instructions": true},
				})
				r.find.dirs = append([]directory{{text: "/h/t", name: "tmp"}}, r.find.dirs...)
				got := r.frame(dir, c.in)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", dir, diff)
				}
			}
		})
	}
}

func TestDirectoriesFollowsLinks(t *testing.T) {
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
	r := New(Config{Workspace: link + "/"})
	raw, _ := json.Marshal([]string{link, real + "/a"})
	if got := r.frame(envelope.In, string(raw)); got != `["<workspace>","<workspace>/a"]` {
		t.Error(got)
	}
	if r.counts["workspace"] != 2 {
		t.Errorf("counts %v", r.counts)
	}
}

func TestDirectoriesLeavesPublicDirectories(t *testing.T) {
	r := New(Config{Workspace: "/", Home: "", Tmp: "/tmp"})
	if got := r.frame(envelope.In, `"/tmp/x /"`); got != `"/tmp/x /"` {
		t.Error(got)
	}
}
