package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// ocServer stands for the connections of a server: it answers calls as the test
// says, and sends events before or after the answers.
type ocServer struct {
	t      *testing.T
	stream chan string   // events to send; the test has seen to it that one reads
	passed chan struct{} // one for every "mark" event that the adapter has come to
	calls  []string      // "METHOD PATH BODY", one at a time
	// on has what is done at a call, by METHOD and PATH.
	on map[string]func(w http.ResponseWriter)
}

func (s *ocServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/event" {
		w.WriteHeader(http.StatusOK)
		for event := `{"type":"server.connected","properties":{}}`; ; {
			fmt.Fprintf(w, ": a comment\nid: 1\ndata: %s\n\n", event)
			w.(http.Flusher).Flush()
			var open bool
			select {
			case event, open = <-s.stream:
			case <-r.Context().Done():
			}
			if !open {
				return
			}
		}
	}
	body, _ := io.ReadAll(r.Body)
	call := r.Method + " " + r.URL.Path
	s.calls = append(s.calls, strings.TrimSpace(call+" "+string(body)))
	if on := s.on[call]; on != nil {
		on(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// tell sends events and waits until the adapter has handled them.
func (s *ocServer) tell(events ...string) {
	for _, e := range append(events, `{"type":"mark"}`, `{"type":"after"}`) {
		s.stream <- e
	}
	<-s.passed
}

// trace is the diagnostics of the session: an event is seen there when those
// before it have been handled.
func (s *ocServer) trace(outbound bool, wire []byte) {
	if !outbound && gjson.GetBytes(wire, "type").Str == "after" {
		s.passed <- struct{}{}
	}
}

// open opens a session on a process that tells the server's address.
func (s *ocServer) open(ctx context.Context) (*openCodeAgentSession, error) {
	web := httptest.NewServer(s)
	s.t.Cleanup(web.Close)
	file := filepath.Join(s.t.TempDir(), "script")
	script := "stderr loud\n< Warning: something\n< opencode server listening on " + web.URL + "\neof\n"
	if err := os.WriteFile(file, []byte("args serve --hostname=127.0.0.1 --port=0\n"+script), 0o600); err != nil {
		s.t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	opened, err := NewOpenCode(OpenCodeConfig{Command: []string{exe}, Env: append(os.Environ(), scriptVariable+"="+file, "GORACE=atexit_sleep_ms=0")}).
		Open(ctx, orch.SessionConfig{Diagnostics: s.trace})
	if err != nil {
		return nil, err
	}
	return opened.(*openCodeAgentSession), nil
}

// Answers and events come on connections of their own, in either order. What
// comes of them must be the same.
func TestOpenCodeAnswerAndEventOrders(t *testing.T) {
	want := []string{
		"S turn:A1 started",
		`S turn:A1 c command_execution running|ls||{"command":"ls","exitCode":null}`,
		`S turn:A1 asks per_1 about "c": command "ls" {"permission":"bash","patterns":["ls"]}`,
		`S turn:A1 c command_execution completed|ls|a|{"command":"ls","exitCode":0}`,
		`S turn:A1 asks per_2 about "": file-change "b" {"permission":"edit","patterns":["b"]}`,
		"S closes per_2",
		"S turn:A1 interrupted",
		"S turn:A2 started",
		"S turn:A2 completed",
		"F turn:A3 started",
		"F turn:A3 completed",
		"gone: <nil>",
	}
	for _, answersFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("answers first %v", answersFirst), func(t *testing.T) {
			ctx := testContext(t)
			s := &ocServer{t: t, stream: make(chan string), passed: make(chan struct{}), on: map[string]func(http.ResponseWriter){}}
			session := must[*openCodeAgentSession](t)(s.open(ctx))
			// do makes a call that is answered so, and has such events.
			do := func(call, answer string, f func() error, events ...string) {
				t.Helper()
				s.on[call] = func(w http.ResponseWriter) {
					if !answersFirst {
						s.tell(events...)
					}
					io.WriteString(w, answer)
				}
				if err := f(); err != nil {
					t.Fatalf("%s: %v", call, err)
				}
				if answersFirst {
					s.tell(events...)
				}
			}
			start := func(session *openCodeAgentSession, thread, attempt string) func() error {
				return func() error {
					return session.StartTurn(ctx, orch.TurnInput{NativeThreadID: thread, AttemptID: attempt, MessageID: "M", Text: "do", Options: options})
				}
			}
			part := func(attempt string) string { return openCodePart("turn:"+attempt, "M") }
			do("POST /session", `{"id":"S"}`, func() error {
				_, err := session.StartThread(ctx, options)
				return err
			}, `{"type":"session.created","properties":{"sessionID":"S","info":{"id":"S"}}}`)
			do("POST /session/S/prompt_async", "", start(session, "S", "A1"), append(ocAsked("S", "u1", part("A1"), "a1"),
				ocTool("S", "a1", "c", "bash", `"status":"running","input":{"command":"ls"}`),
				ocEvent("permission.asked", "S", `"id":"per_1","permission":"bash","patterns":["ls"],"tool":{"messageID":"a1","callID":"call_c"}`))...)
			do("POST /permission/per_1/reply", "true", func() error { return session.Respond(ctx, "per_1", orch.Decision{Kind: "accept"}) },
				ocEvent("permission.replied", "S", `"requestID":"per_1","reply":"once"`),
				ocTool("S", "a1", "c", "bash", `"status":"completed","input":{"command":"ls"},"output":"a","metadata":{"exit":0}`),
				ocEvent("permission.asked", "S", `"id":"per_2","permission":"edit","patterns":["b"]`))
			s.on["POST /permission/per_2/reply"] = func(w http.ResponseWriter) {
				w.WriteHeader(http.StatusNotFound) // it went with the turn
				io.WriteString(w, `{"_tag":"PermissionNotFoundError","message":"gone"}`)
			}
			do("POST /session/S/abort", "true", func() error { return session.Interrupt(ctx, "S", "turn:A1") },
				ocAborted("S"), ocStatus("S", "idle"), ocComplete("S", "a1", "u1"), ocStatus("S", "idle"))
			do("POST /session/S/prompt_async", "", start(session, "S", "A2"), append(append([]string{ocStatus("S", "idle")},
				ocAsked("S", "u2", part("A2"), "a2")...), ocComplete("S", "a2", "u2"), ocStatus("S", "idle"))...)
			do("POST /session/S/fork", `{"id":"F"}`, func() error {
				_, err := session.ForkThread(ctx, "S", "", options)
				return err
			}, `{"type":"session.created","properties":{"sessionID":"F","info":{"id":"F"}}}`,
				ocUser("F", "v1"), ocTextPart("F", "v1", "prt_2", "do"), ocComplete("F", "b1", "v1"), ocTextPart("F", "b1", "prt_3", "done"))
			do("POST /session/F/prompt_async", "", start(session, "F", "A3"), append(ocAsked("F", "v3", part("A3"), "b3"),
				ocComplete("F", "b3", "v3"), ocStatus("F", "idle"))...)
			if err := session.Interrupt(ctx, "F", "turn:A3"); !errors.Is(err, orch.ErrTurnNotActive) {
				t.Errorf("interrupt of a turn that is over: %v", err)
			}
			if err := session.Close(ctx); err != nil {
				t.Error(err)
			}
			var got []string
			for e := range session.Events() {
				got = append(got, describeEvent(e))
			}
			<-session.events.done
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if n := len(s.calls); s.calls[n-1] != "POST /instance/dispose" || !strings.Contains(strings.Join(s.calls, "\n"), `POST /permission/per_2/reply {"reply":"reject"}`) {
				t.Errorf("calls:\n%s", strings.Join(s.calls, "\n"))
			}
		})
	}
}

// A rollback names the first message of the turns that go. Which turn a
// message is of is told by the name of its text, also after a restart.
func TestOpenCodeRollbackPoint(t *testing.T) {
	user := func(id, part string) string {
		return fmt.Sprintf(`{"info":{"id":%q,"role":"user"},"parts":[{"id":%q}]}`, id, part)
	}
	assistant := `{"info":{"id":"a","role":"assistant"},"parts":[{"id":"prt_0"}]}`
	history := "[" + strings.Join([]string{
		user("inherited", "prt_22c8"), assistant,
		user("u1", openCodePart("turn:A1", "M1")), assistant, user("steer", openCodePart("turn:A1", "M2")), assistant,
		user("u2", openCodePart("turn:A2", "M3")), assistant, user("own", "prt_22c9"), assistant,
	}, ",") + "]"
	ctx := testContext(t)
	s := &ocServer{t: t, stream: make(chan string), passed: make(chan struct{}, 9), on: map[string]func(http.ResponseWriter){}}
	session := must[*openCodeAgentSession](t)(s.open(ctx))
	s.on["GET /session/S/message"] = func(w http.ResponseWriter) { io.WriteString(w, history) }
	s.on["POST /session/S/fork"] = func(w http.ResponseWriter) { io.WriteString(w, `{"id":"F"}`) }
	s.on["GET /session/gone"] = func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"name":"NotFoundError","data":{"message":"Session not found"}}`)
	}
	for _, keep := range []string{"", "turn:A1", "turn:A2"} {
		if _, err := session.Rollback(ctx, "S", keep, 1); err != nil {
			t.Error(err)
		}
	}
	if _, err := session.Rollback(ctx, "S", "turn:A9", 1); err == nil || !strings.Contains(err.Error(), `has no turn "turn:A9"`) {
		t.Errorf("rollback to a turn that is not there: %v", err)
	}
	must[orch.NativeThread](t)(session.ForkThread(ctx, "S", "turn:A1", options))
	if _, err := session.ResumeThread(ctx, "gone", options); !errors.Is(err, orch.ErrResume) || !strings.Contains(err.Error(), "Session not found") {
		t.Errorf("resume of a session that is not there: %v", err)
	}
	var got []string
	for _, call := range s.calls {
		if strings.HasPrefix(call, "POST") {
			got = append(got, call)
		}
	}
	want := []string{
		`POST /session/S/revert {"messageID":"u1"}`,
		`POST /session/S/revert {"messageID":"u2"}`,
		`POST /session/S/revert {"messageID":"own"}`,
		`POST /session/S/fork {"messageID":"u2"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	go session.events.discard()
	if err := session.Close(ctx); err != nil {
		t.Error(err)
	}
	<-session.events.done
}

// An interrupt waits until the server works on the turn, and if that takes too
// long the turn is aborted all the same.
func TestOpenCodeInterruptBeforeWork(t *testing.T) {
	ctx := testContext(t)
	s := &ocServer{t: t, stream: make(chan string), passed: make(chan struct{}), on: map[string]func(http.ResponseWriter){}}
	session := must[*openCodeAgentSession](t)(s.open(ctx))
	go session.events.discard()
	aborted := make(chan struct{})
	s.on["POST /session/S/abort"] = func(w http.ResponseWriter) {
		io.WriteString(w, "true")
		close(aborted)
	}
	session.facts.own("S")
	if err := session.StartTurn(ctx, orch.TurnInput{NativeThreadID: "S", AttemptID: "A", MessageID: "M", Text: "do", Options: options}); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if err := session.Interrupt(short, "S", "turn:A"); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupt: %v", err)
	}
	s.tell(ocUser("S", "u"), ocTextPart("S", "u", openCodePart("turn:A", "M"), "do"))
	select {
	case <-aborted:
		t.Error("aborted before the server worked on it")
	default:
	}
	s.tell(ocStatus("S", "busy"))
	select {
	case <-aborted:
	case <-ctx.Done():
		t.Error("the turn was not aborted")
	}
	if err := session.Close(ctx); err != nil {
		t.Error(err)
	}
	<-session.events.done
}

