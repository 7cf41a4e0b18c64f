package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/study"
)

func mergeCommand(engine *engineFlags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "merge RUN [RUN...]",
		Short: "Complete a run from its shards",
		Long: `Merges what the shards of a study have left in one run folder, or in several, and writes the
scores of the whole into the first. The scores are those of a run that was never divided.`,
		Example: "  noether merge runs/one\n  noether merge runs/one /mnt/b/runs/one /mnt/c/runs/one",
		Args:    usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, dirs []string) error {
			s, err := study.Load(filepath.Join(dirs[0], "study.yaml"), nil)
			if errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("%s is no run folder: it has no study.yaml", dirs[0])
			}
			if err != nil {
				return err
			}
			o, err := engine.open()
			if err != nil {
				return err
			}
			result, err := study.Merge(c.Context(), s, dirs, o)
			if err != nil {
				return err
			}
			return show(result, dirs[0], asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func reportCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "report RUN",
		Short: "Print the scores of a run folder and write its report again",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			result, err := study.ReadResult(args[0])
			if err != nil {
				return err
			}
			return show(result, args[0], asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
