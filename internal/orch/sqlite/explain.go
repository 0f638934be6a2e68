package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// advice says what a failure of the database file means, and what to do. In
// none of these is anything lost that was accepted, and what failed was not
// stored.
var advice = map[int]string{
	codes.SQLITE_FULL:     "its disk is full: free some space, then send again what failed",
	codes.SQLITE_IOERR:    "its disk fails, or a limit on the size of files is reached: see to the disk, then send again what failed",
	codes.SQLITE_READONLY: "it can't be written: make the file and its folder writable for this user",
	codes.SQLITE_CANTOPEN: "it can't be opened: its folder must exist and be writable for this user",
	codes.SQLITE_BUSY:     "another process holds its lock: end that process, one at a time may write",
	codes.SQLITE_LOCKED:   "another process holds its lock: end that process, one at a time may write",
	codes.SQLITE_CORRUPT:  "it is damaged: stop, keep a copy, and go on from a backup or from what `sqlite3 FILE .recover` reads",
	codes.SQLITE_NOTADB:   "it is no database of this program, or damaged at its start: name another file, or go on from a backup",
}

// explain adds to an error of the file what it is about and what to do.
func explain(path string, err error) error {
	var failure *driver.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		if do, ok := advice[failure.Code()&0xff]; ok {
			return fmt.Errorf("store %s: %s: %w", path, do, err)
		}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("store %s: %s: %w", path, advice[codes.SQLITE_READONLY], err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("store %s: %s: %w", path, advice[codes.SQLITE_FULL], err)
	}
	return err
}
