package record

import (
	"sync"
	"time"
)

// order brings the messages of several goroutines into one sequence. A ticket
// fixes a message's place before the message is forwarded; the message itself
// is handed in afterwards. It holds what waits to be written in memory, as
// much as it takes.
type order struct {
	mu      sync.Mutex
	changed *sync.Cond
	issued  uint64 // tickets given out
	turn    uint64 // the ticket to be written next
	waiting map[uint64]*message
	closed  bool // no more tickets
	void    bool // closed, and who did not hand in yet never will
}

// ticket is a place in the sequence, and the time it was taken.
type ticket struct {
	n  uint64
	at time.Time
}

// message is one line of one pipe, one HTTP message as the codec reads it, the end of the client's input, or the end
// of the provider.
type message struct {
	from source
	at   time.Time
	line []byte // with its LF, unless the pipe ended before one
	end  *ending
}

// source tells where a message came from.
type source uint8

const (
	fromClient source = iota
	clientEnd         // its input has ended
	fromStdout
	fromServer // an answer or event of a provider that serves HTTP
	fromLog    // its stdout
	fromStderr
	fromProcess // the end of the provider
)

func newOrder() *order {
	o := &order{waiting: map[uint64]*message{}}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// take returns the next ticket. Every ticket must be handed in. ok is false
// when the sequence is closed.
func (o *order) take() (t ticket, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return ticket{}, false
	}
	t = ticket{o.issued, time.Now()}
	o.issued++
	return t, true
}

// put hands in a ticket with its message, nil when nothing was sent.
func (o *order) put(t ticket, m *message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m != nil {
		m.at = t.at
	}
	o.waiting[t.n] = m
	o.changed.Signal()
}

// finish closes the sequence with a last message. With void set nobody waits
// for tickets that were not handed in.
func (o *order) finish(last *message, void bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last.at = time.Now()
	o.waiting[o.issued] = last
	o.issued++
	o.closed, o.void = true, void
	o.changed.Signal()
}

// run calls write with each message in order, up to the last one.
func (o *order) run(write func(message)) {
	for {
		batch, more := o.next()
		for _, m := range batch {
			write(*m)
		}
		if !more {
			return
		}
	}
}

// next waits for the messages whose turn has come. more is false at the end.
func (o *order) next() (batch []*message, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for o.turn < o.issued {
			m, ok := o.waiting[o.turn]
			if !ok && !o.void {
				break
			}
			delete(o.waiting, o.turn)
			o.turn++
			if m != nil {
				batch = append(batch, m)
			}
		}
		end := o.closed && o.turn == o.issued
		if end || len(batch) > 0 {
			return batch, !end
		}
		o.changed.Wait()
	}
}
