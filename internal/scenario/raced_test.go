//go:build race

package scenario

// raced says that the race detector slows everything, the peers too.
const raced = true
