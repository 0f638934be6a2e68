//go:build !unix

package main

import "os"

// brokenPipe is a signal that does not exist here.
var brokenPipe []os.Signal
