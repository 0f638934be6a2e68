package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/tidwall/gjson"
)

// Error codes of JSON-RPC.
const (
	codeInternal       = -32603
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
)

// maxLine bounds one message of the peer.
const maxLine = 256 << 20

// rpc is one conversation in JSON-RPC shape, one object per line:
//
//	{"id":1,"method":"initialize","params":{…}}   a call, either way
//	{"id":1,"result":{…}}                         its answer
//	{"method":"turn/started","params":{…}}        a notification, either way
//
// Frames have no "jsonrpc" member. Both sides number their own calls; ours
// count from 1. The owner runs read and write, each on one goroutine, and
// calls end when the peer is gone. The other methods may be used by anyone.
type rpc struct {
	// wire is how frames look; the zero value is as above. Set before read.
	wire rpcWire
	// handle gets the peer's notifications and calls. Like the answers' then
	// functions it runs on the reading goroutine, so everything that the peer
	// said is seen in wire order; it must not block.
	handle func(rpcMessage)
	// trace, when set, sees raw frames without line end, one at a time.
	trace func(outbound bool, wire []byte)

	wake chan struct{} // holds a token when the writer has something to do
	over chan struct{} // closed by end

	traceMu sync.Mutex

	mu sync.Mutex
	st rpcState // changed through update only
}

// rpcState is all that is in flight.
type rpcState struct {
	lastID  int64
	pending map[string]*rpcCall // by id literal
	queue   []*rpcWrite
	refused *rpcError // the last error that answered none of our calls, or was internal
	garbage string    // the last line that was no message
	err     error     // why the conversation is over; nil while it is on
}

// rpcMessage is a notification or a call of the peer.
type rpcMessage struct {
	ID     string // id literal, `0` or `"a"`; "" for a notification
	Method string
	Params gjson.Result
}

// rpcCall waits for its answer. An abandoned call stays pending, since the
// facts in its answer hold all the same.
type rpcCall struct {
	method  string
	then    func(result gjson.Result) // may be nil
	refused func(*rpcError)           // may be nil
	result  gjson.Result
	err     error
	done    chan struct{}
}

// rpcWrite is one frame on its way out.
type rpcWrite struct {
	wire []byte
	err  error
	done chan struct{}
}

// rpcWire is how the frames of a conversation look that has the shape of
// JSON-RPC, but not its members.
type rpcWire struct {
	encode func(rpcFrame) any             // what stands for a frame; nil: the frame itself
	decode func(gjson.Result) rpcIncoming // nil: decodeFrame
}

// rpcIncoming is one of the peer's frames: an answer to the call ID, or a
// message. Neither when it has no method.
type rpcIncoming struct {
	rpcMessage
	answer  bool
	result  gjson.Result
	refusal *rpcError
}

// rpcError is the peer's error answer. Code 0 is none.
type rpcError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// Error returns the peer's words and the code.
func (e *rpcError) Error() string {
	if e.Code == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s (error %d)", e.Message, e.Code)
}

// rpcFrame is any outbound frame, in the order of its keys on the wire.
type rpcFrame struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params any             `json:"params,omitempty"`
	Result any             `json:"result,omitempty"`
	Error  *rpcError       `json:"error,omitempty"`
}

func newRPC(handle func(rpcMessage), trace func(bool, []byte)) *rpc {
	return &rpc{
		handle: handle,
		trace:  trace,
		wake:   make(chan struct{}, 1),
		over:   make(chan struct{}),
		st:     rpcState{pending: map[string]*rpcCall{}},
	}
}

