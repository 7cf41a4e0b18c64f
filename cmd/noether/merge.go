package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/study"
)

func mergeCommand(engine *engineFlags) *cobra.Command {
	var p printFlags
	var observe *observeFlags
	var python pythonFlags
	c := &cobra.Command{
		Use:   "merge RUN [RUN...]",
		Short: "Complete a run from its shards",
		Long: `Merges the results of the shards of a study from one or several run folders, and writes the scores
into the first folder. The scores equal those of a run without shards. If shards are missing, the
complete cells are written, the others are listed, and the exit code is 1.`,
		Example: "  noether merge runs/one\n  noether merge runs/one /mnt/b/runs/one /mnt/c/runs/one",
		Args:    usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, dirs []string) error {
			s, err := study.Load(filepath.Join(dirs[0], "study.yaml"), nil)
			if errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("%s is not a run folder: it has no study.yaml", dirs[0])
			}
			if err != nil {
				return err
			}
			stopPython, err := python.start(c.Context(), s)
			if err != nil {
				return err
			}
			defer stopPython()
			o, err := engine.open()
			if err != nil {
				return err
			}
			stop, err := observe.start(c, &o)
			if err != nil {
				return err
			}
			return stop(mergeRuns(c.Context(), s, dirs, o, p))
		},
	}
	observe = addObserveFlags(c)
	python.add(c.Flags())
	p.add(c.Flags())
	return c
}

// mergeRuns lists missing shards on standard error; then the error contains a *study.Incomplete.
func mergeRuns(ctx context.Context, s *study.Study, dirs []string, o study.Options, p printFlags) error {
	result, err := study.Merge(ctx, s, dirs, o)
	if result == nil {
		return err
	}
	showErr := showResult(result, dirs[0], p)
	var incomplete *study.Incomplete
	if errors.As(err, &incomplete) {
		t := newTable(stderr)
		fmt.Fprintln(t, "model\tcells\tmissing shards\tfor instance")
		for _, m := range incomplete.ByModel() {
			t.printf("%s\t%d\t%s\t%s\n", m.Model, m.Cells, cmp.Or(strings.Join(m.Shards, ", "), "all"), m.Example)
		}
		t.Flush()
	}
	return errors.Join(showErr, err)
}

func reportCommand() *cobra.Command {
	var p printFlags
	c := &cobra.Command{
		Use:   "report RUN",
		Short: "Print the scores of a run folder and write its report again",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			machine.AllowGarbage() // fewer garbage collections while many scores are read
			attached := sync.OnceValue(readAttached(args[0], nil))
			go attached() // while the scores are read
			result, err := study.ReadResult(args[0])
			if err != nil {
				return err
			}
			waiting := 0 // files of shards that are not merged yet
			if result.Record.Finished == nil {
				if waiting, err = study.Unmerged(args[0]); err != nil {
					return err
				}
			}
			if waiting > 0 && len(result.Rows) == 0 {
				return fmt.Errorf("%s holds shards but no scores yet: noether merge %s", args[0], args[0])
			}
			if waiting > 0 {
				note("shards wait to be merged: noether merge " + args[0])
			}
			return showPage(result, args[0], p, attached)
		},
	}
	p.add(c.Flags())
	return c
}
