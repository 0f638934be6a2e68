package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)

func openTest(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "a b%20?.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// batch is n events of a thread whose stream stands at version, a row and
// effects.
func batch(thread string, version int64, n int, effects ...string) orch.Batch {
	b := orch.Batch{Threads: []orch.ThreadHead{{ThreadID: thread, Version: version}}}
	for i := range n {
		b.Events = append(b.Events, orch.Event{
			ID: fmt.Sprintf("%s-%d", thread, version+int64(i)+1), Type: orch.EventRunUpdated, ThreadID: thread,
			RunID: "r", NodeID: "n", Driver: "codex", ProviderInstanceID: "c", OccurredAt: start,
			Payload: []byte(`{"version":1,"entity":{"id":"r"}}`),
		})
	}
	b.Rows = []orch.Row{{Kind: orch.KindRun, ThreadID: thread, ID: "r", RunID: "r", Status: "running", Ordinal: 1, Payload: []byte(`{"id":"r"}`)}}
	for _, id := range effects {
		b.Effects = append(b.Effects, orch.EffectRequest{ID: id, ThreadID: thread, Type: orch.EffectCapture, Payload: []byte(`{}`)})
	}
	return b
}

func (s *Store) commit(t *testing.T, command, thread string, b orch.Batch, err error) (orch.CommitResult, error) {
	t.Helper()
	return s.Commit(t.Context(), orch.CommitRequest{CommandID: command, CommandType: "x", ThreadID: thread, Now: start},
		func() (orch.Batch, error) { return b, err })
}

func must[T any](t *testing.T) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (s *Store) counts(t *testing.T) string {
	t.Helper()
	var events, receipts, effects, runs int
	err := s.reader.db.QueryRow(`SELECT (SELECT count(*) FROM orchestration_events), (SELECT count(*) FROM orchestration_command_receipts),
		(SELECT count(*) FROM orchestration_v2_effect_outbox), (SELECT count(*) FROM orchestration_v2_projection_runs)`).
		Scan(&events, &receipts, &effects, &runs)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d events, %d receipts, %d effects, %d runs", events, receipts, effects, runs)
}

func TestCommitOnce(t *testing.T) {
	s := openTest(t)
	first := must[orch.CommitResult](t)(s.commit(t, "c1", "d", batch("d", 0, 2, "e1"), nil))
	if first.Receipt.Sequence != 2 || first.Receipt.Status != "accepted" || first.Receipt.Duplicate {
		t.Errorf("receipt %+v", first.Receipt)
	}
	again, err := s.Commit(t.Context(), orch.CommitRequest{CommandID: "c1", Now: start.Add(time.Hour)}, func() (orch.Batch, error) {
		t.Error("a repeated command was planned")
		return orch.Batch{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := first
	want.Receipt.Duplicate = true
	if diff := cmp.Diff(want, again); diff != "" {
		t.Error(diff)
	}
	if got := s.counts(t); got != "2 events, 1 receipts, 1 effects, 1 runs" {
		t.Error(got)
	}
	stored := must[[]orch.StoredEvent](t)(s.Events(t.Context(), 0, 10))
	if diff := cmp.Diff(first.Events, stored); diff != "" {
		t.Error(diff)
	}
}

func TestRejectionIsAReceipt(t *testing.T) {
	s := openTest(t)
	refused := &orch.RejectedError{Code: "no", Message: "not today"}
	result, err := s.commit(t, "c1", "d", batch("d", 0, 1, "e1"), refused)
	if !errors.Is(err, refused) || result.Receipt.Status != "rejected" || result.Receipt.Code != "no" {
		t.Errorf("%+v, %v", result.Receipt, err)
	}
	if got := s.counts(t); got != "0 events, 1 receipts, 0 effects, 0 runs" {
		t.Error(got)
	}
	again := must[orch.CommitResult](t)(s.commit(t, "c1", "d", batch("d", 0, 1), nil))
	if r := again.Receipt; !r.Duplicate || r.Status != "rejected" || r.Error != "not today" {
		t.Errorf("again: %+v", r)
	}
}

// Invariant 7: one transaction. Whatever fails, nothing of it is stored, and
// the next commit's sequence has no gap.
func TestCommitIsAllOrNothing(t *testing.T) {
	s := openTest(t)
	must[orch.CommitResult](t)(s.commit(t, "c1", "d", batch("d", 0, 1), nil))
	before := s.counts(t)

	failed := errors.New("planner broke")
	if _, err := s.commit(t, "c2", "d", orch.Batch{}, failed); !errors.Is(err, failed) {
		t.Errorf("planner: %v", err)
	}
	if _, err := s.commit(t, "c2", "d", batch("d", 0, 1, "e"), nil); !errors.Is(err, orch.ErrConflict) {
		t.Errorf("old version: %v", err)
	}
	twice := batch("d", 1, 2, "e")
	twice.Events[1].ID = twice.Events[0].ID
	if _, err := s.commit(t, "c2", "d", twice, nil); err == nil {
		t.Error("an event id was stored twice")
	}
	if got := s.counts(t); got != before {
		t.Errorf("got %s, want %s", got, before)
	}
	result := must[orch.CommitResult](t)(s.commit(t, "c2", "d", batch("d", 1, 1), nil))
	if result.Receipt.Sequence != 2 {
		t.Errorf("sequence %d after failed commits, want 2", result.Receipt.Sequence)
	}
}

// Writing an event upserts the rows it names; others stay as they are, and an
// entity keeps its place.
func TestThreadRows(t *testing.T) {
	s := openTest(t)
	b := batch("d", 0, 1)
	b.Rows = append(b.Rows, orch.Row{Kind: orch.KindRun, ThreadID: "d", ID: "a", Payload: []byte(`{"id":"a"}`)})
	must[orch.CommitResult](t)(s.commit(t, "", "d", b, nil))
	b = batch("d", 1, 1)
	b.Rows[0].Payload = []byte(`{"id":"r","ordinal":7}`)
	must[orch.CommitResult](t)(s.commit(t, "", "d", b, nil))
	must[orch.CommitResult](t)(s.commit(t, "", "other", batch("other", 0, 1), nil))

	var runs []string
	got := must[orch.StoredThread](t)(s.Thread(t.Context(), "d", func(kind orch.Kind, rows []string) {
		if kind != orch.KindRun {
			t.Errorf("rows of %s", kind)
		}
		runs = append(runs, rows...)
	}))
	if want := (orch.StoredThread{Sequence: 3, Version: 2, UpdatedAt: start}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if diff := cmp.Diff([]string{`{"id":"r","ordinal":7}`, `{"id":"a"}`}, runs); diff != "" {
		t.Error(diff)
	}
	if none := must[orch.StoredThread](t)(s.Thread(t.Context(), "nope", ignore)); none.Version != 0 || none.Sequence != 3 {
		t.Errorf("unknown thread: %+v", none)
	}
}

// However many rows a thread has, every one is read, in the order of its kind.
func TestManyRows(t *testing.T) {
	s := openTest(t)
	kinds := []orch.Kind{orch.KindNode, orch.KindTurnItem, orch.KindNode, "later-kind"}
	for i, n := range []int{block - 1, block, block + 1, 4*most + 2*block} {
		thread := fmt.Sprint("d", i)
		b := batch(thread, 0, n)
		b.Rows = nil
		want, got := map[orch.Kind][]string{}, map[orch.Kind][]string{}
		for row := range n {
			kind, payload := kinds[row%len(kinds)], fmt.Sprintf(`{"id":"%d %s"}`, row, strings.Repeat("é 7 ", row%5))
			b.Rows = append(b.Rows, orch.Row{Kind: kind, ThreadID: thread, ID: fmt.Sprint(n - row), Payload: []byte(payload)})
			want[kind] = append(want[kind], payload)
		}
		must[orch.CommitResult](t)(s.commit(t, "", thread, b, nil))
		must[orch.StoredThread](t)(s.Thread(t.Context(), thread, func(kind orch.Kind, rows []string) { got[kind] = append(got[kind], rows...) }))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d rows: %s", n, diff)
		}
	}
}

// Two processes on one file: what one has read of a stream is not what the
// other finds there, and nothing is written over.
func TestConflict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orch.db")
	one, two := must[*Store](t)(Open(t.Context(), path)), must[*Store](t)(Open(t.Context(), path))
	defer one.Close()
	defer two.Close()
	must[orch.CommitResult](t)(one.commit(t, "", "d", batch("d", 0, 1), nil))
	must[orch.CommitResult](t)(two.commit(t, "", "d", batch("d", 1, 1), nil))
	must[orch.CommitResult](t)(two.commit(t, "", "d", batch("d", 2, 1), nil))
	stale := batch("d", 1, together+2)
	for i := range stale.Events {
		stale.Events[i].ID = fmt.Sprint("another-", i)
	}
	if _, err := one.commit(t, "", "d", stale, nil); !errors.Is(err, orch.ErrConflict) {
		t.Errorf("a version was written twice: %v", err)
	}
	if _, err := one.commit(t, "", "d", batch("d", 7, 1), nil); !errors.Is(err, orch.ErrConflict) {
		t.Errorf("versions were left out: %v", err)
	}
	must[orch.CommitResult](t)(one.commit(t, "", "d", batch("d", 3, 1), nil))
	holds := must[orch.StoredThread](t)(two.Thread(t.Context(), "d", ignore))
	if holds.Version != 4 || holds.Sequence != 4 {
		t.Errorf("got %+v, want version and sequence 4", holds)
	}
}

// Who stops waiting leaves no transaction open behind.
func TestCancelled(t *testing.T) {
	s := openTest(t)
	for n := range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_, claimed := s.ClaimEffect(ctx, claim("0", time.Duration(n)*time.Hour))
		_, read := s.Thread(ctx, "d", ignore)
		for _, err := range []error{claimed, read} {
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		must[orch.CommitResult](t)(s.commit(t, "", "d", batch("d", int64(n), 1, fmt.Sprint("e", n)), nil))
	}
}

// Whatever is asked while the orchestrator runs is found along an index: no
// statement reads a table that grows from end to end, or builds an index.
func TestPlans(t *testing.T) {
	s := openTest(t)
	ctx := t.Context()
	must[orch.CommitResult](t)(s.commit(t, "c1", "d", batch("d", 0, 1, "e"), nil))
	must[orch.CommitResult](t)(s.commit(t, "c1", "d", batch("d", 0, 1, "e"), nil))
	must[orch.StoredThread](t)(s.Thread(ctx, "d", ignore))
	must[orch.ShellRows](t)(s.Shell(ctx))
	must[[]orch.StoredEvent](t)(s.Events(ctx, 0, 10))
	must[[]string](t)(s.Unsettled(ctx))
	e := must[*orch.Effect](t)(s.ClaimEffect(ctx, claim("0", 0)))
	must[bool](t)(s.SettleEffect(ctx, orch.Settlement{EffectID: e.ID, Lease: e.Lease, Status: "succeeded", Now: start}))
	must[[]orch.DueEffect](t)(s.DueEffects(ctx, "d", start))
	must[[]string](t)(s.UnsettledEffects(ctx, "d", orch.EffectCapture))
	checked := 0
	for _, c := range slices.Concat(s.writer.idle, s.reader.idle) {
		for query := range c.statements {
			checked++
			plan, err := s.reader.db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, make([]any, 20)...)
			if err != nil {
				t.Fatalf("%v: %s", err, query)
			}
			defer plan.Close()
			for plan.Next() {
				var id, parent, unused int
				var step string
				if err := plan.Scan(&id, &parent, &unused, &step); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "CONSTANT ROW") && !strings.Contains(step, "(subquery") || strings.Contains(step, "AUTOMATIC") {
					t.Errorf("%s: %s", step, query)
				}
			}
			if err := plan.Err(); err != nil {
				t.Error(err)
			}
		}
	}
	if checked < 12 {
		t.Errorf("%d statements are known", checked)
	}
}

func ignore(orch.Kind, []string) {}

func claim(token string, after time.Duration) orch.Claim {
	return orch.Claim{Owner: "p1", Token: token, Now: start.Add(after), Until: start.Add(after + 2*time.Minute)}
}

func TestEffects(t *testing.T) {
	s := openTest(t)
	ctx := t.Context()
	get := func(c orch.Claim) *orch.Effect { t.Helper(); return must[*orch.Effect](t)(s.ClaimEffect(ctx, c)) }
	due := func(after time.Duration) bool {
		t.Helper()
		return len(must[[]orch.DueEffect](t)(s.DueEffects(ctx, "d", start.Add(after)))) > 0
	}
	settle := func(e *orch.Effect, status string, after, available time.Duration) bool {
		t.Helper()
		return must[bool](t)(s.SettleEffect(ctx, orch.Settlement{
			EffectID: e.ID, Lease: e.Lease, Status: status, Now: start.Add(after), AvailableAt: start.Add(available),
		}))
	}
	// z before a: commit order, not id order.
	must[orch.CommitResult](t)(s.commit(t, "", "d", batch("d", 0, 1, "z", "a"), nil))
	must[orch.CommitResult](t)(s.commit(t, "", "other", batch("other", 0, 1, "o"), nil))

	z := get(claim("0", 0))
	o := get(claim("1", 0))
	if z.ID != "z" || o.ID != "o" || z.Attempt != 1 {
		t.Fatalf("claimed %+v and %+v", z, o)
	}
	if e := get(claim("2", 0)); e != nil {
		t.Fatalf("claimed %s while one of its thread runs", e.ID)
	}
	// The process's own lease never runs out for itself, another's does.
	if e := get(claim("2", time.Hour)); e != nil {
		t.Errorf("claimed %s from a worker of the same process", e.ID)
	}
	other := claim("0", time.Hour)
	other.Owner = "p2"
	taken := get(other)
	if taken == nil || taken.ID != "z" || taken.Attempt != 2 {
		t.Fatalf("another process claimed %+v after the lease", taken)
	}
	if settle(z, "succeeded", time.Hour, 0) {
		t.Error("an expired holder settled")
	}
	if !settle(taken, "pending", time.Hour, time.Hour+time.Second) {
		t.Error("the holder could not re-schedule")
	}
	// a is due, z is not: it waits for its time.
	a := get(claim("0", time.Hour))
	if a == nil || a.ID != "a" {
		t.Fatalf("claimed %+v", a)
	}
	if !due(time.Hour) || !settle(a, "failed", time.Hour, 0) || due(time.Hour) || !due(time.Hour+time.Second) {
		t.Error("due is wrong")
	}
	if again := get(claim("0", time.Hour+time.Second)); again == nil || again.ID != "z" || again.Attempt != 3 {
		t.Errorf("claimed %+v", again)
	}
}

func TestRecoverEffects(t *testing.T) {
	s := openTest(t)
	ctx := t.Context()
	b := batch("d", 0, 1, "safe", "bound")
	b.Effects[1].Type = orch.EffectStartTurn
	must[orch.CommitResult](t)(s.commit(t, "", "d", b, nil))
	must[*orch.Effect](t)(s.ClaimEffect(ctx, claim("0", 0)))
	if err := s.RecoverEffects(ctx, []string{orch.EffectCapture}, start); err != nil {
		t.Fatal(err)
	}
	if ids := must[[]string](t)(s.UnsettledEffects(ctx, "d", orch.EffectStartTurn)); len(ids) != 0 {
		t.Errorf("bound effects left: %v", ids)
	}
	if e := must[*orch.Effect](t)(s.ClaimEffect(ctx, claim("0", 0))); e == nil || e.ID != "safe" || e.Attempt != 2 {
		t.Errorf("claimed %+v", e)
	}
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orch.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	must[orch.CommitResult](t)(s.commit(t, "c1", "d", batch("d", 0, 3), nil))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if s, err = Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if n := len(must[[]orch.StoredEvent](t)(s.Events(t.Context(), 1, 10))); n != 2 {
		t.Errorf("%d events after reopening", n)
	}
	var mode, synchronous string
	err = s.writer.use(t.Context(), func(c *connection) error {
		return c.QueryRowContext(t.Context(), "SELECT journal_mode, synchronous FROM pragma_journal_mode, pragma_synchronous").Scan(&mode, &synchronous)
	})
	if err != nil || mode != "wal" || synchronous != "2" {
		t.Errorf("journal %s, synchronous %s, %v", mode, synchronous, err)
	}
	s.pragma(t, "user_version = 99")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), path); err == nil {
		t.Error("a database of a later version was opened")
	}
}
