package accept

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// file is a transcript whose expectations may change. Lines that do not are
// written back byte for byte.
type file struct {
	name     string
	sum      string
	header   envelope.Header
	flavor   *flavors.Flavor
	lines    [][]byte // with their ends
	entries  []envelope.Entry
	outbound []*envelope.ExpectOutbound
	methods  map[*envelope.ExpectOutbound]string
	edited   map[*envelope.ExpectOutbound]bool
	changed  bool
	sealed   string
}

func load(name string, content []byte) (*file, error) {
	t, err := envelope.Read(name, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	f := &file{
		name: name, sum: hex.EncodeToString(sum[:]), header: t.Header, entries: t.Entries, lines: bytes.SplitAfter(content, []byte{'\n'}),
		methods: map[*envelope.ExpectOutbound]string{}, edited: map[*envelope.ExpectOutbound]bool{},
	}
	f.flavor, _ = flavors.ByProtocol(t.Header.Protocol)
	for _, e := range t.Entries {
		if e, ok := e.(*envelope.ExpectOutbound); ok {
			f.outbound = append(f.outbound, e)
			f.methods[e], _ = f.classify(e.Frame)
		}
	}
	f.sealed = f.seal()
	return f, nil
}

func (f *file) at(line int) *envelope.ExpectOutbound {
	for _, e := range f.outbound {
		if e.Line == line {
			return e
		}
	}
	return nil
}

func (f *file) method(e *envelope.ExpectOutbound) string { return f.methods[e] }

// edit changes an expectation where the change applies.
func (f *file) edit(e *envelope.ExpectOutbound, c *Change) bool {
	raw, ok := edit(e.Frame, c)
	if !ok || !envelope.Valid(raw) {
		return false
	}
	e.Frame = raw
	f.edited[e], f.changed = true, true
	return true
}

// says reports whether a value holds an id that stands in an inbound frame.
func (f *file) says(value []byte) bool {
	for i := 0; i < len(value); {
		if value[i] != '"' {
			i++
			continue
		}
		end := envelope.SkipString(value, i)
		if quoted := value[i:end]; end-i >= 10 && bytes.ContainsAny(quoted, "0123456789") {
			for _, e := range f.entries {
				if e, ok := e.(*envelope.EmitInbound); ok && bytes.Contains(e.Frame, quoted) {
					return true
				}
			}
		}
		i = end
	}
	return false
}

// seal sums up the inbound frames of the content to be written.
func (f *file) seal() string {
	t, err := envelope.Read(f.name, bytes.NewReader(f.content()))
	if err != nil {
		return err.Error() // unreachable unless an edit breaks a line
	}
	var s envelope.Seal
	for _, e := range t.Entries {
		s.Add(e)
	}
	return s.Sum()
}

func (f *file) content() []byte {
	lines := slices.Clone(f.lines)
	for e := range f.edited {
		old := lines[e.Line-1]
		line, err := envelope.AppendEntry(nil, e)
		if err != nil {
			continue // unreachable: it is an expectation
		}
		end := old[len(bytes.TrimRight(old, "\r\n")):]
		lines[e.Line-1] = append(bytes.TrimRight(line, "\n"), end...)
	}
	return bytes.Join(lines, nil)
}

func sorted(files map[string][]byte) []string { return slices.Sorted(maps.Keys(files)) }
