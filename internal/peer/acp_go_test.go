//go:build unix

package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	acp "github.com/coder/acp-go-sdk"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// goClient is a client written with the Go SDK. It answers as
// testdata/acp/client.ndjson expects.
type goClient struct {
	second  chan struct{} // closed when the answer to the second permission is written
	waiting chan struct{} // closed when the second turn has begun
	once    sync.Once
	text    strings.Builder
}

func (c *goClient) RequestPermission(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	option := r.Options[0].OptionId
	if r.ToolCall.ToolCallId == "first" {
		select {
		case <-c.second:
		case <-ctx.Done():
		}
	} else {
		option = r.Options[1].OptionId
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(option)}, nil
}

// tapped is the way to the agent, on which the client watches its own answers.
type tapped struct {
	io.Writer
	client *goClient
}

func (w tapped) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if bytes.Contains(p, []byte(`"optionId":"no"`)) {
		close(w.client.second)
	}
	return n, err
}

func (c *goClient) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	if m := n.Update.AgentMessageChunk; m != nil && m.Content.Text != nil {
		c.text.WriteString(m.Content.Text.Text)
		if m.Content.Text.Text == "Waiting" {
			c.once.Do(func() { close(c.waiting) })
		}
	}
	return nil
}

func (c *goClient) ReadTextFile(_ context.Context, r acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	b, err := os.ReadFile(r.Path)
	return acp.ReadTextFileResponse{Content: string(b)}, err
}

func (c *goClient) WriteTextFile(_ context.Context, r acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	return acp.WriteTextFileResponse{}, os.WriteFile(r.Path, []byte(r.Content), 0o644)
}

func (c *goClient) CreateTerminal(context.Context, acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	return acp.CreateTerminalResponse{TerminalId: "mine"}, nil
}

func (c *goClient) WaitForTerminalExit(_ context.Context, r acp.WaitForTerminalExitRequest) (acp.WaitForTerminalExitResponse, error) {
	return acp.WaitForTerminalExitResponse{ExitCode: acp.Ptr(0)}, c.own(r.TerminalId)
}

func (c *goClient) TerminalOutput(_ context.Context, r acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	return acp.TerminalOutputResponse{Output: "hi\n", ExitStatus: &acp.TerminalExitStatus{ExitCode: acp.Ptr(0)}}, c.own(r.TerminalId)
}

func (c *goClient) ReleaseTerminal(_ context.Context, r acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
	return acp.ReleaseTerminalResponse{}, c.own(r.TerminalId)
}

func (c *goClient) KillTerminal(context.Context, acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	return acp.KillTerminalResponse{}, nil
}

// own refuses a terminal that this client has not made.
func (c *goClient) own(id string) error {
	if id != "mine" {
		return fmt.Errorf("no terminal %s", id)
	}
	return nil
}

func (c *goClient) HandleExtensionMethod(_ context.Context, _ string, params json.RawMessage) (any, error) {
	var p struct{ N int }
	err := json.Unmarshal(params, &p)
	return map[string]int{"pong": p.N}, err
}

// converse runs both turns and returns the first error of the SDK.
func (c *goClient) converse(ctx context.Context, conn *acp.ClientSideConnection, dir, hello string) error {
	if _, err := conn.Initialize(ctx, acp.InitializeRequest{
		ProtocolVersion:    acp.ProtocolVersionNumber,
		ClientCapabilities: acp.ClientCapabilities{Fs: acp.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}, Terminal: true},
		ClientInfo:         &acp.Implementation{Name: "client", Version: "1"},
	}); err != nil {
		return err
	}
	session, err := conn.NewSession(ctx, acp.NewSessionRequest{Cwd: dir, McpServers: []acp.McpServer{}})
	if err != nil {
		return err
	}
	prompt := func(text string) (acp.StopReason, error) {
		r, err := conn.Prompt(ctx, acp.PromptRequest{SessionId: session.SessionId, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
		return r.StopReason, err
	}
	if stop, err := prompt(hello); err != nil || stop != acp.StopReasonEndTurn {
		return fmt.Errorf("turn 1: %s, %w", stop, err)
	}
	go func() {
		select {
		case <-c.waiting:
			_ = conn.Cancel(ctx, acp.CancelNotification{SessionId: session.SessionId})
		case <-ctx.Done():
		}
	}()
	if stop, err := prompt("wait"); err != nil || stop != acp.StopReasonCancelled {
		return fmt.Errorf("turn 2: %s, %w", stop, err)
	}
	return nil
}

// TestACPGoClient: a client written with the Go SDK has a whole conversation;
// one that says something else fails, whatever it makes of the error.
func TestACPGoClient(t *testing.T) {
	for _, hello := range []string{"hello", "hullo"} {
		t.Run(hello, func(t *testing.T) {
			exe, err := binary()
			if err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Abs("testdata/acp/client.ndjson")
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			p := newBinary(t, dir, exe, nil, "serve", "--report", "report.json", "--idle-timeout", "20s", path)
			p.start(t)
			c := &goClient{second: make(chan struct{}), waiting: make(chan struct{})}
			conn := acp.NewClientSideConnection(c, tapped{p.in, c}, p.lines)
			conn.SetLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
			err = c.converse(p.ctx, conn, dir, hello)
			p.in.Close()
			code, _ := p.wait(t)
			r := readReport(t, dir, "report.json")
			switch {
			case hello == "hello" && (err != nil || code != 0 || r.Verdict != replay.Passed || c.text.String() != "Hello.Waiting"):
				t.Errorf("%v, exit code %d, verdict %s, text %q\n%s", err, code, r.Verdict, c.text.String(), p.errors(t))
			case hello != "hello" && (err == nil || code != replay.ExitFailed || r.Verdict != replay.Mismatch || r.Failure.Line != 7):
				t.Errorf("%v, exit code %d, verdict %s\n%s", err, code, r.Verdict, p.errors(t))
			}
		})
	}
}
