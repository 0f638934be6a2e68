package record

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// seal sums up the inbound frames of entries that stand in a file from an
// offset on.
func seal(file io.ReadSeeker, from int64, h *envelope.Header) (string, error) {
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return "", err
	}
	r := envelope.NewReader("recording", io.MultiReader(bytes.NewReader(envelope.AppendHeader(nil, h)), file))
	if _, err := r.Header(); err != nil {
		return "", err
	}
	var s envelope.Seal
	for {
		switch e, err := r.Next(); {
		case err == io.EOF:
			return s.Sum(), nil
		case err != nil:
			return "", err
		default:
			s.Add(e)
		}
	}
}

// Reseal renews metadata.seal after a tool has changed inbound frames. A seal
// that did not fit before stays broken: somebody had edited them.
func Reseal(before, after *envelope.Transcript) {
	var old, sealed envelope.Seal
	for _, e := range before.Entries {
		old.Add(e)
	}
	for _, e := range after.Entries {
		sealed.Add(e)
	}
	meta := after.Header.Metadata
	if v := gjson.GetBytes(meta, "seal"); v.Type == gjson.String && v.Str == old.Sum() && v.Index > 0 {
		raw := append(json.RawMessage{}, meta[:v.Index]...)
		raw = append(envelope.AppendString(raw, sealed.Sum()), meta[v.Index+len(v.Raw):]...)
		after.Header.Metadata = raw
	}
}
