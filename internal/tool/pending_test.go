package tool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestPendingFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "t.ndjson")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(text string, keep bool) {
		t.Helper()
		p, err := NewPendingFile(target)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Cleanup()
		if _, err := p.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if keep {
			if err := p.CloseAtomicallyReplace(); err != nil {
				t.Fatal(err)
			}
			if err := p.CloseAtomicallyReplace(); !errors.Is(err, os.ErrClosed) {
				t.Errorf("replacing twice: %v", err)
			}
		}
	}
	want := func(text string) {
		t.Helper()
		got, err := os.ReadFile(target)
		if err != nil || string(got) != text {
			t.Errorf("target holds %q, %v: want %q", got, err, text)
		}
		if list, _ := os.ReadDir(dir); len(list) != 1 {
			t.Errorf("files left: %v", list)
		}
	}
	write("dropped", false)
	want("old")
	write("new", true)
	want("new")
	if info, err := os.Stat(target); err != nil || info.Mode() != 0o600 {
		t.Errorf("permissions %v, %v: want those of the old file", info.Mode(), err)
	}
	if _, err := NewPendingFile(filepath.Join(dir, "none", "t")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such folder: %v", err)
	}
}
