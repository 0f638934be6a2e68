package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// inMemory is the largest transcript, in bytes, whose entries are kept; a
// larger one is read again while it is played.
const inMemory = 8 << 20

// Script is a transcript that has been read once, front to back, and found
// fit to be played.
type Script struct {
	Path   string
	SHA256 string // of the file, in hex
	Header envelope.Header
	Flavor *flavors.Flavor

	Total    int // entries
	Outbound int // of them, expect_outbound
	CRLF     int // lines that ended in CR LF

	ignore  []place
	labels  map[string]int // how often each occurs
	maxLine int
	entries []envelope.Entry // nil when the file is large

	// unanswered are requests, by index, whose answer was not recorded. Only
	// for flavors that then answer minimally.
	unanswered map[int]bool
	waiting    []openRequest // while loading: requests without an answer so far
	asked      int           // while loading: the last outbound entry's index
}

// openRequest is a recorded request that has not been answered.
type openRequest struct {
	index int
	frame flavors.Frame
}

// answered takes the request that a recorded response answers off the list.
func (s *Script) answered(f flavors.Frame) {
	if at := slices.IndexFunc(s.waiting, func(w openRequest) bool { return sameRequest(w.frame, f) }); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	}
}

// endLaunch settles which requests of a launch were never answered. A provider
// that broke on the last thing it was asked gives no answer when it is played
// either.
func (s *Script) endLaunch(status envelope.Status) {
	for _, w := range s.waiting {
		if status == envelope.Failed && w.index == s.asked {
			continue
		}
		if s.unanswered == nil {
			s.unanswered = map[int]bool{}
		}
		s.unanswered[w.index] = true
	}
	s.waiting = nil
}

// Load reads a transcript for playing. maxLine is the longest line accepted,
// 0 for the format's own limit. Errors of the file are *envelope.SyntaxError.
func Load(path string, maxLine int) (*Script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	s := &Script{Path: path, labels: map[string]int{}, maxLine: maxLine}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	hash := sha256.New()
	r := envelope.NewReader(path, io.TeeReader(f, hash))
	r.MaxLine = maxLine
	h, err := r.Header()
	if err != nil {
		return nil, err
	}
	s.Header = *h
	if s.Flavor, err = flavors.ByProtocol(h.Protocol); err != nil {
		return nil, s.errorf(h.Line, "%v", err)
	}
	if err := s.readIgnore(); err != nil {
		return nil, err
	}
	check := bindCheck{captured: map[string]bool{}}
	for {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := s.add(e, &check); err != nil {
			return nil, err
		}
		if info.Size() <= inMemory {
			s.entries = append(s.entries, e)
		}
	}
	if s.Total == 0 {
		return nil, s.errorf(h.Line, "transcript has no entries: nothing to play")
	}
	s.endLaunch("")
	s.CRLF = r.CRLF()
	s.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return s, nil
}

func (s *Script) readIgnore() error {
	list := gjson.GetBytes(s.Header.Metadata, "match.ignore")
	if !list.Exists() {
		return nil
	}
	if !list.IsArray() {
		return s.errorf(s.Header.Line, "metadata.match.ignore: want a list of paths")
	}
	for _, v := range list.Array() {
		if v.Type != gjson.String {
			return s.errorf(s.Header.Line, "metadata.match.ignore: %s is not a path", v.Raw)
		}
		p, err := parsePlace(v.Str)
		if err != nil {
			return s.errorf(s.Header.Line, "metadata.match.ignore: %v", err)
		}
		s.ignore = append(s.ignore, p)
	}
	return nil
}

