package record

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func sum(entries []envelope.Entry) string {
	var s envelope.Seal
	for _, e := range entries {
		s.Add(e)
	}
	return s.Sum()
}

func TestReseal(t *testing.T) {
	in := func(text string) []envelope.Entry {
		return []envelope.Entry{&envelope.EmitInbound{Frame: json.RawMessage(text)}}
	}
	for name, c := range map[string]struct{ seal, want string }{
		"renewed":            {sum(in(`{"a":"secret"}`)), sum(in(`{"a":"<secret>"}`))},
		"broken stays":       {"sha256:00", "sha256:00"},
		"no seal stays none": {"", ""},
	} {
		meta := `{"a":1,"seal":"` + c.seal + `","z":[2]}`
		if c.seal == "" {
			meta = `{"a":1,"z":[2]}`
		}
		before := &envelope.Transcript{Header: envelope.Header{Metadata: json.RawMessage(meta)}, Entries: in(`{"a":"secret"}`)}
		after := &envelope.Transcript{Header: before.Header, Entries: in(`{"a":"<secret>"}`)}
		Reseal(before, after)
		if got := gjson.GetBytes(after.Header.Metadata, "seal").Str; got != c.want {
			t.Errorf("%s: %s: want %s", name, got, c.want)
		}
		if got := strings.Replace(string(after.Header.Metadata), c.want, c.seal, 1); got != meta {
			t.Errorf("%s: metadata %s", name, got)
		}
	}
}
