package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"
)

// steps plays the scenario's steps. The thread is created first, whether a
// step says so or not.
func (r *runner) steps(ctx context.Context) error {
	steps := r.sc.Steps
	create := Step{CreateThread: &CreateThread{}, Line: steps[0].Line}
	if steps[0].CreateThread == nil {
		steps = append([]Step{create}, steps...)
	}
	r.started = true
	for _, step := range steps {
		if !step.concerns(r.provider) {
			continue
		}
		err := r.step(ctx, step)
		if err == nil && r.wants(ProbeStream) && step.Restart == nil {
			err = r.openStream(ctx)
		}
		if err != nil {
			return positioned(r.sc.File, step.Line, err)
		}
	}
	if r.wants(ProbeDuplicates) {
		for _, d := range r.commands {
			if err := r.again(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// positioned puts a step's position before an error and keeps its layer.
func positioned(file string, line int, err error) error {
	var f *failure
	var a *FailedAssertion
	if errors.As(err, &a) {
		return err // it has a position of its own
	}
	if errors.As(err, &f) {
		return &failure{f.layer, fmt.Errorf("%s:%d: %w", file, line, err)}
	}
	return fmt.Errorf("%s:%d: %w", file, line, err)
}

func (r *runner) wants(probe string) bool {
	return slices.Contains(r.sc.Probes, probe) || slices.Contains(r.cfg.Probes, probe)
}

func (r *runner) step(ctx context.Context, step Step) error {
	switch {
	case step.CreateThread != nil:
		return r.createThread(ctx, step.CreateThread)
	case step.Message != nil:
		return r.message(ctx, step.Message)
	case step.AwaitRun != nil:
		a := step.AwaitRun
		return r.awaitRun(ctx, a.Timeout, a.Thread, a.Ordinal, a.Status)
	case step.AwaitThreadIdle != nil:
		return r.awaitIdle(ctx, step.AwaitThreadIdle.Timeout)
	case step.Restart != nil:
		return r.restart(ctx)
	case step.AdvanceClock != nil:
		return r.advance(time.Duration(step.AdvanceClock.By))
	case step.AwaitItem != nil:
		return r.awaitItem(ctx, step.AwaitItem)
	case step.AwaitRequest != nil:
		return r.awaitRequest(ctx, step.AwaitRequest)
	case step.Interrupt != nil:
		return r.interrupt(ctx, step.Interrupt)
	case step.Respond != nil:
		return r.respond(ctx, step.Respond)
	case step.CancelQueuedRun != nil:
		return r.cancelQueued(ctx, step.CancelQueuedRun)
	case step.Promote != nil:
		return r.promote(ctx, step.Promote)
	case step.Rollback != nil:
		return r.rollback(ctx, step.Rollback)
	case step.SwitchProvider != nil:
		return r.switchProvider(ctx, step.SwitchProvider)
	case step.Fork != nil:
		return r.fork(ctx, step.Fork)
	case step.MergeBack != nil:
		return r.mergeBack(ctx, step.MergeBack)
	case step.Detach != nil:
		return r.detach(ctx, step.Detach)
	case step.WriteFile != nil:
		return r.writeFile(step.WriteFile)
	case step.CaptureSnapshot != nil:
		return r.capture(ctx, step.CaptureSnapshot)
	case step.Probe != nil:
		if r.cfg.Live != nil && len(r.instances[0].hold) > 0 {
			return nil // nothing holds a live provider at the moment that is probed
		}
		doc, err := r.snapshot(ctx, r.thread)
		if err != nil {
			return err
		}
		return r.hold(ctx, step.Probe.Assertions, doc)
	case step.ReleaseGate != nil:
		return r.releaseGate(ctx, step.ReleaseGate)
	default:
		return errors.New("step does nothing") // unreachable unless the schema lets an empty step through
	}
}

// restart is the end of one process and the start of the next. When the
// thread is idle its effects are settled first, which they are in any case
// but for the race with the end.
func (r *runner) restart(ctx context.Context) error {
	if r.idle() {
		deadline, cancel := r.deadline(ctx, 0)
		defer cancel()
		if err := r.watched.quiet(deadline, r.thread); err != nil {
			return inf(Persistence, "effects before the restart: %w", err)
		}
	}
	before, err := r.down(ctx)
	err = errors.Join(err, r.store.Close())
	r.orc, r.store = nil, nil
	if err != nil {
		return err
	}
	return in(Persistence, r.up(ctx, before))
}

func (r *runner) advance(by time.Duration) error {
	fake, ok := r.clock.(*clockwork.FakeClock)
	if !ok {
		return inf(Adapter, "advance_clock: a live provider runs on the real clock")
	}
	fake.Advance(by)
	return nil
}

// capture keeps a projection, or the list of threads, for assertions.
func (r *runner) capture(ctx context.Context, c *CaptureSnapshot) error {
	thread, err := r.threadNamed(c.Thread)
	if err != nil {
		return err
	}
	if c.Shell {
		thread = shellDoc
	}
	r.captured[c.Key], err = r.snapshot(ctx, thread)
	return err
}

// shellDoc stands for the list of threads where a thread's id would stand.
const shellDoc = "shell"

// snapshot returns a thread's projection of this moment as JSON.
func (r *runner) snapshot(ctx context.Context, thread string) ([]byte, error) {
	if doc := r.final[thread]; doc != nil {
		return doc, nil
	}
	ctx, cancel := r.deadline(ctx, 0)
	defer cancel()
	var v any
	var err error
	if thread == shellDoc {
		v, err = r.orc.Shell(ctx)
	} else {
		v, _, err = r.orc.Snapshot(ctx, thread)
	}
	if err != nil {
		return nil, inf(Persistence, "snapshot: %w", err)
	}
	doc, err := json.Marshal(v)
	return doc, in(Persistence, err)
}

// hold returns every assertion for the provider that does not hold. doc is
// the projection of the scenario's thread.
func (r *runner) hold(ctx context.Context, as []Assertion, doc []byte) error {
	var problems []error
	for _, a := range as {
		if !a.concerns(r.provider) || !r.offers(a.Of) {
			continue
		}
		on, err := r.document(ctx, a, doc)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", r.sc.File, a.Line, err))
		} else if f := a.hold(r.sc.File, on); f != nil {
			problems = append(problems, f)
		}
	}
	return in(Projection, errors.Join(problems...))
}

// offers says whether a run can have what an assertion looks at: a peer is
// there in replay only, a model in live only.
func (r *runner) offers(of string) bool {
	if of == modelDoc {
		return r.cfg.Live != nil && r.cfg.Live.ModelLog != ""
	}
	return r.cfg.Live == nil || !strings.HasPrefix(of, "report")
}

// modelDoc names the requests that the model got.
const modelDoc = "model"

// modelRequests reads the log of the scripted model: one request a line.
func modelRequests(path string) ([]byte, error) {
	lines, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("log of the model: %w", err)
	}
	doc := append([]byte{'['}, bytes.ReplaceAll(bytes.TrimSpace(lines), []byte("\n"), []byte(","))...)
	if doc = append(doc, ']'); !json.Valid(doc) {
		return nil, fmt.Errorf("log of the model: %s: not one JSON object a line", path)
	}
	return doc, nil
}

// document is what an assertion looks at.
func (r *runner) document(ctx context.Context, a Assertion, doc []byte) ([]byte, error) {
	switch {
	case a.Snapshot != "":
		return r.captured[a.Snapshot], nil
	case a.Of == shellDoc:
		return r.snapshot(ctx, shellDoc)
	case a.Of == modelDoc:
		return modelRequests(r.cfg.Live.ModelLog)
	case a.Of != "":
		_, name, _ := strings.Cut(a.Of, ".")
		if report := r.reports[orElse(name, r.provider)]; report != nil {
			return report, nil
		}
		return nil, errors.New("there is no report: it is there at the end only")
	case a.Thread != "":
		thread, err := r.threadNamed(a.Thread)
		if err != nil {
			return nil, err
		}
		return r.snapshot(ctx, thread)
	}
	return doc, nil
}
