package record

import (
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
	"github.com/replaypeer/replaypeer/pkg/redact"
)

// What a provider was started with is part of some flavors' frames.
func TestArgumentsReachTheCodec(t *testing.T) {
	tr := newTranslator(&Options{Flavor: flavors.Claude}, []string{"--model=m"}, redact.New(redact.Config{}))
	got := tr.entries(message{from: fromClient, line: []byte(`{"type":"control_request","request_id":"a","request":{"subtype":"initialize"}}` + "\n")})
	if len(got) != 1 {
		t.Fatalf("%d entries", len(got))
	}
	e, ok := got[0].(*envelope.ExpectOutbound)
	if want := `{"type":"query.open","options":{"model":"m"}}`; !ok || string(e.Frame) != want || e.Label != "query.open" {
		t.Errorf("got %s %s, want %s", e.Label, e.Frame, want)
	}
	if tr.facts["optionsProjection"] != "full" {
		t.Errorf("facts %v", tr.facts)
	}
}
