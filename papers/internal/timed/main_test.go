package main

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/noether-ml/noether/papers/internal/tablefile"
)

// A step that is continued has one row of each statistic: the sum of its times, and the larger peak.
// What the table had before, from other runs, is replaced.
func TestContinued(t *testing.T) {
	table, sums := filepath.Join(t.TempDir(), "cost.csv"), filepath.Join(t.TempDir(), "cost.csv")
	if err := tablefile.Write(table, [][]string{head, {"train x", "time, s", "999", "", ""}}); err != nil {
		t.Fatal(err)
	}
	for _, used := range []cost{{90 * time.Second, 100 * time.Second, 300}, {30 * time.Second, 20 * time.Second, 200}} {
		if err := add(sums, table, "train x", used); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(sums, table, "run y", cost{elapsed: time.Second}); err != nil {
		t.Fatal(err)
	}
	rows, err := tablefile.Read(table)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		head,
		{"train x", "time, s", "120", "", ""}, {"train x", "processor time, s", "120", "", ""}, {"train x", "peak memory, MiB", "300", "", ""},
		{"run y", "time, s", "1", "", ""}, {"run y", "processor time, s", "0", "", ""},
	}
	if len(rows) != len(want) {
		t.Fatalf("rows %q, want %q", rows, want)
	}
	for i := range want {
		for k := range want[i] {
			if rows[i][k] != want[i][k] {
				t.Errorf("row %d is %q, want %q", i, rows[i], want[i])
			}
		}
	}
}

// The output of the command, and its failure, are those of the program; what it took is kept.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	runs, table := filepath.Join(dir, "runs/small"), filepath.Join(dir, "cost.csv")
	var out bytes.Buffer
	err := run([]string{runs, table, "train x", "sh", "-c", "echo hello; exit 3"}, &out)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || out.String() != "hello\n" {
		t.Errorf("error %v and output %q, want status 3 and hello", err, out.String())
	}
	if rows, err := tablefile.Read(table); err != nil || len(rows) < 3 || rows[1][0] != "train x" {
		t.Errorf("the table is %q, %v", rows, err)
	}
	out.Reset()
	if err := run([]string{runs, table, "train x", "sh", "-c", "kill -INT $$; echo survived"}, &out); err == nil || out.String() != "" {
		t.Errorf("an interrupted command says %q, error %v", out.String(), err)
	}
	if err := run([]string{runs, table, "train x", "/no/such/program"}, &out); err == nil {
		t.Error("no error without a program")
	}
	if err := run([]string{runs, table, "train x"}, &out); err == nil {
		t.Error("no error without a command")
	}
}
