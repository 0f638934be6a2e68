//go:build !linux

package record

func background() {}
