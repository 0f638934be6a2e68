package replaypeer

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listed is a package as go list tells it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// TestNoAPIForTests finds every exported function and method of the
// orchestrator that nothing but tests calls: production code has no entrance
// that exists for them.
func TestNoAPIForTests(t *testing.T) {
	c := loadCallers(t)
	checked, problems := c.judge()
	for _, p := range problems {
		t.Error(p)
	}
	if checked < 50 {
		t.Errorf("only %d exported functions and methods were looked at", checked)
	}
	// The judge knows a function that nobody calls.
	c.used = maps.Clone(c.used)
	delete(c.used, module+"internal/orch.Start")
	if _, problems := c.judge(); len(problems) != 1 || !strings.Contains(problems[0], "orch.Start") {
		t.Errorf("without the callers of orch.Start: %v", problems)
	}
}

// callers are the functions that the module's own code uses, by name:
// "module/internal/orch.Start", "module/internal/orch.Orchestrator.Dispatch".
type callers struct {
	importer types.Importer
	packages []listed // the module's
	used     map[string]bool
}

// loadCallers reads every package of the module, without its tests.
func loadCallers(t *testing.T) *callers {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	c := &callers{used: map[string]bool{}}
	exports := map[string]string{}
	for in := json.NewDecoder(strings.NewReader(string(out))); in.More(); {
		var p listed
		if err := in.Decode(&p); err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, module) {
			c.packages = append(c.packages, p)
		}
	}
	fset := token.NewFileSet()
	c.importer = importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(exports[path])
	})
	for _, p := range c.packages {
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: c.importer}
		if _, err := config.Check(p.ImportPath, fset, files, info); err != nil {
			t.Fatal(err)
		}
		for _, used := range info.Uses {
			if f, ok := used.(*types.Func); ok {
				c.used[nameOf(f)] = true
			}
		}
	}
	return c
}

// nameOf names a function, whoever has checked its package.
func nameOf(f *types.Func) string {
	if f.Pkg() == nil {
		return f.Name() // error.Error
	}
	receiver := f.Signature().Recv()
	if receiver == nil {
		return f.Pkg().Path() + "." + f.Name()
	}
	of := receiver.Type()
	if p, ok := of.(*types.Pointer); ok {
		of = p.Elem()
	}
	if named, ok := types.Unalias(of).(*types.Named); ok {
		return f.Pkg().Path() + "." + named.Obj().Name() + "." + f.Name()
	}
	return f.Pkg().Path() + ".interface." + f.Name() // of an interface without a name
}

// judge returns what is wrong with the exported functions and methods of the
// orchestrator's packages, and how many it looked at.
func (c *callers) judge() (checked int, problems []string) {
	for _, p := range c.packages {
		if !strings.HasPrefix(p.ImportPath+"/", module+"internal/orch/") {
			continue
		}
		pkg, err := c.importer.Import(p.ImportPath)
		if err != nil {
			return checked, append(problems, err.Error())
		}
		for _, name := range pkg.Scope().Names() {
			object := pkg.Scope().Lookup(name)
			if !object.Exported() {
				continue
			}
			var candidates []*types.Func
			switch o := object.(type) {
			case *types.Func:
				candidates = append(candidates, o)
			case *types.TypeName:
				candidates = methodsOf(o)
			}
			for _, f := range candidates {
				checked++
				if !c.used[nameOf(f)] && !c.throughInterface(f) {
					problems = append(problems, fmt.Sprintf("%s is called by no code but tests", strings.TrimPrefix(nameOf(f), module)))
				}
			}
		}
	}
	slices.Sort(problems)
	return checked, problems
}

// methodsOf lists the exported methods of a type, or of a port.
func methodsOf(name *types.TypeName) []*types.Func {
	var all []*types.Func
	named, ok := name.Type().(*types.Named)
	if !ok {
		return nil
	}
	for f := range named.Methods() {
		all = append(all, f)
	}
	if i, ok := named.Underlying().(*types.Interface); ok {
		for f := range i.ExplicitMethods() {
			all = append(all, f)
		}
	}
	return slices.DeleteFunc(all, func(f *types.Func) bool { return !f.Exported() })
}

// outside are interfaces through which other modules call.
var outside = map[string][]string{
	"encoding/json": {"Marshaler", "Unmarshaler"}, "fmt": {"Stringer"}, "io": {"Reader", "Writer", "Closer"},
}

// throughInterface reports whether a method is called through an interface
// that its type has: one of the module's, whose method is used, or one that
// other modules call.
func (c *callers) throughInterface(f *types.Func) bool {
	receiver := f.Signature().Recv()
	if receiver == nil {
		return false
	}
	of := receiver.Type()
	if _, ok := of.(*types.Pointer); !ok {
		of = types.NewPointer(of)
	}
	if slices.Contains([]string{"Error", "Unwrap", "Is", "As"}, f.Name()) {
		return true // package errors and everyone who prints
	}
	for path, names := range outside {
		pkg, err := c.importer.Import(path)
		if err != nil {
			continue
		}
		for _, name := range names {
			if has(of, pkg.Scope().Lookup(name), f.Name()) {
				return true
			}
		}
	}
	for _, p := range c.packages {
		pkg, err := c.importer.Import(p.ImportPath)
		if err != nil {
			continue
		}
		for _, name := range pkg.Scope().Names() {
			if c.used[p.ImportPath+"."+name+"."+f.Name()] && has(of, pkg.Scope().Lookup(name), f.Name()) {
				return true
			}
		}
	}
	return false
}

// has reports whether a type has an interface with a method.
func has(t types.Type, object types.Object, method string) bool {
	name, ok := object.(*types.TypeName)
	if !ok {
		return false
	}
	i, ok := name.Type().Underlying().(*types.Interface)
	if !ok || !types.Implements(t, i) {
		return false
	}
	for m := range i.Methods() {
		if m.Name() == method {
			return true
		}
	}
	return false
}
