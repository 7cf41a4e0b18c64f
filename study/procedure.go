package study

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/features"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/spec"
	"github.com/noether-ml/noether/train"
)

// work is what a cell of a procedure does, in place of tasks.
type work struct {
	procedure procedure.Procedure
	job       procedure.Job
	scored    []scores.Layer // set once it is done
}

// addProcedure adds a cell of a procedure on one model, or on a and b.
func (p *Plan) addProcedure(a, b *openModel, raw *openData, v View, spec spec.MeasureSpec) error {
	d := p.under(raw, a)
	method := spec.Method.(procedure.Procedure)
	needs := method.Needs()
	c := &Cell{Model: a, Other: b, Data: d, View: v, Method: method}
	if why := unmet(measure.Needs{Labels: needs.Labels, Prediction: needs.Prediction}, a, d, c.View); why != "" {
		p.skip(c, "", why)
		return nil
	}
	ready := needs.OwnTrajectories && v.Transform == "" && hasTrajectories(d.source)
	if why := v.cannotSweep(); needs.Transform && !ready && why != "" {
		p.skip(c, "", why)
		return nil
	}
	if needs.Prediction && b != nil && b.model.Classes() == 0 {
		p.skip(c, "", fmt.Sprintf("the model %s has no class scores", b.spec.Name))
		return nil
	}
	if d.mismatch != nil && (needs.Labels || needs.Prediction && d.spec.Classes != nil) {
		return p.failCell(c, d.mismatch)
	}
	w := &work{procedure: method}
	var err error
	if w.job, err = p.job(c, raw, spec); err != nil {
		return err
	}
	if err := p.checkNames(&w.job, spec); err != nil {
		return p.failCell(c, err)
	}
	if why := method.Skip(&w.job); why != "" {
		p.skip(c, "", why)
		return nil
	}
	c.work = w
	p.add(c)
	return nil
}

// cannotSweep tells why a procedure that moves inputs cannot do so under the view, "" where it can.
func (v View) cannotSweep() string {
	switch {
	case v.Transform == "":
		return "the study names no transformation"
	case v.sweep == nil:
		return "ready-made pairs are no transformation that could be drawn"
	case v.on == "activations":
		return "it moves inputs, and " + v.Transform + " is of activations"
	}
	return ""
}

// checkNames finds settings that name what the data of a job do not have. Those that may be meant for other data are wrong where none
// of the study has it.
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
	if unknown.Elsewhere && slices.ContainsFunc(p.data, func(d *openData) bool { return slices.Contains(d.source.Factors(), unknown.Word) }) {
		return nil
	}
	return spec.Position(unknown).Errorf("%s: no %s %q; %s", spec.Name(), unknown.What, unknown.Word, config.Suggest(unknown.Word, unknown.Known))
}

// job describes the job of a cell on some data, but for what a run adds to it.
func (p *Plan) job(c *Cell, raw *openData, spec spec.MeasureSpec) (procedure.Job, error) {
	job := procedure.Job{Key: p.key(c), Memory: int64(p.Study.Memory), A: c.Model.subject(c.Data), Transform: c.View.sweep}
	var err error
	if c.Other == nil {
		job.A.Layers = procedureLayers(spec, c.Model)
		job.Pairs = diagonal(len(job.A.Layers))
	} else {
		job.B = c.Other.subject(p.under(raw, c.Other))
		if job.A.Layers, job.B.Layers, job.Pairs, err = pairLayers(spec, c.Model, c.Other); err != nil {
			return job, err
		}
	}
	n := len(c.Data.order)
	if most := c.Method.(procedure.Procedure).Needs().Samples; most > 0 {
		n = min(n, most)
	}
	source := c.Data.source
	if c.Data.mismatch != nil {
		source = raw.source // the labels are no outputs of the model, and still classes
	}
	job.Data, err = dataset.Subset(source, c.Data.order[:n])
	return job, err
}

func (m *openModel) subject(d *openData) procedure.Subject {
	return procedure.Subject{Name: m.spec.Name, Identity: spec.CanonicalJSON(m.canonical()), Model: m.model, Outputs: d.keep}
}

// depends is what the scores of the work depend on besides what the cell says.
func (w *work) depends() []string {
	out := []string{fmt.Sprintf("%d samples", w.job.Data.Len())}
	side := func(layers []onnx.Layer, i int) string {
		if i >= len(layers) {
			return ""
		}
		return layers[i].Name + " " + string(layers[i].Axes)
	}
	for _, p := range w.job.Pairs {
		out = append(out, side(w.job.A.Layers, p[0])+" "+side(w.job.B.Layers, p[1]))
	}
	return out
}

// procedures are the cells that are done by procedures.
func (p *Plan) procedures() []*Cell {
	return slices.DeleteFunc(slices.Clone(p.Cells), func(c *Cell) bool { return c.work == nil })
}

// deals reports whether the i-th of the procedures is done in the part: whole, since a procedure cannot be divided.
func (p Part) deals(i int) bool { return p.Whole() || i%p.Of == p.Index-1 }

// toDo are the cells that procedures of this run are still to do.
func (r *runner) toDo() []*Cell {
	var out []*Cell
	for i, c := range r.plan.procedures() {
		if r.o.Part.deals(i) && !c.done && !c.failed {
			out = append(out, c)
		}
	}
	return out
}

