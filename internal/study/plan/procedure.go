package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// A ProcedureRun is the work of the cell of a procedure, and the job that the procedure gets.
type ProcedureRun struct {
	Method procedure.Procedure
	Job    procedure.Job
	Scored []scores.Layer // set when it is done
}

// addProcedure adds a cell on model a, or on a and b unless b is nil. raw has labels that are not
// mapped to outputs.
func (p *Plan) addProcedure(a, b *Model, raw *Data, v View, spec spec.MeasureSpec) error {
	d := p.dataFor(raw, a)
	method := spec.Method.(procedure.Procedure)
	needs := method.Needs()
	c := &Cell{Model: a, other: b, Data: d, View: v, Method: method}
	for _, m := range []*Model{a, b} {
		if m != nil && !m.Net.TakesInput() {
			p.skip(c, "", fmt.Sprintf("the activations of model %s are recorded, and this measure runs it on inputs of its own", m.Entry.Name))
			return nil
		}
	}
	if why := unmetNeed(measure.Needs{Labels: needs.Labels, Prediction: needs.Prediction}, a, d, c.View); why != "" {
		p.skip(c, "", why)
		return nil
	}
	switch {
	case needs.Sequences && !dataset.AreSequences(d.Source):
		p.skip(c, "", "the samples are not sequences of frames, as data of the kind sequences are")
		return nil
	case (needs.Labels || needs.Prediction) && dataset.GroupsOf(d.Source) != nil:
		p.skip(c, "", groupedSkip)
		return nil
	}
	// ready: the samples themselves form trajectories.
	ready := needs.OwnTrajectories && v.Name == "" && hasTrajectories(d.Source)
	if why := v.procedureSkip(); needs.Transform && !ready && why != "" {
		p.skip(c, "", why)
		return nil
	}
	if needs.Prediction && b != nil && b.Net.Classes() == 0 {
		p.skip(c, "", fmt.Sprintf("the model %s has no class scores", b.Entry.Name))
		return nil
	}
	if labelled := p.labelled(c, raw); labelled.mismatch != nil && (needs.Labels || needs.Prediction && d.Entry.Classes != nil) {
		return p.failCell(c, labelled.mismatch)
	}
	w := &ProcedureRun{Method: method}
	var err error
	if w.Job, err = p.job(c, raw, spec); err != nil {
		return err
	}
	if err := p.checkNames(&w.Job, spec); err != nil {
		return p.failCell(c, err)
	}
	if why := method.Skip(&w.Job); why != "" {
		p.skip(c, "", why)
		return nil
	}
	c.Procedure = w
	p.add(c)
	return nil
}

// groupedSkip is why measures other than those that read predictions in a pass skip data whose
// classes groups of outputs stand for.
const groupedSkip = "several outputs of the model stand for a class of the data"

// procedureSkip returns why a procedure cannot use the view, or "".
func (v View) procedureSkip() string {
	switch {
	case v.Name == "":
		return "the study has no transformation"
	case v.allValues == nil:
		return "ready-made pairs do not define a transformation"
	case v.On == "activations":
		return "it transforms inputs, and " + v.Name + " transforms activations"
	}
	return ""
}

// checkNames returns an error if a setting names, for instance, an unknown factor. A name that some
// data of the study have is accepted, since it may be meant for those.
func (p *Plan) checkNames(j *procedure.Job, spec spec.MeasureSpec) error {
	checker, ok := spec.Method.(procedure.Checker)
	if !ok {
		return nil
	}
	err := checker.Check(j)
	var unknown *procedure.Unknown
	if err == nil || !errors.As(err, &unknown) {
		return err
	}
	if unknown.OtherData && slices.ContainsFunc(p.Data, func(d *Data) bool { return slices.Contains(d.Source.Factors(), unknown.Name) }) {
		return nil
	}
	return spec.Position(unknown.Key, unknown.Name).Errorf("%s: no %s %q; %s", spec.Name(), unknown.What, unknown.Name, config.Suggest(unknown.Name, unknown.Known))
}

