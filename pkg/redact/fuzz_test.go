package redact

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func BenchmarkFrame(b *testing.B) {
	frame := `{"method":"item/completed","params":{"item":{"type":"commandExecution","id":"call_0dae408e3c0b132b0169e6e41bf13c819a","command":"/bin/bash -lc 'go test ./... 2>&1 | tail -5'","cwd":"/work/project","status":"completed","aggregatedOutput":"ok  \texample.org/pkg/a\t0.012s\nok  \texample.org/pkg/b\t0.101s\nFAIL\texample.org/pkg/c [build failed]\n","exitCode":1,"durationMs":812},"threadId":"019dadea-f49b-7012-aa03-534f1bfc3181","turnId":"019dadea-f4a8-75f0-9e95-07b357d41cfe"}}`
	r := New(Config{Home: "/home/jo.k", Users: []string{"jo.k"}, Hosts: []string{"zeph-7"}, Env: []string{"X_TOKEN=abcd-efgh-1234"}})
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		r.frame(envelope.In, frame)
	}
}

func BenchmarkDelta(b *testing.B) {
	r := New(Config{Streams: deltas})
	e := delta("1", " and so on")
	for b.Loop() {
		if _, err := r.Add(e); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzRedact: valid JSON stays valid, ids and methods stay, redacting twice is
// redacting once.
func FuzzRedact(f *testing.F) {
	for i, r := range Rules {
		for _, s := range r.Hits {
			text, _ := Sample(s, uint64(i))
			quoted := string(envelope.AppendString(nil, text))
			f.Add([]byte(`{"id":1,"method":"m","params":{"text":`+quoted+`,"password":`+quoted+`}}`), i%2 == 0)
		}
	}
	f.Add([]byte(`["/home/jo.k/x","<any>","<<redacted:x:1>","-home-jo-k","rate\u003climits"]`), true)
	f.Add([]byte(`{"rateLimits":{"usedPercent":1e3,"planType":"pro","balance":"12"},"email":"x"}`), false)
	config := Config{Home: "/home/jo.k", Users: []string{"jo.k"}, Hosts: []string{"zeph-7"}, Env: []string{"X_TOKEN=abcd-efgh-1234"}}
	f.Fuzz(func(t *testing.T, frame []byte, out bool) {
		if !envelope.Valid(frame) || len(frame) > 4096 {
			return
		}
		dir := envelope.In
		if out {
			dir = envelope.Out
		}
		r := New(config)
		r.Reserve(frame)
		once := r.frame(dir, string(frame))
		if r.err != nil {
			t.Fatalf("%s\nbecomes %s: %v", frame, once, r.err)
		}
		if !envelope.Valid([]byte(once)) {
			t.Fatalf("%s\nbecomes %s", frame, once)
		}
		for _, path := range []string{"id", "method", "type"} {
			v := gjson.GetBytes(frame, path)
			if a, b := v.Raw, gjson.Get(once, path).Raw; frame[0] == '{' && v.Type != gjson.JSON && a != b {
				t.Fatalf("%s of %s\nbecomes %s", path, frame, once)
			}
		}
		again := New(config)
		again.Reserve([]byte(once))
		if twice := again.frame(dir, once); twice != once {
			t.Fatalf("%s\nonce  %s\ntwice %s", frame, once, twice)
		}
	})
}
