package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Launch is what became of one recorded process of a provider: a line that is
// appended to a file when it begins, and another one when it is over.
//
//	{"version":1,"pid":4711}
//	{"version":1,"pid":4711,"kept":"/out/simple.ndjson"}
//	{"version":1,"pid":4712,"lost":"recording does not hold, kept as …"}
type Launch struct {
	Version int    `json:"version"` // 1
	PID     int    `json:"pid"`     // of the recorder
	Kept    string `json:"kept,omitempty"`
	Lost    string `json:"lost,omitempty"` // why
}

// Append adds the line to a file.
func (l Launch) Append(file string) error {
	l.Version, l.PID = 1, os.Getpid()
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// ReadLaunches returns the launches that a file tells of, in the order in which
// they began. One that was killed is neither kept nor lost: the next one may
// have adopted it. A file that is not there tells of none.
func ReadLaunches(file string) ([]Launch, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Launch
	for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		var l Launch
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		if l.Kept == "" && l.Lost == "" {
			list = append(list, l)
			continue
		}
		for at := len(list) - 1; at >= 0; at-- {
			if list[at].PID == l.PID {
				list[at] = l
				break
			}
		}
	}
	return list, nil
}
