package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
	"github.com/replaypeer/replaypeer/pkg/redact"
)

var config = redact.Config{
	Workspace: "/home/jola.k/ws", Home: "/home/jola.k", Tmp: "/var/tmp/jola", Users: []string{"jola.k", "mark"}, Hosts: []string{"zeph-7"},
	Env: []string{"CI_TOKEN=a-value-of-1-token"}, Hold: -1, Streams: streams(),
}

func streams() (list []redact.Stream) {
	for _, s := range flavors.Codex.Streams {
		list = append(list, redact.Stream(s))
	}
	return list
}

// text draws text with secrets, names, paths and placeholders in it.
func text(t *rapid.T) string {
	var b strings.Builder
	for range rapid.IntRange(1, 5).Draw(t, "parts") {
		switch rapid.IntRange(0, 7).Draw(t, "part") {
		case 0, 1:
			r := redact.Rules[rapid.IntRange(0, len(redact.Rules)-1).Draw(t, "rule")]
			s, _ := redact.Sample(rapid.SampledFrom(append(slices.Clone(r.Hits), r.Misses...)).Draw(t, "sample"), rapid.Uint64Range(0, 3).Draw(t, "seed"))
			b.WriteString(s)
		case 2:
			b.WriteString(rapid.SampledFrom([]string{"/home/jola.k/ws/a", "/home/jola.k", "-home-jola-k-ws", "jola.k", "mark", "zeph-7", "a-value-of-1-token", "/var/tmp/jola/x", "/Users/anna/x"}).Draw(t, "own"))
		case 3:
			b.WriteString(rapid.SampledFrom([]string{"<", "<<", ">", " ", "\n", "\r\n", "\"", "\\", "\x1b[1m", "%", "=", ": ", "/", "token: ", "password=", "é", "\u2028", "==", "@"}).Draw(t, "glue"))
		default:
			b.WriteString(rapid.StringMatching(`[a-z ]{0,12}`).Draw(t, "words"))
		}
		if rapid.IntRange(0, 3).Draw(t, "space") > 0 {
			b.WriteByte(' ')
		}
	}
	s := b.String()
	switch rapid.IntRange(0, 7).Draw(t, "coded") {
	case 0:
		s = string(envelope.AppendString(nil, s))
	case 1:
		s = url.QueryEscape(s)
	case 2:
		s = base64.StdEncoding.EncodeToString([]byte(s))
	}
	if strings.ToValidUTF8(s, "") != s || placeholderLike(s) {
		return "plain"
	}
	return s
}

// placeholderLike text would be a placeholder of the transcript itself.
func placeholderLike(s string) bool {
	for _, p := range []string{"<redacted:", "<any>", "<workspace>", "<bind:", "<string>", "<path>", "<home>"} {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// value draws a JSON value. Keys of what the client sends hold no secrets:
// they could not match.
func value(t *rapid.T, depth int, out bool) string {
	quote := func(s string) string { return string(envelope.AppendString(nil, s)) }
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"1", "1.0", "-2e3", "9007199254740993", "true", "null", "{}", "[]"}).Draw(t, "scalar")
	case 4:
		return "[" + value(t, depth-1, out) + " ," + value(t, depth-1, out) + "]"
	case 5, 6:
		key := rapid.SampledFrom([]string{"text", "password", "apiKey", "token", "cwd", "rateLimits", "usedPercent", "planType", "email", "id", "parentId", "accountId", "Authorization"}).Draw(t, "key")
		other := "other"
		if !out {
			other = text(t)
		}
		return "{" + quote(key) + ": " + value(t, depth-1, out) + "," + quote(other) + ":" + value(t, depth-1, out) + "}"
	}
	return quote(text(t))
}

// conversation draws a transcript that holds.
func conversation(t *rapid.T) *envelope.Transcript {
	tr := &envelope.Transcript{File: "t.ndjson", Header: envelope.Header{
		Provider: "codex", Protocol: "codex.app-server", Version: "1", Scenario: "s", Metadata: json.RawMessage(`{"model":"m"}`),
	}}
	out := func(frame string) {
		tr.Entries = append(tr.Entries, &envelope.ExpectOutbound{Label: "o", Frame: json.RawMessage(frame)})
	}
	in := func(frame string) {
		tr.Entries = append(tr.Entries, &envelope.EmitInbound{Label: "i", Frame: json.RawMessage(frame)})
	}
	var open []int
	for n := range rapid.IntRange(1, 12).Draw(t, "entries") {
		switch rapid.IntRange(0, 7).Draw(t, "entry") {
		case 0, 1:
			out(fmt.Sprintf(`{"id":%d,"method":"m%d","params":%s}`, n, n, value(t, 3, true)))
			open = append(open, n)
		case 2, 3:
			if len(open) > 0 {
				in(fmt.Sprintf(`{"id":%d,"result":%s}`, open[0], value(t, 3, false)))
				open = open[1:]
			}
		case 4:
			out(fmt.Sprintf(`{"method":"n%d","params":%s}`, n, value(t, 3, true)))
		case 5:
			s := text(t)
			for s != "" {
				k := rapid.IntRange(1, len(s)).Draw(t, "piece")
				for k < len(s) && s[k]&0xc0 == 0x80 {
					k++
				}
				in(fmt.Sprintf(`{"method":"item/agentMessage/delta","params":{"itemId":"i%d","delta":%s}}`, n%2, envelope.AppendString(nil, s[:k])))
				s = s[k:]
			}
		case 6:
			tr.Entries = append(tr.Entries, &envelope.EmitInbound{Label: "stderr", Channel: envelope.Stderr, Frame: envelope.AppendString(nil, text(t)+"\n")})
		default:
			in(fmt.Sprintf(`{"method":"e%d","params":%s}`, n, value(t, 3, false)))
		}
	}
	for _, n := range open {
		in(fmt.Sprintf(`{"id":%d,"result":%s}`, n, value(t, 1, false)))
	}
	tr.Entries = append(tr.Entries, &envelope.RuntimeExit{Status: envelope.Success})
	return tr
}

