package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/scores"
)

// A FailureLog collects the failures of a run. The zero FailureLog is empty.
type FailureLog struct {
	Failed []scores.Failure
	Causes []error         // Causes[i] is that of Failed[i]
	keys   map[string]bool // of Failed; a key identifies a cell, model or data set
}

// Add completes a failure with its cause, time, host and, for a panic, stack. It records the
// failure unless one of the same key is recorded.
func (l *FailureLog) Add(f scores.Failure, cause error) scores.Failure {
	f.Error, f.When = strings.Join(strings.Fields(cause.Error()), " "), time.Now().UTC()
	f.Host, _ = os.Hostname()
	var crash *guard.Panic
	if errors.As(cause, &crash) {
		f.Log = append(f.Log, strings.Split(strings.TrimSpace(crash.Stack), "\n")...)
	}
	if !l.keys[f.Key] {
		if l.keys == nil {
			l.keys = map[string]bool{}
		}
		l.keys[f.Key] = true
		l.Failed, l.Causes = append(l.Failed, f), append(l.Causes, cause)
	}
	return f
}

// fail records that a model, a data set or a cell cannot be prepared; with FailFast it returns the
// error.
func (p *Plan) fail(f scores.Failure, err error) error {
	if p.failFast {
		return err
	}
	p.Failures.Add(f, err)
	return nil
}

// Failed returns the models, data and cells that could not be opened or made.
func (p *Plan) Failed() []scores.Failure { return p.Failures.Failed }

func (p *Plan) failCell(c *Cell, err error) error {
	c.Key = p.cellKey(c)
	names := "model " + c.Model.Entry.Name
	if c.other != nil {
		names = "models " + c.Model.Entry.Name + " and " + c.other.Entry.Name
	}
	return p.fail(c.FailureRecord(), spec.Within(names+" on "+c.Data.Entry.Name, err))
}

// FailureKey returns the key of a failure of a model or data set. kind is "model" or "data".
func FailureKey(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + "-" + hex.EncodeToString(sum[:12])
}

// FailureRecord returns the record of the cell's failure, with the fields that the cell knows.
func (c *Cell) FailureRecord() scores.Failure {
	id := c.Identity()
	return scores.Failure{Key: c.Key, Model: id.Model, Other: id.OtherModel, Data: id.Data, Transform: id.Transform,
		Parameter: id.Parameter, Trial: id.Trial, Measure: id.Measure}
}
