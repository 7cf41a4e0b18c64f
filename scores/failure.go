package scores

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
)

// A Failure is work of a study that could not be done: a cell, or all cells of a model or of a data
// set that could not be opened. A run folder keeps each in a file of its own until the work
// succeeds.
type Failure struct {
	Key       string    `json:"key"` // of the cell; "model-..." and "data-..." where no cell is known
	Model     string    `json:"model,omitempty"`
	Other     string    `json:"other_model,omitempty"`
	Data      string    `json:"data,omitempty"`
	Transform string    `json:"transform,omitempty"`
	Parameter string    `json:"parameter,omitempty"`
	Trial     int       `json:"trial,omitempty"`
	Measure   string    `json:"measure,omitempty"` // "" where the whole model or data set failed
	Layer     string    `json:"layer,omitempty"`   // where it arose, if at a layer
	Part      string    `json:"part,omitempty"`    // the shard, such as 3of16
	Error     string    `json:"error"`
	When      time.Time `json:"when"`
	Host      string    `json:"host,omitempty"`
	Inputs    []string  `json:"inputs,omitempty"` // names of the samples that were being worked on
	Log       []string  `json:"log,omitempty"`    // what the run said last
}

// What says which work failed: "seis of model a on cifar10 under tilt 15", or "model a".
func (f Failure) What() string {
	var b strings.Builder
	if f.Measure != "" {
		b.WriteString(f.Measure + " of ")
	}
	if f.Model != "" {
		b.WriteString("model " + f.Model)
	}
	if f.Other != "" {
		b.WriteString(" and " + f.Other)
	}
	if f.Data != "" {
		if f.Model != "" {
			b.WriteString(" on ")
		}
		b.WriteString("data " + f.Data)
	}
	if f.Transform != "" {
		b.WriteString(" under " + f.Transform)
	}
	if f.Parameter != "" {
		b.WriteString(" " + f.Parameter)
	}
	if f.Trial > 0 {
		fmt.Fprintf(&b, ", trial %d", f.Trial)
	}
	return b.String()
}

// cell is the identity of the cell that failed, for what is derived from cells.
func (f Failure) cell() Cell {
	return Cell{Model: f.Model, OtherModel: f.Other, Data: f.Data, Transform: f.Transform, Parameter: f.Parameter, Trial: f.Trial, Measure: f.Measure}
}

// WriteFailure writes a failure to a file, whole or not at all.
func WriteFailure(path string, f Failure) error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return atomicfile.Write(path, append(data, '\n'))
}

// ReadFailure reads a failure that WriteFailure wrote.
func ReadFailure(path string) (Failure, error) {
	var f Failure
	if err := readJSON(path, &f); err != nil {
		return Failure{}, err
	}
	if f.Key == "" || f.Error == "" {
		return Failure{}, fmt.Errorf("reading %s: no record of a failure: it lacks its key or its error", path)
	}
	return f, nil
}
