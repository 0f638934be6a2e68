package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/peer"
)

// TestMain makes the test binary the provider, through the links that a run
// makes.
func TestMain(m *testing.M) {
	if cfg, linked, err := peer.Linked(os.Args[0]); linked || err != nil {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(peer.Serve(context.Background(), cfg, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if job := os.Getenv(crashEnv); job != "" {
		os.Exit(crashChild(job))
	}
	os.Exit(m.Run())
}

// fault is one way to break the orchestrator from outside of it, and the
// scenario that must notice, with codex or, as SCENARIO/PROVIDER, another.
type fault struct {
	name, scenario string
	faults         func() *faults
}

var faultList = []fault{
	{"a child's completion closes the run", "subagent", func() *faults {
		return agentFault(hooks{event: func(s *faultySession, e orch.ProviderEvent, emit func(orch.ProviderEvent)) {
			emit(e)
			if t, ok := e.(orch.TurnEnded); ok && t.NativeThreadID != s.first().NativeThreadID {
				s.end(s.first(), "completed")
			}
		}})
	}},
	{"a child's idle session closes the run", "child_idle_is_not_root_idle/opencode", func() *faults {
		return agentFault(hooks{event: func(s *faultySession, e orch.ProviderEvent, emit func(orch.ProviderEvent)) {
			emit(e)
			if t, ok := e.(orch.TurnEnded); ok && t.NativeThreadID != s.first().NativeThreadID {
				s.end(s.first(), "completed")
			}
		}})
	}},
	{"an abort closes the run that still winds down", "abort_answer_after_idle/opencode", func() *faults {
		return agentFault(hooks{interrupt: func(s *faultySession, ctx context.Context, thread, turn string) error {
			s.end(orch.TurnStarted{NativeThreadID: thread, NativeTurnID: turn}, "interrupted")
			return s.AgentSession.Interrupt(ctx, thread, turn)
		}})
	}},
	{"a child's work goes to the parent", "subagent", func() *faults {
		return agentFault(hooks{event: func(s *faultySession, e orch.ProviderEvent, emit func(orch.ProviderEvent)) {
			if i, ok := e.(orch.ItemUpdated); ok {
				root := s.first()
				i.NativeThreadID, i.NativeTurnID = root.NativeThreadID, root.NativeTurnID
				e = i
			}
			emit(e)
		}})
	}},
	{"a child checkpoint advances the run count", "subagent_checkpoint", func() *faults {
		return storeFault(faultyStore{batch: rewrite(orch.KindCheckpoint, `"appRunOrdinal":null`, `"appRunOrdinal":1`)})
	}},
	{"a child checkpoint has no files", "subagent_checkpoint", func() *faults {
		return checkpointFault(faultyCheckpoints{capture: func(_ orch.CaptureRequest, c orch.Capture) (orch.Capture, error) {
			c.Files = nil
			return c, nil
		}})
	}},
	{"an acknowledgement closes the run", "turn_interrupt", func() *faults {
		return agentFault(hooks{interrupt: func(s *faultySession, ctx context.Context, thread, turn string) error {
			err := s.AgentSession.Interrupt(ctx, thread, turn)
			s.end(orch.TurnStarted{NativeThreadID: thread, NativeTurnID: turn}, "interrupted")
			time.Sleep(100 * time.Millisecond) // a probe sees it
			return err
		}})
	}},
	{"an interrupt never reaches the provider", "turn_interrupt_mid_tool", func() *faults {
		return agentFault(hooks{interrupt: func(s *faultySession, _ context.Context, thread, turn string) error {
			s.end(orch.TurnStarted{NativeThreadID: thread, NativeTurnID: turn}, "interrupted")
			return nil
		}})
	}},
	{"the second prompt comes before the cancelled response", "steering_restart_fallback", func() *faults {
		return agentFault(hooks{
			interrupt: func(s *faultySession, _ context.Context, thread, turn string) error {
				s.end(orch.TurnStarted{NativeThreadID: thread, NativeTurnID: turn}, "interrupted")
				return nil
			},
			start: func(s *faultySession, ctx context.Context, in orch.TurnInput) error {
				err := s.AgentSession.StartTurn(ctx, in)
				if root := s.first(); root.NativeTurnID != "" {
					err = errors.Join(err, s.AgentSession.Interrupt(ctx, root.NativeThreadID, root.NativeTurnID))
				}
				return err
			},
		})
	}},
	{"the end of a superseded turn ends the run", "steering_restart_fallback", func() *faults {
		return agentFault(hooks{event: func(s *faultySession, e orch.ProviderEvent, emit func(orch.ProviderEvent)) {
			emit(e)
			if t, ok := e.(orch.TurnStarted); ok && t != s.first() {
				s.end(t, "interrupted")
			}
		}})
	}},
	{"a steer starts a turn of its own", "message_steering", func() *faults {
		return agentFault(hooks{steer: func(s *faultySession, ctx context.Context, _, _ string, in orch.TurnInput) error {
			return s.AgentSession.StartTurn(ctx, in)
		}})
	}},
	{"an acceptance becomes a refusal", "approval_request", func() *faults {
		return agentFault(hooks{respond: func(s *faultySession, ctx context.Context, id string, d orch.Decision) error {
			d.Kind = "decline"
			return s.AgentSession.Respond(ctx, id, d)
		}})
	}},
	{"a refusal becomes an acceptance", "approval_declined", func() *faults {
		return agentFault(hooks{respond: func(s *faultySession, ctx context.Context, id string, d orch.Decision) error {
			d.Kind = "accept"
			return s.AgentSession.Respond(ctx, id, d)
		}})
	}},
	{"requests are answered without the user", "approval_request", func() *faults {
		return agentFault(hooks{event: func(s *faultySession, e orch.ProviderEvent, emit func(orch.ProviderEvent)) {
			if r, ok := e.(orch.RequestOpened); ok {
				go s.AgentSession.Respond(context.Background(), r.NativeRequestID, orch.Decision{Kind: "accept"})
				return
			}
			emit(e)
		}})
	}},
	{"answers are lost", "plan_questions", func() *faults {
		return agentFault(hooks{respond: func(*faultySession, context.Context, string, orch.Decision) error { return nil }})
	}},
	{"a duplicate command replays", "multi_turn", func() *faults {
		var seen atomic.Int64
		return storeFault(faultyStore{request: func(r *orch.CommitRequest) {
			if r.CommandID != "" {
				r.CommandID = fmt.Sprint(r.CommandID, "/", seen.Add(1))
			}
		}})
	}},
	{"a turn is given twice", "simple", func() *faults {
		return agentFault(hooks{start: func(s *faultySession, ctx context.Context, in orch.TurnInput) error {
			return errors.Join(s.AgentSession.StartTurn(ctx, in), s.AgentSession.StartTurn(ctx, in))
		}})
	}},
	{"a run does not wait for its checkpoint", "simple", func() *faults {
		return storeFault(faultyStore{batch: without(orch.KindRun, `"status":"waiting"`)})
	}},
	{"a checkpoint is taken before the turn's end is known", "simple", func() *faults {
		return storeFault(faultyStore{batch: without(orch.KindProviderTurn, `"status":"completed"`)})
	}},
	{"the run ends when its turn starts", "simple", func() *faults {
		return agentFault(hooks{event: func(s *faultySession, e orch.ProviderEvent, emit func(orch.ProviderEvent)) {
			emit(e)
			if t, ok := e.(orch.TurnStarted); ok {
				s.end(t, "completed")
			}
		}})
	}},
	{"no baseline is taken", "simple", func() *faults {
		return checkpointFault(faultyCheckpoints{capture: func(r orch.CaptureRequest, c orch.Capture) (orch.Capture, error) {
			if strings.HasSuffix(r.Ref, "/0") {
				return orch.Capture{Status: "missing"}, nil
			}
			return c, nil
		}})
	}},
	{"a resumed thread is a new one", "multi_turn_restart", func() *faults {
		return agentFault(hooks{resume: func(s *faultySession, ctx context.Context, _ string, t orch.ThreadOptions) (orch.NativeThread, error) {
			return s.AgentSession.StartThread(ctx, t)
		}})
	}},
	{"a thread that the provider lost is taken for found", "provider_resume_refused", func() *faults {
		return agentFault(hooks{resume: func(_ *faultySession, _ context.Context, id string, _ orch.ThreadOptions) (orch.NativeThread, error) {
			return orch.NativeThread{ID: id}, nil
		}})
	}},
	{"a rollback leaves the conversation", "thread_rollback", func() *faults {
		return agentFault(hooks{rollback: func(_ *faultySession, _ context.Context, id, _ string, _ int) (orch.NativeThread, error) {
			return orch.NativeThread{ID: id}, nil
		}})
	}},
	{"a rollback leaves the workspace", "thread_rollback", func() *faults {
		return checkpointFault(faultyCheckpoints{restore: func() error { return nil }})
	}},
	{"a rollback leaves later checkpoints", "thread_rollback", func() *faults {
		return storeFault(faultyStore{batch: without(orch.KindCheckpoint, `"status":"stale"`)})
	}},
	{"a fork forgets the provider's thread", "thread_fork", func() *faults {
		return agentFault(hooks{fork: func(s *faultySession, ctx context.Context, _, _ string, t orch.ThreadOptions) (orch.NativeThread, error) {
			return s.AgentSession.StartThread(ctx, t)
		}})
	}},
	{"a fork takes all of the provider's thread", "thread_fork", func() *faults {
		return agentFault(hooks{fork: func(s *faultySession, ctx context.Context, id, _ string, t orch.ThreadOptions) (orch.NativeThread, error) {
			return s.AgentSession.ForkThread(ctx, id, "", t)
		}})
	}},
	{"a handoff repeats the target's own turns", "thread_merge_back", func() *faults {
		return agentFault(hooks{start: func(s *faultySession, ctx context.Context, in orch.TurnInput) error {
			in.Text = strings.Replace(in.Text, "User: ", "User: Respond with exactly: main turn complete\nUser: ", 1)
			return s.AgentSession.StartTurn(ctx, in)
		}})
	}},
	{"a delta handoff repeats the target's own turns", "instance_switch_return", func() *faults {
		return agentFault(hooks{start: func(s *faultySession, ctx context.Context, in orch.TurnInput) error {
			if strings.Contains(in.Text, "delta_since_target_last_seen") {
				in.Text = strings.Replace(in.Text, "User: ", "User: Respond with exactly: first here\nAssistant: first here\nUser: ", 1)
			}
			return s.AgentSession.StartTurn(ctx, in)
		}})
	}},
	{"a provider that comes in is told nothing", "instance_switch_return", func() *faults {
		return agentFault(hooks{start: func(s *faultySession, ctx context.Context, in orch.TurnInput) error {
			if _, words, ok := strings.Cut(in.Text, "User message:\n"); ok {
				in.Text = words
			}
			return s.AgentSession.StartTurn(ctx, in)
		}})
	}},
	{"the user's words are stored with the handoff", "thread_merge_back", func() *faults {
		return storeFault(faultyStore{batch: rewrite(orch.KindMessage, `"text":"Which`, `"text":"Context handoff: Which`)})
	}},
	{"a turn that can't be restarted is", "steering_restart_fallback/claude", func() *faults {
		return agentFault(hooks{claims: func(c *orch.Capabilities) { c.SteeringByRestart = true }})
	}},
	{"answers that nobody can take are taken", "plan_questions/claude", func() *faults {
		return agentFault(hooks{claims: func(c *orch.Capabilities) { c.Questions = true }})
	}},
	{"where a turn ends is forgotten", "thread_rollback/claude", func() *faults {
		return agentFault(hooks{event: func(_ *faultySession, e orch.ProviderEvent, emit func(orch.ProviderEvent)) {
			if h, ok := e.(orch.HeadChanged); !ok || h.NativeTurnID == "" {
				emit(e)
			}
		}})
	}},
	{"a fork leaves at another turn", "thread_fork/claude", func() *faults {
		return agentFault(hooks{fork: func(s *faultySession, ctx context.Context, id, _ string, t orch.ThreadOptions) (orch.NativeThread, error) {
			return s.AgentSession.ForkThread(ctx, id, "", t)
		}})
	}},
	{"an edited message goes out as it was", "queued_changed", func() *faults {
		return agentFault(hooks{start: func(s *faultySession, ctx context.Context, in orch.TurnInput) error {
			in.Text = strings.Replace(in.Text, "put in other words", "written in haste", 1)
			return s.AgentSession.StartTurn(ctx, in)
		}})
	}},
	{"a cancelled queued run starts", "queued_cancelled", func() *faults {
		var first atomic.Bool
		return agentFault(hooks{event: func(s *faultySession, e orch.ProviderEvent, emit func(orch.ProviderEvent)) {
			if t, ok := e.(orch.TurnEnded); ok && !first.Swap(true) {
				go s.AgentSession.StartTurn(context.Background(), orch.TurnInput{NativeThreadID: t.NativeThreadID, Text: "Never mind"})
			}
			emit(e)
		}})
	}},
	{"the release of an idle session is not told", "idle_resume", func() *faults {
		return storeFault(faultyStore{batch: without(orch.KindProviderSession, `"idle_timeout"`)})
	}},
	{"a thread comes back from a break as a new one", "idle_resume", func() *faults {
		return agentFault(hooks{resume: func(s *faultySession, ctx context.Context, _ string, t orch.ThreadOptions) (orch.NativeThread, error) {
			return s.AgentSession.StartThread(ctx, t)
		}})
	}},
	{"a crash passes for a shutdown", "provider_crash", func() *faults {
		return agentFault(hooks{event: func(_ *faultySession, e orch.ProviderEvent, emit func(orch.ProviderEvent)) {
			if _, ok := e.(orch.SessionEnded); ok {
				e = orch.SessionEnded{}
			}
			emit(e)
		}})
	}},
	{"a crash completes the turn", "provider_crash", func() *faults {
		return agentFault(hooks{event: func(s *faultySession, e orch.ProviderEvent, emit func(orch.ProviderEvent)) {
			if _, ok := e.(orch.SessionEnded); ok {
				s.end(s.first(), "completed")
			}
			emit(e)
		}})
	}},
	{"a refused resume passes for a new thread", "resume_failure", func() *faults {
		return agentFault(hooks{resume: func(s *faultySession, ctx context.Context, id string, t orch.ThreadOptions) (orch.NativeThread, error) {
			thread, err := s.AgentSession.ResumeThread(ctx, id, t)
			if err != nil {
				thread, err = s.AgentSession.StartThread(ctx, t)
			}
			return thread, err
		}})
	}},
	{"a question outlives the process that asked", "approval_restart", func() *faults {
		return storeFault(faultyStore{batch: rewrite(orch.KindRuntimeRequest, `"status":"expired"`, `"status":"pending"`)})
	}},
	{"a snapshot stands at a later sequence", "simple", func() *faults {
		return storeFault(faultyStore{thread: func(t orch.StoredThread) orch.StoredThread {
			t.Sequence += 5
			return t
		}})
	}},
	{"the stream repeats an event", "simple", func() *faults {
		return storeFault(faultyStore{events: func(e []orch.StoredEvent) []orch.StoredEvent {
			if len(e) > 1 {
				e = append(e[:1:1], e...)
			}
			return e
		}})
	}},
}

// alsoOn are providers that must notice a fault beside the one it names.
var alsoOn = map[string][]string{
	"a child's completion closes the run":                   {"claude-acp"},
	"an acknowledgement closes the run":                     {"gemini", "claude-acp-2"},
	"the second prompt comes before the cancelled response": {"gemini", "codex-acp", "codex-acp-2"},
	"an acceptance becomes a refusal":                       {"opencode-acp"},
}

// TestFaults switches in one fault after the other. A scenario that passes
// with a fault proves nothing.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("plays many scenarios")
	}
	if raced {
		t.Skip("SKIPPED under the race detector, under which TestPairs runs the same code")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, name string, f *faults) *Result {
		name, provider, _ := strings.Cut(name, "/")
		sc, err := Load("../../transcripts/"+name, name)
		if err != nil {
			t.Fatal(err)
		}
		if sc.Timeout = Duration(time.Minute); f != nil {
			sc.Timeout = Duration(4 * time.Second) // some faults only show by what never comes
		}
		cfg := Config{Peer: self, Env: os.Environ(), faults: f} // Temp is short: a socket lies there
		return Run(t.Context(), cfg, sc, orElse(provider, "codex"))
	}
	list := slices.Clone(faultList)
	for _, f := range faultList {
		for _, provider := range alsoOn[f.name] {
			list = append(list, fault{f.name + "/" + provider, f.scenario + "/" + provider, f.faults})
		}
	}
	table := make([]string, len(list))
	t.Cleanup(func() { t.Log("\n" + strings.Join(table, "\n")) })
	sound := map[string]bool{}
	for i, f := range list {
		if !sound[f.scenario] {
			sound[f.scenario] = true
			t.Run("sound/"+f.scenario, func(t *testing.T) {
				if r := run(t, f.scenario, nil); r.Status != Passed {
					t.Errorf("%s: %s", r.Status, r.Reason)
				}
			})
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, f.scenario, f.faults())
			line, _, _ := strings.Cut(strings.TrimPrefix(r.Reason, "transcripts/"), "\n")
			table[i] = fmt.Sprintf("%-52s %-26s %-7s %-12s %s", f.name, f.scenario, r.Status, r.Layer, shorten(line, 90))
			if r.Status != Failed {
				t.Errorf("%s with the fault: %s", r.Status, r.Reason)
			}
		})
	}
}
