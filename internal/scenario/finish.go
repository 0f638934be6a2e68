package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/replay"
)

// finish tears everything down, keeps what is wanted and returns the first
// thing that went wrong, from the wire inwards.
func (r *runner) finish(ctx context.Context, res *Result, stepErr error) error {
	if r.orc == nil { // a restart did not succeed
		wireErr := r.readReports(res)
		return errors.Join(stepErr, wireErr)
	}
	playing := r.playing()
	var quietErr error
	if stepErr == nil {
		deadline, cancel := r.deadline(ctx, 0)
		quietErr = r.watched.quiet(deadline, r.thread)
		cancel()
	}
	events, downErr := r.down(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), setupTimeout)
	defer cancel()
	p, docs, keptErr := r.finals(ctx, events)
	doc := docs[r.thread]
	keptErr = errors.Join(keptErr, r.store.Close())
	res.Events = len(events)
	wireErr := r.readReports(res)
	keepErr := in(Setup, r.keep(events, doc, res.Report))

	switch {
	case errors.Is(wireErr, errNoReport) && stepErr != nil && !errors.Is(stepErr, errAwaited):
		return stepErr // it did not come to the provider
	case errors.Is(wireErr, errNoReport):
		r.started = false
	}
	switch {
	case wireErr != nil && stepErr != nil && playing && res.cut():
		return withLayer(stepErr, fmt.Errorf("%w\nso the provider was ended early: %w", stepErr, wireErr))
	case wireErr != nil && stepErr != nil:
		return withLayer(wireErr, fmt.Errorf("%w\nwhile at %w", wireErr, stepErr))
	case wireErr != nil:
		return wireErr
	case stepErr != nil:
		return stepErr
	}
	if err := errors.Join(keptErr, checkSequences(events), r.checkDuplicates(events), r.checkStreams(events, doc)); err != nil {
		return in(Persistence, err)
	}
	r.final = docs
	shared := checkShared(events, p, r.selected)
	if err := errors.Join(r.hold(ctx, r.sc.Assertions, doc), shared); err != nil {
		return inf(Projection, "%w\n%s", err, lastEvents(events, 6))
	}
	return errors.Join(downErr, in(Cleanup, errors.Join(quietErr, r.checkCleanup())), keepErr)
}

func withLayer(from, err error) error {
	var f *failure
	if errors.As(from, &f) {
		return in(f.layer, err)
	}
	return err
}

// finals returns the stored projection of the scenario's thread, and the JSON
// of every thread's, which must be the fold of the stored events.
func (r *runner) finals(ctx context.Context, events []orch.StoredEvent) (*orch.Projection, map[string][]byte, error) {
	docs := map[string][]byte{}
	var main *orch.Projection
	for _, e := range events {
		thread := e.Event.ThreadID
		if docs[thread] != nil {
			continue
		}
		p, _, err := r.orc.Snapshot(ctx, thread) // reads the store, which is still open
		if err != nil {
			return main, docs, err
		}
		doc, err := json.Marshal(p)
		if err != nil {
			return main, docs, err
		}
		folded, err := json.Marshal(orch.Fold(events, thread))
		if err != nil {
			return main, docs, err
		}
		docs[thread] = doc
		if thread == r.thread {
			main = p
		}
		if diff := difference(folded, parsed(doc)); diff != "" {
			return main, docs, fmt.Errorf("stored projection of %s is not the fold of the stored events\n  diff (-folded +stored)\n%s", thread, diff)
		}
	}
	shell, err := r.orc.Shell(ctx)
	if err != nil {
		return main, docs, err
	}
	docs["shell"], err = json.Marshal(shell)
	return main, docs, err
}

// cut tells whether the peer complains about nothing but its early end.
func (res *Result) cut() bool {
	switch replay.Verdict(gjson.GetBytes(res.Report, "verdict").Str) {
	case replay.Leftover, replay.Aborted, replay.Running:
		return true
	}
	return false
}

var errNoReport = errors.New("the peer did not start: it wrote no report")

// readReports takes over what the peers report. The error is their failure.
func (r *runner) readReports(res *Result) error {
	if r.cfg.Live != nil {
		return nil
	}
	var problems []error
	for i, in := range r.instances {
		report, raw, err := r.readReport(in)
		if report != nil {
			res.Frames.Outbound += report.Outbound.Matched
			res.Frames.Inbound += report.Inbound.Emitted
			r.reports[in.name] = raw
		}
		if i == 0 {
			res.Report = raw
		} else if err != nil {
			err = withLayer(err, fmt.Errorf("provider instance %s: %w", in.name, err))
		}
		problems = append(problems, err)
	}
	err := errors.Join(problems...)
	var f *failure
	if errors.As(err, &f) {
		return in(f.layer, err)
	}
	return err
}

// readReport reads the report of one peer.
func (r *runner) readReport(of *instance) (*replay.Report, json.RawMessage, error) {
	data, err := os.ReadFile(of.report)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, in(Setup, errNoReport)
	}
	var report *replay.Report
	if err == nil {
		report, err = replay.ReadReport(of.report)
	}
	if err != nil {
		return nil, nil, in(Transport, err)
	}
	raw := json.RawMessage(strings.TrimSpace(r.render(string(data))))
	text := strings.TrimSpace(report.Text())
	switch {
	case report.Verdict == replay.Passed:
		return report, raw, nil
	case report.Verdict == replay.Invalid && report.Failure != nil && report.Failure.Reason == "transcript":
		r.started = false
		return report, raw, inf(Setup, "%s", text)
	case text == "":
		return report, raw, inf(Transport, "the peer did not finish: its report says %s after %d of %d entries", report.Verdict, report.Entries.Played, report.Entries.Total)
	default:
		return report, raw, inf(Transport, "%s", text)
	}
}

// checkDuplicates wants no event of a command beyond its receipt.
func (r *runner) checkDuplicates(events []orch.StoredEvent) error {
	for _, d := range r.commands {
		for _, e := range events {
			if e.CommandID == d.id && e.Sequence > d.sequence {
				return fmt.Errorf("event %d %s belongs to %s, whose receipt ends at %d", e.Sequence, e.Event.Type, d.id, d.sequence)
			}
		}
	}
	return nil
}

func (r *runner) checkCleanup() error {
	var problems []error
	for _, p := range leftover(r.dir, r.mark) {
		problems = append(problems, fmt.Errorf("%s outlived the run", p))
	}
	return errors.Join(problems...)
}
