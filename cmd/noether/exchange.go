package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/exchange"
	"github.com/noether-ml/noether/internal/study"
)

// exchangeFormats are the values of --to.
var exchangeFormats = []string{"hf-eval", "model-card", "eee", "junit", "badge"}

// exchangeFlags are the flags of export that go with --to.
type exchangeFlags struct {
	to        string
	benchmark exchange.Benchmark
	evaluator exchange.Evaluator
}

func (e *exchangeFlags) add(f *pflag.FlagSet) {
	f.StringVar(&e.to, "to", "", "write the overview of one run for another place: "+strings.Join(exchangeFormats, ", "))
	f.StringVar(&e.benchmark.Dataset, "dataset", "", "with --to hf-eval: the benchmark, a data set of the hub, as ORGANISATION/NAME")
	f.StringVar(&e.benchmark.Task, "task", "", "with --to hf-eval: the task of the only score (default: each score is a task, named by what it is of)")
	f.StringVar(&e.benchmark.Revision, "revision", "", "with --to hf-eval: the revision of the data set")
	f.StringVar(&e.benchmark.Source, "source", "", "with --to hf-eval: the address where the run or its report can be seen")
	f.StringVar(&e.evaluator.Organisation, "organization", "", "with --to eee: who provides the scores (default: unknown)")
	f.StringVar(&e.evaluator.Relationship, "relationship", "", "with --to eee: first_party, third_party, collaborative or other (the default)")
	f.StringVar(&e.evaluator.Model, "model-id", "", "with --to eee: the model as ORGANISATION/NAME (default: its address on the hub, or its name)")
}

// flagsOf are the flags of one format alone.
var flagsOf = map[string][]string{
	"hf-eval": {"dataset", "task", "revision", "source"},
	"eee":     {"organization", "relationship", "model-id"},
}

// misplaced returns a flag that is set and does not go with the format; "" if there is none.
func (e *exchangeFlags) misplaced(c *cobra.Command) string {
	for format, flags := range flagsOf {
		for _, flag := range flags {
			if format != e.to && c.Flags().Changed(flag) {
				return flag
			}
		}
	}
	return ""
}

// exchange writes the run in the format of --to.
func (e *exportFlags) exchange(c *cobra.Command, dirs []string) error {
	switch flag := e.misplaced(c); {
	case !slices.Contains(exchangeFormats, e.to):
		return usagef(c, "--to %s is not one of %s", e.to, strings.Join(exchangeFormats, ", "))
	case e.csv || e.parquet || e.json || e.latex || e.markdown || e.wide || e.csvSafe || e.table.Plain || e.mlflow != "":
		return usagef(c, "--to cannot be combined with another format")
	case flag != "":
		return usagef(c, "--%s does not go with --to %s", flag, e.to)
	case len(dirs) > 1:
		return usagef(c, "--to takes one run")
	case e.evaluator.Relationship != "" && !slices.Contains(exchange.Relationships, e.evaluator.Relationship):
		return usagef(c, "--relationship %s is not one of %s", e.evaluator.Relationship, strings.Join(exchange.Relationships, ", "))
	}
	result, err := study.ReadResult(dirs[0])
	if err != nil {
		return err
	}
	rows, err := e.filter.Rows(result.Rows)
	if err != nil {
		return err
	}
	run := &exchange.Run{Rows: rows, Record: result.Record, Every: len(e.filter.Statistic) > 0}
	without := 0
	var out bytes.Buffer
	switch e.to {
	case "hf-eval":
		without, err = run.WriteHub(&out, e.benchmark)
	case "eee":
		without, err = run.WriteEvalEver(&out, e.evaluator)
	case "junit":
		err = run.WriteJUnit(&out)
	case "badge":
		err = run.WriteBadge(&out)
	case "model-card":
		return e.card(run, dirs[0])
	}
	if err != nil {
		return err
	}
	if without > 0 {
		note(fmt.Sprintf("%d scores have no value and are left out", without))
	}
	return e.save(out.Bytes())
}

// save writes to the output file, whose folder is made, or to the standard output.
func (e *exportFlags) save(content []byte) error {
	if e.out == "" {
		_, err := os.Stdout.Write(content)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(e.out), 0o777); err != nil {
		return err
	}
	if err := atomicfile.Write(e.out, content); err != nil {
		return err
	}
	note("wrote " + e.out)
	return nil
}

// card writes the section of a model card: into the file if there is one, with its picture beside.
func (e *exportFlags) card(run *exchange.Run, dir string) error {
	cells, _, err := study.ReadCells(dir)
	if err == nil {
		run.Replicates = report.NewReplicates(cells)
	} else {
		note("differences are not paired by sample: " + err.Error())
	}
	if e.out == "" {
		section, err := run.Card("")
		if err == nil {
			_, err = io.WriteString(os.Stdout, section)
		}
		return err
	}
	picture := strings.TrimSuffix(filepath.Base(e.out), filepath.Ext(e.out)) + "-noether.svg"
	section, err := run.Card(picture)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(e.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	card, err := exchange.InCard(string(before), section)
	if err != nil {
		return fmt.Errorf("%s: %w", e.out, err)
	}
	if err := e.save([]byte(card)); err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(e.out), picture)
	if err := atomicfile.WriteFunc(path, run.WritePicture); err != nil {
		return err
	}
	note("wrote " + path)
	return nil
}
