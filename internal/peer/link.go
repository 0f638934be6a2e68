package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// Link makes dir/name a fake provider binary: a symbolic link to executable
// (on Windows a copy, name.exe), which is a program that asks Linked, and a side file with its settings. cfg
// names at least the transcript. Unless cfg says otherwise the fake keeps its
// state beside itself, so that several launches are one run, and reports into
// dir/name.report.json. A file that is no earlier link is not replaced; making
// a link again starts a new run, without the old one's state and report.
func Link(dir, name, executable string, cfg Config) (string, error) {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("link %q: want a plain file name", name)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("link %s: %w", name, err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("link %s: %w", name, err)
	}
	path := filepath.Join(dir, executableName(name))
	if cfg.State == "" {
		cfg.State = stateFile(path)
	}
	if cfg.Report == "" && cfg.ReportDir == "" {
		cfg.Report = path + ".report.json"
	}
	for _, p := range []*string{&cfg.Transcript, &cfg.Report, &cfg.ReportDir, &cfg.State, &cfg.Workspace, &cfg.Control, &executable} {
		if *p == "" {
			continue
		}
		if *p, err = filepath.Abs(*p); err != nil {
			return "", fmt.Errorf("link %s: %w", name, err)
		}
	}
	if _, err := headerOf(cfg.Transcript); err != nil {
		return "", fmt.Errorf("link %s: %w", name, err)
	}
	if err := checkAs(cfg); err != nil {
		return "", fmt.Errorf("link %s: %w", name, err)
	}
	if info, err := os.Lstat(path); err == nil {
		if _, err := os.Stat(sideFile(path)); err != nil || info.Mode()&os.ModeSymlink == 0 && runtime.GOOS != "windows" {
			return "", fmt.Errorf("link %s: file exists and is no fake binary: remove it", path)
		}
		for _, old := range []string{path, cfg.State, cfg.State + ".refused", cfg.Report} {
			if err := os.Remove(old); err != nil && old != "" && !errors.Is(err, os.ErrNotExist) {
				return "", fmt.Errorf("link %s: %w", name, err)
			}
		}
	}
	side, err := json.MarshalIndent(cfg, "", "  ")
	if err != nil {
		return "", fmt.Errorf("link %s: %w", name, err) // unreachable unless Config changes
	}
	if err := os.WriteFile(sideFile(path), append(side, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("link %s: %w", name, err)
	}
	if err := makeLink(executable, path); err != nil {
		return "", fmt.Errorf("link %s: %w", name, err)
	}
	return path, nil
}

func sideFile(link string) string {
	return filepath.Join(filepath.Dir(link), "."+filepath.Base(link)+".replay-peer.json")
}

// executableName is the file that a program's name stands for.
func executableName(name string) string {
	if runtime.GOOS == "windows" && !strings.EqualFold(filepath.Ext(name), ".exe") {
		return name + ".exe"
	}
	return name
}

// makeLink makes path start executable. On Windows that is a copy, since links
// need a privilege there.
func makeLink(executable, path string) error {
	if runtime.GOOS != "windows" {
		return os.Symlink(executable, path)
	}
	program, err := os.ReadFile(executable)
	if err != nil {
		return err
	}
	return os.WriteFile(path, program, 0o755)
}

// stateFile is where a fake keeps its state unless told otherwise.
func stateFile(link string) string {
	return filepath.Join(filepath.Dir(link), "."+filepath.Base(link)+".state")
}

// Linked says whether the process was started through a fake binary that Link
// made, and with which settings. argv0 is os.Args[0]; a bare name is looked
// up on PATH, as the shell did.
func Linked(argv0 string) (cfg Config, ok bool, err error) {
	path := executableName(argv0)
	if filepath.Base(argv0) == argv0 {
		found, err := exec.LookPath(argv0)
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return cfg, false, nil
		}
		path = found
	}
	b, err := os.ReadFile(sideFile(path))
	if errors.Is(err, os.ErrNotExist) {
		return cfg, false, nil
	}
	if err != nil {
		return cfg, true, fmt.Errorf("read side file: %w", err)
	}
	if err := json.Unmarshal(b, &cfg); err != nil {
		return cfg, true, fmt.Errorf("read %s: %v", sideFile(path), err)
	}
	cfg.Process = true
	return cfg, true, nil
}

// FromEnv puts the settings of the REPLAY_PEER_ variables over cfg.
func FromEnv(cfg *Config, getenv func(string) string) error {
	for name, to := range map[string]*string{
		"TRANSCRIPT": &cfg.Transcript, "REPORT": &cfg.Report, "REPORT_DIR": &cfg.ReportDir, "STATE": &cfg.State,
		"WORKSPACE": &cfg.Workspace, "PACE": &cfg.Pace, "CONTROL": &cfg.Control, "AS": &cfg.As,
		"LISTEN": &cfg.Listen,
	} {
		if v := getenv("REPLAY_PEER_" + name); v != "" {
			*to = v
		}
	}
	if getenv("REPLAY_PEER_REPORT_DIR") != "" && getenv("REPLAY_PEER_REPORT") == "" {
		cfg.Report = "" // of a link's side file
	}
	if v := getenv("REPLAY_PEER_HOLD"); v != "" {
		cfg.Hold = strings.Split(v, ",")
	}
	if v := getenv("REPLAY_PEER_IDLE_TIMEOUT"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return fmt.Errorf("REPLAY_PEER_IDLE_TIMEOUT %q: want a duration such as 30s", v)
		}
		cfg.IdleTimeout = d
	}
	return nil
}

// versionText is what the recorded provider prints for --version.
func versionText(h *envelope.Header) string {
	version := gjson.GetBytes(h.Metadata, "providerVersion").Str
	if version == "" {
		version = h.Version
	}
	if f, err := flavors.ByProtocol(h.Protocol); err == nil && f.VersionLine != "" {
		return strings.ReplaceAll(f.VersionLine, "%s", version)
	}
	return version
}
