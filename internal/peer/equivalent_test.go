//go:build unix

package peer

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// equivalents are clients that say the same in other words, or end the peer
// when all is said. They pass, and get the recorded frames byte for byte.
var equivalents = []variant{
	{name: "the faithful client"},
	{name: "whitespace", change: func(c *client) {
		c.edit("> initialize", `{"id":1,`, " {\t\"id\" : 1 , ")
		c.edit("> initialize", `["a","b","c"]`, `[ "a" ,"b", "c"	]`)
		c.edit("> initialized", `}`, `} `+"\t")
	}},
	{name: "key order", change: func(c *client) {
		c.set("> thread/start", `{"params":{"approvalPolicy":"untrusted","cwd":"/ws"},"method":"thread/start","id":2}`)
		c.set("> approve", `{"result":{"decision":"accept"},"id":0}`)
	}},
	{name: "escapes in values and keys", change: func(c *client) {
		c.set("> thread/start", `{"\u0069d":2,"method":"thread\/start","params":{"c\u0077d":"\u002fws","approvalPolicy":"\u0075ntrusted"}}`)
		c.edit("> turn/start", "\u2028", `\u2028`)
	}},
	{name: "CR LF", change: func(c *client) {
		for i, o := range c.ops {
			if o.name[0] == '>' {
				c.ops[i].line = append(o.line, '\r')
			}
		}
	}},
	{name: "blank lines", change: func(c *client) {
		c.before("> initialize", sends(""), sends(" \t"))
		c.after("> turn/start", sends("\r"), sends(""))
		c.after("< turn/completed", sends(""))
	}},
	{name: "no end of the last line", change: func(c *client) {
		last := []byte(c.line("> approve"))
		c.ops[c.at("> approve")] = does("unterminated", func(p *process) error {
			if _, err := p.in.Write(last); err != nil {
				return err
			}
			return p.in.Close()
		})
	}},
	{name: "other request ids", change: func(c *client) { c.renumber(func(id string) string { return "90071992547409" + id }) }},
	{name: "negative request ids", change: func(c *client) { c.renumber(func(id string) string { return "-" + id }) }},
	{name: "strings for request ids", change: func(c *client) { c.renumber(func(id string) string { return `"req ` + id + `é"` }) }},
	{name: "the id of the provider's request", change: func(c *client) { c.renumber(func(id string) string { return strings.Replace(id, "5", "0", 1) }) }},
	{name: "one id again and again", change: func(c *client) {
		c.renumber(func(id string) string { return map[string]string{"1": "7", "2": "7", "3": "7", "4": "8", "5": "7"}[id] })
	}},
	{name: "one byte at a time", change: func(c *client) {
		for i, o := range c.ops {
			if o.name[0] == '>' {
				c.ops[i] = does(o.name, func(p *process) error {
					for _, b := range append(bytes.Clone(o.line), '\n') {
						if _, err := p.in.Write([]byte{b}); err != nil {
							return err
						}
					}
					return nil
				})
			}
		}
	}},
	{name: "everything in one write", change: burst},
	{name: "other text for the in-string <any>", change: edited("> turn/start", "<noon or so>", `\"noon\"\n<any>`)},
	{name: "no text for the in-string <any>", change: edited("> turn/start", "<noon or so>", ``)},
	{name: "20 MB for the in-string <any>", change: func(c *client) { c.edit("> turn/start", "noon or so", strings.Repeat("x", 20<<20)) }},
	{name: "SIGKILL after the last frame", signal: syscall.SIGKILL, exit: -1,
		change: func(c *client) { c.after("< turn/completed", signals(syscall.SIGKILL)) }},
	{name: "SIGTERM after the last frame", change: func(c *client) { c.after("< turn/completed", signals(syscall.SIGTERM), untilEnd) }},
	{name: "both ends closed after the last frame", change: func(c *client) { c.after("< turn/completed", closeBoth) }},
	{name: "reading end closed after the last frame", change: func(c *client) { c.after("< turn/completed", closeReading) }},
	{name: "input closed before the answers are read", change: func(c *client) {
		c.after("> approve", does("close", func(p *process) error { return p.in.Close() }))
	}},
	{name: "idle after the last frame", change: func(c *client) { c.after("< turn/completed", untilEnd) }, cfg: soon},
	{name: "output in pieces of 1 byte", cfg: func(cfg *Config) { cfg.Split = 1 }},
	{name: "output in pieces of 3 bytes", cfg: func(cfg *Config) { cfg.Split = 3 }},
	{name: "output in pieces of 7 bytes", cfg: func(cfg *Config) { cfg.Split = 7 }},
}

func TestEquivalents(t *testing.T) {
	for _, v := range equivalents {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			o := v.play(t, green)
			if o.failed != nil && v.name != "reading end closed after the last frame" && v.name != "both ends closed after the last frame" {
				t.Error(o.failed)
			}
			if o.code != v.exit || o.signal != v.signal || o.stderr != "" {
				t.Errorf("exit code %d, signal %v, stderr:\n%s", o.code, o.signal, o.stderr)
			}
			want := replay.Report{
				Version: 1, Verdict: replay.Passed, Launches: 1,
				Entries: replay.EntryCount{Total: 18, Played: 18}, Outbound: replay.OutboundCount{Expected: 7, Matched: 7}, Inbound: replay.InboundCount{Emitted: 10},
			}
			o.report.Transcript, o.report.Warnings = replay.TranscriptRef{}, nil
			if d := cmp.Diff(&want, o.report); d != "" {
				t.Errorf("report (-want +got):\n%s", d)
			}
		})
	}
}

// A client's line ends are told of, and are no failure.
func TestWarnsOfCRLF(t *testing.T) {
	for _, v := range equivalents {
		if v.name != "CR LF" {
			continue
		}
		if d := cmp.Diff([]string{"the client ended lines with CR LF"}, v.play(t, green).report.Warnings); d != "" {
			t.Error(d)
		}
	}
}

var requestID = regexp.MustCompile(`^\{"id":([1-9]),"(method|result)"`)

// renumber changes the client's request ids and the answers it wants.
func (c *client) renumber(id func(string) string) {
	for i, o := range c.ops {
		m := requestID.FindSubmatch(o.line)
		if m == nil {
			continue
		}
		c.ops[i].line = append(fmt.Appendf(nil, `{"id":%s,"%s"`, id(string(m[1])), m[2]), o.line[len(m[0]):]...)
	}
}

// burst sends everything before it reads anything.
func burst(c *client) {
	var out []byte
	var rest []op
	for _, o := range c.ops {
		if o.name[0] == '>' {
			out = append(append(out, o.line...), '\n')
		} else {
			rest = append(rest, o)
		}
	}
	c.ops = append([]op{does("burst", func(p *process) error { _, err := p.in.Write(out); return err })}, rest...)
}
