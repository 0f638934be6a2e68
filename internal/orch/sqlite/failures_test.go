package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// fill commits commands until one fails, and returns how many were accepted.
func fill(t *testing.T, s *Store, from int) (accepted int, err error) {
	t.Helper()
	for n := from; n < from+100_000; n++ {
		b := batch("d", int64(n), 1, fmt.Sprint("e", n))
		b.Rows[0].Payload = []byte(`{"id":"r","text":"` + strings.Repeat("x", 1000) + `"}`)
		result, err := s.commit(t, fmt.Sprint("c", n), "d", b, nil)
		if err != nil {
			return n, err
		}
		if result.Receipt.Sequence != int64(n+1) {
			t.Fatalf("command %d was accepted at %d", n, result.Receipt.Sequence)
		}
	}
	t.Fatal("it does not fail")
	return 0, nil
}

// holds wants all of n accepted commands, once, and nothing else.
func holds(t *testing.T, s *Store, n int) {
	t.Helper()
	if got, want := s.counts(t), fmt.Sprintf("%d events, %d receipts, %d effects, 1 runs", n, n, n); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := must[orch.StoredThread](t)(s.Thread(t.Context(), "d", ignore)); got.Sequence != int64(n) || got.Version != int64(n) {
		t.Errorf("log at %d, thread at %d, want %d", got.Sequence, got.Version, n)
	}
}

// tells wants an error to name the file, the trouble and the way out.
func tells(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "rollback") {
		t.Errorf("error %q hides its cause", err)
	}
}

// pragma sets one on the connection that writes.
func (s *Store) pragma(t *testing.T, text string) {
	t.Helper()
	err := s.writer.use(t.Context(), func(c *connection) error {
		_, err := c.ExecContext(t.Context(), "PRAGMA "+text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A file that may not be written says so, and goes on when it may again.
func TestReadOnlyDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orch.db")
	s := must[*Store](t)(Open(t.Context(), path))
	defer s.Close()
	must[orch.CommitResult](t)(s.commit(t, "c0", "d", batch("d", 0, 1, "e0"), nil))
	s.pragma(t, "query_only = 1")
	_, err := s.commit(t, "c1", "d", batch("d", 1, 1, "e1"), nil)
	tells(t, err, path, "can't be written", "make the file and its folder writable")
	holds(t, s, 1)
	s.pragma(t, "query_only = 0")
	must[orch.CommitResult](t)(s.commit(t, "c1", "d", batch("d", 1, 1, "e1"), nil))
	holds(t, s, 2)
}

// Another process that holds the lock is waited for, then named as the cause.
func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orch.db")
	s := must[*Store](t)(Open(t.Context(), path))
	defer s.Close()
	other := must[*Store](t)(Open(t.Context(), path))
	defer other.Close()
	must[orch.CommitResult](t)(s.commit(t, "c0", "d", batch("d", 0, 1, "e0"), nil))
	hold := must[*connection](t)(other.writer.take(t.Context()))
	must[sql.Result](t)(hold.ExecContext(t.Context(), "BEGIN IMMEDIATE"))
	begin := time.Now()
	_, err := s.commit(t, "c1", "d", batch("d", 1, 1, "e1"), nil)
	tells(t, err, path, "another process holds its lock", "end that process")
	if waited := time.Since(begin); waited < 5*time.Second {
		t.Errorf("gave up after %s", waited)
	}
	holds(t, s, 1) // readers never wait
	must[sql.Result](t)(hold.ExecContext(t.Context(), "ROLLBACK"))
	other.writer.put(hold)
	must[orch.CommitResult](t)(s.commit(t, "c1", "d", batch("d", 1, 1, "e1"), nil))
	holds(t, s, 2)
}

// Damage is found where it is read, not passed on; what is sound is still
// there, and nothing is written over it by opening it.
func TestDamagedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orch.db")
	s := must[*Store](t)(Open(t.Context(), path))
	for n := range 200 {
		b := batch("d", int64(n), 1)
		b.Events[0].Payload = []byte(`"` + strings.Repeat("x", 1000) + `"`)
		must[orch.CommitResult](t)(s.commit(t, fmt.Sprint("c", n), "d", b, nil))
	}
	var root int // of the projection's table
	err := s.reader.db.QueryRow("SELECT rootpage FROM sqlite_master WHERE name = 'orchestration_v2_projection'").Scan(&root)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	const page = 4096
	damage := func(at int64, with string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			_, err = f.WriteAt([]byte(strings.Repeat(with, page/len(with))), at)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	damage(int64(root-1)*page, "garbage ")
	s = must[*Store](t)(Open(t.Context(), path))
	_, err = s.Thread(t.Context(), "d", ignore)
	tells(t, err, path, "damaged", "from a backup", ".recover")
	_, err = s.commit(t, "c200", "d", batch("d", 200, 1), nil)
	tells(t, err, path, "damaged")
	if events := must[[]orch.StoredEvent](t)(s.Events(t.Context(), 0, 1000)); len(events) != 200 {
		t.Errorf("%d sound events are left, want 200", len(events))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	damage(0, "garbage ")
	_, err = Open(t.Context(), path)
	tells(t, err, path, "no database of this program", "name another file")
}

// A folder that is not there, or that is a file's, is told before anything.
func TestNoPlaceForADatabase(t *testing.T) {
	_, err := Open(context.Background(), filepath.Join(t.TempDir(), "none", "orch.db"))
	tells(t, err, "none/orch.db", "no such file or directory")
}
