package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/study"
)

func checkCommand(engine *engineFlags) *cobra.Command {
	var fix, asJSON bool
	c := &cobra.Command{
		Use:   "check RUN",
		Short: "Check the files of a run folder, and repair it with --fix",
		Long: `Checks every file of a run folder. With --fix files that are damaged or belong to another study are
moved to the subfolder "aside", temporary files are removed, and the tables of scores are written again.
Valid results are never changed. Run the study again to compute missing ones. The exit code is 1 if a
problem was found and not repaired.`,
		Example: "  noether check runs/one\n  noether check runs/one --fix",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := engine.open()
			if err != nil {
				return err
			}
			found, err := study.Check(c.Context(), args[0], fix, o)
			if err != nil {
				return err
			}
			if found == nil {
				found = []study.Finding{} // in JSON
			}
			if err := show(asJSON, found, func() error { return printFound(found) }); err != nil {
				return err
			}
			return unrepaired(args[0], found)
		},
	}
	c.Flags().BoolVar(&fix, "fix", false, "repair the folder")
	addJSON(c, &asJSON)
	return c
}

// unrepaired returns an error if problems were found and not repaired.
func unrepaired(dir string, found []study.Finding) error {
	problems := 0
	for _, f := range found {
		if !f.Note && f.Mended == "" {
			problems++
		}
	}
	if problems == 0 {
		return nil
	}
	return fmt.Errorf("%s in %s: noether check --fix repairs the folder", plural.Of(problems, "problem"), dir)
}

func printFound(found []study.Finding) error {
	if len(found) == 0 {
		fmt.Fprintln(stdout, "no problems were found")
		return nil
	}
	t := newTable(stdout)
	fmt.Fprintln(t, "file\tkind\treason\trepair")
	for _, f := range found {
		repair := f.Mended
		if f.Note { // there is nothing to repair
			repair = "none"
		}
		t.printf("%s\t%s\t%s\t%s\n", f.File, f.Kind, oneLine(f.Why), repair)
	}
	return t.Flush()
}
