// Package junit writes the XML of JUnit, which continuous integration shows as a list of tests.
package junit

import (
	"encoding/xml"
	"io"
)

// Suites are the root of a file.
type Suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	Suites  []Suite  `xml:"testsuite"`
}

// A Suite is a group of tests. Add counts them.
type Suite struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Cases    []Case `xml:"testcase"`
}

// A Case is one test, which has passed if it has no problem.
type Case struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Failure *Problem `xml:"failure,omitempty"`
	Error   *Problem `xml:"error,omitempty"`
	Output  string   `xml:"system-out,omitempty"`
}

// A Problem says why a test failed (Failure), or could not be decided (Error).
type Problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
}

// Add adds a case and counts it.
func (s *Suite) Add(c Case) {
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Error != nil {
		s.Errors++
	}
	s.Cases = append(s.Cases, c)
}

// Write writes the suites as a file.
func (s Suites) Write(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
