package orch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Checkpoints is the port to workspace snapshots. Safe for concurrent use.
type Checkpoints interface {
	// Capture snapshots req.Cwd into the hidden ref and returns what changed
	// since req.ParentRef. A cwd outside of git is Status "missing", no error.
	// Capturing the same ref again replaces it.
	Capture(ctx context.Context, req CaptureRequest) (Capture, error)
	// Restore makes the workspace what it was at ref.
	Restore(ctx context.Context, cwd, ref string) error
	// Delete removes refs; absent ones are no error.
	Delete(ctx context.Context, cwd string, refs []string) error
}

// CaptureRequest asks for one snapshot.
type CaptureRequest struct {
	Cwd       string
	Ref       string // full ref name, see CheckpointRef
	ParentRef string // "" for none
}

// Capture is one snapshot taken.
type Capture struct {
	Status string // ready or missing
	Commit string // "" unless ready
	Files  []CheckpointFile
}

// CheckpointFile is one file that differs from the parent checkpoint.
type CheckpointFile struct {
	Path      string `json:"path"`
	Kind      string `json:"kind"` // added, modified, deleted, renamed
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
}

// CheckpointRef names the hidden git ref of a checkpoint:
// "refs/replaypeer/checkpoints/1f0c…/1". Scope ids hold characters that git
// does not allow in refs, so the scope stands as a hash.
func CheckpointRef(scopeID string, ordinal int) string {
	sum := sha256.Sum256([]byte(scopeID))
	return fmt.Sprintf("refs/replaypeer/checkpoints/%s/%d", hex.EncodeToString(sum[:16]), ordinal)
}
