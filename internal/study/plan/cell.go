package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/transform"
)

// Identity returns the fields that name the cell in its record, without layers and scores.
func (c *Cell) Identity() scores.Cell {
	out := scores.Cell{Model: c.Model.Entry.Name, Data: c.Data.Entry.Name, Transform: c.View.Name,
		Parameter: c.View.Parameter, Drawn: c.drawn, Trial: c.View.Trial, Measure: c.Method.Name()}
	if c.other != nil {
		out.OtherModel = c.other.Entry.Name
	}
	return out
}

// noValue is the reason of a score without a value for which its measure names none.
const noValue = "the result is not finite: the activations are too large, or too small, for its sums"

// ScoredLayers returns the scored layers of a finished cell, the pairs of grids in their original
// order. The scores have what is doubtful about the models' outputs as warnings, and those without a
// value have a reason.
func (c *Cell) ScoredLayers() []scores.Layer {
	out := slices.Clone(c.scoredLayers())
	doubts := c.doubts()
	for i := range out {
		out[i].Scores = slices.Clone(out[i].Scores)
		for k := range out[i].Scores {
			s := &out[i].Scores[k]
			s.Warnings = slices.Concat(s.Warnings, doubts)
			if math.IsNaN(s.Value) && len(s.Warnings) == 0 {
				s.Warnings = []string{noValue}
			}
		}
	}
	return out
}

// doubts returns what is doubtful about the cell's scores because of what the outputs of its models
// hold, or how they are computed.
func (c *Cell) doubts() (out []string) {
	predictions, decoded, labels := false, false, false
	switch method := c.Method.(type) {
	case measure.Measure:
		predictions, decoded, labels = method.Needs().Prediction, method.Needs().Decoded, method.Needs().Labels
	case procedure.Procedure:
		predictions, labels = method.Needs().Prediction, method.Needs().Labels
	}
	if labels && predictions && c.Data.orderDoubt != "" {
		out = append(out, c.Data.orderDoubt)
	}
	models := []*Model{c.Model}
	if c.other != nil && c.other != c.Model {
		models = append(models, c.other)
	}
	for _, m := range models {
		for _, text := range m.Net.DoubtsOf(predictions, decoded, c.Data.labels) {
			if len(models) > 1 {
				text = "model " + m.Entry.Name + ": " + text
			}
			out = append(out, text)
		}
	}
	return out
}

func (c *Cell) scoredLayers() []scores.Layer {
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

// String describes the cell for logs and errors.
func (c *Cell) String() string {
	name := fmt.Sprintf("%s of model %s on %s", c.Method.Name(), c.Model.Entry.Name, c.Data.Entry.Name)
	if c.other != nil {
		name = fmt.Sprintf("%s of models %s and %s on %s", c.Method.Name(), c.Model.Entry.Name, c.other.Entry.Name, c.Data.Entry.Name)
	}
	if c.View.Name != "" {
		name += " under " + c.View.Name
	}
	if c.View.Parameter != "" {
		name += " " + c.View.Parameter
	}
	return name
}

// ModelNames returns the name of the cell's model, or two names joined by a comma.
func (c *Cell) ModelNames() string {
	if c.other == nil {
		return c.Model.Entry.Name
	}
	return c.Model.Entry.Name + ", " + c.other.Entry.Name
}

// Models returns the models that the cell runs, each once.
func (c *Cell) Models() []*Model {
	if c.other == nil || c.other == c.Model {
		return []*Model{c.Model}
	}
	return []*Model{c.Model, c.other}
}

// A Cell is the work whose results one record holds. Entry of a Model or Data is its entry in the
// study file.
type Cell struct {
	Key    string // hash of all that the scores depend on, see Plan.cellKey
	Model  *Model
	other  *Model // the model that Model is compared with, possibly Model itself; nil for measures of one model
	Data   *Data
	View   View
	Method measure.Method

	Tasks     []*Task           // of a measure: one per layer, or one for the prediction; of a comparison: one per grid (some pairs of layers)
	Procedure *ProcedureRun     // set for a procedure, which has no tasks
	order     map[[2]string]int // rank of each pair of layers in the record; nil: the order of the tasks
	Done      bool              // the run folder holds its record

	Failed bool // it failed in this run

	drawn string // parameter values, as text, that were drawn once for all samples of the trial; "": none
}

// Classes returns the model's class names for a cell that measures predictions, else nil.
func (c *Cell) Classes() []string {
	if len(c.Tasks) == 0 {
		return nil
	}
	if s, ok := c.Tasks[0].target.(*siteTarget); ok {
		return s.site.Classes
	}
	return nil
}

// Parameter returns the parameter value of the cell's scores, listed by the study or drawn for the
// trial.
func (c *Cell) Parameter() string { return cmp.Or(c.View.Parameter, c.drawn) }

// HasUnsaved reports whether a task of the cell has results that are not saved in the run folder.
func (c *Cell) HasUnsaved() bool { return slices.ContainsFunc(c.Tasks, (*Task).HasUnsaved) }

// A View is a transformation with one value, in one trial. The zero View is the clean input.
type View struct {
	Name      string // name of the transformation; "" for clean inputs
	Parameter string // value of the parameter, as written in the study file, if the study lists values; else ""
	Trial     int    // counted from 0

	On        string               // what is transformed: "input" or "activations"
	Transform transform.Transform  // nil for clean inputs, and for ready-made pairs of clean and transformed samples
	Per       string               // what a random parameter is drawn for: each "sample", or the whole "trial"
	canonical json.RawMessage      // the transformation with its settings, as part of the cell's key
	allValues *procedure.Transform // all values of the transformation, for a procedure that takes them at once; else nil
}

// Path returns the view as package recorded names it: NAME/PARAMETER/trial-N.
func (v View) Path() string {
	path := v.Name
	if v.Parameter != "" {
		path += "/" + v.Parameter
	}
	if v.Trial > 0 {
		path += fmt.Sprintf("/trial-%d", v.Trial)
	}
	return path
}

// Redraws reports whether the view's transformation may reject drawn values and draw again.
func (v View) Redraws() bool { return redraws(v.Transform) }

// redraws reports whether drawn values may be rejected and drawn again.
func redraws(t transform.Transform) bool {
	_, ok := t.(transform.Reverb)
	return ok
}
