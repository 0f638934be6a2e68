package lint

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docs/rules.md is written from the table.
func TestRulesPage(t *testing.T) {
	const file = "../../docs/rules.md"
	want := Markdown()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("docs/rules.md is not what transcript-lint rules --format markdown writes (-want +got):\n%s", d)
	}
}

var odd = Finding{Rule: "TL001", Severity: Error, File: "a,b/c.ndjson", Line: 3, Path: "frame.x", Message: "50% of\nit", Hint: "run fmt", Fingerprint: "f0"}

func TestGitHub(t *testing.T) {
	want := "::error file=a%2Cb/c.ndjson,line=3,title=TL001 syntax::at frame.x: 50%25 of%0Ait (run fmt)"
	if got := odd.GitHub(); got != want {
		t.Errorf("GitHub() = %s: want %s", got, want)
	}
}

func TestSARIF(t *testing.T) {
	var out strings.Builder
	if err := WriteSARIF(&out, "1.0", []Finding{odd, {Rule: "TL031", Severity: Info, File: "x y/ü%.ndjson", Line: 1, Message: "m"}}); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID, Level       string
				RuleIndex           int
				PartialFingerprints map[string]string
				Locations           []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if log.Version != "2.1.0" || len(run.Tool.Driver.Rules) != len(Rules) || len(run.Results) != 2 {
		t.Fatalf("log of version %s with %d rules and %d results", log.Version, len(run.Tool.Driver.Rules), len(run.Results))
	}
	r := run.Results[0]
	if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || r.Level != "error" || run.Results[1].Level != "note" ||
		r.Locations[0].PhysicalLocation.Region.StartLine != 3 || r.Locations[0].PhysicalLocation.ArtifactLocation.URI != "a,b/c.ndjson" ||
		run.Results[1].Locations[0].PhysicalLocation.ArtifactLocation.URI != "x%20y/%C3%BC%25.ndjson" || len(r.PartialFingerprints) != 1 {
		t.Errorf("result %+v", r)
	}
}

// A fingerprint outlives lines that are put in before, and puts its finding
// aside in a baseline and in the file.
func TestFingerprints(t *testing.T) {
	line := `{"type":"expect_outbound","frame":{"method":"a"}}` + "\n"
	tail := `{"type":"runtime_exit","status":"success"}` + "\n"
	check := func(text string) []Finding {
		found, err := Check("t", strings.NewReader(text), Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := check(header + line + line + tail)
	if len(before) != 2 || before[0].Fingerprint == before[1].Fingerprint {
		t.Fatalf("findings %v: want two with fingerprints of their own", before)
	}
	moved := check(header + strings.Replace(line, `"frame"`, `"label":"l","frame"`, 1) + line + line + tail)
	if moved[0].Fingerprint != before[0].Fingerprint || moved[0].Line == before[0].Line {
		t.Errorf("moved from %+v to %+v", before[0], moved[0])
	}
	quiet := strings.Replace(header, `"metadata":{`, `"metadata":{"lint":{"suppress":["`+before[0].Fingerprint+`",{"fingerprint":"`+before[1].Fingerprint+`","reason":"r"}]},`, 1)
	if found := check(quiet + line + line + tail); len(found) > 0 {
		t.Errorf("suppressed findings are reported: %v", found)
	}
	var b Baseline
	b.Add(before[0])
	var text strings.Builder
	if err := b.Write(&text); err != nil {
		t.Fatal(err)
	}
	back := &Baseline{}
	if text.Len() > 0 {
		var err error
		if back, err = ReadBaseline(strings.NewReader(text.String() + `{"version":2}`)); err != nil {
			t.Fatal(err)
		}
	}
	if !back.Has(before[0]) || back.Has(before[1]) {
		t.Errorf("baseline %s", text.String())
	}
	if _, err := ReadBaseline(strings.NewReader(`{"version":2}`)); err == nil {
		t.Error("a baseline of version 2 was read")
	}
}
