//go:build !linux

package proc

import (
	"context"
	"time"
)

// AdoptOrphans does nothing: here a process that left its group is not found
// again.
func AdoptOrphans() error { return nil }

// EndOrphans does nothing.
func EndOrphans(context.Context, time.Duration) []string { return nil }
