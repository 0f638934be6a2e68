//go:build browser && linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// chromium is a headless browser in a network namespace that has nothing but
// loopback, with a home of its own. It speaks the DevTools protocol on a pair
// of pipes, one JSON object per message, each ended by NUL:
//
//	{"id":1,"method":"Runtime.evaluate","sessionId":"…","params":{"expression":"1+1"}}
type chromium struct {
	in      io.Writer
	out     *bufio.Reader
	id      int
	session string   // of the tab that commands go to; "" is the browser
	trouble []string // what the pages complained of, and what they asked the network for
}

// patience is for a machine with other work to do.
const patience = 2 * time.Minute

func startChromium(t *testing.T, program string) *chromium {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"home", "tmp", "profile"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	theirIn, ourOut := pipe(t)
	ourIn, theirOut := pipe(t)
	cmd := exec.Command("../../scripts/loopback.sh", program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--window-size=1200,900",
		"--remote-debugging-pipe", "--user-data-dir="+filepath.Join(dir, "profile"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir + "/home", "TMPDIR=" + dir + "/tmp", "LANG=C.UTF-8", "TZ=UTC"}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4, where the browser looks for them
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	c := &chromium{in: ourOut, out: bufio.NewReader(ourIn)}
	t.Cleanup(func() {
		c.session = ""
		c.send("Browser.close", nil)
		cmd.Wait() // the reason of a failure is in stderr
		late.Stop()
		if t.Failed() {
			for line := range strings.Lines(stderr.String()) {
				if !strings.Contains(line, "ERROR:dbus/") { // there is none, and it does without
					t.Logf("browser: %s", strings.TrimSpace(line))
				}
			}
		}
	})
	return c
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func (c *chromium) send(method string, params any) error {
	c.id++
	message := map[string]any{"id": c.id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if c.session != "" {
		message["sessionId"] = c.session
	}
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = c.in.Write(append(b, 0))
	return err
}

// message is an answer, with an id, or an event, with a method.
type message struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

func (c *chromium) read() (m message, err error) {
	b, err := c.out.ReadBytes(0)
	if err != nil {
		return m, fmt.Errorf("the browser is gone: %w", err)
	}
	if err := json.Unmarshal(b[:len(b)-1], &m); err != nil {
		return m, err
	}
	switch m.Method {
	case "Runtime.exceptionThrown", "Log.entryAdded":
		c.trouble = append(c.trouble, string(m.Params))
	case "Network.requestWillBeSent":
		if !bytes.Contains(m.Params, []byte(`"url":"file:///`)) {
			c.trouble = append(c.trouble, string(m.Params))
		}
	}
	return m, nil
}

// call sends a command and puts its result into one; nil drops it.
func (c *chromium) call(t *testing.T, method string, params, result any) {
	t.Helper()
	if err := c.send(method, params); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := c.read()
		switch {
		case err != nil:
			t.Fatalf("%s: %v", method, err)
		case m.ID != c.id:
			continue
		case m.Error != nil:
			t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
}

// tab opens an empty tab, to which commands go from now on; script runs in its
// pages before anything of theirs.
func (c *chromium) tab(t *testing.T, script string) {
	t.Helper()
	c.session = ""
	var target struct{ TargetID string }
	c.call(t, "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	c.call(t, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		c.call(t, domain+".enable", nil, nil)
	}
	c.call(t, "Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": script}, nil)
}

// eval puts the value of an expression, a promise's result, into one.
func (c *chromium) eval(t *testing.T, result any, expression string) {
	t.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	c.call(t, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	if got.ExceptionDetails != nil {
		t.Fatalf("%s: %s", expression, got.ExceptionDetails)
	}
	if err := json.Unmarshal(got.Result.Value, result); err != nil {
		t.Fatalf("%s gave %s: %v", expression, got.Result.Value, err)
	}
}

// click presses the mouse in the middle of an element, which must be in sight.
func (c *chromium) click(t *testing.T, selector string) {
	t.Helper()
	var at *struct{ X, Y float64 }
	c.eval(t, &at, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q), r = e.getBoundingClientRect(), x = r.x + Math.min(r.width / 2, 20), y = r.y + r.height / 2;
		return e.contains(document.elementFromPoint(x, y)) ? {x, y} : null;
	})()`, selector))
	if at == nil {
		t.Fatalf("%s cannot be clicked: it is out of sight or covered", selector)
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		c.call(t, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// write clicks an input field, replaces what is in it and ends with Enter.
func (c *chromium) write(t *testing.T, selector, text string) {
	t.Helper()
	c.click(t, selector)
	key := func(name, command string, code int) {
		t.Helper()
		event := map[string]any{"type": "keyDown", "key": name, "code": name, "windowsVirtualKeyCode": code}
		if command != "" {
			event["commands"] = []string{command}
		}
		if name == "Enter" {
			event["text"] = "\r"
		}
		c.call(t, "Input.dispatchKeyEvent", event, nil)
		c.call(t, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name, "code": name, "windowsVirtualKeyCode": code}, nil)
	}
	key("a", "selectAll", 'A')
	key("Backspace", "deleteBackward", 8)
	for _, letter := range strings.Split(text, "") {
		if letter != "" {
			c.call(t, "Input.dispatchKeyEvent", map[string]any{"type": "char", "text": letter}, nil)
		}
	}
	key("Enter", "", 13)
}
