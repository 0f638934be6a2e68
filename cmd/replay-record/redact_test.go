package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/planted"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// TestRedactPlanted redacts a transcript full of secrets, as a recorder
// without redaction would have made it.
func TestRedactPlanted(t *testing.T) {
	traffic := planted.New(41)
	tr := &envelope.Transcript{Header: envelope.Header{Provider: "codex", Protocol: "codex.app-server", Version: "1", Scenario: "s"}}
	for i, l := range traffic.Provider {
		if i < len(traffic.Client) {
			tr.Entries = append(tr.Entries, &envelope.ExpectOutbound{Label: "note", Frame: []byte(traffic.Client[i])})
		}
		e := &envelope.EmitInbound{Label: "note", Frame: []byte(l.Text)}
		if l.Stderr {
			e.Channel, e.Frame = envelope.Stderr, envelope.AppendString(nil, l.Text+"\n")
		}
		tr.Entries = append(tr.Entries, e)
	}
	tr.Entries = append(tr.Entries, &envelope.RuntimeExit{Status: envelope.Success})
	path := filepath.Join(t.TempDir(), "t.ndjson")
	var before bytes.Buffer
	if err := tr.Write(&before); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, before.Bytes(), 0o640); err != nil {
		t.Fatal(err)
	}
	redact := func(args ...string) []byte {
		t.Helper()
		cmd := exec.Command("replay-record", append([]string{"redact"}, append(args, path)...)...)
		cmd.Env = append(append(os.Environ(), traffic.Env...), "HOME="+traffic.Home, "USER="+traffic.Users[0], "HOSTNAME="+traffic.Hosts[0])
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		return out
	}
	once := redact()
	text := string(once)
	kinds := map[string]bool{}
	for _, s := range traffic.Secrets {
		kinds[s.Kind] = true
		if strings.Contains(s.Form, "split") {
			continue // joined below
		}
		if slices.ContainsFunc(planted.Encodings(s.Value), func(form string) bool { return strings.Contains(text, form) }) {
			t.Errorf("%s as %s survives: %q", s.Kind, s.Form, s.Value)
		}
	}
	joined := deltas(t, once)
	for _, s := range traffic.Secrets {
		if slices.ContainsFunc(planted.Encodings(s.Value), func(form string) bool { return strings.Contains(joined, form) }) {
			t.Errorf("%s as %s survives in the joined deltas: %q", s.Kind, s.Form, s.Value)
		}
	}
	if !strings.Contains(deltas(t, before.Bytes()), traffic.Secrets[len(traffic.Secrets)-1].Value) && joined == deltas(t, before.Bytes()) {
		t.Error("no deltas were compared")
	}
	t.Logf("%d secrets of %d kinds: none survives", len(traffic.Secrets), len(kinds))
	redact("-w")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if again := redact(); !bytes.Equal(again, once) {
		t.Error("redacting twice changes the transcript")
	}
	if out, err := exec.Command("replay-record", "check", path).CombinedOutput(); err != nil {
		t.Errorf("the redacted transcript does not hold: %v: %s", err, out)
	}
}

// deltas is the joined text of every item.
func deltas(t *testing.T, data []byte) string {
	t.Helper()
	tr, err := envelope.Read("t", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	items := map[string]string{}
	for _, e := range tr.Entries {
		if e, ok := e.(*envelope.EmitInbound); ok && e.Channel == "" {
			items[gjson.GetBytes(e.Frame, "params.itemId").Str] += gjson.GetBytes(e.Frame, "params.delta").Str
		}
	}
	var b strings.Builder
	for _, s := range items {
		b.WriteString(s + "\x00")
	}
	return b.String()
}
