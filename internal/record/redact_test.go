//go:build unix

package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/planted"
	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// scriptFile is the file of a provider that writes the lines.
func scriptFile(t testing.TB, wait int, lines []planted.Line) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintln(&b, wait)
	for _, l := range lines {
		c := "O"
		if l.Stderr {
			c = "E"
		}
		b.WriteString(c + l.Text + "\n")
	}
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// disk reads every file in the folder.
func disk(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil && !os.IsNotExist(err) { // it may be renamed meanwhile
			t.Fatal(err)
		}
		b.Write(data)
	}
	return b.String()
}

// survivors are the planted secrets that stand in the text in any encoding,
// also over the joined deltas.
func survivors(traffic *planted.Traffic, text string) (list []string) {
	var joined strings.Builder
	streams := map[string]*strings.Builder{}
	for line := range strings.Lines(text) {
		var e struct {
			Channel string
			Frame   json.RawMessage
		}
		json.Unmarshal([]byte(line), &e)
		var f struct {
			Params struct{ ItemID, Delta string }
		}
		name := ""
		if e.Channel != "" {
			name = e.Channel
			json.Unmarshal(e.Frame, &f.Params.Delta)
		} else if json.Unmarshal(e.Frame, &f) == nil {
			name = f.Params.ItemID
		}
		if streams[name] == nil {
			streams[name] = &strings.Builder{}
		}
		streams[name].WriteString(f.Params.Delta)
	}
	for _, s := range streams {
		joined.WriteString(s.String() + "\x00")
	}
	all := text + "\x00" + joined.String()
	for _, s := range traffic.Secrets {
		if slices.ContainsFunc(planted.Encodings(s.Value), func(form string) bool { return strings.Contains(all, form) }) {
			list = append(list, fmt.Sprintf("%s as %s: %q", s.Kind, s.Form, s.Value))
		}
	}
	return list
}

func kindsAndForms(traffic *planted.Traffic) (int, int) {
	kinds, forms := map[string]bool{}, map[string]bool{}
	for _, s := range traffic.Secrets {
		kinds[s.Kind], forms[s.Form] = true, true
	}
	return len(kinds), len(forms)
}

