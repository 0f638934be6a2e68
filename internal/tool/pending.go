package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// PendingFile is a file that is written beside its target and takes the
// target's place as a whole, or not at all. It works on every system that can
// rename over a file.
type PendingFile struct {
	*os.File
	target string
	done   bool
}

// NewPendingFile starts a replacement of target, with target's permissions, or
// 0644 where there is no such file yet.
func NewPendingFile(target string) (*PendingFile, error) {
	mode := fs.FileMode(0o644)
	info, err := os.Stat(target)
	switch {
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return nil, err
	}
	p := &PendingFile{File: f, target: target}
	if err := f.Chmod(mode); err != nil {
		p.Cleanup()
		return nil, err
	}
	return p, nil
}

// CloseAtomicallyReplace makes what was written durable and puts it in the
// target's place.
func (p *PendingFile) CloseAtomicallyReplace() error {
	if p.done {
		return fmt.Errorf("replace %s: %w", p.target, os.ErrClosed)
	}
	err := p.Sync()
	if e := p.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(p.Name(), p.target)
	}
	if err != nil {
		p.Cleanup()
		return err
	}
	p.done = true
	return nil
}

// Cleanup removes what was written, unless it is in place. Call it deferred.
func (p *PendingFile) Cleanup() {
	if !p.done {
		p.done = true
		p.Close()
		os.Remove(p.Name())
	}
}

// ReplaceFile writes content to target, whole or not at all.
func ReplaceFile(target string, content []byte) error {
	p, err := NewPendingFile(target)
	if err != nil {
		return err
	}
	defer p.Cleanup()
	if _, err := p.Write(content); err != nil {
		return err
	}
	return p.CloseAtomicallyReplace()
}
