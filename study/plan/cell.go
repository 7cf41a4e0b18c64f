package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/spec"
	"github.com/noether-ml/noether/transform"
)

// Identity is the cell as its record names it.
func (c *Cell) Identity() scores.Cell {
	out := scores.Cell{Model: c.Model.Entry.Name, Data: c.Data.Entry.Name, Transform: c.View.Name,
		Parameter: c.View.Parameter, Trial: c.View.Trial, Measure: c.Method.Name()}
	if c.Other != nil {
		out.OtherModel = c.Other.Entry.Name
	}
	return out
}

// ScoredLayers are the scores of a finished cell, the pairs of layers of several grids in the order
// of the whole.
func (c *Cell) ScoredLayers() []scores.Layer {
	if c.Procedure != nil {
		return c.Procedure.Scored
	}
	var out []scores.Layer
	for _, t := range c.Tasks {
		out = append(out, t.Scored.Layers...)
	}
	if c.order != nil {
		slices.SortStableFunc(out, func(a, b scores.Layer) int {
			return c.order[[2]string{a.Name, a.Other}] - c.order[[2]string{b.Name, b.Other}]
		})
	}
	return out
}

func (c *Cell) String() string {
	name := fmt.Sprintf("%s of model %s on %s", c.Method.Name(), c.Model.Entry.Name, c.Data.Entry.Name)
	if c.Other != nil {
		name = fmt.Sprintf("%s of models %s and %s on %s", c.Method.Name(), c.Model.Entry.Name, c.Other.Entry.Name, c.Data.Entry.Name)
	}
	if c.View.Name != "" {
		name += " under " + c.View.Name
	}
	if c.View.Parameter != "" {
		name += " " + c.View.Parameter
	}
	return name
}

// ModelNames names the model, or the two that are compared.
func (c *Cell) ModelNames() string {
	if c.Other == nil {
		return c.Model.Entry.Name
	}
	return c.Model.Entry.Name + ", " + c.Other.Entry.Name
}

// A Cell is what one record holds: a measure for a model, data, transformation value and trial.
type Cell struct {
	Key    string // hash of all that the cell depends on
	Model  *Model
	Other  *Model // the model that Model is compared with, which may be itself; nil where the measure concerns one model
	Data   *Data
	View   View
	Method measure.Method

	Tasks     []*Task           // for a measure one a layer, or one for the prediction; for a comparison one a grid of layers
	Procedure *ProcedureRun     // of a procedure, which has no tasks
	order     map[[2]string]int // of pairs of layers in the record; nil: that of the tasks
	Done      bool              // its record is in the folder

	Failed bool // it was given up in this run
}

// A View is one way of moving the input: a transformation with one value of its parameter, in one
// trial.
type View struct {
	Name      string // name; "" where nothing is moved
	Parameter string
	Trial     int

	On        string               // "input" or "activations"
	Transform transform.Transform  // nil where nothing is moved, or where the data are pairs
	Per       string               // "sample" or "trial"
	canonical any                  // what the cell's key depends on
	allValues *procedure.Transform // of a procedure that wants the transformation with all its values
}

// Redraws reports whether the view's transformation may throw values away.
func (v View) Redraws() bool { return redraws(v.Transform) }

// redraws reports whether a transformation may draw values again.
func redraws(law transform.Transform) bool {
	_, ok := law.(transform.Reverb)
	return ok
}

// key hashes all that the scores of a cell depend on: nothing that does not matter, such as the
// batch size, and everything that does.
func (c *Cell) key(s *spec.Study) string {
	var layers []string
	for _, t := range c.Tasks {
		layers = append(layers, t.depends()...)
	}
	if c.Procedure != nil {
		layers = c.Procedure.depends()
	}
	on := map[string]any{
		"seed":    s.Seed,
		"model":   []any{c.Model.Entry.Name, c.Model.canonical()},
		"data":    []any{c.Data.Entry.Name, c.Data.Source.Fingerprint(), c.Data.Layout},
		"view":    []any{c.View.Name, c.View.Parameter, c.View.Trial, c.View.On, c.View.Per, c.View.canonical},
		"measure": []any{c.Method.Name(), c.Method.Version(), c.Method.Settings()},
		"layers":  layers,
		"samples": s.Samples,
		"budget":  s.Memory, // decides whether an interval can be afforded
	}
	if c.Other != nil {
		on["other"] = []any{c.Other.Entry.Name, c.Other.canonical()}
	}
	sum := sha256.Sum256([]byte(spec.CanonicalJSON(on)))
	return hex.EncodeToString(sum[:12])
}