// A server that does not come up says why; one that goes in the middle fails
// what waits for it.
func TestOpenCodeProcessEnds(t *testing.T) {
	ctx := testContext(t)
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte("stderr no such config\nexit 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, _ := os.Executable()
	_, err := NewOpenCode(OpenCodeConfig{Command: []string{exe}, Env: append(os.Environ(), scriptVariable+"="+file)}).Open(ctx, orch.SessionConfig{})
	if err == nil || !strings.Contains(err.Error(), "exit code 3") || !strings.Contains(err.Error(), "no such config") {
		t.Errorf("open: %v", err)
	}

	s := &ocServer{t: t, stream: make(chan string), passed: make(chan struct{}), on: map[string]func(http.ResponseWriter){}}
	session := must[*openCodeAgentSession](t)(s.open(ctx))
	s.on["POST /session"] = func(w http.ResponseWriter) {
		session.server.proc.Kill()
		<-session.server.proc.Done()
		close(s.stream)
		panic(http.ErrAbortHandler)
	}
	if _, err := session.StartThread(ctx, options); !errors.Is(err, orch.ErrSessionEnded) {
		t.Errorf("a call to a server that dies: %v", err)
	}
	var last orch.ProviderEvent
	for e := range session.Events() {
		last = e
	}
	<-session.events.done
	if end, ok := last.(orch.SessionEnded); !ok || end.Err == nil || !strings.Contains(end.Err.Error(), "SIGKILL") {
		t.Errorf("last event: %v", last)
	}
	if err := session.Close(ctx); err != nil {
		t.Error(err)
	}
}
