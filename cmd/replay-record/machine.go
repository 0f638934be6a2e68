package main

import (
	"os"
	"os/user"
	"path/filepath"
)

// machineUsers are the names of the user that runs this.
func machineUsers() []string {
	list := []string{os.Getenv("USER"), os.Getenv("LOGNAME"), os.Getenv("USERNAME"), os.Getenv("SUDO_USER")}
	if home := os.Getenv("HOME"); home != "" {
		list = append(list, filepath.Base(home))
	}
	if u, err := user.Current(); err == nil {
		list = append(list, u.Username, u.Name)
	}
	return list
}

// sandboxHost is what scripts/loopback.sh calls the host: a name that tells
// nothing, and that a transcript has as a key of its metadata.
const sandboxHost = "recorder"

// machineHosts are the names of this machine, none in a sandbox.
func machineHosts() []string {
	host, err := os.Hostname()
	if err != nil {
		return nil
	}
	if host == sandboxHost {
		return nil
	}
	return []string{host, os.Getenv("HOSTNAME")}
}
