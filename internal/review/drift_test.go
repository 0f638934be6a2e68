package review

import (
	"strings"
	"testing"
)

func TestDrift(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(string) string
		want []string // headlines, "" for no drift
	}{
		"another word on stderr": {func(s string) string {
			l := strings.SplitAfter(s, "\n")
			l[9] += `{"type":"emit_inbound","channel":"stderr","frame":"slow"}` + "\n"
			return strings.Join(l, "")
		}, nil},
		"another version":       {strings.NewReplacer("0.171.0", "0.172.0").Replace, nil},
		"a field of every item": {strings.NewReplacer(`"command":"wc`, `"tier":{"a":1},"command":"wc`).Replace, []string{"new field params.item.tier of inbound item/started, item/completed (2 frames)"}},
		"a field gone":          {strings.NewReplacer(`"type":"text",`, "").Replace, []string{"gone field"}},
		"a type":                {strings.NewReplacer(`"exitCode":0`, `"exitCode":"0"`).Replace, []string{"changed type params.item.exitCode of inbound item/completed"}},
		"a value":               {strings.NewReplacer(`wc -l`, `wc -c`).Replace, []string{"changed value params.item.command of inbound item/started, item/completed (2 frames)"}},
		"a method renamed":      {strings.NewReplacer("account/rateLimits/updated", "account/limits").Replace, []string{"gone method = inbound account/rateLimits/updated", "new method = inbound account/limits"}},
		"fewer frames of a method": {func(s string) string {
			l := strings.SplitAfter(s, "\n")
			return strings.Join(append(l[:16:16], l[17:]...), "")
		}, []string{"fewer frames of inbound turn/completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := DriftOf(load(t, tool, nil), load(t, tool, c.edit))
			text := d.Text()
			if d.Same != (len(c.want) == 0) || d.Same != (text == "") {
				t.Errorf("same is %v:\n%s", d.Same, text)
			}
			for _, want := range c.want {
				if !strings.Contains(text, "  "+want) {
					t.Errorf("want %q in\n%s", want, text)
				}
			}
			if !strings.HasPrefix(string(d.JSON()), `{"version":1,"provider":"codex"`) || strings.Count(d.Markdown(), "\n|") != len(d.News)+min(len(d.News), 1)*2 {
				t.Errorf("%s\n%s", d.JSON(), d.Markdown())
			}
		})
	}
}
