package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tidwall/gjson"
)

// send makes a request. body nil sends none.
func (s *openCodeServer) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err // unreachable unless the server's address is no URL
	}
	if body == nil {
		req.Body = http.NoBody
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.secret != "" {
		req.SetBasicAuth(s.user, s.secret)
	}
	s.log(true, body, func() any {
		return struct {
			Method string          `json:"method"`
			Path   string          `json:"path"`
			Body   json.RawMessage `json:"body,omitempty"`
		}{method, path, body}
	})
	return s.http.Do(req)
}

// openCodeError is an answer that refuses a call.
type openCodeError struct {
	call   string
	status int
	text   string
}

func (e *openCodeError) Error() string {
	return fmt.Sprintf("%s: status %d: %s", e.call, e.status, clip(e.text))
}

// call makes a call and returns its answer. in nil sends no body. An answer
// that refuses is an *openCodeError; a call to a process that is gone fails
// with why.
func (s *openCodeServer) call(ctx context.Context, method, path string, in any) (gjson.Result, error) {
	var body []byte
	if in != nil {
		body = detail(in)
	}
	res, err := s.send(ctx, method, path, body)
	if err != nil {
		return gjson.Result{}, s.callError(ctx, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxLine))
	if err != nil {
		return gjson.Result{}, s.callError(ctx, err)
	}
	s.log(false, data, func() any {
		return struct {
			Path   string          `json:"path"`
			Status int             `json:"status"`
			Body   json.RawMessage `json:"body,omitempty"`
		}{path, res.StatusCode, data}
	})
	answer := gjson.ParseBytes(data)
	if res.StatusCode >= 300 {
		text := firstText(answer.Get("data.message").String(), answer.Get("message").String(), string(data))
		return answer, &openCodeError{call: method + " " + path, status: res.StatusCode, text: text}
	}
	if len(data) > 0 && !gjson.ValidBytes(data) {
		return gjson.Result{}, fmt.Errorf("%s %s: the answer is not JSON", method, path)
	}
	return answer, nil
}

// callError gives a call that broke off the reason that the process had.
func (s *openCodeServer) callError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case <-s.gone:
		return goneError{s.obit}
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(drainLimit):
		return err // the connection broke, and the server is still there
	}
}

// log hands a frame to the diagnostics. A body that is not JSON is written as
// a string.
func (s *openCodeServer) log(outbound bool, body []byte, frame func() any) {
	if s.trace == nil {
		return
	}
	wire := body
	if frame != nil {
		if wire = detail(frame()); wire == nil {
			wire = detail(string(body))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace(outbound, wire)
}