// runProcedure does the work of a cell and writes its record.
func (r *runner) runProcedure(ctx context.Context, c *Cell) error {
	if r.folder.hasCell(c) { // another run of the study has done it meanwhile
		c.done = true
		return nil
	}
	r.shareBLAS(1)
	job := c.work.job
	job.Checkpoint, job.Read = &checkpoint{r, c, r.folder.state(c, Part{})}, c.read
	job.Shared = func(key string) train.Checkpoint {
		return &checkpoint{r, c, r.folder.shared(r.plan.sharedName(c, key))}
	}
	job.Store = r.representations()
	job.Runtime, job.Threads, job.Device = r.o.Runtime, r.o.Threads, r.o.Device
	before := r.progress.Done
	r.progress.Model, r.progress.Data = c.modelNames(), c.Data.spec.Name
	job.Progress = func(done int64, note string) {
		r.progress.Done, r.progress.Note = before+done, note
		r.stats.done.Store(before + done)
		if r.o.Progress != nil {
			r.o.Progress(r.progress)
		}
	}
	r.log.Info("procedure", "number", r.progress.Pass, "of", r.progress.Passes, "what", c.String())
	ctx, work := span(ctx, "procedure", attribute.String("what", c.String()))
	defer work.End()
	worked := r.stats.during(procedures)
	units := r.newUnitFiles(c)
	job.Units, job.Curves = units.addUnits, units.addCurves
	err := guarded(func() error {
		found, err := c.work.procedure.Run(ctx, &job)
		if err == nil {
			c.work.scored, err = c.work.layers(found)
		}
		if err == nil {
			err = units.keep()
		}
		return err
	})
	worked()
	r.progress.Done, r.progress.Note = before+c.work.procedure.Work(&c.work.job), ""
	switch {
	case err == nil:
		c.Data.redrawn.of(ctx, &job)
		return r.completeCell(c)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isSaveError(err):
		return err
	}
	return r.failCell(c, "", nil, fmt.Errorf("%s: %w", c, err))
}

// representations is where the run keeps what layers make of samples; nil where there is no place for it.
func (r *runner) representations() *features.Store {
	if r.o.Representations == nil {
		var err error
		if r.o.Representations, err = features.Default(); err != nil {
			r.o.warn("%v", err)
		}
	}
	return r.o.Representations
}

// read is the Job.Read of a cell.
func (c *Cell) read(ctx context.Context, places []int, f dataset.Frame) ([]dataset.Sample, error) {
	var out []dataset.Sample
	for s, err := range dataset.Read(ctx, c.work.job.Data, places, f, dataset.ReadOptions{}) {
		if bad := (*dataset.BadSample)(nil); errors.As(err, &bad) {
			if err := c.Data.note(bad); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("data %s: %w", c.Data.spec.Name, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// layers gathers scores by the layers that they concern, in the order in which these come first.
func (w *work) layers(found []measure.PairScore) ([]scores.Layer, error) {
	var out []scores.Layer
	at := map[[2]int]int{}
	for _, s := range found {
		key := [2]int{s.A, s.B}
		i, ok := at[key]
		if !ok {
			layer, err := w.layer(s.A, s.B)
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

func (w *work) layer(a, b int) (scores.Layer, error) {
	out := scores.Layer{Depth: scores.NoDepth}
	if a >= len(w.job.A.Layers) || b >= len(w.job.B.Layers) && w.job.B.Model != nil {
		return out, fmt.Errorf("scores of the layers %d and %d, which are not among those measured", a, b)
	}
	if a >= 0 {
		out.Name, out.Depth = w.job.A.Layers[a].Name, w.job.A.Layers[a].Depth
	}
	if b >= 0 && w.job.B.Model != nil {
		out.Other = w.job.B.Layers[b].Name
	}
	return out, nil
}

// sharedName tells what cells have in common that differ in nothing but the model that theirs is held against.
func (p *Plan) sharedName(c *Cell, key string) string {
	alone := &Cell{Model: c.Model, Data: c.Data, View: c.View, Method: c.Method}
	sum := sha256.Sum256([]byte(alone.key(p.Study) + "\n" + key))
	return hex.EncodeToString(sum[:12])
}

// A checkpoint is what the folder keeps of a cell of a procedure, or for several.
type checkpoint struct {
	r    *runner
	c    *Cell
	path string
}

// Load implements train.Checkpoint.
func (k *checkpoint) Load() (io.ReadCloser, error) {
	f, err := openState(k.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case errors.Is(err, errDamaged):
		k.r.o.warn("%v; what it held is done afresh", err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	k.c.Data.unreadable.add(f.Unreadable...)
	e := f.entry("")
	if e == nil || f.Cell != filepath.Base(k.path) {
		f.close()
		return nil, nil
	}
	return struct {
		io.Reader
		io.Closer
	}{f.section(e), f.f}, nil
}

// Save implements train.Checkpoint.
func (k *checkpoint) Save(state func(io.Writer) error) error {
	index := &stateIndex{Cell: filepath.Base(k.path), N: k.c.Data.layout.N, Entries: []stateEntry{{}}, Unreadable: k.c.Data.unreadable.names()}
	write := func() error {
		return writeState(k.path, index, func(w io.Writer, _ *stateEntry) error { return state(w) })
	}
	err := write()
	// The folder of what is shared is made when something is, and goes with every run of the study that ends.
	for tries := 0; errors.Is(err, os.ErrNotExist) && tries < 10; tries++ {
		if err = os.MkdirAll(filepath.Dir(k.path), 0o777); err == nil {
			err = write()
		}
	}
	if err != nil {
		return &saveError{err}
	}
	return nil
}
