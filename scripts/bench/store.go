//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/orch/sqlite"
)

// Sizes of the store's part.
var (
	storeTurns  = flag.Int("store-turns", 300, "turns whose commits are measured; 0 skips the event store")
	storeEvents = flag.Int("store-events", 1_000_000, "events in the large event store")
	storeItems  = flag.Int("store-items", 10_000, "items of the large thread")
)

// commit is one commit that the orchestrator made.
type commit struct {
	request orch.CommitRequest
	batch   orch.Batch
}

// store measures the event store with what the orchestrator really commits.
func (b *bench) store() {
	if *storeTurns == 0 {
		return
	}
	dir := filepath.Join(b.dir, "store")
	if err := os.Mkdir(dir, 0o755); err != nil {
		fail(err)
	}
	syscall.Sync() // what came before must not be written while we wait for the disk
	commits := play(filepath.Join(dir, "play.db"), *storeTurns, 3)
	b.commits(dir, commits)
	b.growth(dir, commits)
	b.reading(dir)
}

// commits replays them into a new store, and the same bytes into a bare table
// with the same syncs, in short turns, so that both see the same machine.
func (b *bench) commits(dir string, all []commit) {
	store := open(filepath.Join(dir, "commits.db"))
	defer store.Close()
	bare := openBare(filepath.Join(dir, "bare.db"))
	defer bare.Close()
	var ours, theirs time.Duration
	const turns = 30
	for part := range turns {
		part := all[len(all)*part/turns : len(all)*(part+1)/turns]
		t := time.Now()
		for _, c := range part {
			put(store, c)
		}
		between := time.Now()
		for _, c := range part {
			insert(bare, c)
		}
		ours, theirs = ours+between.Sub(t), theirs+time.Since(between)
	}
	commands, events := 0, 0
	for _, c := range all {
		events += len(c.batch.Events)
		if c.request.CommandID != "" {
			commands++
		}
	}
	fmt.Printf("event store, synchronous=FULL: %s commits/s (%d commits, %d of commands, %.1f events each), bare inserts of the same bytes %s/s, ratio %.2f (target ≥ 0.5)\n",
		rate(len(all), ours), len(all), commands, float64(events)/float64(len(all)), rate(len(all), theirs), float64(theirs)/float64(ours))
}

// growth measures what an event costs in a small store and in a large one, in
// turns, so that both see the same machine.
func (b *bench) growth(dir string, all []commit) {
	small := &growing{store: open(filepath.Join(dir, "small.db")), all: all}
	large := &growing{store: open(filepath.Join(dir, "large.db")), all: all}
	defer small.store.Close()
	defer large.store.Close()
	const probe, probes = 1000, 9
	small.add(probe) // warm
	for large.events < *storeEvents {
		large.add(*storeEvents)
	}
	var one, other []time.Duration
	for range probes {
		one, other = append(one, small.add(probe)), append(other, large.add(probe))
	}
	fmt.Printf("cost per event: %.1f µs at %d events, %.1f µs at %d, ratio %.2f (target ≤ 1.3)\n",
		float64(median(one))/1e3, small.events, float64(median(other))/1e3, large.events, float64(median(other))/float64(median(one)))
}

// growing is a store that gets what was played, over and over.
type growing struct {
	store          *sqlite.Store
	all            []commit
	events, copies int
}

// add stores one copy, or the first events of it, with threads and commands of
// its own, and returns what an event of it took.
func (g *growing) add(most int) time.Duration {
	g.copies++
	stored, begin := 0, time.Now()
	for _, c := range g.all {
		c = renamed(c, fmt.Sprintf("%d-", g.copies))
		put(g.store, c)
		if stored += len(c.batch.Events); stored >= most {
			break
		}
	}
	g.events += stored
	return time.Since(begin) / time.Duration(stored)
}

// reading measures a snapshot of a large thread.
func (b *bench) reading(dir string) {
	path := filepath.Join(dir, "reading.db")
	play(path, 1, *storeItems)
	store := open(path)
	defer store.Close()
	o := start1(store, echoAgent{})
	var took []time.Duration
	items, reads := 0, 9
	busy := processor()
	for range reads {
		t := time.Now()
		p, _, err := o.Snapshot(context.Background(), "thread-0")
		if err != nil {
			fail(err)
		}
		took, items = append(took, time.Since(t)), len(p.TurnItems)
	}
	busy = processor() - busy
	end(o)
	fmt.Printf("reading a thread of %d items: %.1f ms (target ≤ 50), %.1f ms of processor\n", items, ms(median(took)), ms(busy)/float64(reads))
}

// processor is the processor time that this process has used.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		fail(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func open(path string) *sqlite.Store {
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		fail(err)
	}
	return s
}

// put commits a batch as it was committed.
func put(s *sqlite.Store, c commit) {
	_, err := s.Commit(context.Background(), c.request, func() (orch.Batch, error) { return c.batch, nil })
	if err != nil {
		fail(err)
	}
}

