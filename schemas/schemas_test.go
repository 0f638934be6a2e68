package schemas

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const metadata = `{"capturedAt":"2026-01-02T03:04:05.6Z","providerVersion":"0.171.0","model":"gpt-5.5","cwdPolicy":"workspace","source":"live","recorder":{"name":"replay-record","version":"1"},"redaction":{"ruleSet":"v1","counts":{"home":2}},"match":{"ignore":["params.clientInfo.version"]},"incomplete":false,"nickname":"unknown keys are fine"}`

const header = `{"type":"transcript_start","provider":"codex","protocol":"codex.app-server","version":"0.171.0","scenario":"simple","metadata":` + metadata + `,"extra":1}`

const running = `{"version":1,"verdict":"running","transcript":{"path":"t.ndjson","sha256":"","provider":"codex","protocol":"codex.app-server","scenario":"simple"},"entries":{"total":4,"played":0},"outbound":{"expected":1,"matched":0},"inbound":{"emitted":0},"launches":1,"exitCode":97}`

const failed = `{"version":1,"verdict":"mismatch","transcript":{"path":"t.ndjson","sha256":"aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899","provider":"codex","protocol":"codex.app-server","scenario":"simple"},"entries":{"total":4,"played":1,"skipped":1},"outbound":{"expected":2,"matched":1,"repeated":0},"inbound":{"emitted":0},"launches":1,"failure":{"reason":"frame","message":"outbound mismatch","file":"t.ndjson","line":3,"label":"a","actual":{"id":1},"differences":[{"path":"params.x","kind":"changed","expected":1,"actual":"1"},{"path":"","actual":null}],"nearest":{"line":5,"label":"b","differences":[]},"awaiting":{"line":3,"label":"a","type":"expect_outbound","also":[{"line":4}]},"leftover":[{"line":4}],"leftoverCount":1},"warnings":[],"exitCode":97}`

func TestAccepts(t *testing.T) {
	tests := map[string][]string{
		"metadata":            {metadata},
		"metadata.codex":      {metadata, strings.Replace(metadata, "0.171.0", "0.124.0-alpha.3", 1), strings.Replace(metadata, `"incomplete"`, `"experimentalApi":true,"incomplete"`, 1)},
		"metadata.acp":        {metadata, strings.Replace(metadata, `"incomplete"`, `"protocolVersion":"2","incomplete"`, 1), strings.Replace(metadata, `"incomplete"`, `"protocolVersion":1,"incomplete"`, 1)},
		"metadata.codex-exec": {metadata},
		"metadata.opencode":   {strings.NewReplacer("gpt-5.5", "openai/gpt-5.5").Replace(metadata)},
		"header":              {header, strings.NewReplacer("codex.app-server", "acp.ndjson-jsonrpc", `"providerVersion":"0.171.0"`, `"providerVersion":"latest"`).Replace(header)},
		"metadata.cursor":     {strings.Replace(metadata, `"incomplete"`, `"sdk":"@cursor/sdk","incomplete"`, 1)},
		"metadata.claude":     {metadata, strings.Replace(metadata, `"incomplete"`, `"sdkVersion":"0.3.332","optionsProjection":"full","incomplete"`, 1)},
		"entry": {
			`{"type":"expect_outbound","frame":null}`,
			`{"type":"expect_outbound","label":"a","group":"g","optional":true,"repeat":false,"frame":{"id":9007199254740993},"x":1}`,
			`{"type":"emit_inbound","frame":[]}`,
			`{"type":"emit_inbound","label":"a","channel":"protocol","frame":{},"afterMs":0}`,
			`{"type":"emit_inbound","channel":"stderr","frame":"text","afterMs":12}`,
			`{"type":"runtime_exit","status":"error","error":"free","label":"end","afterMs":1}`,
			`{"type":"runtime_exit","status":"cancelled","x":[]}`,
		},
		"report": {running, failed, strings.Replace(running, "running", "passed", 1)},
	}
	for name, docs := range tests {
		for _, doc := range docs {
			if err := Validate(name, []byte(doc)); err != nil {
				t.Errorf("%v\n%s", err, doc)
			}
		}
	}
}