// TestPlantedSecrets records a provider and a client that are full of secrets
// and looks at the disk all the while.
func TestPlantedSecrets(t *testing.T) {
	seeds := uint64(2)
	if raced {
		seeds = 1
	}
	for seed := range seeds {
		traffic := planted.New(seed * 7919)
		kinds, forms := kindsAndForms(traffic)
		if len(traffic.Secrets) < 120 || kinds < 25 {
			t.Fatalf("only %d secrets of %d kinds", len(traffic.Secrets), kinds)
		}
		path := target(t)
		p := send(traffic.Client...)
		stop, seen := make(chan struct{}), make(chan map[string]bool)
		go func() { // whoever looks meanwhile sees nothing either
			found := map[string]bool{}
			for {
				for _, s := range survivors(traffic, disk(t, filepath.Dir(path))) {
					found[s] = true
				}
				select {
				case <-stop:
					seen <- found
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}()
		_, err := p.record(t, "script:"+scriptFile(t, len(traffic.Client), traffic.Provider), Options{
			Path: path, Home: traffic.Home, Users: traffic.Users, Hosts: traffic.Hosts, Env: traffic.Env, Check: replay.SelfCheck,
		})
		close(stop)
		for s := range <-seen {
			t.Errorf("seed %d: on the disk while it runs: %s", seed, s)
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		text := disk(t, filepath.Dir(path))
		for _, s := range survivors(traffic, text) {
			t.Errorf("seed %d: reached the disk: %s", seed, s)
		}
		before := strings.Join(traffic.Client, "\n") + p.stdout.String() + p.stderr.String()
		for _, l := range traffic.Client {
			if !strings.Contains(before, l) {
				t.Error("the provider did not get", l)
			}
		}
		if got, want := len(read(t, path).Entries), len(traffic.Client)+len(traffic.Provider)+1; got != want {
			t.Errorf("seed %d: %d entries, want %d", seed, got, want)
		}
		replayOriginal(t, path, traffic)
		if seed == 0 {
			t.Logf("%d secrets of %d kinds in %d forms, %d entries: none reached the disk", len(traffic.Secrets), kinds, forms, len(read(t, path).Entries))
		}
	}
}

// replayOriginal plays the recording against the client it was recorded with,
// secrets and all.
func replayOriginal(t *testing.T, path string, traffic *planted.Traffic) {
	t.Helper()
	script, err := replay.Load(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.New(script, replay.Options{Workspace: "/elsewhere"}, replay.State{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	for _, l := range traffic.Client {
		f, err := flavors.Codex.Classify(envelope.Out, []byte(l))
		if err != nil {
			t.Fatal(err)
		}
		p.Receive(f)
	}
	for range script.Total + 10 {
		switch act := p.Next(0); act.Kind {
		case replay.Emit:
		case replay.Closing, replay.Wait:
			p.Close(replay.EndOfInput)
		default:
			if p.Failed() || p.Report().Verdict != replay.Passed {
				t.Fatalf("the original client does not pass: %s", p.Report().Masked().Text())
			}
			return
		}
	}
	t.Fatal("the replay does not end")
}

// TestCrashLeavesNoSecret kills the recorder while half a secret is out.
func TestCrashLeavesNoSecret(t *testing.T) {
	path := target(t)
	secret := "ghp_" + strings.Repeat("Ab3", 12)
	delta := func(s string) planted.Line {
		return planted.Line{Text: fmt.Sprintf(`{"method":"item/agentMessage/delta","params":{"itemId":"i","delta":%q}}`, s)}
	}
	file := scriptFile(t, 0, []planted.Line{
		{Text: `{"method":"ready"}`}, delta("it is " + secret[:8]), delta(secret[8:25]), {Text: `{"method":"over"}`},
	})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RECORD_ROLE=recorder-of:"+path+":script:"+file)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "over") { // the client has everything at once
	}
	partial := filepath.Join(filepath.Dir(path), ".out.ndjson.partial")
	for range 200 { // what is clear gets to the disk in its own time
		if data, err := os.ReadFile(partial); err == nil && strings.Contains(string(data), "ready") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	got := disk(t, filepath.Dir(path))
	if strings.Contains(got, secret[:8]) || strings.Contains(got, secret[8:25]) {
		t.Errorf("half a secret on the disk: %s", got)
	}
	if !strings.Contains(got, `"label":"ready"`) {
		t.Errorf("what was clear is not on the disk: %s", got)
	}
	if _, err := envelope.ReadFile(partial); err != nil {
		t.Error(err)
	}
}

// TestLeakIsNotKept lets a secret stand where nothing may be changed.
func TestLeakIsNotKept(t *testing.T) {
	secret := "ghp_" + strings.Repeat("Ab3", 12)
	for name, line := range map[string]string{
		"method":  `{"method":"` + secret + `"}`,
		"id":      `{"id":"` + secret + `","method":"m"}`,
		"base64":  `{"method":"m","id":"x` + "Z2hwX0FiM0FiM0FiM0FiM0FiM0FiM0FiM0FiM0FiM0FiM0FiM0FiMw" + `"}`,
		"invalid": `{"method":"m"}` + "\n" + `{"method":"` + secret + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := target(t)
			res, err := send(line).record(t, "cat", Options{Path: path})
			var leak *LeakError
			if !errors.As(err, &leak) || res.Path != "" {
				t.Fatalf("result %+v, error %v", res, err)
			}
			if strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "out.ndjson:") || !strings.Contains(err.Error(), "github-token at ") {
				t.Errorf("message %v", err)
			}
			if got := names(t, path); got != "" {
				t.Errorf("left behind: %s", got)
			}
		})
	}
}

// TestLeakDoesNotReplace: a good transcript survives a bad recording.
func TestLeakDoesNotReplace(t *testing.T) {
	path := target(t)
	if _, err := send(`{"method":"good"}`).record(t, "cat", Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	before := disk(t, filepath.Dir(path))
	if _, err := send(`{"method":"ghp_`+strings.Repeat("Ab3", 12)+`"}`).record(t, "cat", Options{Path: path, Force: true}); err == nil {
		t.Fatal("no error")
	}
	if got := disk(t, filepath.Dir(path)); got != before {
		t.Errorf("transcript became %s", got)
	}
}

// TestLearnedLater: a value whose nature shows at the end only is taken out of
// what was written before.
func TestLearnedLater(t *testing.T) {
	path := target(t)
	_, err := send(`{"method":"a","params":{"x":"it says quiet7lake9 here"}}`, `{"method":"b","params":{"password":"quiet7lake9"}}`).
		record(t, "cat", Options{Path: path, Check: replay.SelfCheck})
	if err != nil {
		t.Fatal(err)
	}
	if got := disk(t, filepath.Dir(path)); strings.Contains(got, "quiet7lake9") {
		t.Error(got)
	}
}

// TestAppendKeepsPlaceholdersApart: another process's secrets have other
// placeholders.
func TestAppendKeepsPlaceholdersApart(t *testing.T) {
	path := target(t)
	for _, s := range []string{"Ab3", "Cd4"} {
		p := &pipes{stdin: strings.NewReader(`{"method":"m","params":{"text":"it is ghp_` + strings.Repeat(s, 12) + ` now"}}` + "\n")}
		if _, err := p.record(t, "cat", Options{Path: path, Append: true, Metadata: [][2]string{{"by", "jo.doe@mail.corp.io"}}}); err != nil {
			t.Fatal(err)
		}
	}
	got := disk(t, filepath.Dir(path))
	for _, want := range []string{"it is <redacted:github-token:1> now", "it is <redacted:github-token:2> now", `"github-token":4`, `"by":"<redacted:email:`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
}

// TestForwardingIsImmediate: what waits for the disk does not wait for the
// client.
func TestForwardingIsImmediate(t *testing.T) {
	path := target(t)
	in, client := io.Pipe()
	fromTap, tap := io.Pipe()
	file := scriptFile(t, 0, []planted.Line{{Text: `{"method":"item/agentMessage/delta","params":{"itemId":"i","delta":"sk-"}}`}})
	go func() {
		defer client.Close()
		lines := bufio.NewScanner(fromTap)
		if !lines.Scan() || !strings.Contains(lines.Text(), "sk-") {
			t.Errorf("client got %q", lines.Text())
		}
		if got := disk(t, filepath.Dir(path)); strings.Contains(got, "delta") {
			t.Errorf("written already: %s", got)
		}
	}()
	p := &pipes{stdin: in}
	if _, err := p.recordTo(t, "script:"+file, Options{Path: path}, tap); err != nil {
		t.Fatal(err)
	}
	if got := show(t, path); !strings.Contains(got, `"delta":"sk-"`) {
		t.Error(got)
	}
}

// TestStreamsOfFlavors splits a secret over two frames of every protocol that
// streams text.
func TestStreamsOfFlavors(t *testing.T) {
	for protocol, frame := range map[string]string{
		"codex.app-server":       `{"method":"item/commandExecution/outputDelta","params":{"itemId":"i","delta":"%s"}}`,
		"claude-agent-sdk.query": `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}},"session_id":"s","parent_tool_use_id":null}`,
		"acp.ndjson-jsonrpc":     `{"kind":"notification","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}`,
		"cursor-agent-sdk.local": `{"type":"interaction.update","runId":"r","update":{"type":"text-delta","text":"%s"}}`,
		"opencode-sdk.sse":       `{"type":"sdk.event","event":{"type":"message.part.delta","properties":{"partID":"p","field":"text","delta":"%s"}}}`,
	} {
		f, err := flavors.ByProtocol(protocol)
		if err != nil {
			t.Error(err)
			continue
		}
		r := newRedactor(&Options{Flavor: f})
		var got []string
		put := func(list []envelope.Entry, err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range list {
				got = append(got, string(e.(*envelope.EmitInbound).Frame))
			}
		}
		for _, text := range []string{"it is gh", "p_Ab3Ab3Ab3Ab3Ab3Ab3Ab3", "Ab3Ab3Ab3Ab3Ab3 ok"} {
			put(r.Add(&envelope.EmitInbound{Frame: fmt.Appendf(nil, frame, text)}))
		}
		if len(got) > 0 {
			t.Errorf("%s: written too early: %s", protocol, got)
		}
		put(r.Flush())
		want := []string{fmt.Sprintf(frame, "it is <redacted:github-token:1>"), fmt.Sprintf(frame, ""), fmt.Sprintf(frame, " ok")}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s", protocol, got)
		}
	}
}
