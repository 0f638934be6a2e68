package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// ciStep is one piece of docs/ci.md that a machine runs: a step of a workflow,
// a hook of a framework, or a script.
type ciStep struct {
	Name, Uses, Run, Entry, Files string
	ID                            string
	Env                           map[string]string
}

// title is what the table below and the log call a step.
func (s ciStep) title() string {
	for _, t := range []string{s.Name, s.ID, s.Uses} {
		if t != "" {
			return t
		}
	}
	line, _, _ := strings.Cut(s.Run, "\n")
	return line
}

var fenced = regexp.MustCompile("(?s)```(yaml|sh)\n(.*?)```")

// ciSteps extracts them, in order.
func ciSteps(t *testing.T) (steps []ciStep) {
	t.Helper()
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fenced.FindAllSubmatch(page, -1) {
		if string(m[1]) == "sh" {
			steps = append(steps, ciStep{Name: "pre-commit hook", Run: string(m[2])})
			continue
		}
		var root yaml.Node
		if err := yaml.Unmarshal(m[2], &root); err != nil {
			t.Fatalf("docs/ci.md: %v in\n%s", err, m[2])
		}
		var walk func(n *yaml.Node)
		walk = func(n *yaml.Node) {
			if n.Kind == yaml.MappingNode {
				var s ciStep
				if n.Decode(&s) == nil && (s.Run != "" || s.Uses != "" || s.Entry != "") {
					steps = append(steps, s)
					return
				}
			}
			for _, c := range n.Content {
				walk(c)
			}
		}
		walk(&root)
	}
	return steps
}

// ciSkipped are the steps that need something a test has not, and what.
var ciSkipped = map[string]string{
	"actions/checkout@v4":                                          "GitHub",
	"actions/setup-go@v5":                                          "GitHub",
	"actions/upload-artifact@v4":                                   "GitHub",
	"github/codeql-action/upload-sarif@v3":                         "GitHub",
	"scripts/record.sh codex simple \"$RUNNER_TEMP/codex.ndjson\"": "a provider from npm: scripts/live.sh records it",
	"drift": "providers from npm: scripts/live.sh does the same with pinned ones",
	"go install github.com/replaypeer/replaypeer/cmd/transcript-lint@latest": "a release: the commands are those of this repository",
}

// TestCISnippets runs what docs/ci.md tells people to run, in a repository with
// a base and a pull request that changes one transcript for the worse.
func TestCISnippets(t *testing.T) {
	r := newPullRequest(t)
	checks := map[string]func(t *testing.T, s ciStep){
		"annotations on the changed lines": r.annotations,
		"the same as code scanning alerts": r.alerts,
		"comment":                          r.comment,
		"transcript-lint check --format json >findings.json || true":  r.pages,
		"replay-peer link fake codex=transcripts/simple/codex.ndjson": r.replay,
		"pre-commit hook":     r.hook,
		"transcript-lint":     r.frameworkCheck,
		"transcript-lint fmt": r.frameworkFormat,
	}
	ran := map[string]bool{}
	for _, s := range ciSteps(t) {
		title := s.title()
		if why, ok := ciSkipped[title]; ok {
			t.Logf("NOT RUN: %s: it needs %s", title, why)
			continue
		}
		check := checks[title]
		if check == nil {
			t.Errorf("docs/ci.md has a step that nothing tests: %q", title)
			continue
		}
		ran[title] = true
		t.Run(strings.ReplaceAll(title, "/", "_"), func(t *testing.T) { check(t, s) })
	}
	for title := range checks {
		if !ran[title] {
			t.Errorf("docs/ci.md has no step %q any more", title)
		}
	}
}

// pullRequest is a scratch repository, whose working directory is what a
// workflow has checked out.
type pullRequest struct {
	dir, bin string
	env      []string
}

