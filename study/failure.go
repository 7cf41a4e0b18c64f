package study

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/spec"
)

// Failures is the error of a run that went to its end but could not do all of its work. What could be done stands in
// the run folder; each failure has a file under failures/, and running the study again tries what failed once more.
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

// failureLog gathers the failures of a run.
type failureLog struct {
	failed []scores.Failure
	causes []error
}

// add notes a failure, once for each key.
func (l *failureLog) add(f scores.Failure, cause error) scores.Failure {
	f.Error, f.When = strings.Join(strings.Fields(cause.Error()), " "), time.Now().UTC()
	f.Host, _ = os.Hostname()
	var crash *panicked
	if errors.As(cause, &crash) {
		f.Log = append(f.Log, strings.Split(strings.TrimSpace(crash.stack), "\n")...)
	}
	if !slices.ContainsFunc(l.failed, func(old scores.Failure) bool { return old.Key == f.Key }) {
		l.failed, l.causes = append(l.failed, f), append(l.causes, cause)
	}
	return f
}

// fail notes that a model, a data set or a cell cannot be had, before any of the work. With FailFast it is an error.
func (p *Plan) fail(f scores.Failure, err error) error {
	if p.failFast {
		return err
	}
	p.failures.add(f, err)
	return nil
}

// Failed lists the models and data that could not be opened, and the cells that cannot be made of those that could.
func (p *Plan) Failed() []scores.Failure { return p.failures.failed }

// failCell notes that a cell cannot be made.
func (p *Plan) failCell(c *Cell, err error) error {
	c.Key = c.key(p.Study)
	names := "model " + c.Model.spec.Name
	if c.Other != nil {
		names = "models " + c.Model.spec.Name + " and " + c.Other.spec.Name
	}
	return p.fail(c.failure(), spec.Within(names+" on "+c.Data.spec.Name, err))
}

// failureKey names a failure that concerns no single cell.
func failureKey(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + "-" + hex.EncodeToString(sum[:12])
}

// failCell gives a cell up: it keeps the error, what was being worked on and what the run said last, and the rest goes
// on. With FailFast the error is returned and ends the run.
func (r *runner) failCell(c *Cell, layer string, inputs []string, cause error) error {
	if r.o.FailFast {
		return cause
	}
	if c.failed {
		return nil
	}
	c.failed = true
	for _, t := range c.tasks {
		delete(r.accs, t)
	}
	f := c.failure()
	f.Layer, f.Inputs = layer, inputs
	f.Log = r.log.recent()
	if !r.o.Part.Whole() {
		f.Part = r.o.Part.String()
	}
	f = r.failures.add(f, cause)
	r.stats.failures.Add(1)
	r.log.Error("failed", "what", c.String(), "error", f.Error)
	if err := r.folder.writeFailure(f); err != nil {
		return &saveError{err}
	}
	return nil
}

// failPass gives up what is left of a pass, after what it has gathered has been saved for another try: all that reads the
// model that failed, or everything if it was no model.
func (r *runner) failPass(p *pass, inputs []string, cause error) error {
	var broken *modelError
	errors.As(cause, &broken)
	for _, t := range p.all() {
		if t.cell.done || t.cell.failed {
			continue
		}
		if broken != nil && !slices.ContainsFunc(t.readings(), func(r reading) bool { return r.model == broken.model }) {
			continue
		}
		if err := r.failCell(t.cell, "", inputs, cause); err != nil {
			return err
		}
	}
	return nil
}

// A modelError is that of one model of a pass: it could not be prepared, or the engine could not run it.
type modelError struct {
	model *openModel
	error
}

func (e *modelError) Unwrap() error { return e.error }

// failure is the record of the cell's failure, as far as the cell alone knows it.
func (c *Cell) failure() scores.Failure {
	id := c.identity()
	return scores.Failure{Key: c.Key, Model: id.Model, Other: id.OtherModel, Data: id.Data, Transform: id.Transform,
		Parameter: id.Parameter, Trial: id.Trial, Measure: id.Measure}
}

// outcome is the error of a run that came to its end.
func (r *runner) outcome() error {
	if len(r.failures.failed) == 0 {
		return nil
	}
	e := &Failures{Failed: r.failures.failed, causes: r.failures.causes, Cells: len(r.plan.Cells)}
	for _, c := range r.plan.Cells {
		if c.done {
			e.Done++
		}
	}
	return e
}

// openFailures carries over what the plan could not open, and forgets what it could open this time.
func (r *runner) openFailures() error {
	r.failures = r.plan.failures
	for i := range r.failures.failed {
		if err := r.folder.writeFailure(r.failures.failed[i]); err != nil {
			return err
		}
	}
	for _, m := range r.plan.models {
		r.folder.removeFailures(failureKey("model", m.spec.Name))
	}
	for _, d := range r.plan.data {
		r.folder.removeFailures(failureKey("data", d.spec.Name))
	}
	return nil
}

func (f Folder) writeFailure(x scores.Failure) error {
	name := x.Key
	if x.Part != "" {
		name += "." + x.Part
	}
	if err := os.MkdirAll(f.path("failures"), 0o777); err != nil {
		return err
	}
	return scores.WriteFailure(f.path("failures", name+".json"), x)
}

// removeFailures forgets the failures of a key, those of its shards among them. One that cannot be removed harms nobody.
func (f Folder) removeFailures(key string) {
	files, _ := f.list("failures", key+".", ".json")
	for _, file := range files {
		os.Remove(file)
	}
}

// clearFailures forgets the failures of all cells that are done.
func (f Folder) clearFailures(cells []*Cell) {
	files, _ := f.list("failures", "", ".json")
	if len(files) == 0 {
		return
	}
	done := map[string]bool{}
	for _, c := range cells {
		done[c.Key] = c.done
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

// panicked is a programming error in a measure, caught so that it costs its cell alone.
type panicked struct {
	value any
	stack string
}

func (p *panicked) Error() string {
	return fmt.Sprintf("it crashed, which is an error in this program: %v", p.value)
}

// guarded runs f and turns a panic into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v, string(debug.Stack())}
		}
	}()
	return f()
}
