package main

import (
	"encoding/json"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"
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

// newTable returns a writer that aligns columns, which tabs end.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }
