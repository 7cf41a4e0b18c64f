package scores

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
)

// A Failure records failed work: a cell, or all cells of a model or data set that could not be
// opened, in a file of its own until it succeeds.
type Failure struct {
	Key       string    `json:"key"` // hash that identifies the cell; "model-..." or "data-..." if the failure is not of one cell
	Model     string    `json:"model,omitempty"`
	Other     string    `json:"other_model,omitempty"` // the second model of a comparison
	Data      string    `json:"data,omitempty"`
	Transform string    `json:"transform,omitempty"`
	Parameter string    `json:"parameter,omitempty"` // value of the transformation's parameter
	Trial     int       `json:"trial,omitempty"`
	Measure   string    `json:"measure,omitempty"` // "" if the whole model or data set failed
	Layer     string    `json:"layer,omitempty"`   // the layer at which it occurred, if any
	Shard     string    `json:"part,omitempty"`    // the shard, such as 3of16
	Error     string    `json:"error"`
	When      time.Time `json:"when"`             // in UTC
	Host      string    `json:"host,omitempty"`   // name of the machine
	Inputs    []string  `json:"inputs,omitempty"` // names of the samples of the current batch
	Log       []string  `json:"log,omitempty"`    // the last lines of the run's log
}

// Describe returns "seis of model a on data cifar10 under tilt 15", or "model a".
func (f Failure) Describe() string {
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

func (f Failure) cell() Cell {
	return Cell{Model: f.Model, OtherModel: f.Other, Data: f.Data, Transform: f.Transform, Parameter: f.Parameter, Trial: f.Trial, Measure: f.Measure}
}

// WriteFailure writes a failure to a file atomically.
func WriteFailure(path string, f Failure) error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return atomicfile.Write(path, appendChecksum(data))
}

// ReadFailure reads a failure that WriteFailure wrote.
func ReadFailure(path string) (Failure, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Failure{}, err // the error names the path
	}
	var in struct {
		Failure
		Checksum string `json:"crc32c"`
	}
	err = decodeStrict(data, &in)
	switch {
	case err != nil:
	case in.Key == "" || in.Failure.Error == "":
		err = errors.New("not a failure record: the key or the error is missing")
	case !validChecksum(data):
		err = errAltered
	}
	if err != nil {
		return Failure{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return in.Failure, nil
}
