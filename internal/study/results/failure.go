package results

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// Failures is the error of a run that finished with failures. Each has a file under failures/;
// running the study again retries what failed.
type Failures struct {
	Failed      []scores.Failure
	Done, Cells int     // number of finished cells, and of all cells of the study
	causes      []error // for each of Failed
}

// Error implements error.
func (e *Failures) Error() string {
	if len(e.Failed) == 1 {
		return e.causes[0].Error()
	}
	return fmt.Sprintf("%d failures; %d of %d planned cells are done; the first: %v", len(e.Failed), e.Done, e.Cells, e.causes[0])
}

// Unwrap returns the causes of all failures, for errors.Is and errors.As.
func (e *Failures) Unwrap() []error { return e.causes }

// FailCell records the failure of a cell with the samples that were being measured (nil if
// unknown); layer may be "". With Options.FailFast it returns the error, which ends the run.
func (r *Writer) FailCell(c *plan.Cell, layer string, inputs []string, cause error) error {
	if r.Options.FailFast {
		return cause
	}
	if c.Failed {
		return nil
	}
	c.Failed = true
	f := c.FailureRecord()
	f.Layer, f.Inputs = layer, inputs
	f.Log = r.Log.Recent()
	if !r.Options.Shard.Whole() { // a shard is a part of the samples
		f.Shard = r.Options.Shard.String()
	}
	f = r.failures.Add(f, cause)
	r.Stats.Failures.Add(1)
	r.Log.Error("failed", "what", c.String(), "error", f.Error)
	if err := r.Folder.writeFailure(f); err != nil {
		return SaveError(err)
	}
	return nil
}

// Outcome returns a *Failures if anything failed in the run, else nil.
func (r *Writer) Outcome() error {
	if len(r.failures.Failed) == 0 {
		return nil
	}
	e := &Failures{Failed: r.failures.Failed, causes: r.failures.Causes, Cells: len(r.Plan.Cells)}
	for _, c := range r.Plan.Cells {
		if c.Done {
			e.Done++
		}
	}
	return e
}

// openFailures writes the failures of the plan, and removes those of models and data that could be
// opened now.
func (r *Writer) openFailures() error {
	r.failedBefore, _ = listFailures([]Folder{r.Folder})
	for i := range r.failures.Failed {
		if err := r.Folder.writeFailure(r.failures.Failed[i]); err != nil {
			return err
		}
	}
	for _, m := range r.Plan.Models {
		r.Folder.RemoveFailures(plan.FailureKey("model", m.Entry.Name))
	}
	for _, d := range r.Plan.Data {
		r.Folder.RemoveFailures(plan.FailureKey("data", d.Entry.Name))
	}
	return nil
}

func (f Folder) writeFailure(x scores.Failure) error {
	name := x.Key
	if x.Shard != "" {
		name += "." + x.Shard
	}
	if err := filesys.MkdirAll(f.Path("failures"), 0o777); err != nil {
		return err
	}
	return scores.WriteFailure(f.Path("failures", name+".json"), x)
}

// RemoveFailures removes the failures of a key, those of its shards included. Errors are ignored.
func (f Folder) RemoveFailures(key string) {
	files, _ := f.list("failures", key+".", ".json")
	for _, file := range files {
		filesys.Remove(file)
	}
}

// listFailures returns the files of failures in some folders, by cell.
func listFailures(folders []Folder) (map[string][]string, error) {
	out := map[string][]string{}
	for _, f := range folders {
		files, err := f.list("failures", "", ".json")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, file := range files {
			key, _, _ := strings.Cut(filepath.Base(file), ".")
			out[key] = append(out[key], file)
		}
	}
	return out, nil
}

// clearFinished removes what a killed run may leave: failures and states of finished cells.
func (r *Writer) clearFinished() {
	failures, _ := listFailures([]Folder{r.Folder})
	r.listStates()
	for _, c := range r.Plan.Cells {
		if !c.Done {
			continue
		}
		for _, file := range failures[c.Key] {
			filesys.Remove(file)
		}
		r.dropStates(c)
	}
}
