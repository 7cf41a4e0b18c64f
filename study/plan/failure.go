package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/internal/guard"
	"github.com/noether-ml/noether/study/spec"
)

// FailureLog gathers the failures of a run.
type FailureLog struct {
	Failed []scores.Failure
	Causes []error
}

// Add notes a failure, once for each key.
func (l *FailureLog) Add(f scores.Failure, cause error) scores.Failure {
	f.Error, f.When = strings.Join(strings.Fields(cause.Error()), " "), time.Now().UTC()
	f.Host, _ = os.Hostname()
	var crash *guard.Panic
	if errors.As(cause, &crash) {
		f.Log = append(f.Log, strings.Split(strings.TrimSpace(crash.Stack), "\n")...)
	}
	if !slices.ContainsFunc(l.Failed, func(old scores.Failure) bool { return old.Key == f.Key }) {
		l.Failed, l.Causes = append(l.Failed, f), append(l.Causes, cause)
	}
	return f
}

// fail notes that a model, a data set or a cell cannot be had, before any of the work. With
// FailFast it is an error.
func (p *Plan) fail(f scores.Failure, err error) error {
	if p.failFast {
		return err
	}
	p.Failures.Add(f, err)
	return nil
}

// Failed lists the models and data that could not be opened, and the cells that cannot be made of
// those that could.
func (p *Plan) Failed() []scores.Failure { return p.Failures.Failed }

// failCell notes that a cell cannot be made.
func (p *Plan) failCell(c *Cell, err error) error {
	c.Key = c.key(p.Study)
	names := "model " + c.Model.Entry.Name
	if c.Other != nil {
		names = "models " + c.Model.Entry.Name + " and " + c.Other.Entry.Name
	}
	return p.fail(c.FailureRecord(), spec.Within(names+" on "+c.Data.Entry.Name, err))
}

// FailureKey names a failure that concerns no single cell.
func FailureKey(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + "-" + hex.EncodeToString(sum[:12])
}

// FailureRecord is the record of the cell's failure, as far as the cell alone knows it.
func (c *Cell) FailureRecord() scores.Failure {
	id := c.Identity()
	return scores.Failure{Key: c.Key, Model: id.Model, Other: id.OtherModel, Data: id.Data, Transform: id.Transform,
		Parameter: id.Parameter, Trial: id.Trial, Measure: id.Measure}
}