func TestRejects(t *testing.T) {
	swap := func(doc, from, to string) string {
		out := strings.Replace(doc, from, to, 1)
		if out == doc {
			t.Fatalf("%s is not in %s", from, doc)
		}
		return out
	}
	tests := []struct{ name, doc, want string }{
		{"metadata", swap(metadata, `"capturedAt"`, `"x"`), "missing capturedAt"},
		{"metadata", swap(metadata, "2026-01-02T03:04:05.6Z", "2026-02-30T03:04:05Z"), "at /capturedAt: '2026-02-30T03:04:05Z' is not valid 'date-time'"},
		{"metadata", swap(metadata, `"gpt-5.5"`, `""`), "at /model: length must be >= 1, but got 0"},
		{"metadata", swap(metadata, `"live"`, `"Live"`), `at /source: value must be one of "live", "scripted-model", "hand-written", "imported"`},
		{"metadata", swap(metadata, `"name":"replay-record",`, ""), "at /recorder: missing name"},
		{"metadata", swap(metadata, `"home":2`, `"a/b~c d":-1`), "at /redaction/counts/a~1b~0c d: must be >= 0 but found -1"},
		{"metadata", swap(metadata, `"home":2`, `"home":1.5`), "at /redaction/counts/home: expected integer, but got number"},
		{"metadata", swap(metadata, `["params.clientInfo.version"]`, `"x"`), "at /match/ignore: expected array, but got string"},
		{"metadata", swap(metadata, `"incomplete":false`, `"incomplete":"no"`), "at /incomplete: expected boolean, but got string"},
		{"metadata", `[]`, "expected object, but got array"},
		{"metadata.codex", swap(metadata, "0.171.0", "codex-cli 0.171.0"), `at /providerVersion: does not match pattern '^[0-9]+\\.[0-9]+\\.[0-9]+(-[0-9A-Za-z.-]+)?(\\+[0-9A-Za-z.-]+)?$'`},
		{"metadata.codex", swap(metadata, `"model"`, `"x"`), "missing model"},
		{"metadata.opencode", metadata, "at /model: does not match pattern '^[^/]+/.+$'"},
		{"metadata.codex-exec", swap(metadata, "0.171.0", "latest"), "at /providerVersion: does not match pattern"},
		{"metadata.acp", swap(metadata, `"incomplete"`, `"protocolVersion":"draft","incomplete"`), "at /protocolVersion: does not match pattern"},
		{"metadata.acp", swap(metadata, `"incomplete"`, `"protocolVersion":0,"incomplete"`), "at /protocolVersion: must be >= 1"},
		{"header", strings.Replace(swap(header, "codex.app-server", "acp.ndjson-jsonrpc"), `"incomplete"`, `"protocolVersion":[],"incomplete"`, 1), "at /metadata/protocolVersion: expected string or integer"},
		{"header", strings.Replace(swap(header, "codex.app-server", "cursor-agent-sdk.local"), `"providerVersion":"0.171.0"`, `"providerVersion":"1"`, 1), "at /metadata/providerVersion: does not match pattern"},
		{"metadata.cursor", swap(metadata, "0.171.0", "1"), "at /providerVersion: does not match pattern"},
		{"metadata.cursor", swap(metadata, `"incomplete"`, `"sdk":"","incomplete"`), "at /sdk: length must be >= 1, but got 0"},
		{"metadata.claude", swap(metadata, `"incomplete"`, `"optionsProjection":"some","incomplete"`), `at /optionsProjection: value must be one of "core", "full"`},
		{"header", swap(header, "transcript_start", "start"), `at /type: value must be "transcript_start"`},
		{"header", swap(header, `"scenario":"simple"`, `"scenario":""`), "at /scenario: length must be >= 1, but got 0"},
		{"header", swap(header, `"capturedAt"`, `"x"`), "at /metadata: missing capturedAt"},
		{"header", swap(header, `"providerVersion":"0.171.0"`, `"providerVersion":"latest"`), "at /metadata/providerVersion: does not match pattern"},
		{"entry", `{"frame":1}`, "missing type"},
		{"entry", `{"type":"exit"}`, `at /type: value must be one of "expect_outbound", "emit_inbound", "runtime_exit"`},
		{"entry", `{"type":"expect_outbound"}`, "missing frame"},
		{"entry", `{"type":"expect_outbound","frame":1,"repeat":"x"}`, "at /repeat: expected boolean, but got string"},
		{"entry", `{"type":"emit_inbound","frame":1,"afterMs":1.5}`, "at /afterMs: expected integer, but got number"},
		{"entry", `{"type":"emit_inbound","frame":{},"channel":"stdout"}`, "at /frame: expected string, but got object"},
		{"entry", `{"type":"emit_inbound","frame":"","channel":"tty"}`, `at /channel: value must be one of "protocol", "stderr", "stdout"`},
		{"entry", `{"type":"runtime_exit"}`, "missing status"},
		{"entry", `{"type":"runtime_exit","status":"ok"}`, `at /status: value must be one of "success", "error", "cancelled"`},
		{"report", swap(running, `"version":1`, `"version":2`), "at /version: value must be 1"},
		{"report", swap(running, `"running"`, `"mismatch"`), "missing failure"},
		{"report", swap(failed, `"mismatch"`, `"passed"`), "value is what it must not be"},
		{"report", swap(failed, `"reason":"frame",`, ""), "at /failure: missing reason"},
		{"report", swap(failed, `"path":"params.x",`, ""), "at /failure/differences/0: missing path"},
		{"report", swap(running, `"sha256":""`, `"sha256":"AB"`), "at /transcript/sha256: does not match pattern"},
	}
	for _, c := range tests {
		err := Validate(c.name, []byte(c.doc))
		var invalid *InvalidError
		switch {
		case !errors.As(err, &invalid):
			t.Errorf("%s accepts %s: %v", c.name, c.doc, err)
		case !strings.HasPrefix(err.Error(), c.name+": "+c.want):
			t.Errorf("%s\n got %v\nwant %s", c.doc, err, c.want)
		case strings.ContainsAny(err.Error(), "\r\n"):
			t.Errorf("more than a line: %q", err)
		}
	}
}