func newPullRequest(t *testing.T) *pullRequest {
	t.Helper()
	r := &pullRequest{dir: t.TempDir(), bin: t.TempDir()}
	build := exec.Command("go", "build", "-o", r.bin, "./cmd/...")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	home := t.TempDir()
	r.env = []string{
		"PATH=" + r.bin + ":" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + t.TempDir(), "GITHUB_BASE_REF=main", "CI=true", "LANG=C.UTF-8",
		"GOCOVERDIR=" + cmp.Or(os.Getenv("GOCOVERDIR"), t.TempDir()), // programs built to count want it
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	r.write(t, r.bin, "gh", "#!/bin/sh\nprintf '%s\\n' \"$@\" >>gh.log\n") // a process of somebody else's
	for _, file := range []string{"simple/codex.ndjson", "simple/scenario.yaml", "multi_turn/codex.ndjson"} {
		b, err := os.ReadFile("../../transcripts/" + file)
		if err != nil {
			t.Fatal(err)
		}
		r.write(t, r.dir, "transcripts/"+file, string(b))
	}
	r.write(t, r.dir, "run-my-tests", "#!/bin/sh\nexec orch-run live --dir transcripts --scenario simple --provider codex -- codex app-server\n")
	r.write(t, r.dir, ".gitignore", "fake/\nlint.sarif\ncomment.md\ngh.log\npages/\nfindings.json\n")
	r.must(t, "git init -q -b main && git add -A && git commit -q -m base && git update-ref refs/remotes/origin/main HEAD")
	return r
}

func (r *pullRequest) write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (r *pullRequest) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// edit changes a transcript, or puts it back as it was at first.
func (r *pullRequest) edit(t *testing.T, from, to string) {
	t.Helper()
	const file = "transcripts/simple/codex.ndjson"
	r.must(t, "git checkout -q refs/remotes/origin/main -- "+file)
	text := r.read(t, file)
	edited := strings.Replace(text, from, to, 1)
	if edited == text && from != "" {
		t.Fatalf("%s has no %s", file, from)
	}
	r.write(t, r.dir, file, edited)
}

var expression = regexp.MustCompile(`\$\{\{[^}]*\}\}`)

// run runs a script as a workflow does, and returns what it says and its code.
func (r *pullRequest) run(t *testing.T, script string, env ...string) (string, int) {
	t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", expression.ReplaceAllString(script, "7"))
	cmd.Dir, cmd.Env = r.dir, append(r.env, env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (r *pullRequest) must(t *testing.T, script string) string {
	t.Helper()
	out, code := r.run(t, script)
	if code != 0 {
		t.Fatalf("%s: exit code %d\n%s", script, code, out)
	}
	return out
}

// worse is an edit that is an error: an answer to a request nobody has sent.
var worse = [2]string{`"frame":{"id":1,"result"`, `"frame":{"id":77,"result"`}

func (r *pullRequest) annotations(t *testing.T, s ciStep) {
	if out, code := r.run(t, s.Run); code != 0 || out != "transcript-lint: 0 files: 0 errors, 0 warnings, 0 infos\n" {
		t.Errorf("nothing changed: exit code %d\n%s", code, out)
	}
	r.edit(t, worse[0], worse[1])
	out, code := r.run(t, s.Run)
	if code != 3 || !strings.Contains(out, "::error file=transcripts/simple/codex.ndjson,line=3,title=TL013") || strings.Contains(out, "multi_turn") {
		t.Errorf("an error in one file: exit code %d\n%s", code, out)
	}
}

func (r *pullRequest) alerts(t *testing.T, s ciStep) {
	if out, code := r.run(t, s.Run); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	var log struct {
		Runs []struct{ Results []struct{ RuleID string } }
	}
	if err := json.Unmarshal([]byte(r.read(t, "lint.sarif")), &log); err != nil || len(log.Runs) != 1 || !strings.Contains(r.read(t, "lint.sarif"), `"ruleId":"TL013"`) && !strings.Contains(r.read(t, "lint.sarif"), `"ruleId": "TL013"`) {
		t.Errorf("lint.sarif: %v\n%.400s", err, r.read(t, "lint.sarif"))
	}
	if _, code := r.run(t, strings.Replace(s.Run, "transcript-lint check", "transcript-lint check --nonsense", 1)); code == 0 {
		t.Error("a tool that failed passes")
	}
}

func (r *pullRequest) comment(t *testing.T, s ciStep) {
	r.must(t, "git checkout -q -- transcripts; rm -f gh.log")
	if out, code := r.run(t, s.Run); code != 0 || r.read(t, "comment.md") != "" {
		t.Errorf("nothing changed: exit code %d\n%s", code, out)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "gh.log")); err == nil {
		t.Error("nothing changed, and a comment is written")
	}
	r.edit(t, `"delta":"`, `"delta":"Oh! `)
	if out, code := r.run(t, s.Run); code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if md := r.read(t, "comment.md"); !strings.Contains(md, "1 change") || !strings.Contains(md, "Oh!") {
		t.Errorf("comment.md:\n%s", md)
	}
	if log := r.read(t, "gh.log"); !strings.HasPrefix(log, "pr\ncomment\n7\n") || !strings.HasSuffix(log, "--body-file\ncomment.md\n") {
		t.Errorf("gh was called with\n%s", log)
	}
}

func (r *pullRequest) pages(t *testing.T, s ciStep) {
	r.edit(t, worse[0], worse[1])
	if out, code := r.run(t, s.Run); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	for page, marked := range map[string]bool{"transcripts-simple-codex.ndjson.html": true, "transcripts-multi_turn-codex.ndjson.html": false} {
		if html := r.read(t, "pages/"+page); strings.Contains(html, "TL013") != marked || !strings.Contains(html, "<main>") {
			t.Errorf("%s tells of TL013: %t", page, !marked)
		}
	}
}

func (r *pullRequest) replay(t *testing.T, s ciStep) {
	r.edit(t, "", "")
	if out, code := r.run(t, s.Run); code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	r.edit(t, "Respond with exactly", "Respond with something like")
	if out, code := r.run(t, "rm -rf fake\n"+strings.Replace(s.Run, "./run-my-tests", "./run-my-tests || true", 1)); code != 3 {
		t.Errorf("a recording that does not fit, and a client that swallows it: exit code %d\n%s", code, out)
	}
}

// commit tries to commit what has changed.
func (r *pullRequest) commit(t *testing.T) (string, int) {
	t.Helper()
	return r.run(t, "git add -A && git commit -q -m change")
}

func (r *pullRequest) hook(t *testing.T, s ciStep) {
	r.edit(t, "", "")
	r.write(t, r.dir, ".git/hooks/pre-commit", s.Run)
	defer r.must(t, "rm .git/hooks/pre-commit; git reset -q --hard refs/remotes/origin/main")
	r.write(t, r.dir, "README.md", "hello\n")
	if out, code := r.commit(t); code != 0 {
		t.Errorf("a good commit: exit code %d\n%s", code, out)
	}
	r.edit(t, worse[0], worse[1])
	if out, code := r.commit(t); code == 0 || !strings.Contains(out, "TL013") {
		t.Errorf("a bad commit: exit code %d\n%s", code, out)
	}
}

// hooked runs a hook as the framework does: with the files that it is for.
func (r *pullRequest) hooked(t *testing.T, s ciStep) (string, int) {
	t.Helper()
	pattern := regexp.MustCompile(s.Files)
	var files []string
	for file := range strings.Lines(r.must(t, "git ls-files")) {
		if file = strings.TrimSpace(file); pattern.MatchString(file) {
			files = append(files, file)
		}
	}
	if len(files) != 2 {
		t.Errorf("the hook is for %v: want both transcripts", files)
	}
	return r.run(t, s.Entry+" "+strings.Join(files, " "))
}

func (r *pullRequest) frameworkCheck(t *testing.T, s ciStep) {
	r.edit(t, "", "")
	if out, code := r.hooked(t, s); code != 0 {
		t.Errorf("good files: exit code %d\n%s", code, out)
	}
	r.edit(t, worse[0], worse[1])
	if out, code := r.hooked(t, s); code != 3 {
		t.Errorf("a bad file: exit code %d\n%s", code, out)
	}
}

func (r *pullRequest) frameworkFormat(t *testing.T, s ciStep) {
	r.edit(t, "", "")
	if out, code := r.hooked(t, s); code != 0 || out != "" {
		t.Errorf("formatted files: exit code %d\n%s", code, out)
	}
	before := r.read(t, "transcripts/simple/codex.ndjson")
	r.edit(t, `{"type":`, `{ "type" :`)
	if _, code := r.hooked(t, s); code != 0 || !bytes.Equal([]byte(before), []byte(r.read(t, "transcripts/simple/codex.ndjson"))) {
		t.Errorf("a file with spaces is not as it was; exit code %d", code)
	}
}
