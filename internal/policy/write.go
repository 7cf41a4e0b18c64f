package policy

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
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
		text += fmt.Sprintf("; some %d samples would decide", c.Needed)
	}
	return text
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Name    string       `xml:"name,attr"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitProblem `xml:"failure,omitempty"`
	Error   *junitProblem `xml:"error,omitempty"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
}

// WriteJUnit writes verdicts as JUnit's XML: a suite for each model, a case for each claim. Claims
// that are not decided are errors.
func (p *Policy) WriteJUnit(w io.Writer, verdicts []Verdict) error {
	all := junitSuites{Name: p.Use}
	for _, v := range verdicts {
		suite := junitSuite{Name: v.Model, Tests: len(v.Claims)}
		for _, c := range v.Claims {
			one := junitCase{Name: c.Text + " (" + c.Where() + ")", Class: v.Model}
			problem := &junitProblem{c.Evidence(), string(c.State)}
			switch c.State {
			case Fail:
				suite.Failures++
				one.Failure = problem
			case Undecided:
				suite.Errors++
				one.Error = problem
			default:
				one.Output = c.Evidence()
			}
			suite.Cases = append(suite.Cases, one)
		}
		all.Suites = append(all.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// WriteSARIF writes verdicts as SARIF 2.1.0: a result for each claim, of kind pass, fail or, for
// one that is not decided, open. file is the policy's path, version that of the program.
func (p *Policy) WriteSARIF(w io.Writer, verdicts []Verdict, file, version string) error {
	type object = map[string]any
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
					"physicalLocation": object{"artifactLocation": object{"uri": file}},
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
