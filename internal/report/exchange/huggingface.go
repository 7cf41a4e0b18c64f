package exchange

import (
	"errors"
	"fmt"
	"io"
	"regexp"

	yaml "github.com/goccy/go-yaml"
)

// A Benchmark is a data set of the Hugging Face hub, whose file eval.yaml declares its tasks.
type Benchmark struct {
	Dataset  string // ORGANISATION/NAME
	Task     string // "": each score is a task of its own, named by its id
	Revision string // of the data set; may be empty
	Source   string // the address of the run or its report; may be empty
}

type hubResult struct {
	Dataset hubDataset `yaml:"dataset"`
	Value   float64    `yaml:"value"`
	Date    string     `yaml:"date,omitempty"`
	Source  *hubSource `yaml:"source,omitempty"`
	Notes   string     `yaml:"notes,omitempty"`
}

type hubDataset struct {
	ID       string `yaml:"id"`
	Task     string `yaml:"task_id"`
	Revision string `yaml:"revision,omitempty"`
}

type hubSource struct {
	URL  string `yaml:"url"`
	Name string `yaml:"name"`
}

var hubName = regexp.MustCompile(`^[\w.-]+/[\w.-]+$`)

// WriteHub writes a file .eval_results/*.yaml of a model's repository on the Hugging Face hub.
// Model pages show it, and the leaderboard of the benchmark if that declares the tasks. It returns
// the number of scores that have no value and are left out.
func (r *Run) WriteHub(w io.Writer, b Benchmark) (without int, err error) {
	if b.Dataset == "" {
		return 0, errors.New("results on Hugging Face are those of a benchmark, a data set there: name it with --dataset ORGANISATION/NAME")
	}
	if !hubName.MatchString(b.Dataset) {
		return 0, fmt.Errorf("--dataset %q is not ORGANISATION/NAME", b.Dataset)
	}
	rows, without, err := r.shown()
	if err != nil {
		return 0, err
	}
	if _, err := one(rows, "a file of .eval_results"); err != nil {
		return 0, err
	}
	if b.Task != "" && len(rows) > 1 {
		return 0, fmt.Errorf("--task names one score, and there are %d: choose one with --measure, --statistic, --transform and --data", len(rows))
	}
	titles := r.titles()
	var results []hubResult
	for i := range rows {
		row := &rows[i]
		one := hubResult{Dataset: hubDataset{b.Dataset, b.Task, b.Revision}, Value: row.Value,
			Notes: fmt.Sprintf("%s; %s; noether %s", sentence(titles, row), evidence(row), r.Record.Noether)}
		if b.Task == "" {
			one.Dataset.Task = id(row)
		}
		if r.Record.Finished != nil {
			one.Date = r.Record.Finished.UTC().Format("2006-01-02")
		}
		if b.Source != "" {
			one.Source = &hubSource{b.Source, "Noether"}
		}
		results = append(results, one)
	}
	raw, err := yaml.MarshalWithOptions(results, yaml.IndentSequence(false))
	if err != nil {
		return 0, err
	}
	_, err = w.Write(raw)
	return without, err
}
