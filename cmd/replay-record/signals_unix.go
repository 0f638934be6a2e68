//go:build unix

package main

import (
	"os"
	"syscall"
)

// brokenPipe would end the program when a client closes our output.
var brokenPipe = []os.Signal{syscall.SIGPIPE}
