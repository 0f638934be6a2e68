package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/scenario"
	"github.com/replaypeer/replaypeer/internal/tool"
)

// scenarioNames completes --scenario with what the folder holds.
func scenarioNames(c *cli.Context) (list []tool.Candidate) {
	eachScenario(c, func(s *scenario.Scenario) {
		list = append(list, tool.Candidate{Word: s.Name, About: s.Description})
	})
	return list
}

// providerNames completes --provider with those of the chosen scenarios.
func providerNames(c *cli.Context) (list []tool.Candidate) {
	chosen := c.StringSlice("scenario")
	if len(chosen) == 0 && c.IsSet("scenario") { // where it is not repeatable
		chosen = []string{c.String("scenario")}
	}
	eachScenario(c, func(s *scenario.Scenario) {
		if len(chosen) > 0 && !slices.Contains(chosen, s.Name) {
			return
		}
		for _, name := range s.ProviderNames() {
			if at := (tool.Candidate{Word: name}); !slices.Contains(list, at) {
				list = append(list, at)
			}
		}
	})
	slices.SortFunc(list, func(a, b tool.Candidate) int { return strings.Compare(a.Word, b.Word) })
	return list
}

func eachScenario(c *cli.Context, fn func(*scenario.Scenario)) {
	dir, err := openDir(c.String("dir"))
	if err != nil {
		return // the command itself will say so
	}
	defer dir.close()
	for _, s := range dir.scenarios {
		fn(s)
	}
}