// job leaves out the fields that package run sets.
func (p *Plan) job(c *Cell, raw *Data, spec spec.MeasureSpec) (procedure.Job, error) {
	// This Key seeds random draws; Cell.Key is a hash that identifies the cell.
	job := procedure.Job{Key: p.key(c), Memory: int64(p.Study.Memory), A: c.Model.subject(c.Data), Transform: c.View.allValues}
	var err error
	if c.other == nil {
		job.A.Layers = procedureLayers(spec, c.Model)
		job.Pairs = diagonal(len(job.A.Layers))
	} else {
		job.B = c.other.subject(p.dataFor(raw, c.other))
		if job.A.Layers, job.B.Layers, job.Pairs, err = pairLayers(spec, c.Model, c.other); err != nil {
			return job, err
		}
	}
	needs := c.Method.(procedure.Procedure).Needs()
	all := c.Data.Order.Len()
	n := all
	if needs.Samples > 0 {
		n = min(n, needs.Samples)
	}
	samples := c.Data.Order.First(n)
	if needs.NewSamples && n > 0 { // each trial takes the next n samples of the order, and begins again at its end
		from := c.View.Trial * n
		// Repeated: the trial reuses samples of an earlier one.
		job.Repeated = c.View.Trial > 0 && from+n > all
		from %= all
		samples = slices.Concat(c.Data.Order.Range(from, min(from+n, all)), c.Data.Order.First(from+n-all))
	}
	labelled := p.labelled(c, raw)
	source := labelled.Source
	if labelled.mismatch != nil {
		source = raw.Source // the labels cannot be mapped to the model's outputs, but still name classes
	}
	job.Data, err = dataset.Subset(source, samples)
	return job, err
}

// labelled returns data with labels for the second model if the procedure compares two and needs
// labels, else for the first.
func (p *Plan) labelled(c *Cell, raw *Data) *Data {
	if c.other == nil || !c.Method.(procedure.Procedure).Needs().Labels {
		return c.Data
	}
	return p.dataFor(raw, c.other)
}

// subject describes a model for a procedure, with the class outputs used for predictions.
func (m *Model) subject(d *Data) procedure.Subject {
	return procedure.Subject{Name: m.Entry.Name, Identity: spec.CanonicalJSON(m.canonical()), Model: m.Net, Outputs: d.Outputs}
}

// depends is part of the cell's key: the number of samples and the pairs of layers.
func (w *ProcedureRun) depends() []string {
	out := []string{fmt.Sprintf("%d samples", w.Job.Data.Len())}
	side := func(layers []tensor.Layer, i int) string {
		if i >= len(layers) {
			return ""
		}
		return strings.Join(layerLayout(layers[i]), " ")
	}
	for _, p := range w.Job.Pairs {
		out = append(out, side(w.Job.A.Layers, p[0])+" "+side(w.Job.B.Layers, p[1]))
	}
	return out
}

func (p *Plan) procedures() []*Cell {
	return slices.DeleteFunc(slices.Clone(p.Cells), func(c *Cell) bool { return c.Procedure == nil })
}

// includesProcedure reports whether the shard runs the i-th procedure. None is divided between
// shards.
func (s Shard) includesProcedure(i int) bool { return s.Whole() || i%s.Count == s.Index-1 }

// Gather groups scores by layer, in the order in which the layers first appear.
func (w *ProcedureRun) Gather(pairScores []measure.PairScore) ([]scores.Layer, error) {
	var out []scores.Layer
	at := map[[2]int]int{}
	for _, s := range pairScores {
		key := [2]int{s.A, s.B}
		i, ok := at[key]
		if !ok {
			layer, err := w.Layer(s.A, s.B)
			if err != nil {
				return nil, err
			}
			i = len(out)
			at[key] = i
			out = append(out, layer)
		}
		out[i].Scores = append(out[i].Scores, s.Score)
	}
	return out, nil
}

// Layer returns the entry of layer a, paired with layer b of a second model, in a cell's stored
// scores, without scores yet. A negative index leaves that layer out.
func (w *ProcedureRun) Layer(a, b int) (scores.Layer, error) {
	out := scores.Layer{Depth: scores.NoDepth}
	if a >= len(w.Job.A.Layers) || b >= len(w.Job.B.Layers) && w.Job.B.Model != nil {
		return out, fmt.Errorf("scores of unknown layers %d and %d", a, b)
	}
	if a >= 0 {
		out.Name, out.Depth = w.Job.A.Layers[a].Name, w.Job.A.Layers[a].Depth
	}
	if b >= 0 && w.Job.B.Model != nil {
		out.Other = w.Job.B.Layers[b].Name
	}
	return out, nil
}

// SharedName returns a hash of a procedure's key and of the cell without its second model. Cells
// that differ only in that share a checkpoint of this name.
func (p *Plan) SharedName(c *Cell, key string) string {
	alone := &Cell{Model: c.Model, Data: c.Data, View: c.View, Method: c.Method}
	sum := sha256.Sum256([]byte(p.cellKey(alone) + "\n" + key))
	return hex.EncodeToString(sum[:12])
}

// PendingProcedures returns the unfinished cells of procedures that belong to a shard.
func (p *Plan) PendingProcedures(shard Shard) []*Cell {
	var out []*Cell
	for i, c := range p.procedures() {
		if shard.includesProcedure(i) && !c.Done && !c.Failed {
			out = append(out, c)
		}
	}
	return out
}
