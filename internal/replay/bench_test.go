package replay

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

func benchRequest(id int) string {
	return fmt.Sprintf(`{"id":%d,"method":"turn/start","params":{"threadId":"019dadea-f49b-7012-aa03-534f1bfc3181","cwd":"/work","model":"scripted-model","approvalPolicy":"never","sandboxPolicy":{"type":"dangerFullAccess"},"input":[{"type":"text","text":"Respond with exactly: frame number %d of the benchmark, with some more text to make it as long as usual"}]}}`, id, id)
}

func benchScript(b *testing.B, n int) string {
	path := filepath.Join(b.TempDir(), "bench.ndjson")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, `{"type":"transcript_start","provider":"codex","protocol":"codex.app-server","version":"0","scenario":"bench"}`)
	for i := range n {
		fmt.Fprintf(w, `{"type":"expect_outbound","label":"turn/start","frame":%s}`+"\n", benchRequest(i))
		fmt.Fprintf(w, `{"type":"emit_inbound","label":"turn/start","frame":{"id":%d,"result":{"turn":{"id":"019dadea-f4a8-75f0-9e95-07b357d41cfe","items":[],"status":"inProgress","error":null}}}}`+"\n", i)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkPlayer plays request and answer pairs; one operation is one pair,
// decoded, compared, answered and encoded.
func BenchmarkPlayer(b *testing.B) {
	const pairs = 40000 // enough to be read from the file while played
	path := benchScript(b, pairs)
	script, err := Load(path, 0)
	if err != nil {
		b.Fatal(err)
	}
	wires := make([][]byte, pairs)
	for i := range wires {
		wires[i] = []byte(benchRequest(i))
	}
	codec := script.Flavor.NewCodec(flavors.Launch{})
	var out []byte
	var p *Player
	b.ReportAllocs()
	b.SetBytes(int64(len(wires[0])))
	for i := 0; b.Loop(); i++ {
		k := i % pairs
		if k == 0 {
			if p, err = New(script, Options{Workspace: "/w"}, State{}); err != nil {
				b.Fatal(err)
			}
			p.Next(0)
		}
		frames, err := codec.Decode(envelope.Out, wires[k])
		if err != nil {
			b.Fatal(err)
		}
		p.Receive(frames[0])
		act := p.Next(0)
		if act.Kind != Emit {
			b.Fatalf("action %d: %s", act.Kind, p.Report().Text())
		}
		if out, err = codec.Encode(out[:0], envelope.In, act.Frame, act.ID); err != nil {
			b.Fatal(err)
		}
		p.Next(0)
	}
}

func BenchmarkLoad(b *testing.B) {
	path := benchScript(b, 540) // about 300 KB
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(path, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMatch compares one frame with its expectation: by bytes, by tokens
// (key order differs), and with a placeholder.
func BenchmarkMatch(b *testing.B) {
	frame := []byte(benchRequest(7))
	other := []byte(`{"method":"turn/start","id":7,` + string(frame[len(`{"id":7,"method":"turn/start",`):]))
	placeholder := []byte(`{"id":7,"method":"turn/start","params":{"threadId":"019dadea-f49b-7012-aa03-534f1bfc3181","cwd":"<workspace>","model":"scripted-model","approvalPolicy":"never","sandboxPolicy":{"type":"dangerFullAccess"},"input":[{"type":"text","text":"Respond with exactly: frame <any>"}]}}`)
	r := &rules{idKey: flavors.Codex.IDKey, workspace: "/work"}
	bound := State{}.bindings("/work")
	for _, c := range []struct {
		name           string
		expect, actual []byte
	}{{"bytes", frame, frame}, {"tokens", frame, other}, {"placeholders", placeholder, frame}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.actual)))
			b.ReportAllocs()
			for b.Loop() {
				if !bound.match(compile(c.expect, r, nil), c.actual, true) {
					b.Fatal("no match")
				}
			}
		})
	}
}