func openBare(path string) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err == nil {
		db.SetMaxOpenConns(1)
		_, err = db.Exec("CREATE TABLE bare (position INTEGER PRIMARY KEY, bytes TEXT NOT NULL)")
	}
	if err != nil {
		fail(err)
	}
	return db
}

// insert puts what a batch has, a row for each of its rows, in one transaction.
func insert(db *sql.DB, c commit) {
	tx, err := db.Begin()
	if err != nil {
		fail(err)
	}
	statement, err := tx.Prepare("INSERT INTO bare (bytes) VALUES (?)")
	if err != nil {
		fail(err)
	}
	row := func(columns ...string) {
		if _, err := statement.Exec(strings.Join(columns, " ")); err != nil {
			fail(err)
		}
	}
	if r := c.request; r.CommandID != "" {
		row(r.CommandID, r.CommandType, r.ThreadID)
	}
	for _, e := range c.batch.Events {
		row(e.ID, e.ThreadID, e.Type, e.RunID, e.NodeID, e.Driver, e.ProviderInstanceID, string(e.Payload))
	}
	for _, r := range c.batch.Rows {
		row(r.ThreadID, r.ID, r.RunID, r.Status, string(r.Payload))
	}
	for _, e := range c.batch.Effects {
		row(e.ID, e.CommandID, e.ThreadID, e.Type, string(e.Payload))
	}
	if err := errors.Join(statement.Close(), tx.Commit()); err != nil {
		fail(err)
	}
}

// renamed is a commit of another thread.
func renamed(c commit, prefix string) commit {
	if c.request.CommandID != "" {
		c.request.CommandID = prefix + c.request.CommandID
	}
	c.request.ThreadID = prefix + c.request.ThreadID
	b := orch.Batch{Threads: append([]orch.ThreadHead(nil), c.batch.Threads...)}
	for i := range b.Threads {
		b.Threads[i].ThreadID = prefix + b.Threads[i].ThreadID
	}
	for _, e := range c.batch.Events {
		e.ID, e.ThreadID = prefix+e.ID, prefix+e.ThreadID
		b.Events = append(b.Events, e)
	}
	for _, r := range c.batch.Rows {
		r.ThreadID = prefix + r.ThreadID
		b.Rows = append(b.Rows, r)
	}
	for _, e := range c.batch.Effects {
		e.ID, e.ThreadID = prefix+e.ID, prefix+e.ThreadID
		b.Effects = append(b.Effects, e)
	}
	c.batch = b
	return c
}

// play lets the orchestrator carry out turns of some items each, on threads of
// a hundred runs, and returns every commit it made.
func play(path string, turns, items int) []commit {
	store := &taps{Store: open(path)}
	o := start1(store, echoAgent{items})
	ctx := context.Background()
	dispatch := func(c orch.Command) orch.Receipt {
		r, err := o.Dispatch(ctx, c)
		if err != nil {
			fail(err)
		}
		return r
	}
	after := int64(0)
	for turn := range turns {
		thread := fmt.Sprintf("thread-%d", turn/100)
		if turn%100 == 0 {
			dispatch(orch.CreateThread{CommandID: "create-" + thread, ThreadID: thread, WorktreePath: "/work", ModelSelection: orch.ModelSelection{InstanceID: "echo", Model: "m"}})
		}
		after = dispatch(orch.DispatchMessage{CommandID: fmt.Sprintf("message-%d", turn), ThreadID: thread, Text: "Respond with exactly: a message that is about as long as usual"}).Sequence
		for e, err := range o.Events(ctx, after) {
			if err != nil {
				fail(err)
			}
			if e.Event.Type == orch.EventRunUpdated && strings.Contains(string(e.Event.Payload), `"status":"completed"`) {
				break
			}
		}
	}
	end(o)
	if err := store.Store.(*sqlite.Store).Close(); err != nil {
		fail(err)
	}
	return store.all
}

func start1(store orch.Store, a orch.Agent) *orch.Orchestrator {
	o, err := orch.Start(context.Background(), orch.Config{Store: store, Agents: map[string]orch.Agent{"echo": a}})
	if err != nil {
		fail(err)
	}
	return o
}

func end(o *orch.Orchestrator) {
	if err := o.Shutdown(context.Background()); err != nil {
		fail(err)
	}
}

// taps keeps what is committed.
type taps struct {
	orch.Store
	mu  sync.Mutex
	all []commit
}

func (s *taps) Commit(ctx context.Context, r orch.CommitRequest, decide func() (orch.Batch, error)) (orch.CommitResult, error) {
	return s.Store.Commit(ctx, r, func() (orch.Batch, error) {
		b, err := decide()
		if err == nil && len(b.Events) > 0 {
			s.mu.Lock()
			s.all = append(s.all, commit{r, b})
			s.mu.Unlock()
		}
		return b, err
	})
}
