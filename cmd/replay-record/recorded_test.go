package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// recorded is where scripts/record.sh puts what vendors' clients had recorded.
const recorded = "../../transcripts/recorded"

// machine is what tells where a recording was made: the recorder's paths, and
// those of common homes.
var machine = regexp.MustCompile(`/srv\b|/root\b|/home/|/Users/|/tmp/replaypeer|/var/folders`)

// TestRecorded checks the committed recordings of real providers.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob(recorded + "/*/*.ndjson")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		if err := replay.SelfCheck(file); err != nil {
			t.Error(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := machine.Find(data); found != nil {
			t.Errorf("%s: has %s", file, found)
		}
		tr, err := envelope.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := gjson.ParseBytes(tr.Header.Metadata)
		if !strings.HasPrefix(filepath.Base(filepath.Dir(file)), tr.Header.Provider) || m.Get("source").Str != "scripted-model" ||
			m.Get("model").Str == "" || m.Get("platform").Str == "" || m.Get("providerVersion").Str != tr.Header.Version {
			t.Errorf("%s: header %s %s %s", file, tr.Header.Provider, tr.Header.Version, m.Raw)
		}
		if acp := tr.Header.Protocol == flavors.ACP.Protocol; acp != (m.Get("protocolVersion").Str == "1") {
			t.Errorf("%s: negotiated protocol %s", file, m.Get("protocolVersion").Raw)
		}
		if _, ok := tr.Entries[len(tr.Entries)-1].(*envelope.RuntimeExit); !ok {
			t.Errorf("%s: ends in %T", file, tr.Entries[len(tr.Entries)-1])
		}
	}
}

// settled lists a transcript's entries, one line each, without what differs
// between two recordings of the same conversation: the values at the flavor's
// volatile places, and the time between entries.
func settled(t *testing.T, path string) []string {
	t.Helper()
	tr, err := envelope.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := flavors.ByProtocol(tr.Header.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	line := func(dir envelope.Direction, label string, raw []byte) string {
		frame, err := f.Classify(dir, raw)
		if err != nil {
			t.Fatalf("%s: %s: %v", path, label, err)
		}
		var b strings.Builder
		kept := 0
		for _, s := range flavors.Spans(f.Volatile, dir, frame) {
			b.Write(raw[kept:s[0]])
			b.WriteString("*")
			kept = s[1]
		}
		b.Write(raw[kept:])
		return fmt.Sprintf("%s %s %s", dir, label, b.String())
	}
	var lines []string
	for _, e := range tr.Entries {
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			lines = append(lines, line(envelope.Out, e.Label, e.Frame))
		case *envelope.EmitInbound:
			if e.Channel != envelope.Protocol && e.Channel != "" {
				lines = append(lines, fmt.Sprintf("%s %s", e.Channel, e.Frame))
				continue
			}
			lines = append(lines, line(envelope.In, e.Label, e.Frame))
		case *envelope.RuntimeExit:
			lines = append(lines, fmt.Sprintf("exit %s %s", e.Status, e.Error))
		}
	}
	return lines
}

// differences compares two settled transcripts. Lines that are only in another
// place of the sequence are told apart from those that differ.
func differences(a, b []string) (differ, moved []string) {
	left := slices.Clone(b)
	for _, line := range a {
		if at := slices.Index(left, line); at >= 0 {
			left = slices.Delete(left, at, at+1)
		} else {
			differ = append(differ, "- "+line)
		}
	}
	for _, line := range left {
		differ = append(differ, "+ "+line)
	}
	if len(differ) > 0 {
		return differ, nil
	}
	for i := range a {
		if a[i] != b[i] {
			moved = append(moved, fmt.Sprintf("%d: %.120s | %.120s", i, a[i], b[i]))
		}
	}
	return nil, moved
}

// TestTwoRecordings compares the recordings named in RECORDED, PATH=PATH, if
// any: a tool for whoever records.
func TestTwoRecordings(t *testing.T) {
	for pair := range strings.FieldsSeq(os.Getenv("RECORDED")) {
		a, b, _ := strings.Cut(pair, "=")
		differ, moved := differences(settled(t, a), settled(t, b))
		for _, line := range differ {
			t.Errorf("%s: %s", pair, line)
		}
		for _, line := range moved {
			t.Errorf("%s: moved: %s", pair, line)
		}
	}
}

// TestCheckOfAllFlavors plays a transcript of every protocol against itself.
func TestCheckOfAllFlavors(t *testing.T) {
	checked := map[string]int{}
	for _, pattern := range []string{"../../transcripts/*/*.ndjson", recorded + "/*/*.ndjson", "../../internal/peer/testdata/*/*.ndjson"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := replay.SelfCheck(file); err != nil {
				t.Error(err)
			}
			tr, err := envelope.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			checked[tr.Header.Protocol]++
		}
	}
	for _, f := range flavors.All {
		if checked[f.Protocol] == 0 && f != flavors.Cursor { // that of cursor.txtar
			t.Errorf("no transcript of %s", f.Protocol)
		}
	}
	t.Log(checked)
}
