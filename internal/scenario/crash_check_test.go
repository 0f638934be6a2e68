package scenario

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/replay"
)

// rawStore reads the tables of a database past the store.
type rawStore struct {
	t  *testing.T
	db *sql.DB
}

func openRaw(t *testing.T, path string) *rawStore {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := &rawStore{t, db}
	var sound string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
		t.Fatalf("integrity check: %s, %v", sound, err)
	}
	return s
}

// each calls scan for every row.
func (s *rawStore) each(query string, scan func(*sql.Rows) error) {
	s.t.Helper()
	rows, err := s.db.Query(query)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
}

type rawEffect struct {
	kind, status string
	attempts     int
}

func (s *rawStore) effects() map[string]rawEffect {
	s.t.Helper()
	all := map[string]rawEffect{}
	s.each("SELECT effect_id, effect_type, status, attempt_count FROM orchestration_v2_effect_outbox", func(r *sql.Rows) error {
		var id string
		var e rawEffect
		err := r.Scan(&id, &e.kind, &e.status, &e.attempts)
		all[id] = e
		return err
	})
	return all
}

func (s *rawStore) receipts() map[string]int64 {
	s.t.Helper()
	all := map[string]int64{}
	s.each("SELECT command_id, result_sequence FROM orchestration_command_receipts WHERE status = 'accepted'", func(r *sql.Rows) error {
		var id string
		var sequence int64
		err := r.Scan(&id, &sequence)
		all[id] = sequence
		return err
	})
	return all
}

// checkAccepted wants every command that was accepted to have its receipt,
// and every receipt its events, without a gap in the log.
func (c *crash) checkAccepted(ctx context.Context) {
	c.t.Helper()
	events, threads := c.events(ctx)
	if err := checkSequences(events); err != nil {
		c.t.Error(err)
	}
	last := map[string]int64{}
	for _, e := range events {
		last[e.CommandID] = e.Sequence
	}
	receipts := c.raw.receipts()
	for id, sequence := range c.before.accepted {
		if receipts[id] != sequence {
			c.t.Errorf("command %s was accepted at %d; its receipt says %d", id, sequence, receipts[id])
		}
	}
	for id, sequence := range receipts {
		if last[id] != sequence {
			c.t.Errorf("command %s: its receipt ends at %d, its events at %d", id, sequence, last[id])
		}
	}
	for _, thread := range threads {
		p, _, err := c.orc.Snapshot(ctx, thread)
		if err != nil {
			c.t.Fatal(err)
		}
		if diff := cmp.Diff(asJSON(c.t, orch.Fold(events, thread)), asJSON(c.t, p)); diff != "" {
			c.t.Errorf("%s is not the fold of its events:\n%s", thread, diff)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkEffects wants every effect to be settled: as it was, where it was; not
// done, where it was bound to the process; done, where it can be done again.
func (c *crash) checkEffects() {
	c.t.Helper()
	now := c.raw.effects()
	for id, was := range c.outbox {
		is, settled := now[id], was.status != "pending" && was.status != "running"
		switch {
		case settled && is != was:
			c.t.Errorf("effect %s was settled: %+v became %+v", id, was, is)
		case !settled && was.kind != orch.EffectCapture && (is.status != "cancelled" || is.attempts != was.attempts):
			c.t.Errorf("effect %s of a lost process: %+v became %+v", id, was, is)
		case !settled && was.kind == orch.EffectCapture && !slices.Contains([]string{"succeeded", "cancelled"}, is.status):
			c.t.Errorf("effect %s: %+v became %+v", id, was, is)
		}
	}
	for id, is := range now {
		if is.status == "pending" || is.status == "running" || is.kind != orch.EffectCapture && is.attempts > 1 {
			c.t.Errorf("effect %s is %+v", id, is)
		}
	}
}

// checkLegal wants nothing to be open that only the lost process could end.
func (c *crash) checkLegal(ctx context.Context) {
	c.t.Helper()
	_, threads := c.events(ctx)
	for _, thread := range threads {
		p, _, err := c.orc.Snapshot(ctx, thread)
		if err != nil {
			c.t.Fatal(err)
		}
		open := func(kind, id, status string, ended ...string) {
			if !slices.Contains(ended, status) {
				c.t.Errorf("%s %s is %s", kind, id, status)
			}
		}
		over := []string{"completed", "interrupted", "failed", "cancelled", "rolled_back", "superseded"}
		for _, r := range p.Runs {
			open("run", r.ID, r.Status, over...)
		}
		for _, a := range p.Attempts {
			open("attempt", a.ID, a.Status, over...)
		}
		for _, n := range p.Nodes {
			open("node", n.ID, n.Status, over...)
		}
		for _, s := range p.Subagents {
			open("subagent", s.ID, s.Status, over...)
		}
		for _, u := range p.ProviderTurns {
			open("provider turn", u.ID, u.Status, over...)
		}
		for _, s := range p.ProviderSessions {
			open("session", s.ID, s.Status, "stopped", "error")
		}
		for _, r := range p.RuntimeRequests {
			open("request", r.ID, r.Status, "resolved", "expired", "cancelled")
		}
		for _, u := range p.ProviderThreads {
			open("provider thread", u.ID, u.Status, "not_loaded", "closed")
		}
	}
}

// checkOnce wants no message and no answer to be given to a provider twice.
func (c *crash) checkOnce() {
	c.t.Helper()
	given := slices.Concat(c.before.given, readSeam(c.t, c.seam.log.Name()).given)
	slices.Sort(given)
	for i := range given {
		if i > 0 && given[i] == given[i-1] && strings.HasPrefix(given[i], "turn ") {
			c.t.Errorf("%s was given twice", given[i])
		}
	}
}

func (c *crash) checkReport() {
	c.t.Helper()
	report, err := replay.ReadReport(c.report)
	if err != nil {
		c.t.Fatal(err)
	}
	if report.Verdict != replay.Passed {
		c.t.Errorf("the peer of the next message: %s\n%s", report.Verdict, report.Text())
	}
}
