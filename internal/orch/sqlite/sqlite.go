// Package sqlite keeps the orchestrator's events, receipts, projections and
// effects in one SQLite file.
//
// One connection writes, a few read. The file is in WAL mode, so readers see
// the last commit and never wait for the writer; every commit is synced to
// disk before it counts. One process may write to a file at a time; a second
// one is not locked out, but its commits fail with orch.ErrConflict.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Store is an open database. It implements orch.Store.
type Store struct {
	path   string
	writer *pool // one connection
	reader *pool

	streams streams
}

// Open opens or creates the database at path. A new file is readable by its
// owner only, since conversations are private.
func Open(ctx context.Context, path string) (*Store, error) {
	s, err := open(ctx, path)
	if err != nil {
		if told := explain(path, err); told != err {
			return nil, fmt.Errorf("open %w", told)
		}
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	return s, nil
}

func open(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	s := &Store{path: path, streams: streams{known: map[string]stream{}}}
	if s.writer, err = connect(path, 1, "BEGIN IMMEDIATE", url.Values{}); err != nil {
		return nil, err
	}
	if s.reader, err = connect(path, 4, "BEGIN", url.Values{"mode": {"ro"}}); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := migrate(ctx, s.writer); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func connect(path string, connections int, begin string, query url.Values) (*pool, error) {
	query["_pragma"] = []string{"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "wal_autocheckpoint(4000)", "cache_size(-8192)"}
	if query.Get("mode") == "ro" {
		query["_pragma"] = []string{"busy_timeout(10000)"}
	}
	address := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, err
	}
	return newPool(db, begin, connections), nil
}

// Close closes the database.
func (s *Store) Close() error {
	var errs []error
	for _, p := range []*pool{s.reader, s.writer} {
		if p != nil {
			errs = append(errs, p.close())
		}
	}
	return errors.Join(errs...)
}

// write runs f in a write transaction.
func (s *Store) write(ctx context.Context, f func(*connection) error) error {
	return explain(s.path, s.writer.transact(ctx, f))
}

// read runs f in a transaction that sees one state of the database.
func (s *Store) read(ctx context.Context, f func(*connection) error) error {
	return explain(s.path, s.reader.transact(ctx, f))
}

// look runs f, which asks one thing, on a connection that reads.
func (s *Store) look(ctx context.Context, f func(*connection) error) error {
	return explain(s.path, s.reader.use(ctx, f))
}

// rows scans every row of a query with scan.
func rows(ctx context.Context, tx *connection, scan func(*sql.Rows) error, query string, args ...any) error {
	found, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := scan(found); err != nil {
			return err
		}
	}
	return found.Err()
}

// Times of events are RFC 3339 text, as in the payloads; times of effects are
// milliseconds, to be compared.

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func unstamp(text string) (time.Time, error) { return time.Parse(time.RFC3339Nano, text) }
