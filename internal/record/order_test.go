package record

import (
	"bytes"
	"fmt"
	"testing"
)

// answering is a destination whose reader answers before Write returns.
type answering struct{ answer func() }

func (a answering) Write(b []byte) (int, error) {
	a.answer()
	return len(b), nil
}

// TestTicketBeforeForward lets the answer overtake its cause: it is handed in
// while the cause is still being forwarded.
func TestTicketBeforeForward(t *testing.T) {
	tp := &tap{order: newOrder()}
	in := &pump{from: fromStdout, dst: &bytes.Buffer{}, tap: tp, maxLine: 100}
	out := &pump{from: fromClient, tap: tp, maxLine: 100, dst: answering{func() { in.pass([]byte("answer\n")) }}}
	out.pass([]byte("half"))
	out.pass([]byte(" question\nmore"))
	tp.order.finish(&message{from: fromProcess, line: []byte("end")}, false)
	var got []string
	tp.order.run(func(m message) { got = append(got, string(m.line)) })
	want := []string{"answer\n", "half question\n", "answer\n", "end"} // the first answers the half
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("order %q, want %q", got, want)
	}
}

// TestUndelivered leaves out what did not get through, and does not wait for
// a forward that never returns.
func TestUndelivered(t *testing.T) {
	tp := &tap{order: newOrder()}
	p := &pump{from: fromClient, dst: failing{6}, tap: tp, maxLine: 100}
	if p.pass([]byte("first\nsecond\n")) {
		t.Error("pass goes on after a failed write")
	}
	if _, ok := tp.order.take(); !ok {
		t.Error("no ticket")
	}
	tp.order.finish(&message{line: []byte("end")}, true)
	if _, ok := tp.order.take(); ok {
		t.Error("a ticket after the end")
	}
	var got []string
	tp.order.run(func(m message) { got = append(got, string(m.line)) })
	if fmt.Sprint(got) != "[first\n end]" {
		t.Errorf("recorded %q", got)
	}
}

type failing struct{ n int }

func (f failing) Write([]byte) (int, error) { return f.n, fmt.Errorf("broken") }
