// Timed runs a command and adds its time and peak memory to a table of papers/results:
//
//	go run ./papers/internal/timed papers/results/cost-stir.csv "train stir" bin/noether train ...
//
// The row of the step has elapsed time, processor time and peak memory, those of child processes
// included. Where the table has a row of the step, because an interrupted command is continued, the
// times are added. To begin anew, delete the table.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/papers/internal/tablefile"
)

func main() { tablefile.Main("timed", run) }

func run(args []string, out io.Writer) error {
	if len(args) < 3 {
		return errors.New("usage: timed TABLE STEP COMMAND ARGUMENTS")
	}
	table, step := args[0], args[1]
	// The command gets an interrupt too, and may save its work. A signal that is ignored would be so
	// by the command.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	command := exec.Command(args[2], args[3:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, out, os.Stderr
	start := time.Now()
	failed := command.Run()
	if command.ProcessState == nil {
		return failed
	}
	used := cost{time.Since(start), command.ProcessState.UserTime() + command.ProcessState.SystemTime(), machine.PeakMiB(command.ProcessState)}
	return errors.Join(failed, add(table, step, used))
}

// A cost is what a step took.
type cost struct {
	elapsed, processor time.Duration
	peak               float64 // MiB; 0: not known
}

// head is the layout that package results reads.
var head = []string{"step", "statistic", "value", "low", "high"}

// add adds a cost to the row of a step.
func add(table, step string, used cost) error {
	rows, err := tablefile.Read(table)
	if errors.Is(err, fs.ErrNotExist) {
		rows, err = [][]string{head}, nil
	}
	if err != nil {
		return err
	}
	set := func(statistic string, merge func(before float64) float64) error {
		for _, r := range rows {
			if len(r) == len(head) && r[0] == step && r[1] == statistic {
				before, err := strconv.ParseFloat(r[2], 64)
				if err != nil {
					return fmt.Errorf("%s: %s of %s: %w", table, statistic, step, err)
				}
				r[2] = fmt.Sprintf("%.0f", merge(before))
				return nil
			}
		}
		rows = append(rows, []string{step, statistic, fmt.Sprintf("%.0f", merge(0)), "", ""})
		return nil
	}
	plus := func(d time.Duration) func(float64) float64 {
		return func(before float64) float64 { return before + d.Seconds() }
	}
	err = errors.Join(set("time, s", plus(used.elapsed)), set("processor time, s", plus(used.processor)))
	if used.peak > 0 {
		err = errors.Join(err, set("peak memory, MiB", func(before float64) float64 { return max(before, used.peak) }))
	}
	if err != nil {
		return err
	}
	return tablefile.Write(table, rows)
}
