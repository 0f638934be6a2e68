package lint

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/internal/planted"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// TestPlantedTraffic checks what the recorder's tests redact, as it would be
// without redaction: other secrets, and other hiding places, than this package's
// own. Rules about contents find them by themselves.
func TestPlantedTraffic(t *testing.T) {
	all, found := 0, 0
	missed := map[string]int{}
	for _, seed := range []uint64{7, 41} {
		traffic := planted.New(seed)
		tr := &envelope.Transcript{Header: envelope.Header{Provider: "codex", Protocol: "codex.app-server", Version: "0.171.0", Scenario: "s"}}
		add := func(dir envelope.Direction, text string, stderr bool) {
			switch {
			case dir == envelope.Out:
				tr.Entries = append(tr.Entries, &envelope.ExpectOutbound{Label: "l", Frame: []byte(text)})
			case stderr:
				tr.Entries = append(tr.Entries, &envelope.EmitInbound{Label: "l", Channel: envelope.Stderr, Frame: envelope.AppendString(nil, text+"\n")})
			default:
				tr.Entries = append(tr.Entries, &envelope.EmitInbound{Label: "l", Frame: []byte(text)})
			}
		}
		for _, line := range traffic.Client {
			add(envelope.Out, line, false)
		}
		for _, line := range traffic.Provider {
			add(envelope.In, line.Text, line.Stderr)
		}
		var b bytes.Buffer
		if err := tr.Write(&b); err != nil {
			t.Fatal(err)
		}
		findings, err := Check("planted", &b, Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		lines := map[int]bool{}
		for _, f := range findings {
			if slices.Contains([]string{"TL033", "TL046", "TL047", "TL048", "TL049"}, f.Rule) {
				lines[f.Line] = true
			}
		}
		for i, s := range traffic.Secrets {
			all++
			if foundAt(tr, lines, s.Value, fmt.Sprintf(`"itemId":"item-%d"`, i+1)) {
				found++
			} else {
				missed[s.Kind+", "+s.Form]++
			}
		}
	}
	share := 100 * float64(found) / float64(all)
	t.Logf("%d planted secrets: %.1f %% found; missed: %v", all, share, missed)
	if all < 500 || share < 95 {
		t.Error("want at least 500 secrets, and 95 % of them found")
	}
}

var ansi = regexp.MustCompile(`\\u001b\[[0-9;]*m`) // as JSON has it

// foundAt says whether a finding stands at a line that holds the secret in some
// encoding, or a piece of the item that it was cut for.
func foundAt(tr *envelope.Transcript, lines map[int]bool, secret, item string) bool {
	for i, e := range tr.Entries {
		raw := ""
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			raw = string(e.Frame)
		case *envelope.EmitInbound:
			raw = string(e.Frame)
		}
		if !lines[i+2] {
			continue
		}
		for _, form := range append(planted.Encodings(secret), item) {
			if strings.Contains(ansi.ReplaceAllString(raw, ""), form) {
				return true
			}
		}
	}
	return false
}
