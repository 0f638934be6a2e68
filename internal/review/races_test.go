package review

import (
	"fmt"
	"strings"
	"testing"
)

// racing is the tool's recording with two more commands, side by side, and the
// states of the thread, as codex tells them.
func racing(ends []string, states ...string) func(string) string {
	const ids = `"threadId":"01a22bf2-711f-79d0-9b20-e7808c503122"`
	event := func(method, params string) string {
		return fmt.Sprintf(`{"type":"emit_inbound","label":"%[1]s","frame":{"method":"%[1]s","params":{%[2]s,%[3]s},"emittedAtMs":1796033638050}}`+"\n", method, ids, params)
	}
	command := func(method, text string) string {
		return event(method, fmt.Sprintf(`"item":{"type":"commandExecution","id":"call_%s","command":"run %[1]s"}`, text))
	}
	var more strings.Builder
	for _, s := range states {
		more.WriteString(event("thread/status/changed", `"status":{"type":"`+s+`"}`))
	}
	more.WriteString(command("item/started", "a") + command("item/started", "b"))
	for _, text := range ends {
		more.WriteString(command("item/completed", text))
	}
	return func(text string) string {
		l := strings.SplitAfter(text, "\n")
		return strings.Join(l[:10], "") + more.String() + strings.Join(l[10:], "")
	}
}

func TestRaces(t *testing.T) {
	plain := load(t, tool, racing([]string{"a", "b"}, "active", "idle"))
	for name, edit := range map[string]func(string) string{
		"commands end in reverse":     racing([]string{"b", "a"}, "active", "idle"),
		"a state is told once more":   racing([]string{"a", "b"}, "active", "idle", "active", "idle"),
		"a state is told after a run": racing([]string{"a", "b"}, "idle", "active"),
	} {
		if d := Compare(plain, load(t, tool, edit)); !d.Same || d.Text() != "" {
			t.Errorf("%s is shown:\n%s", name, d.Text())
		}
	}
	begin := func(edit func(string) string) func(string) string {
		return func(text string) string { // b is begun first
			l := strings.SplitAfter(edit(text), "\n")
			l[12], l[13] = l[13], l[12]
			return strings.Join(l, "")
		}
	}
	for want, edit := range map[string]func(string) string{
		// One change and nothing of the race, which goes on beside it.
		"item.command changed in item/completed (line 16 → 15)\n    \"run b\" → \"run c\"": func(text string) string {
			return strings.Replace(racing([]string{"b", "a"}, "active", "idle")(text), `"item":{"type":"commandExecution","id":"call_b","command":"run b"}},"emittedAtMs":1796033638050}}`+"\n"+
				`{"type":"emit_inbound","label":"item/completed","frame":{"method":"item/completed","params":{"threadId":"01a22bf2-711f-79d0-9b20-e7808c503122","item":{"type":"commandExecution","id":"call_a"`,
				`"item":{"type":"commandExecution","id":"call_b","command":"run c"}},"emittedAtMs":1796033638050}}`+"\n"+
					`{"type":"emit_inbound","label":"item/completed","frame":{"method":"item/completed","params":{"threadId":"01a22bf2-711f-79d0-9b20-e7808c503122","item":{"type":"commandExecution","id":"call_a"`, 1)
		},
		"item/completed removed (old line 16)":        racing([]string{"a"}, "active", "idle"),
		"thread/status/changed added (line 12)":       racing([]string{"a", "b"}, "active", "notLoaded", "idle"),
		"thread/status/changed removed (old line 12)": racing([]string{"a", "b"}, "active", "active"),
	} {
		d := Compare(plain, load(t, tool, edit))
		if text := d.Text(); !strings.Contains(text, want) || strings.Count(text, "\n") > 4 || len(d.Changes) != 1 {
			t.Errorf("want %q alone in\n%s", want, text)
		}
	}
	// Which begins first is no race: it shows, and what follows from it.
	text := Compare(plain, load(t, tool, begin(racing([]string{"a", "b"}, "active", "idle")))).Text()
	if !strings.Contains(text, "item/started stands elsewhere") {
		t.Errorf("commands begun in another order:\n%s", text)
	}
}