// call asks the peer and waits for the answer. then, when not nil, sees a
// good answer before any later message is read and before call returns. The
// error is the peer's *rpcError behind the method's name, ctx's, or why the
// conversation is over.
func (r *rpc) call(ctx context.Context, method string, params any, then func(gjson.Result)) (gjson.Result, error) {
	c := &rpcCall{method: method, then: then, done: make(chan struct{})}
	_, err := r.ask(c, params)
	if err == nil {
		select {
		case <-c.done:
			err = c.err
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return gjson.Result{}, fmt.Errorf("%s: %w", method, err)
	}
	return c.result, nil
}

// post asks the peer and waits only until the question is written. settled
// sees the answer, or the peer's refusal, as then does; neither when the
// conversation ends before. Not for questions that are to be abandoned.
func (r *rpc) post(ctx context.Context, method string, params any, settled func(gjson.Result, *rpcError)) error {
	c := &rpcCall{method: method, done: make(chan struct{})}
	c.then = func(result gjson.Result) { settled(result, nil) }
	c.refused = func(refusal *rpcError) { settled(gjson.Result{}, refusal) }
	w, err := r.ask(c, params)
	if err == nil {
		err = w.wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// ask queues the question of a call. The id is taken and the frame queued in
// one step: ids go up on the wire.
func (r *rpc) ask(c *rpcCall, params any) (*rpcWrite, error) {
	w := &rpcWrite{done: make(chan struct{})}
	var err error
	r.update(func(st *rpcState) {
		if err = st.err; err != nil {
			return
		}
		id := strconv.FormatInt(st.lastID+1, 10)
		if w.wire, err = r.encode(rpcFrame{ID: json.RawMessage(id), Method: c.method, Params: params}); err != nil {
			return
		}
		st.lastID++
		st.pending[id] = c
		st.queue = append(st.queue, w)
	})
	return w, err
}

// notify sends a notification and waits until it is written. params nil
// leaves the member out.
func (r *rpc) notify(ctx context.Context, method string, params any) error {
	if err := r.send(ctx, rpcFrame{Method: method, Params: params}); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// respond answers the peer's call id, an id literal, and waits until the
// answer is written.
func (r *rpc) respond(ctx context.Context, id string, result any) error {
	return r.send(ctx, rpcFrame{ID: json.RawMessage(id), Result: result})
}

// decided is respond with the result of a decision, or the reason why there is
// none.
func (r *rpc) decided(ctx context.Context, id string, result any, err error) error {
	if err == nil {
		err = r.respond(ctx, id, result)
	}
	if err != nil {
		return fmt.Errorf("answer request %s: %w", id, err)
	}
	return nil
}

// refuse answers the peer's call with an error. It does not wait.
func (r *rpc) refuse(id string, code int64, message string) {
	r.enqueue(rpcFrame{ID: json.RawMessage(id), Error: &rpcError{Code: code, Message: message}})
}

func (r *rpc) send(ctx context.Context, f rpcFrame) error {
	w, err := r.enqueue(f)
	if err != nil {
		return err
	}
	return w.wait(ctx)
}

func (w *rpcWrite) wait(ctx context.Context) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *rpc) enqueue(f rpcFrame) (*rpcWrite, error) {
	w := &rpcWrite{done: make(chan struct{})}
	var err error
	if w.wire, err = r.encode(f); err != nil {
		return nil, err
	}
	r.update(func(st *rpcState) {
		if err = st.err; err == nil {
			st.queue = append(st.queue, w)
		}
	})
	return w, err
}

// update is the one place that changes the state; it wakes the writer.
func (r *rpc) update(f func(*rpcState)) {
	r.mu.Lock()
	f(&r.st)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default: // a token is there already
	}
}

// write writes queued frames to out until the conversation is over or a write
// fails. The failed frame's sender and all others learn the reason from end.
func (r *rpc) write(out io.Writer) error {
	for {
		select {
		case <-r.wake:
		case <-r.over:
			return nil
		}
		for {
			var w *rpcWrite
			r.mu.Lock()
			if len(r.st.queue) > 0 {
				w = r.st.queue[0]
			}
			r.mu.Unlock()
			if w == nil {
				break
			}
			r.traceFrame(true, w.wire[:len(w.wire)-1])
			if _, err := out.Write(w.wire); err != nil {
				return err
			}
			r.mu.Lock()
			if r.st.err == nil { // else end has settled it
				r.st.queue = r.st.queue[1:]
				close(w.done)
			}
			r.mu.Unlock()
		}
	}
}

// read handles the peer's messages until in ends. Lines that are no message
// are traced, remembered for the obituary and skipped: programs print things.
func (r *rpc) read(in io.Reader) error {
	br := bufio.NewReaderSize(in, 64<<10)
	var long []byte
	for {
		chunk, err := br.ReadSlice('\n')
		if len(long)+len(chunk) > maxLine {
			return fmt.Errorf("a message of more than %d bytes", maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, chunk...)
			continue
		}
		line := chunk
		if len(long) > 0 {
			line = append(long, chunk...)
			long = nil
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			r.receive(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// receive handles one line.
func (r *rpc) receive(line []byte) {
	r.traceFrame(false, line)
	if !gjson.ValidBytes(line) || line[0] != '{' {
		r.update(func(st *rpcState) { st.garbage = string(line[:min(len(line), 200)]) })
		return
	}
	decode := r.wire.decode
	if decode == nil {
		decode = decodeFrame
	}
	switch in := decode(gjson.ParseBytes(line)); {
	case in.answer:
		r.answer(in)
	case in.Method != "":
		r.handle(in.rpcMessage)
	}
}

// decodeFrame reads a frame of JSON-RPC.
func decodeFrame(f gjson.Result) rpcIncoming {
	id, method := f.Get("id"), f.Get("method")
	in := rpcIncoming{rpcMessage: rpcMessage{ID: id.Raw, Method: method.Str, Params: f.Get("params")}, result: f.Get("result")}
	in.answer = method.Type != gjson.String && id.Exists()
	if e := f.Get("error"); e.Exists() {
		in.refusal = &rpcError{Code: e.Get("code").Int(), Message: e.Get("message").String()}
	}
	return in
}

// answer settles a pending call.
func (r *rpc) answer(in rpcIncoming) {
	id, refusal := in.ID, in.refusal
	var c *rpcCall
	r.update(func(st *rpcState) {
		if c = st.pending[id]; c != nil {
			delete(st.pending, id)
		}
		if refusal != nil && (c == nil || refusal.Code == codeInternal) {
			st.refused = refusal
		}
	})
	switch {
	case c == nil: // an answer to nothing we asked
		return
	case refusal != nil:
		c.err = refusal
		if c.refused != nil {
			c.refused(refusal)
		}
	default:
		c.result = in.result
		if c.then != nil {
			c.then(c.result)
		}
	}
	close(c.done)
}

// end settles everything in flight with err. Later calls fail with it too.
func (r *rpc) end(err error) {
	r.update(func(st *rpcState) {
		if st.err != nil {
			return
		}
		st.err = err
		for _, c := range st.pending {
			c.err = err
			close(c.done)
		}
		for _, w := range st.queue {
			w.err = err
			close(w.done)
		}
		st.pending, st.queue = nil, nil
		close(r.over)
	})
}

// remarks returns what the peer said that may explain its end: an error
// answer that no caller may have seen, and a line that was no message.
func (r *rpc) remarks() (refused *rpcError, garbage string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.st.refused, r.st.garbage
}

// reason returns why the conversation is over; nil while it is on.
func (r *rpc) reason() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.st.err
}

func (r *rpc) traceFrame(outbound bool, wire []byte) {
	if r.trace == nil {
		return
	}
	r.traceMu.Lock()
	defer r.traceMu.Unlock()
	r.trace(outbound, wire)
}

// encode returns f on one line, line end included, without the HTML escapes
// that encoding/json adds by default.
func (r *rpc) encode(f rpcFrame) ([]byte, error) {
	var v any = f
	if r.wire.encode != nil {
		v = r.wire.encode(f)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %s: %w", f.Method, err)
	}
	return buf.Bytes(), nil
}