// add counts one entry and checks what only playing needs.
func (s *Script) add(e envelope.Entry, check *bindCheck) error {
	s.Total++
	line, label := e.Position()
	if label != "" {
		s.labels[label]++
	}
	switch e := e.(type) {
	case *envelope.ExpectOutbound:
		s.Outbound++
		s.asked = s.Total - 1
		f, err := s.Flavor.Classify(envelope.Out, e.Frame)
		if err != nil {
			return s.errorf(line, "outbound frame: %v", err)
		}
		if f.Kind == flavors.Request && s.Flavor.Minimal != nil {
			s.waiting = append(s.waiting, openRequest{s.Total - 1, f})
		}
		if err := check.outbound(e.Frame); err != nil {
			return s.errorf(line, "%v", err)
		}
	case *envelope.EmitInbound:
		if e.Channel != "" && e.Channel != envelope.Protocol {
			return nil
		}
		f, err := s.Flavor.Classify(envelope.In, e.Frame)
		if err != nil {
			return s.errorf(line, "inbound frame: %v", err)
		}
		if f.Kind == flavors.Response {
			s.answered(f)
		}
		if err := check.inbound(e.Frame); err != nil {
			return s.errorf(line, "%v", err)
		}
	case *envelope.RuntimeExit:
		s.endLaunch(e.Status)
	default:
		return s.errorf(line, "entry of type %T", e) // unreachable unless an Entry is added
	}
	return nil
}

func (s *Script) errorf(line int, format string, args ...any) error {
	return &envelope.SyntaxError{File: s.Path, Line: line, Msg: fmt.Sprintf(format, args...)}
}

// HasLabel says whether LABEL or LABEL#N names an entry.
func (s *Script) HasLabel(name string) bool {
	label, nth := splitLabel(name)
	return s.labels[name] > 0 || nth > 0 && s.labels[label] >= nth
}

// splitLabel reads "turn/completed#2" as the label and 2; 0 means every one.
func splitLabel(name string) (string, int) {
	i := strings.LastIndexByte(name, '#')
	if i < 0 {
		return name, 0
	}
	n, err := strconv.Atoi(name[i+1:])
	if err != nil || n < 1 {
		return name, 0
	}
	return name[:i], n
}

// bindCheck finds names that are used before they are captured.
type bindCheck struct{ captured map[string]bool }

var bindMark = []byte("<bind:")

func (c *bindCheck) outbound(raw json.RawMessage) error {
	return c.each(raw, true)
}

func (c *bindCheck) inbound(raw json.RawMessage) error {
	return c.each(raw, false)
}

func (c *bindCheck) each(raw json.RawMessage, capture bool) error {
	if !bytes.Contains(raw, bindMark) && !bytes.Contains(raw, []byte(`\u003`)) {
		return nil
	}
	var err error
	splice(raw, func(quoted []byte, key bool) []byte {
		parts, _ := envelope.ParseText(envelope.Unquote(quoted))
		for _, p := range parts {
			switch {
			case p.Kind != envelope.PartBind || err != nil:
			case key && capture:
				err = fmt.Errorf("<bind:%s> in an outbound key: only values are bound and compared", p.Text)
			case c.captured[p.Text]:
			case capture && len(parts) == 1:
				c.captured[p.Text] = true
			case capture:
				err = fmt.Errorf("<bind:%s> inside a string before it is captured: capture it as a whole value first", p.Text)
			default:
				err = fmt.Errorf("<bind:%s> is used before an outbound frame captures it", p.Text)
			}
		}
		return nil
	})
	return err
}

// exitError is the part of runtime_exit's error that playing understands.
type exitError struct {
	ExitCode    int    `json:"exitCode"`
	Signal      string `json:"signal"`
	Stderr      string `json:"stderr"`
	InputClosed bool   `json:"inputClosed"`
}

// exitOf says how the process of a runtime_exit ends. An error of another
// shape becomes text on stderr and exit code 1.
func exitOf(e *envelope.RuntimeExit) Exit {
	x := Exit{Status: e.Status}
	if e.Status == envelope.Failed {
		x.Code = 1
	}
	var d exitError
	if len(e.Error) == 0 || string(e.Error) == "null" {
		return x
	}
	dec := json.NewDecoder(bytes.NewReader(e.Error))
	if err := dec.Decode(&d); err != nil || e.Error[0] != '{' {
		x.Stderr = string(e.Error)
		var text string
		if json.Unmarshal(e.Error, &text) == nil {
			x.Stderr = text + "\n"
		}
		return x
	}
	if gjson.GetBytes(e.Error, "exitCode").Exists() {
		x.Code = d.ExitCode
	}
	x.Signal, x.Stderr, x.InputClosed = d.Signal, d.Stderr, d.InputClosed
	return x
}
