package redact_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/redact"
)

// knownLeaks are what the public transcripts really hold.
var knownLeaks = []string{"home-user", "git-remote", "plan", "rate-limit"}

// TestFalseAlarmsInCorpus redacts the public transcripts and counts what it
// should have left alone.
func TestFalseAlarmsInCorpus(t *testing.T) {
	files, err := filepath.Glob("../../../shared/corpus/*/*.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the public transcripts are not beside the repository")
	}
	size, alarms, total := 0, 0, map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		size += len(data)
		tr, err := envelope.Read(file, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		before := &envelope.Transcript{Header: tr.Header, Entries: tr.Entries}
		r := redact.New(redact.Config{
			Home: "/home/jola.k", Users: []string{"jola.k", "mark"}, Hosts: []string{"zeph-7"}, Streams: streams(), Hold: -1,
		})
		var after envelope.Transcript
		for _, e := range tr.Entries {
			list, err := r.Add(e)
			if err != nil {
				t.Fatal(err)
			}
			after.Entries = append(after.Entries, list...)
		}
		list, err := r.Flush()
		if err != nil {
			t.Fatal(err)
		}
		after.Entries = append(after.Entries, list...)
		if err := redact.SameStructure(before, &after); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for rule, n := range r.Counts() {
			total[rule] += n
			if !slices.Contains(knownLeaks, rule) {
				alarms += n
				t.Logf("%s: %s, lines %v", file, rule, r.Lines()[rule])
			}
		}
	}
	t.Logf("%d transcripts, %d KB: known leaks and others %v, %d false alarms", len(files), size>>10, total, alarms)
	if limit := size / (100 << 10); alarms > limit {
		t.Errorf("%d false alarms, at most %d are acceptable", alarms, limit)
	}
}

// vocabulary makes n words: names that are words, words of the trade, and
// words of syllables.
func vocabulary(n int) []string {
	words := strings.Fields(`mark will grace rose jack bill art drew chase hunter dean may june april august summer autumn dawn hope faith joy frank
		grant ray rob sue pat nick rich sandy robin jasmine ruby amber crystal daisy heather ivy holly iris violet olive lily basil ginger
		token tokens secret secrets password passwords key keys auth author authority authorization authenticate credential bearer basic cookie session sessions
		secretary keyboard monkey turkey hockey donkey keynote tokenize passport bypass compass surpass passenger desk risk task disk ask mask
		home users user host hostname email mail account accounts plan plans limit limits rate rates credit credits remote private public
		machine laptop desktop server client login logout signature sign code codes base64 hex hash digest nonce salt cipher`)
	seen := map[string]bool{}
	for _, w := range words {
		seen[w] = true
	}
	rng := rand.New(rand.NewPCG(4, 2))
	onset, nucleus, coda := strings.Fields("b c d f g h j k l m n p r s t v w st tr pl br ch sh th gr sk sp"), strings.Fields("a e i o u ai ea ou"), strings.Fields("- - n r s t l nd st rk ng sk ck")
	for len(seen) < n {
		var b strings.Builder
		for range 1 + rng.IntN(3) {
			b.WriteString(onset[rng.IntN(len(onset))] + nucleus[rng.IntN(len(nucleus))] + strings.TrimPrefix(coda[rng.IntN(len(coda))], "-"))
		}
		seen[b.String()] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// TestFalseAlarmsInWords redacts text that says nothing to hide: prose, code,
// logs, listings and protocol frames made of 10,000 words.
func TestFalseAlarmsInWords(t *testing.T) {
	words := vocabulary(10_000)
	rng := rand.New(rand.NewPCG(1, 7))
	w := func() string { return words[rng.IntN(len(words))] }
	hex := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "0123456789abcdef"[rng.IntN(16)]
		}
		return string(b)
	}
	uuid := func() string { return hex(8) + "-" + hex(4) + "-7" + hex(3) + "-a" + hex(3) + "-" + hex(12) }
	camel := func() string { a := w(); return w() + strings.ToUpper(a[:1]) + a[1:] }
	makers := []func() string{
		func() string { // prose
			list := make([]string, 12+rng.IntN(20))
			for i := range list {
				list[i] = w()
			}
			return strings.Join(list, " ") + "."
		},
		func() string {
			return fmt.Sprintf("const %s = %s(%s.%s, %d)", camel(), camel(), w(), camel(), rng.IntN(1e6))
		},
		func() string {
			return fmt.Sprintf("func %s(%s string, %s int) error { return %s.%s }", camel(), w(), w(), w(), camel())
		},
		func() string { return fmt.Sprintf("%s: %s %s, %s=%d", w(), w(), w(), w(), rng.IntN(1e9)) },
		func() string {
			return fmt.Sprintf("import %s from '@%s/%s'; // %s@%d.%d.%d", camel(), w(), w(), w(), rng.IntN(20), rng.IntN(20), rng.IntN(20))
		},
		func() string {
			return fmt.Sprintf("./%s/%s/%s_%s.go:%d:%d: %s %s", w(), w(), w(), w(), rng.IntN(900), rng.IntN(90), w(), w())
		},
		func() string { return fmt.Sprintf("commit %s\n    %s %s (%s)", hex(40), w(), w(), hex(7)) },
		func() string {
			return fmt.Sprintf("https://%s.example.org/%s/%s?%s=%s#%s", w(), w(), w(), w(), w(), w())
		},
		func() string {
			return fmt.Sprintf("-rw-r--r-- 1 root root %d Jan  2 03:04 %s.%s", rng.IntN(1e6), w(), w())
		},
		func() string {
			return fmt.Sprintf("%s %s=%s --%s %s --%s-%s=%s", w(), strings.ToUpper(w()), w(), w(), w(), w(), w(), w())
		},
		func() string {
			return fmt.Sprintf("sha256:%s %s-%s-%d sha512-%s", hex(64), w(), w(), rng.IntN(99), hex(64))
		},
		func() string {
			return fmt.Sprintf("%s %s and %s %s: %s %s %s", strings.ToUpper(w()), w(), w(), w(), w(), w(), w())
		},
	}
	r := redact.New(redact.Config{
		Home: "/home/mark", Users: []string{"mark", "will", "grace"}, Hosts: []string{"laptop", "forest"},
		Env: []string{"API_KEY=machine", "TOKEN=password", "SECRET=autumn", "PASSWORD=12345678"},
	})
	size, alarms := 0, 0
	for range 20_000 {
		text := makers[rng.IntN(len(makers))]()
		key := rng.IntN(2) * 3
		frame := fmt.Sprintf(`{"id":%d,"method":"%s/%s","params":{"threadId":"%s","itemId":"msg_%s","%s":%s,"%s":%d,"nested":{"%s":"%s"}}}`,
			rng.IntN(1e5), w(), camel(), uuid(), hex(50), []string{"text", "delta", "command", "content"}[key%4], envelope.AppendString(nil, text), camel(), rng.IntN(1e6), camel(), w())
		size += len(frame)
		e := &envelope.EmitInbound{Frame: []byte(frame)}
		list, err := r.Add(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range list {
			if got := got.(*envelope.EmitInbound); string(got.Frame) != frame {
				if alarms++; alarms < 20 {
					t.Logf("%s\nbecame %s", frame, got.Frame)
				}
			}
		}
	}
	t.Logf("%d words, %d KB: %d false alarms %v", len(words), size>>10, alarms, r.Counts())
	if limit := size / (100 << 10); alarms > limit {
		t.Errorf("%d false alarms, at most %d are acceptable", alarms, limit)
	}
}
