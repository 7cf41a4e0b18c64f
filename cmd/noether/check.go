package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/study"
)

func checkCommand(engine *engineFlags) *cobra.Command {
	var fix, asJSON bool
	c := &cobra.Command{
		Use:   "check RUN",
		Short: "Find damaged, foreign and left-over files in a run folder, and repair it",
		Long: `Looks at every file of a run folder. With --fix what is wrong is moved into its folder aside, what
is of no more use is removed, and tables are written again; a good cell is never touched. Running the
study again then does what is missing. Exits with 1 if something is wrong and was not mended.`,
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
			if asJSON {
				if found == nil {
					found = []study.Finding{}
				}
				err = printJSON(found)
			} else {
				err = printFound(found)
			}
			if err != nil {
				return err
			}
			return unrepaired(args[0], found)
		},
	}
	c.Flags().BoolVar(&fix, "fix", false, "mend what is found")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// unrepaired returns an error if damaged files were found and not repaired.
func unrepaired(dir string, found []study.Finding) error {
	wrong := 0
	for _, f := range found {
		if !f.Note && f.Mended == "" {
			wrong++
		}
	}
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("%d files of %s are damaged: noether check --fix repairs the folder", wrong, dir)
}

func printFound(found []study.Finding) error {
	if len(found) == 0 {
		fmt.Println("everything is as it should be")
		return nil
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "file\tkind\twhy\tmended")
	for _, f := range found {
		mended := f.Mended
		if f.Note {
			mended = "harmless"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.File, f.Kind, oneLine(f.Why), mended)
	}
	return t.Flush()
}