// Several problems come in a fixed order, a missing key each.
func TestProblems(t *testing.T) {
	err := Validate("metadata", []byte(`{"source":"x","recorder":{},"model":"m","providerVersion":"1","redaction":{"ruleSet":"","counts":{}}}`))
	want := `metadata: missing capturedAt; missing cwdPolicy; at /recorder: missing name; at /recorder: missing version; at /redaction/ruleSet: length must be >= 1, but got 0; at /source: value must be one of "live", "scripted-model", "hand-written", "imported"`
	for range 20 {
		if d := cmp.Diff(want, err.Error()); d != "" {
			t.Fatalf("problems (-want +got):\n%s", d)
		}
	}
}

func TestOtherErrors(t *testing.T) {
	if err := Validate("nope", []byte("{}")); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "metadata.codex") {
		t.Errorf("unknown schema: %v", err)
	}
	if err := Validate("../schemas/header", []byte("{}")); !errors.Is(err, ErrUnknown) {
		t.Errorf("path for a name: %v", err)
	}
	for _, doc := range []string{"", "{", "{} {}", "{}x"} {
		var invalid *InvalidError
		if err := Validate("metadata", []byte(doc)); err == nil || errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), "metadata: not JSON: ") {
			t.Errorf("%q: %v", doc, err)
		}
	}
}

// Numbers are compared as they stand: 2^53+1 is no float.
func TestNumbersAreNotRounded(t *testing.T) {
	doc := `{"type":"emit_inbound","frame":1,"afterMs":9223372036854775807}`
	if err := Validate("entry", []byte(doc)); err != nil {
		t.Error(err)
	}
	if err := Validate("entry", []byte(strings.Replace(doc, "807}", "808}", 1))); err == nil {
		t.Error("a number above the limit was accepted")
	}
}

func TestEverySchema(t *testing.T) {
	want := []string{"entry", "header", "metadata", "metadata.acp", "metadata.claude", "metadata.codex", "metadata.codex-exec", "metadata.cursor", "metadata.opencode", "report", "scenario"}
	names := map[string]bool{}
	for _, name := range Names() {
		names[name] = true
		doc, err := files.ReadFile(name + suffix)
		if err != nil {
			t.Fatal(err)
		}
		var head struct {
			Schema string `json:"$schema"`
			ID     string `json:"$id"`
			Title  string `json:"title"`
		}
		if err := json.Unmarshal(doc, &head); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if head.Schema != "https://json-schema.org/draft/2020-12/schema" || head.ID != base+name+suffix || head.Title == "" {
			t.Errorf("%s has $schema %q, $id %q and title %q", name, head.Schema, head.ID, head.Title)
		}
		var invalid *InvalidError
		if err := Validate(name, []byte(`"x"`)); !errors.As(err, &invalid) {
			t.Errorf("%s does not compile, or accepts a string: %v", name, err)
		}
	}
	for _, name := range want {
		if !names[name] {
			t.Errorf("no schema %s", name)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, name := range Names() {
				_ = Validate(name, []byte("{}"))
			}
		})
	}
	wg.Wait()
}

// Of alternatives, the one that is meant is told of, by its constant or type;
// those that are constants themselves are told together.
func TestPublishedAlternatives(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"VERSION": "acme 1.0\n",
		"item.json": `{"anyOf": [
			{"type": "null"},
			{"type": "object", "required": ["type", "size"], "properties": {"type": {"enum": ["box"]}, "size": {"$ref": "size.json#/sizes/any"}}},
			{"type": "object", "required": ["type", "path"], "properties": {"type": {"const": "file"}, "path": {"type": "string"}, "mode": {"enum": ["r", "w"]}}}]}`,
		"size.json": `{"sizes": {"any": {"anyOf": [{"const": "small"}, {"const": "large"}]}}}`,
		"far.json":  `{"$ref": "https://example.com/x.json"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := OpenPublished(dir)
	if err != nil || p.Version != "acme 1.0" {
		t.Fatalf("OpenPublished: %v, %v", p, err)
	}
	for doc, want := range map[string]string{
		`null`:                                  "",
		`{"type":"box","size":"small"}`:         "",
		`{"type":"box","size":"huge"}`:          `item.json: at /size: value must be "small", or value must be "large"`,
		`{"type":"file","path":"a","mode":"x"}`: `item.json: at /mode: value must be one of "r", "w"`,
		`{"type":"file","path":7}`:              `item.json: at /path: expected string, but got number`,
		`{"type":"box"}`:                        `item.json: missing size`,
	} {
		got := ""
		if err := p.Validate("item.json", nil, []byte(doc)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q: want %q", doc, got, want)
		}
	}
	if err := p.Validate("far.json", nil, []byte("1")); err == nil || !strings.Contains(err.Error(), "is not in "+dir) {
		t.Errorf("a schema elsewhere: %v", err)
	}
	if err := p.Validate("size.json", []string{"sizes", "any"}, []byte(`"small"`)); err != nil {
		t.Errorf("a schema within a file: %v", err)
	}
}
