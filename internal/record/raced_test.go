//go:build race

package record

// raced says that the race detector slows everything: what is large is made
// smaller, since as much is made and carried at once.
const raced = true
