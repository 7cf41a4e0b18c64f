// Timed runs a command and writes its time and peak memory to a table of papers/results:
//
//	go run ./papers/internal/timed runs/small papers/results/cost-stir.csv "train stir" bin/noether train ...
//
// The row of the step has elapsed time, processor time and peak memory, those of child processes
// included. An interrupted command may be continued: the sums over its parts are kept in a table of
// the same name in the folder of the runs, so that they begin anew with the runs.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/papers/internal/tablefile"
)

func main() { tablefile.Main("timed", run) }

func run(args []string, out io.Writer) error {
	if len(args) < 4 {
		return errors.New("usage: timed RUNS TABLE STEP COMMAND ARGUMENTS")
	}
	table, step := args[1], args[2]
	sums := filepath.Join(args[0], filepath.Base(table))
	if err := os.MkdirAll(args[0], 0o777); err != nil {
		return err
	}
	// The command gets an interrupt too, and may save its work. A signal that is ignored would be so
	// by the command.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	command := exec.Command(args[3], args[4:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, out, os.Stderr
	start := time.Now()
	failed := command.Run()
	if command.ProcessState == nil {
		return failed
	}
	used := cost{time.Since(start), command.ProcessState.UserTime() + command.ProcessState.SystemTime(), machine.PeakMiB(command.ProcessState)}
	return errors.Join(failed, add(sums, table, step, used))
}

// A cost is what a step took.
type cost struct {
	elapsed, processor time.Duration
	peak               float64 // MiB; 0: not known
}

// head is the layout that package results reads.
var head = []string{"step", "statistic", "value", "low", "high"}

// add adds a cost to the sums of a step, and writes the sums to the table.
func add(sums, table, step string, used cost) error {
	before, err := read(sums)
	if err != nil {
		return err
	}
	shown, err := read(table)
	if err != nil {
		return err
	}
	set := func(statistic string, value float64, merge func(a, b float64) float64) error {
		for _, r := range before {
			if r[0] == step && r[1] == statistic {
				old, err := strconv.ParseFloat(r[2], 64)
				if err != nil {
					return fmt.Errorf("%s: %s of %s: %w", sums, statistic, step, err)
				}
				value = merge(old, value)
			}
		}
		row := []string{step, statistic, fmt.Sprintf("%.0f", value), "", ""}
		before, shown = replaced(before, row), replaced(shown, row)
		return nil
	}
	plus := func(a, b float64) float64 { return a + b }
	err = errors.Join(set("time, s", used.elapsed.Seconds(), plus), set("processor time, s", used.processor.Seconds(), plus))
	if used.peak > 0 {
		err = errors.Join(err, set("peak memory, MiB", used.peak, func(a, b float64) float64 { return max(a, b) }))
	}
	if err != nil {
		return err
	}
	return errors.Join(tablefile.Write(sums, before), tablefile.Write(table, shown))
}

// read reads a table; one that does not exist has a header alone.
func read(table string) ([][]string, error) {
	rows, err := tablefile.Read(table)
	if errors.Is(err, fs.ErrNotExist) {
		return [][]string{head}, nil
	}
	if err == nil && (len(rows) == 0 || !slices.Equal(rows[0], head)) {
		err = fmt.Errorf("%s: its columns are not %q", table, head)
	}
	return rows, err
}

// replaced returns rows with a row in place of that of its step and statistic, or at the end.
func replaced(rows [][]string, row []string) [][]string {
	i := slices.IndexFunc(rows, func(r []string) bool { return r[0] == row[0] && r[1] == row[1] })
	if i < 0 {
		return append(rows, row)
	}
	rows[i] = row
	return rows
}
