package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// opening is the first exchange of a protocol: what a client needs to start,
// says first, and gets.
type opening struct {
	protocol, provider string
	args               []string // of the provider
	out, in            string   // the frames
	wire               string   // out as the client sends it; an HTTP request's path
	closes             bool     // the client closes its input before the answer comes
}

var openings = []opening{
	{protocol: "codex.app-server", provider: "codex", out: request(1), in: response(1), wire: request(1)},
	{
		protocol: "codex.exec-jsonl", provider: "codex", args: []string{"exec", "--experimental-json"}, closes: true, wire: "hello",
		out: `{"type":"exec.start","args":["exec","--experimental-json"],"prompt":"hello\n"}`, in: `{"type":"thread.started","thread_id":"t"}`,
	},
	{
		protocol: "claude-agent-sdk.query", provider: "claude",
		args: []string{"--output-format", "stream-json", "--verbose", "--input-format", "stream-json"},
		wire: `{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}`,
		out:  `{"type":"query.open","options":{}}`, in: `{"type":"query.response","method":"query.open","response":{"commands":[]}}`,
	},
	{
		protocol: "acp.ndjson-jsonrpc", provider: "gemini",
		wire: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
		out:  `{"kind":"request","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
		in:   `{"kind":"response","id":1,"method":"initialize","result":{"protocolVersion":1}}`,
	},
	{
		protocol: "cursor-agent-sdk.local", provider: "cursor", wire: `{"type":"agent.open","operation":"create","options":{}}`,
		out: `{"type":"agent.open","operation":"create","options":{}}`, in: `{"type":"agent.opened","agentId":"a"}`,
	},
	{
		protocol: "opencode-sdk.sse", provider: "opencode", args: []string{"serve", "--port=0"}, wire: "/session",
		out: `{"type":"session.list","input":{}}`, in: `{"type":"sdk.response","operation":"session.list","data":[]}`,
	},
}

// coldStart measures from before a process starts until its first answer is
// there, for every protocol and for the bare child, in turns.
func (b *bench) coldStart(n int) {
	echo := opening{wire: request(1)}
	times := make([][]time.Duration, len(openings)+1)
	paths := make([]string, len(openings))
	for i, o := range openings {
		paths[i] = b.startScript(o)
	}
	for range n {
		for i, o := range openings {
			times[i] = append(times[i], firstAnswer(o, b.peer, append([]string{"serve", paths[i], "--"}, o.args...)...))
		}
		times[len(openings)] = append(times[len(openings)], firstAnswer(echo, b.self, "echo"))
	}
	bare := median(times[len(openings)])
	for i, o := range openings {
		d := median(times[i])
		fmt.Printf("cold start to first answer, 300 KB transcript, %-22s peer %.2f ms, echo %.2f ms, ratio %.2f (target ≤ 4, ≤ 5 ms)\n",
			o.protocol+":", ms(d), ms(bare), float64(d)/float64(bare))
	}
}

// startScript writes a transcript of 300 KB that begins with o and goes on
// like a conversation of Codex, which is read but not played.
func (b *bench) startScript(o opening) string {
	var text strings.Builder
	fmt.Fprintf(&text, `{"type":"transcript_start","provider":%q,"protocol":%q,"version":"0.0.0","scenario":"bench"}`+"\n", o.provider, o.protocol)
	fmt.Fprintf(&text, `{"type":"expect_outbound","frame":%s}`+"\n"+`{"type":"emit_inbound","frame":%s}`+"\n", o.out, o.in)
	fmt.Fprintf(&text, `{"type":"expect_outbound","frame":%s}`+"\n", o.out) // holds what follows
	for i := 2; text.Len() < 300<<10; i++ {
		fmt.Fprintf(&text, `{"type":"emit_inbound","frame":%s}`+"\n", o.in)
	}
	path := filepath.Join(b.dir, o.protocol+".ndjson")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		fail(err)
	}
	return path
}

func firstAnswer(o opening, name string, args ...string) time.Duration {
	begin := time.Now()
	c := startTo(nil, name, args...)
	var err error
	if strings.HasPrefix(o.wire, "/") {
		err = c.get(o.wire)
	} else {
		_, err = io.WriteString(c.in, o.wire+"\n")
		if o.closes {
			c.in.Close()
		}
		for line := ""; err == nil && (line == "" || strings.HasPrefix(line, `{"type":"bridge.ready"`)); {
			line, err = c.out.ReadString('\n')
		}
	}
	d := time.Since(begin)
	if err != nil {
		fail(fmt.Errorf("%s: %w", o.protocol, err))
	}
	c.cmd.Process.Kill() // the rest of the transcript is not played here
	c.in.Close()
	io.Copy(io.Discard, c.out)
	c.cmd.Wait()
	return d
}

// get waits until the child says where it listens and asks for path.
func (c *child) get(path string) error {
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			return err
		}
		_, url, ok := strings.Cut(strings.TrimSpace(line), " on ")
		if !ok {
			continue
		}
		res, err := http.Get(url + path)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", res.Status)
		}
		_, err = bufio.NewReader(res.Body).ReadByte()
		return err
	}
}
