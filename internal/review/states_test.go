package review

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// script is a transcript with two turns, a tool that was allowed, and its
// progress.
const script = "../../transcripts/approval_request/opencode.ndjson"

// frames picks the inbound entries with a label whose frame holds a text.
func frames(label, text string) func(envelope.Entry) bool {
	return func(e envelope.Entry) bool {
		in, ok := e.(*envelope.EmitInbound)
		return ok && in.Label == label && bytes.Contains(in.Frame, []byte(text))
	}
}

// picked takes entries out of a transcript.
func picked(t *testing.T, tr *envelope.Transcript, pick func(envelope.Entry) bool) (out []envelope.Entry) {
	t.Helper()
	tr.Entries = slices.DeleteFunc(tr.Entries, func(e envelope.Entry) bool {
		if pick(e) {
			out = append(out, e)
			return true
		}
		return false
	})
	if len(out) == 0 {
		t.Fatal("the transcript holds nothing of the kind")
	}
	return out
}

// What OpenCode tells beside a turn is told when, and as often as, it happens
// to be; what it tells is protocol.
func TestStates(t *testing.T) {
	summary := frames("message.updated", `"summary":{`)
	busy := frames("session.status/busy", "")
	last := func(tr *envelope.Transcript, more ...envelope.Entry) {
		tr.Entries = slices.Insert(tr.Entries, len(tr.Entries)-1, more...)
	}
	late := func(pick func(envelope.Entry) bool) func(*testing.T, *envelope.Transcript) {
		return func(t *testing.T, tr *envelope.Transcript) { last(tr, picked(t, tr, pick)...) }
	}
	gone := func(pick func(envelope.Entry) bool) func(*testing.T, *envelope.Transcript) {
		return func(t *testing.T, tr *envelope.Transcript) { picked(t, tr, pick) }
	}
	event := func(typ string) *envelope.EmitInbound {
		return &envelope.EmitInbound{Label: typ, Frame: []byte(`{"type":"sdk.event","event":{"id":"evt_1","type":"` + typ + `","properties":{"file":"<workspace>/.git/HEAD.lock"}}}`)}
	}
	write := func(pick func(envelope.Entry) bool, old, new string) func(*testing.T, *envelope.Transcript) {
		return func(t *testing.T, tr *envelope.Transcript) {
			n := 0
			for _, e := range tr.Entries {
				if in, ok := e.(*envelope.EmitInbound); ok && pick(e) && bytes.Contains(in.Frame, []byte(old)) {
					in.Frame = bytes.Replace(in.Frame, []byte(old), []byte(new), 1)
					n++
				}
			}
			if n == 0 {
				t.Fatalf("no frame holds %s", old)
			}
		}
	}
	for name, c := range map[string]struct {
		edit func(*testing.T, *envelope.Transcript)
		want string // in the headlines; "" for no drift
	}{
		"sessions told late":  {late(frames("session.updated", "")), ""},
		"diffs told late":     {late(frames("session.diff", "")), ""},
		"busy told late":      {late(busy), ""},
		"summaries told late": {late(summary), ""},
		"progress told late":  {late(frames("message.part.updated/running", `"metadata":{`)), ""},
		"told twice": {func(t *testing.T, tr *envelope.Transcript) {
			all := picked(t, tr, func(e envelope.Entry) bool { return summary(e) || busy(e) })
			last(tr, append(all, all...)...)
		}, ""},
		"told in another order of members": {func(t *testing.T, tr *envelope.Transcript) {
			more := *picked(t, load(t, script, nil), summary)[0].(*envelope.EmitInbound)
			more.Frame = bytes.Replace(more.Frame, []byte(`"role":"user",`), nil, 1)
			more.Frame = bytes.Replace(more.Frame, []byte(`"summary":{`), []byte(`"role":"user","summary":{`), 1)
			last(tr, &more)
		}, ""},
		"a lock seen":               {func(_ *testing.T, tr *envelope.Transcript) { last(tr, event("file.watcher.updated")) }, ""},
		"a method new":              {func(_ *testing.T, tr *envelope.Transcript) { last(tr, event("file.watcher.started")) }, "new method = inbound file.watcher.started"},
		"a method gone":             {gone(frames("session.diff", "")), "gone method = inbound session.diff"},
		"a method renamed":          {write(frames("session.diff", ""), `"session.diff"`, `"session.changes"`), "new method = inbound session.changes"},
		"a field renamed":           {write(frames("session.updated", ""), `"tokens":`, `"usage":`), "new field event.properties.info.usage of inbound session.updated"},
		"a field of a prompt":       {write(summary, `"agent":`, `"tier":1,"agent":`), "new field event.properties.info.tier of inbound message.updated"},
		"a field gone":              {write(busy, `"status":{"type":"busy"}`, `"state":"busy"`), "new field event.properties.state of inbound session.status"},
		"a type":                    {write(frames("session.updated", ""), `"cost":0`, `"cost":"0"`), "changed type event.properties.info.cost of inbound session.updated"},
		"a state gone":              {gone(frames("session.status/idle", "")), "fewer frames of inbound session.status"},
		"a state of another name":   {write(busy, `"busy"`, `"working"`), "more frames of inbound session.status"},
		"an answer's end told late": {late(frames("message.updated/completed", "")), "moved order of inbound message.updated"},
		"a tool's end told late":    {late(frames("message.part.updated/completed", "")), "moved order of inbound message.part.updated"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := load(t, script, nil)
			c.edit(t, tr)
			text := DriftOf(load(t, script, nil), tr).Text()
			if c.want == "" && text != "" || !strings.Contains(text, c.want) {
				t.Errorf("want %q in\n%s", c.want, text)
			}
		})
	}
}
