//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
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
	note               string   // a notification with a text, as fmt takes it
	wire               string   // out as the client sends it; an HTTP request's path
	closes             bool     // the client closes its input before the answer comes
}

var openings = []opening{
	{protocol: "codex.app-server", provider: "codex", out: request(1), in: response(1), wire: request(1), note: `{"method":"note","params":{"text":%q}}`},
	{
		protocol: "codex.exec-jsonl", provider: "codex", args: []string{"exec", "--experimental-json"}, closes: true, wire: "hello",
		out: `{"type":"exec.start","args":["exec","--experimental-json"],"prompt":"hello\n"}`, in: `{"type":"thread.started","thread_id":"t"}`, note: `{"type":"note","text":%q}`,
	},
	{
		protocol: "claude-agent-sdk.query", provider: "claude",
		args: []string{"--output-format", "stream-json", "--verbose", "--input-format", "stream-json"},
		wire: `{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}`,
		out:  `{"type":"query.open","options":{}}`, in: `{"type":"query.response","method":"query.open","response":{"commands":[]}}`, note: `{"type":"note","text":%q}`,
	},
	{
		protocol: "acp.ndjson-jsonrpc", provider: "gemini",
		wire: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
		out:  `{"kind":"request","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
		in:   `{"kind":"response","id":1,"method":"initialize","result":{"protocolVersion":1}}`,
		note: `{"kind":"notification","method":"session/update","params":{"text":%q}}`,
	},
	{
		protocol: "cursor-agent-sdk.local", provider: "cursor", wire: `{"type":"agent.open","operation":"create","options":{}}`,
		out: `{"type":"agent.open","operation":"create","options":{}}`, in: `{"type":"agent.opened","agentId":"a"}`, note: `{"type":"interaction.update","update":{"text":%q}}`,
	},
	{
		protocol: "opencode-sdk.sse", provider: "opencode", args: []string{"serve", "--port=0"}, wire: "/session",
		out: `{"type":"session.list","input":{}}`, in: `{"type":"sdk.response","operation":"session.list","data":[]}`, note: `{"type":"sdk.event","event":{"id":"e","type":"note","properties":{"text":%q}}}`,
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
		times[len(openings)] = append(times[len(openings)], firstAnswer(echo, b.echo))
	}
	bare := median(times[len(openings)])
	for i, o := range openings {
		d := median(times[i])
		fmt.Printf("cold start to first answer, 300 KB transcript, %-22s peer %.2f ms, echo %.2f ms, ratio %.2f (target ≤ 4, ≤ 5 ms)\n",
			o.protocol+":", ms(d), ms(bare), float64(d)/float64(bare))
	}
}

// startScript writes a transcript of 300 KB that begins with o and goes on with
// entries of the size that half of the recorded ones exceed, which are read but
// not played.
func (b *bench) startScript(o opening) string {
	var text strings.Builder
	fmt.Fprintf(&text, `{"type":"transcript_start","provider":%q,"protocol":%q,"version":"0.0.0","scenario":"bench"}`+"\n", o.provider, o.protocol)
	fmt.Fprintf(&text, `{"type":"expect_outbound","frame":%s}`+"\n"+`{"type":"emit_inbound","frame":%s}`+"\n", o.out, o.in)
	fmt.Fprintf(&text, `{"type":"expect_outbound","frame":%s}`+"\n", o.out) // holds what follows
	const size = 350
	pad := strings.Repeat("x", size-len(`{"type":"emit_inbound","frame":}`)-len(o.note))
	for text.Len() < 300<<10 {
		fmt.Fprintf(&text, `{"type":"emit_inbound","frame":`+o.note+"}\n", pad)
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

// get waits until the child says where it listens and asks for path, with no
// more than a socket: what a client library costs is not the peer's.
func (c *child) get(path string) error {
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			return err
		}
		_, address, ok := strings.Cut(strings.TrimSpace(line), " on http://")
		if !ok {
			continue
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, address)
		status, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil && !strings.HasPrefix(status, "HTTP/1.1 200 ") {
			err = fmt.Errorf("%s", strings.TrimSpace(status))
		}
		return err
	}
}
