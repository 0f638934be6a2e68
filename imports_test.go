// Package replaypeer holds no code, only the rules between the packages.
package replaypeer

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/replaypeer/replaypeer/"

// own says which of our packages a package may import. A package that is not
// listed may not exist; cmd/* may import anything.
var own = map[string][]string{
	"pkg/envelope": {},
	"pkg/flavors":  {"pkg/envelope"},
	"pkg/redact":   {"pkg/envelope"},
	// The façade for tests in Go: the one package of pkg that has internal
	// ones behind it.
	"pkg/replaytest":           {"internal/peer"},
	"schemas":                  {},
	"transcripts":              {},
	"internal/tool":            {},
	"internal/proc":            {},
	"internal/planted":         {"pkg/redact"}, // for tests
	"internal/replay":          {"pkg/envelope", "pkg/flavors"},
	"internal/peer":            {"internal/replay", "pkg/envelope", "pkg/flavors"},
	"internal/record":          {"pkg/envelope", "pkg/flavors", "pkg/redact", "internal/proc"},
	"internal/model":           {},
	"internal/lint":            {"pkg/envelope", "pkg/flavors", "schemas"},
	"internal/review":          {"pkg/envelope", "pkg/flavors"},
	"internal/accept":          {"internal/replay", "pkg/envelope", "pkg/flavors"},
	"internal/orch":            {},
	"internal/orch/agent":      {"internal/orch", "internal/proc", "pkg/flavors", "pkg/envelope"},
	"internal/orch/sqlite":     {"internal/orch"},
	"internal/orch/checkpoint": {"internal/orch", "internal/proc"},
	"internal/orch/framelog":   {"pkg/redact"},
	// The scenario runner is where everything meets.
	"internal/scenario": {
		"internal/orch", "internal/orch/agent", "internal/orch/checkpoint", "internal/orch/framelog", "internal/orch/sqlite",
		"internal/peer", "internal/proc", "internal/replay", "pkg/envelope", "pkg/flavors", "pkg/redact", "schemas",
	},
	"scripts/bench":      {"internal/orch", "internal/orch/sqlite", "pkg/envelope"},
	"scripts/bench/echo": {},
	"scripts/suite":      {"internal/scenario", "pkg/envelope"},
}

// reserved says which packages alone may import an outside module.
var reserved = map[string][]string{
	"github.com/urfave/cli/":              {"internal/tool", "cmd/"},
	"github.com/santhosh-tekuri/":         {"schemas"},
	"modernc.org/sqlite":                  {"internal/orch/sqlite"},
	"database/sql":                        {"internal/orch/sqlite", "scripts/bench"},
	"github.com/google/go-cmp/":           {"internal/scenario"},
	"net/http":                            {"internal/model", "internal/peer", "internal/record", "internal/orch/agent"},
	"github.com/jonboulle/clockwork":      {"internal/orch", "internal/scenario", "cmd/orch-run"},
	"go.yaml.in/yaml/":                    {"internal/scenario", "internal/model", "cmd/transcript-lint"},
	"github.com/gofrs/flock":              {"internal/peer", "internal/record"},
	"github.com/tidwall/gjson":            {"pkg/", "internal/", "scripts/suite"},
	"github.com/rogpeppe/go-internal/":    {},
	"pgregory.net/rapid":                  {},
	"go.uber.org/goleak":                  {},
	"github.com/stretchr/testify/":        {},
	"github.com/zricethezav/gitleaks/":    {"internal/lint", "scripts/bench"},
	"github.com/coder/acp-go-sdk":         {"internal/orch/agent"},
	"github.com/owenrumney/go-sarif/":     {"internal/lint", "cmd/transcript-lint"},
	"github.com/jstemmer/go-junit-report": {"cmd/orch-run"},
}

func TestImports(t *testing.T) {
	checked := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if _, err := fs.Stat(os.DirFS(path), "go.mod"); d.IsDir() && path != "." && err == nil {
			return filepath.SkipDir // an example is a module of its own
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		checked++
		pkg := filepath.ToSlash(filepath.Dir(path))
		allowed, known := own[pkg]
		command := strings.HasPrefix(pkg, "cmd/")
		if !known && !command {
			t.Errorf("%s: package %s is not in the table of imports_test.go", path, pkg)
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if ours, ok := strings.CutPrefix(imp, module); ok {
				if !command && !slices.Contains(allowed, ours) {
					t.Errorf("%s: %s may not import %s", path, pkg, ours)
				}
				continue
			}
			for prefix, owners := range reserved {
				if strings.HasPrefix(imp, prefix) && !slices.ContainsFunc(owners, func(o string) bool { return strings.HasPrefix(pkg, o) }) {
					t.Errorf("%s: %s may not import %s: it is reserved to %v", path, pkg, imp, owners)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked == 0 {
		t.Fatal("no file was checked")
	}
}

// heavy says what a command must not link, however it comes in: replay-peer
// starts in milliseconds, and a recorder scans for nothing.
var heavy = map[string][]string{
	"./cmd/replay-peer":   {"github.com/zricethezav/gitleaks", "modernc.org/sqlite", "github.com/spf13/viper", "internal/model"},
	"./cmd/replay-record": {"github.com/zricethezav/gitleaks", "modernc.org/sqlite"},
	"./cmd/orch-run":      {"github.com/zricethezav/gitleaks"},
}

func TestLinkedPackages(t *testing.T) {
	for command, unwanted := range heavy {
		deps, err := exec.Command("go", "list", "-deps", command).Output()
		if err != nil {
			t.Fatalf("go list %s: %v", command, err)
		}
		for _, name := range unwanted {
			if bytes.Contains(deps, []byte(name)) {
				t.Errorf("%s links %s", command, name)
			}
		}
	}
}
