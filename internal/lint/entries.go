package lint

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// exitless names the protocol whose recordings have no runtime_exit: an SDK in
// the client's own process, which nobody sees end.
const exitless = "cursor-agent-sdk.local"

// occurrence is how a gate names the nth entry of a label: "turn/completed#2".
var occurrence = regexp.MustCompile(`#[0-9]+$`)

func checkLabel(_ *run, found report) checker {
	return checker{entry: func(s *step) {
		if s.raw != nil && s.label == "" {
			found(s.line, "label", "", "the entry has no label")
		}
	}}
}

func checkLabelForm(_ *run, found report) checker {
	return checker{entry: func(s *step) {
		switch {
		case plainLabel(s.label):
		case strings.Contains(s.label, ","):
			found(s.line, "label", "", "label %q holds a comma", s.label)
		case s.label != strings.TrimSpace(s.label):
			found(s.line, "label", "", "label %q has white space around it", s.label)
		case strings.ContainsFunc(s.label, unicode.IsControl):
			found(s.line, "label", "", "label %q holds a control character", s.label)
		case occurrence.MatchString(s.label):
			found(s.line, "label", "", "label %q reads as an occurrence of a label", s.label)
		}
	}}
}

// plainLabel is a cheap look that most labels pass.
func plainLabel(label string) bool {
	for i := range len(label) {
		if c := label[i]; c <= ' ' || c >= 0x7f || c == ',' || c == '#' {
			return false
		}
	}
	return true
}

func checkNoExit(c *run, found report) checker {
	exits := false
	return checker{
		exit: func(*step) { exits = true },
		end: func() {
			if !exits && c.hdr != nil && c.hdr.Protocol != exitless {
				found(max(c.last, 1), "", "end the file with a runtime_exit", "the file has no runtime_exit")
			}
		},
	}
}

func checkAfterExit(_ *run, found report) checker {
	exited, after, first := false, 0, 0
	return checker{
		entry: func(s *step) {
			switch _, ok := s.entry.(*envelope.RuntimeExit); {
			case ok:
				exited, after = true, 0
			case exited:
				if after++; after == 1 {
					first = s.line
				}
			}
		},
		end: func() {
			if after > 0 {
				found(first, "", "end the file with a runtime_exit", "%d entries after the last runtime_exit", after)
			}
		},
	}
}

func checkEmptyLaunch(_ *run, found report) checker {
	empty, broken := true, false
	return checker{
		syntax: func(*envelope.SyntaxError) { broken = true },
		entry: func(s *step) {
			_, exit := s.entry.(*envelope.RuntimeExit)
			if exit && empty && !broken {
				found(s.line, "", "", "this launch of the provider has no entry but its exit")
			}
			empty, broken = exit, false
		},
	}
}

func checkExitDetail(_ *run, found report) checker {
	return checker{exit: func(s *step) {
		e := s.entry.(*envelope.RuntimeExit)
		var detail struct {
			ExitCode json.Number `json:"exitCode"`
			Signal   string      `json:"signal"`
		}
		if e.Error != nil {
			_ = json.Unmarshal(e.Error, &detail) // error is free JSON
		}
		failed := detail.Signal != "" || detail.ExitCode != "" && detail.ExitCode != "0"
		switch text := strings.TrimSpace(string(e.Error)); {
		case e.Status == envelope.Failed && (text == "" || text == "null" || text == "{}" || text == `""`):
			found(s.line, "error", `add {"exitCode":…}, {"signal":…} or {"stderr":…}`, "exit with status error and no detail")
		case e.Status == envelope.Success && failed:
			found(s.line, "status", "", "exit with status success and the detail of a failure")
		}
	}}
}

func checkNothing(c *run, found report) checker {
	any, broken := false, false
	return checker{
		syntax: func(*envelope.SyntaxError) { broken = true },
		entry: func(s *step) {
			_, out := s.entry.(*envelope.ExpectOutbound)
			any = any || out
		},
		end: func() {
			if !any && !broken {
				found(max(c.last, 1), "", "", "no expect_outbound in the file")
			}
		},
	}
}

func checkSplitGroup(_ *run, found report) checker {
	last := map[string]int{} // line of a group's latest entry
	current := ""
	return checker{entry: func(s *step) {
		group := groupOf(s)
		if group != "" {
			if line := last[group]; group != current && line > 0 {
				found(s.line, "group", "", "group %q goes on here, but line %d was not the entry before", group, line)
			}
			last[group] = s.line
		}
		current = group
	}}
}

func checkLoneGroup(_ *run, found report) checker {
	size, first := map[string]int{}, map[string]int{}
	return checker{
		entry: func(s *step) {
			if group := groupOf(s); group != "" {
				if size[group]++; size[group] == 1 {
					first[group] = s.line
				}
			}
		},
		end: func() {
			for group, n := range size {
				if n == 1 {
					found(first[group], "group", "", "group %q has one entry", group)
				}
			}
		},
	}
}

func groupOf(s *step) string {
	if e, ok := s.entry.(*envelope.ExpectOutbound); ok {
		return e.Group
	}
	return ""
}
