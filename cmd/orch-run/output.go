package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/replaypeer/replaypeer/internal/scenario"
)

// printer writes results as they come, as text or as one JSON object a line.
// The first write error is kept and returned by totals.
type printer struct {
	w     io.Writer
	json  bool
	lines int
	err   error
}

func newPrinter(w io.Writer, json bool) *printer { return &printer{w: w, json: json} }

func (p *printer) result(r *scenario.Result) {
	if p.json {
		p.object(r)
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-11s %s/%s", strings.ReplaceAll(string(r.Status), "_", " "), r.Scenario, r.Provider)
	if r.Report != nil {
		fmt.Fprintf(&b, "  %d frames out, %d in", r.Frames.Outbound, r.Frames.Inbound)
	}
	if r.Events > 0 {
		fmt.Fprintf(&b, "  %d events", r.Events)
	}
	if r.Without != "" {
		fmt.Fprintf(&b, "  without %s", r.Without)
	}
	if r.Layer != "" {
		fmt.Fprintf(&b, "  (%s)", r.Layer)
	}
	if r.Reason != "" {
		b.WriteString("\n  " + strings.ReplaceAll(r.Reason, "\n", "\n  "))
	}
	p.line(b.String())
}

func (p *printer) totals(t scenario.Totals) error {
	if p.json {
		p.object(map[string]scenario.Totals{"totals": t})
	} else {
		p.line(fmt.Sprintf("%d passed, %d failed, %d not reached, %d skipped", t.Passed, t.Failed, t.NotReached, t.Skipped))
	}
	return p.err
}

// object prints v, which must be a JSON object; the first one also says the
// version of the format.
func (p *printer) object(v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		p.err = err // unreachable unless a result holds bad JSON
		return
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if p.lines == 0 {
		text = `{"version":1,` + text[1:]
	}
	p.line(text)
}

func (p *printer) line(s string) {
	p.lines++
	if _, err := fmt.Fprintln(p.w, s); err != nil && p.err == nil {
		p.err = err
	}
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

// junitCase is a pass only without the other three.
type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Time    string     `xml:"time,attr"`
	Failure *junitNote `xml:"failure"`
	Error   *junitNote `xml:"error"`
	Skipped *junitNote `xml:"skipped"`
}

type junitNote struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes one test case per result: a failure for failed, an error
// for not reached, skipped for skipped.
func writeJUnit(file string, results []*scenario.Result) error {
	t := scenario.Count(results)
	suite := junitSuite{Name: "orch-run", Tests: len(results), Failures: t.Failed, Errors: t.NotReached, Skipped: t.Skipped}
	var total int64
	for _, r := range results {
		total += r.DurationMs
		c := junitCase{Class: r.Scenario, Name: r.Provider, Time: seconds(r.DurationMs)}
		first, _, _ := strings.Cut(r.Reason, "\n")
		note := &junitNote{Message: first, Type: string(r.Layer), Text: r.Reason}
		switch r.Status {
		case scenario.Passed:
		case scenario.Skipped:
			c.Skipped = &junitNote{Message: r.Reason}
		case scenario.NotReached:
			c.Error = note
		default:
			c.Failure = note
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Time = seconds(total)
	data, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err // unreachable unless a type here cannot be marshalled
	}
	return os.WriteFile(file, append([]byte(xml.Header), append(data, '\n')...), 0o644)
}

func seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }
