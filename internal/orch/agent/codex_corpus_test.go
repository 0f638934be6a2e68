package agent

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

func corpusFiles(tb testing.TB) []string { return corpusOf(tb, "codex") }

// corpusOf lists recorded traffic of a real provider beside the repository, or
// of the folder in TRANSCRIPT_CORPUS.
func corpusOf(tb testing.TB, provider string) []string {
	dir := os.Getenv("TRANSCRIPT_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "corpus")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", provider+".ndjson"))
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

func readEntries(tb testing.TB, file string) (entries []gjson.Result) {
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	sc := bufio.NewScanner(strings.NewReader(string(data)))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		entries = append(entries, gjson.Parse(sc.Text()))
	}
	return entries
}

// Recorded traffic: every turn starts and ends once, in that order; nothing of
// a turn comes before its start; each item ends once; nothing is held back.
func TestCorpus(t *testing.T) {
	files := corpusFiles(t)
	if len(files) == 0 {
		t.Skip("no recorded traffic: set TRANSCRIPT_CORPUS to a folder of NAME/codex.ndjson")
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			var events []orch.ProviderEvent
			var c *codexFacts
			fresh := func() { c = newCodexFacts(func(e orch.ProviderEvent) { events = append(events, e) }) }
			fresh()
			turns := 0
			asked := map[string]string{}
			for _, e := range readEntries(t, file) {
				f := e.Get("frame")
				switch e.Get("type").Str {
				case "runtime_exit":
					fresh() // another process
				case "expect_outbound":
					if f.Get("method").Exists() {
						asked[f.Get("id").Raw] = f.Get("method").Str
						break
					}
					if _, err := c.respond(f.Get("id").Raw, decisionOf(f.Get("result"))); err != nil {
						t.Errorf("answer %s: %v", f.Raw, err)
					}
				case "emit_inbound":
					switch method := asked[f.Get("id").Raw]; {
					case f.Get("method").Exists():
						feedFrame(c, f)
					case method == "turn/start":
						turns++
						c.turnAccepted(threadOf(t, file, f.Get("id").Raw), f.Get("result.turn.id").Str, false)
					default:
						c.opened(f.Get("result"))
					}
				}
			}
			for id, thread := range c.threads {
				if len(thread.events) > 0 {
					t.Errorf("%d events of thread %s are still held", len(thread.events), id)
				}
			}
			if got := checkEvents(t, events); got < turns {
				t.Errorf("%d turns ended, want at least the %d started here", got, turns)
			}
		})
	}
}

func decisionOf(result gjson.Result) orch.Decision {
	if kind := result.Get("decision"); kind.Exists() {
		return orch.Decision{Kind: kind.Str}
	}
	return orch.Decision{Answers: map[string][]string{}}
}

// threadOf finds the thread of a recorded call.
func threadOf(tb testing.TB, file, id string) string {
	for _, e := range readEntries(tb, file) {
		if e.Get("type").Str == "expect_outbound" && e.Get("frame.id").Raw == id && e.Get("frame.params.threadId").Exists() {
			return e.Get("frame.params.threadId").Str
		}
	}
	tb.Fatalf("no call %s", id)
	return ""
}

// checkEvents checks the order of events and returns how many turns ended.
func checkEvents(tb testing.TB, events []orch.ProviderEvent) int {
	tb.Helper()
	const running, over = 1, 2
	turns := map[string]int{}
	itemsDone := map[string]bool{}
	children := map[string]bool{}
	ends := 0
	for _, e := range events {
		switch e := e.(type) {
		case orch.TurnStarted:
			if turns[e.NativeTurnID] != 0 {
				tb.Errorf("turn %s started twice", e.NativeTurnID)
			}
			turns[e.NativeTurnID] = running
		case orch.TurnEnded:
			if turns[e.NativeTurnID] != running {
				tb.Errorf("turn %s ended, but it does not run", e.NativeTurnID)
			}
			turns[e.NativeTurnID] = over
			ends++
		case orch.ItemUpdated:
			if turns[e.NativeTurnID] == 0 {
				tb.Errorf("item %s of turn %s, which did not start", e.Item.NativeID, e.NativeTurnID)
			}
			key := e.NativeTurnID + " " + e.Item.NativeID
			if itemsDone[key] {
				tb.Errorf("item %s changed after its end", e.Item.NativeID)
			}
			itemsDone[key] = e.Item.Status != "running"
			if e.Item.Streaming && itemsDone[key] {
				tb.Errorf("item %s ended and still streams", e.Item.NativeID)
			}
		case orch.SubagentUpdated:
			if e.Status != "running" && !children[e.NativeTaskID] {
				tb.Errorf("child %s is %s before it ran", e.NativeTaskID, e.Status)
			}
			children[e.NativeTaskID] = true
		}
	}
	for id, state := range turns {
		if state != over {
			tb.Errorf("turn %s did not end", id)
		}
	}
	return ends
}

// FuzzFacts feeds frames of any shape: nothing panics, and no turn starts or
// ends twice.
func FuzzFacts(f *testing.F) {
	f.Add(started("T", "U") + "\n" + item("started", "T", "U", `"type":"agentMessage","id":"m"`) + "\n" + ended("T", "U", "completed"))
	f.Add(started("C", "V") + "\n" + item("completed", "T", "U", `"type":"collabAgentToolCall","tool":"spawnAgent","receiverThreadIds":["C"],"agentsStates":{"C":{"status":"errored"}}`))
	f.Add(`{"id":0,"method":"item/tool/requestUserInput","params":{"threadId":"T","turnId":"U","questions":[]}}` + "\n" + `{"method":"serverRequest/resolved","params":{"requestId":0}}`)
	for _, file := range corpusFiles(f) {
		var frames []string
		for _, e := range readEntries(f, file) {
			if frame := e.Get("frame"); frame.Get("method").Exists() && len(frames) < 40 {
				frames = append(frames, frame.Raw)
			}
		}
		f.Add(strings.Join(frames, "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		starts, ends := map[string]int{}, map[string]int{}
		c := newCodexFacts(func(e orch.ProviderEvent) {
			switch e := e.(type) {
			case orch.TurnStarted:
				starts[e.NativeTurnID]++
			case orch.TurnEnded:
				ends[e.NativeTurnID]++
			}
		})
		c.own("T")
		for line := range strings.Lines(text) {
			if gjson.Valid(line) {
				feedFrame(c, gjson.Parse(line))
			}
		}
		for id, n := range ends {
			if n > 1 || starts[id] != 1 {
				t.Errorf("turn %q: %d starts, %d ends", id, starts[id], n)
			}
		}
	})
}
