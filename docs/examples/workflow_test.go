package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// call is one of our tools in a script: its name, its command and the flags
// before "--".
var call = regexp.MustCompile(`(?m)(?:^|exec )\s*(orch-run|replay-peer|replay-record|transcript-lint) ([a-z]+)( .*)?$`)

// TestWorkflow holds that the example of a workflow parses, that its scripts
// are shell, and that the commands and flags in it exist.
func TestWorkflow(t *testing.T) {
	text, err := os.ReadFile("github-actions/agents.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Uses, Run string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	sources(t, "../../cmd", "../../internal")
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/...").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	calls := 0
	for job, j := range workflow.Jobs {
		for _, step := range j.Steps {
			if out, err := exec.Command("sh", "-n", "-c", step.Run).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", job, err, step.Run, out)
			}
			for _, m := range call.FindAllStringSubmatch(step.Run, -1) {
				calls++
				help, err := exec.Command(filepath.Join(bin, m[1]), m[2], "--help").Output()
				if err != nil {
					t.Errorf("%s: %s: %v", job, m[0], err)
				}
				flags, _, _ := strings.Cut(m[3], " -- ")
				for word := range strings.FieldsSeq(flags) {
					if strings.HasPrefix(word, "-") && !strings.Contains(string(help), word+" ") {
						t.Errorf("%s: %s has no flag %s", job, m[1]+" "+m[2], word)
					}
				}
			}
		}
	}
	if calls < 4 {
		t.Errorf("%d calls of our tools: want at least 4", calls)
	}
}
