package lint

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
)

// WriteSARIF writes findings as one SARIF 2.1.0 log, which code hosts show
// beside the lines of a pull request. version is the tool's.
func WriteSARIF(w io.Writer, version string, found []Finding) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{
		Name: "transcript-lint", Version: version,
		URI: "https://github.com/replaypeer/replaypeer/blob/main/docs/rules.md",
	}
	index := map[string]int{}
	for i, r := range Rules {
		index[r.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: r.ID, Name: r.Name, Short: sarifText{r.What}, Full: sarifText{r.Why},
			HelpURI: run.Tool.Driver.URI + "#" + r.anchor(), Config: sarifLevel{sarifSeverity(r.Severity)},
		})
	}
	for _, f := range found {
		message := f.Message
		if f.Path != "" {
			message = f.Path + ": " + message
		}
		if f.Hint != "" {
			message += " (" + f.Hint + ")"
		}
		place := sarifLocation{}
		place.Physical.Artifact.URI = (&url.URL{Path: filepath.ToSlash(f.File)}).String()
		place.Physical.Region.StartLine = f.Line
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Rule, RuleIndex: index[f.Rule], Level: sarifSeverity(f.Severity), Message: sarifText{message},
			Locations: []sarifLocation{place}, Prints: map[string]string{"transcriptLint/v1": f.Fingerprint},
		})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(sarifLog{
		Version: "2.1.0", Schema: "https://json.schemastore.org/sarif-2.1.0.json", Runs: []sarifRun{run},
	})
}

func sarifSeverity(s Severity) string {
	if s == Info {
		return "note"
	}
	return string(s)
}

type sarifLog struct {
	Version string     `json:"version"`
	Schema  string     `json:"$schema"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool struct {
		Driver sarifDriver `json:"driver"`
	} `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version,omitempty"`
	URI     string      `json:"informationUri"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Short   sarifText  `json:"shortDescription"`
	Full    sarifText  `json:"fullDescription"`
	HelpURI string     `json:"helpUri"`
	Config  sarifLevel `json:"defaultConfiguration"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifLevel struct {
	Level string `json:"level"`
}

type sarifResult struct {
	RuleID    string            `json:"ruleId"`
	RuleIndex int               `json:"ruleIndex"`
	Level     string            `json:"level"`
	Message   sarifText         `json:"message"`
	Locations []sarifLocation   `json:"locations"`
	Prints    map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct {
	Physical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			StartLine int `json:"startLine"`
		} `json:"region"`
	} `json:"physicalLocation"`
}