func write(t *rapid.T, tr *envelope.Transcript) []byte {
	var b bytes.Buffer
	if err := tr.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// redactAll redacts a transcript and proves it clean.
func redactAll(t *rapid.T, tr *envelope.Transcript) *envelope.Transcript {
	r := redact.New(config)
	r.Reserve(write(t, tr))
	out := &envelope.Transcript{File: tr.File, Header: tr.Header, Entries: tr.Entries}
	for known := -1; known != r.Known(); r.Second() {
		known = r.Known()
		entries := out.Entries
		out.Entries = nil
		for _, e := range entries {
			list, err := r.Add(e)
			if err != nil {
				t.Fatal(err)
			}
			out.Entries = append(out.Entries, list...)
		}
		list, err := r.Flush()
		if err != nil {
			t.Fatal(err)
		}
		out.Entries = append(out.Entries, list...)
	}
	if err := r.Check("t", bytes.NewReader(write(t, out))); err != nil {
		t.Fatalf("%v\nbefore %s\nafter %s", err, write(t, tr), write(t, out))
	}
	return out
}

// skeleton is what redaction may not change: types, labels, channels, ids,
// methods and order.
func skeleton(data []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		for _, path := range []string{"type", "label", "channel", "status", "frame.id", "frame.method", "frame.params.itemId"} {
			b.WriteString(gjson.Get(line, path).Raw + " ")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestRedactionKeepsMeaning: whatever is redacted keeps its ids, methods,
// order and correlation, holds against itself, plays against the client it
// was recorded with, and is not changed by redacting it again.
func TestRedactionKeepsMeaning(t *testing.T) {
	dir := t.TempDir()
	drawn, changed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		before := conversation(t)
		data := write(t, before)
		path := filepath.Join(dir, "t.ndjson")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := replay.SelfCheck(path); err != nil {
			t.Skip(err) // a reference to something unsaid, by chance
		}
		drawn++
		after := redactAll(t, before)
		got := write(t, after)
		if !bytes.Equal(got, data) {
			changed++
		}
		if a, b := skeleton(data), skeleton(got); a != b {
			t.Fatalf("skeleton\n%s\nbecame\n%s", a, b)
		}
		if err := redact.SameStructure(before, after); err != nil {
			t.Fatalf("%v\nbefore %s\nafter %s", err, data, got)
		}
		if again := write(t, redactAll(t, after)); !bytes.Equal(again, got) {
			t.Fatalf("redacted twice\nbefore %s\nonce   %s\ntwice  %s", data, got, again)
		}
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := replay.SelfCheck(path); err != nil {
			t.Fatalf("does not hold: %v\nbefore %s\nafter %s", err, data, got)
		}
		if err := original(path, before); err != nil {
			t.Fatalf("the original client fails: %v\nbefore %s\nafter %s", err, data, got)
		}
	})
	t.Logf("%d transcripts, %d of them changed", drawn, changed)
}

// original plays a transcript against the client of another one, which
// answers to nothing but sends its frames when they are due.
func original(path string, client *envelope.Transcript) error {
	script, err := replay.Load(path, 0)
	if err != nil {
		return err
	}
	p, err := replay.New(script, replay.Options{Workspace: "/home/jola.k/ws"}, replay.State{})
	if err != nil {
		return err
	}
	defer p.Stop()
	var frames []flavors.Frame
	for _, e := range client.Entries {
		if o, ok := e.(*envelope.ExpectOutbound); ok {
			f, err := flavors.Codex.Classify(envelope.Out, o.Frame)
			if err != nil {
				return err
			}
			frames = append(frames, f)
		}
	}
	for {
		switch act := p.Next(0); act.Kind {
		case replay.Emit:
		case replay.Wait:
			if len(frames) == 0 {
				return fmt.Errorf("the player waits for more")
			}
			p.Receive(frames[0])
			frames = frames[1:]
		case replay.Closing:
			p.Close(replay.EndOfInput)
		default:
			if p.Failed() {
				return fmt.Errorf("%s", p.Report().Text())
			}
			return nil
		}
	}
}
