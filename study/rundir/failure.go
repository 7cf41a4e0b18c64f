package rundir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/plan"
)

// Failures is the error of a run that went to its end but could not do all of its work. What could
// be done stands in the run folder; each failure has a file under failures/, and running the study
// again tries what failed once more.
type Failures struct {
	Failed      []scores.Failure
	Done, Cells int
	causes      []error
}

func (e *Failures) Error() string {
	if len(e.Failed) == 1 {
		return e.causes[0].Error()
	}
	return fmt.Sprintf("%d failures, %d of %d cells are done; the first: %v", len(e.Failed), e.Done, e.Cells, e.causes[0])
}

// Unwrap lets errors.As find the cause of any of them.
func (e *Failures) Unwrap() []error { return e.causes }

// FailCell gives a cell up: it keeps the error, what was being worked on and what the run said
// last, and the rest goes on. With FailFast the error is returned and ends the run.
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
	if !r.Options.Part.Whole() {
		f.Part = r.Options.Part.String()
	}
	f = r.failures.Add(f, cause)
	r.Stats.Failures.Add(1)
	r.Log.Error("failed", "what", c.String(), "error", f.Error)
	if err := r.Folder.writeFailure(f); err != nil {
		return SaveError(err)
	}
	return nil
}

// Outcome is the error of a run that came to its end.
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

// openFailures carries over what the plan could not open, and forgets what it could open this time.
func (r *Writer) openFailures() error {
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
	if x.Part != "" {
		name += "." + x.Part
	}
	if err := os.MkdirAll(f.Path("failures"), 0o777); err != nil {
		return err
	}
	return scores.WriteFailure(f.Path("failures", name+".json"), x)
}

// RemoveFailures forgets the failures of a key, those of its shards among them. One that cannot be
// removed harms nobody.
func (f Folder) RemoveFailures(key string) {
	files, _ := f.list("failures", key+".", ".json")
	for _, file := range files {
		os.Remove(file)
	}
}

// clearFailures forgets the failures of all cells that are done.
func (f Folder) clearFailures(cells []*plan.Cell) {
	files, _ := f.list("failures", "", ".json")
	if len(files) == 0 {
		return
	}
	done := map[string]bool{}
	for _, c := range cells {
		done[c.Key] = c.Done
	}
	for _, file := range files {
		if key, _, _ := strings.Cut(filepath.Base(file), "."); done[key] {
			os.Remove(file)
		}
	}
}

// partFailures lists what shards have noted of a cell.
func (f Folder) partFailures(key string) []scores.Failure {
	files, _ := f.list("failures", key+".", ".json")
	var out []scores.Failure
	for _, file := range files {
		if x, err := scores.ReadFailure(file); err == nil && x.Part != "" {
			out = append(out, x)
		}
	}
	return out
}
