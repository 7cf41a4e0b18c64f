package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/report"
)

func addJSON(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print JSON")
}

// show prints a result: as JSON, or as text by the given function.
func show(asJSON bool, v any, text func() error) error {
	if asJSON {
		return printJSON(v)
	}
	return text()
}

func printJSON(v any) error { return writeJSON(os.Stdout, v) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(v)
}

// stdout and stderr take text for people. Control characters of names from files are quoted. JSON
// and files that are written to standard output go to os.Stdout.
var stdout, stderr io.Writer = quoting{func() io.Writer { return os.Stdout }}, quoting{func() io.Writer { return os.Stderr }}

// A quoting writer quotes control characters but the ends of lines.
type quoting struct{ to func() io.Writer }

func (q quoting) Write(p []byte) (int, error) {
	_, err := io.WriteString(q.to(), report.PrintableLines(string(p)))
	return len(p), err
}

// A columnWriter aligns columns, which tabs end.
type columnWriter struct{ *tabwriter.Writer }

func newTable(w io.Writer) columnWriter { return columnWriter{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// printf adds text. It quotes control characters of the values, also tabs and ends of lines.
func (t columnWriter) printf(format string, values ...any) {
	for i, v := range values {
		if text, ok := v.(string); ok {
			values[i] = report.Printable(text)
		}
	}
	fmt.Fprintf(t, format, values...)
}
