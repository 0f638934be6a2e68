package replay

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSelfCheckCorpus(t *testing.T) {
	const root = "../.." // of the repository
	for _, dir := range []string{root + "/../shared/corpus", root + "/transcripts"} {
		files, err := filepath.Glob(filepath.Join(dir, "*", "codex*.ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Logf("no transcripts in %s: nothing checked there", dir)
		}
		for _, file := range files {
			t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
				if err := SelfCheck(file); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestSelfCheckHolds(t *testing.T) {
	for name, lines := range map[string][]string{
		"crosswise":                  {ask(1, "a"), ask(2, "a"), answer(2, "a"), answer(1, "a")},
		"same id in both directions": {ask(0, "a"), in("q", `{"id":0,"method":"q"}`), answer(0, "a"), out("q", `{"id":0,"result":1}`)},
		"optional, repeated, grouped": {ask(1, "a", `"optional":true`), ask(2, "b", `"repeat":true`, `"group":"g"`), ask(3, "c", `"group":"g"`),
			answer(1, "a"), answer(2, "b"), answer(3, "c")},
		"launches": {ask(1, "a"), answer(1, "a"), exit("error"), ask(1, "b"), answer(1, "b"), exit("success")},
		"placeholders": {out("a", `{"id":1,"method":"a","params":{"s":"<string>","i":"<int>","n":"<number>","b":"<bool>","u":"<uuid>","t":"<timestamp>","p":"<path>",`+
			`"any":"<any>","in":"a <any> b<any>","w":"<workspace>/x","<workspace>":1,"<<any>":"<<any>","bind":"<bind:x>","text":"is <bind:x>, <bind:x>"}}`),
			in("a", `{"id":1,"result":["<bind:x>","is <bind:x>"]}`), exit("success"), out("b", `{"method":"b","params":["<bind:x>","-<bind:x>"]}`)},
	} {
		if err := SelfCheck(writeScript(t, lines...)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSelfCheckFinds(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"response before its request": {[]string{answer(1, "a"), ask(1, "a")}, ":2: inbound response 1 answers no open request"},
		"response with a wrong id":    {[]string{ask(1, "a"), answer(2, "a")}, ":3: inbound response 2 answers no open request"},
		"response of another type":    {[]string{ask(1, "a"), in("a", `{"id":"1","result":1}`)}, `:3: inbound response "1" answers no open request`},
		"second response":             {[]string{ask(1, "a"), answer(1, "a"), answer(1, "a")}, ":4: inbound response 1 answers no open request"},
		"answer before the question":  {[]string{ask(1, "a"), out("q", `{"id":0,"result":1}`), in("q", `{"id":0,"method":"q"}`)}, ":3: outbound response answers request 0, which the provider has not sent"},
		"answer with a wrong id":      {[]string{in("q", `{"id":0,"method":"q"}`), out("q", `{"id":1,"result":1}`)}, ":3: outbound response answers request 1, which the provider has not sent"},
		"answer given twice":          {[]string{in("q", `{"id":0,"method":"q"}`), out("q", `{"id":0,"result":1}`), out("q", `{"id":0,"result":1}`)}, ":4: outbound response answers request 0 a second time"},
		"answer in the next launch":   {[]string{ask(1, "a"), exit("success"), answer(1, "a")}, ":4: inbound response 1 answers no open request"},
		"nothing served":              {[]string{exit("success")}, ": no frame was served"},
		"not loadable":                {[]string{"x"}, ":2: not JSON"},
	} {
		path := writeScript(t, c.lines...)
		if err := SelfCheck(path); err == nil || !strings.HasPrefix(err.Error(), path+c.want) {
			t.Errorf("%s: %v: want %s%s", name, err, path, c.want)
		}
	}
}

// TestSelfCheckOutlives checks a provider that goes on after the end of its
// input, since its client had to end it by a signal.
func TestSelfCheckOutlives(t *testing.T) {
	done := make(chan error, 1)
	go func() { done <- SelfCheck("../peer/testdata/claude/abort.ndjson") }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the check does not end")
	}
}
