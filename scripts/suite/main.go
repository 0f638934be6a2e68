// Command suite is the book-keeping of the live suite: which scenario is
// recorded from which provider, and the table of what came of it.
//
//	go run ./scripts/suite pairs [PROVIDER [SCENARIO]]
//	go run ./scripts/suite status DIR
//	go run ./scripts/suite clients DIR
//
// pairs prints SCENARIO, PROVIDER and the other instances (NAME=PROVIDER …),
// tab separated, of every transcript that was recorded with the scripted model
// and whose provider has a recipe. status prints the page docs/status.md from
// the results that scripts/live.sh left in DIR, clients what the tests among
// them printed, all of it where they failed.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/scenario"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) >= 1 && len(args) <= 3 && args[0] == "pairs":
		err = printPairs(append(args[1:], "", "")[:2])
	case len(args) == 2 && args[0] == "status":
		err = printStatus(args[1])
	case len(args) == 2 && args[0] == "clients":
		err = printClients(args[1])
	default:
		err = fmt.Errorf("usage: suite pairs [PROVIDER [SCENARIO]] | suite status DIR | suite clients DIR")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

// pair is one scenario on one provider, with its committed transcript.
type pair struct {
	scenario, provider string
	instances          []string // NAME=PROVIDER
	header             envelope.Header
}

// source says what stood behind the provider.
func (p *pair) source() string { return gjson.GetBytes(p.header.Metadata, "source").Str }

// live says whether the pair can be recorded anew.
func (p *pair) live() bool {
	_, err := os.Stat(filepath.Join("scripts", "providers", p.provider+".sh"))
	return err == nil && p.source() == "scripted-model"
}

// pairs lists every scenario on every provider that has a transcript.
func pairs() ([]pair, error) {
	all, err := scenario.LoadAll("transcripts", "transcripts")
	if err != nil {
		return nil, err
	}
	var list []pair
	for _, sc := range all {
		for _, provider := range sc.ProviderNames() {
			settings := sc.Providers[provider]
			file := settings.Transcript
			if file == "" {
				file = provider + ".ndjson"
			}
			t, err := header(filepath.Join("transcripts", sc.Name, file))
			if os.IsNotExist(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			p := pair{scenario: sc.Name, provider: provider, header: *t}
			for name, in := range settings.Instances {
				p.instances = append(p.instances, name+"="+in.Provider)
			}
			slices.Sort(p.instances)
			list = append(list, p)
		}
	}
	return list, nil
}

func header(path string) (*envelope.Header, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return envelope.NewReader(path, f).Header()
}

func printPairs(only []string) error {
	list, err := pairs()
	if err != nil {
		return err
	}
	found := false
	for _, p := range list {
		if p.live() && (only[0] == "" || only[0] == p.provider) && (only[1] == "" || only[1] == p.scenario) {
			found = true
			fmt.Printf("%s\t%s\t%s\n", p.scenario, p.provider, strings.Join(p.instances, " "))
		}
	}
	if !found {
		return fmt.Errorf("no transcript of %s with a recipe in scripts/providers and source scripted-model", strings.TrimSpace(strings.Join(only, " ")))
	}
	return nil
}
