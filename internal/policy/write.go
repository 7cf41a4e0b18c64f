package policy

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/internal/junit"
)

// Evidence returns the value of a claim with its interval and n, and what would decide it.
func (c Claim) Evidence() string {
	text := c.Why
	if !math.IsNaN(c.Mean) {
		text = fmt.Sprintf("%.4g [%.4g, %.4g], n = %d", c.Mean, c.Low, c.High, c.N)
		if c.Why != "" && c.State == Undecided {
			text += "; " + c.Why
		}
	}
	if c.Needed > 0 {
		holds := "that it holds"
		if c.margin() < 0 {
			holds = "that it does not hold"
		}
		of := ""
		if strings.Contains(c.Group, "=") { // else a layer
			of = " of " + c.Group
		}
		text += fmt.Sprintf("; some %d samples%s would show %s, if the value stays", c.Needed, of, holds)
	}
	return text
}

// WriteJUnit writes verdicts as JUnit's XML: a suite for each model, a case for each claim. Claims
// that are not decided are errors.
func (p *Policy) WriteJUnit(w io.Writer, verdicts []Verdict) error {
	all := junit.Suites{Name: p.Use}
	for _, v := range verdicts {
		suite := junit.Suite{Name: v.Model}
		for _, c := range v.Claims {
			one := junit.Case{Name: c.Text + " (" + c.Where() + ")", Class: v.Model}
			problem := &junit.Problem{Message: c.Evidence(), Type: string(c.State)}
			switch c.State {
			case Fail:
				one.Failure = problem
			case Undecided:
				one.Error = problem
			default:
				one.Output = c.Evidence()
			}
			suite.Add(one)
		}
		all.Suites = append(all.Suites, suite)
	}
	return all.Write(w)
}

// WriteSARIF writes verdicts as SARIF 2.1.0: a result for each claim, of kind pass, fail or, for
// one that is not decided, open. file is the policy's path, version that of the program.
func (p *Policy) WriteSARIF(w io.Writer, verdicts []Verdict, file, version string) error {
	type object = map[string]any
	uri := (&url.URL{Path: filepath.ToSlash(file)}).String()
	results := []object{}
	rules, known := []object{}, map[string]bool{}
	for _, v := range verdicts {
		for _, c := range v.Claims {
			kind, level := "pass", "none"
			switch c.State {
			case Fail:
				kind, level = "fail", "error"
			case Undecided:
				kind = "open"
			}
			if !known[c.Text] {
				known[c.Text] = true
				rules = append(rules, object{"id": c.Text, "shortDescription": object{"text": c.Text}})
			}
			results = append(results, object{
				"ruleId": c.Text, "kind": kind, "level": level,
				"message": object{"text": fmt.Sprintf("%s, %s: %s: %s", v.Model, c.Where(), c.State, c.Evidence())},
				"locations": []object{{
					"physicalLocation": object{"artifactLocation": object{"uri": uri}},
					"logicalLocations": []object{{"fullyQualifiedName": v.Model + ", " + c.Where()}},
				}},
			})
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": object{"name": "noether", "version": version, "rules": rules}}, "results": results}},
	})
}
