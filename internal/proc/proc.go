// Package proc starts child processes in their own process group and ends
// them without leaving orphans.
package proc
