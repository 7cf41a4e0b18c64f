package stir

import (
	"context"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/invert"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/train"
)

// New returns the measure stir. Its statistics are stir, stir-adversarial, cka (or similarity, for others than linear
// CKA), agreement, representation-distance, missed and input-distance.
func New(s Settings) (procedure.Procedure, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &stir{s}, nil
}

type stir struct{ settings Settings }

func (*stir) Name() string { return "stir" }

func (*stir) Descriptor() measure.Descriptor { return Descriptor() }

func (*stir) Version() int { return 1 }

func (m *stir) Settings() any { return m.settings }

func (m *stir) Needs() procedure.Needs {
	return procedure.Needs{Pair: true, Directional: true, Layers: procedure.Penultimate, Samples: m.settings.Images}
}

func (m *stir) Skip(j *procedure.Job) string {
	switch {
	case j.A.Model.Sound() || j.B.Model.Sound():
		return "inversions are of images, and these models take sounds"
	case j.Data.Len() < 2:
		return "one image has no similarity"
	case j.A.Model.Input().Type == onnx.Uint8:
		return fmt.Sprintf("%s takes bytes, and rounding to them has no gradient", j.A.Name)
	}
	for _, kind := range m.settings.Inversions {
		if why := contrasted(j); kind != Arbitrary && why != "" {
			return kind + " inversion: " + why
		}
	}
	return ""
}

// contrasted says why the two models cannot share a loss.
func contrasted(j *procedure.Job) string {
	a, b := j.A.Model, j.B.Model
	switch {
	case b.Input().Type == onnx.Uint8:
		return fmt.Sprintf("%s takes bytes, and rounding to them has no gradient", j.B.Name)
	}
	opset := max(a.Opset(), b.Opset())
	for _, s := range []procedure.Subject{j.A, j.B} {
		if err := s.Model.Graph().CompatibleWith(opset); err != nil {
			return fmt.Sprintf("%s beside a model of opset %d: %v", s.Name, opset, err)
		}
	}
	return ""
}

// gradientWork is what a step with a gradient counts, in forward passes.
const gradientWork = 3

func (m *stir) Work(j *procedure.Job) int64 {
	o, err := m.settings.options().Resolved()
	if err != nil {
		return 0
	}
	n := int64(min(j.Data.Len(), m.settings.Images))
	var work int64
	for _, v := range m.inversions(j) {
		models := int64(1)
		if v.kind != Arbitrary {
			models = 2
		}
		work += n * (models*gradientWork*int64(o.Steps+1) + 2) // and a look at what was found
	}
	return work + 2*n
}

// An inversion is a search for all images.
type inversion struct {
	kind  string
	a, b  int      // layers; b is -1 where only the reference model's counts
	pairs [][2]int // whose scores it serves
}

// name tells inversions of one job apart.
func (v inversion) name() string { return fmt.Sprintf("%s %d %d", v.kind, v.a, v.b) }

// inversions are what the settings ask for: of each layer of the reference model, or of each pair of layers where the other
// model takes part.
func (m *stir) inversions(j *procedure.Job) []inversion {
	var list []inversion
	for _, kind := range m.settings.Inversions {
		for _, p := range j.Pairs {
			v := inversion{kind, p[0], p[1], [][2]int{p}}
			if kind == Arbitrary {
				v.b = -1
			}
			i := slices.IndexFunc(list, func(o inversion) bool { return o.kind == v.kind && o.a == v.a && o.b == v.b })
			if i < 0 {
				list = append(list, v)
			} else {
				list[i].pairs = append(list[i].pairs, p)
			}
		}
	}
	return list
}

func (m *stir) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	scores, err := m.run(ctx, j)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return scores, err
}

func (m *stir) run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	r, err := m.start(ctx, j)
	if err != nil {
		return nil, err
	}
	scores, err := r.plainSimilarity(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range m.inversions(j) {
		found, err := r.invert(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("%s inversion of %s, layer %q: %w", v.kind, j.A.Name, j.A.Layers[v.a].Name, err)
		}
		more, err := r.score(ctx, v, found)
		if err != nil {
			return nil, err
		}
		scores = append(scores, more...)
	}
	for i := range scores {
		scores[i].Warnings = append(scores[i].Warnings, r.warnings...)
	}
	return scores, nil
}

// A run is the work on one job.
type run struct {
	*stir
	job     *procedure.Job
	samples []dataset.Sample
	x       tensor.Tensor // n x c x h x w, at A's frame
	a, b    *view         // on x
	kept    *kept
	work    int64 // done

	without  []int    // places of images that are left out, since a model gives NaN or infinity for them
	warnings []string // of every score
}

func (m *stir) start(ctx context.Context, j *procedure.Job) (*run, error) {
	places := make([]int, min(j.Data.Len(), m.settings.Images))
	for i := range places {
		places[i] = i
	}
	samples, err := j.Read(ctx, places, j.A.Model.Frame())
	if err != nil {
		return nil, err
	}
	if len(samples) < 2 {
		return nil, fmt.Errorf("%w: %d images, and a similarity needs two at least", measure.ErrTooFew, len(samples))
	}
	r := &run{stir: m, job: j, samples: samples, x: tensor.New(append([]int{len(samples)}, j.A.Model.ImageShape()...)...)}
	for i, s := range samples {
		copy(r.x.At(i).Data, s.Input.Data)
	}
	if err := r.leaveOut(ctx); err != nil {
		return nil, err
	}
	r.kept, err = readKept(j.Checkpoint, r.x.Shape)
	return r, err
}

// leaveOut looks at x with both models, and leaves out what one of them gives NaN or infinity for.
func (r *run) leaveOut(ctx context.Context) error {
	a, b, err := r.look(ctx, r.x)
	if err != nil {
		return err
	}
	n := len(r.samples)
	rows, err := sound(n, a, b)
	if err != nil {
		return err
	}
	r.x, r.a, r.b = pick(r.x, rows), a.pick(rows), b.pick(rows)
	if len(rows) == n {
		return nil
	}
	all := r.samples
	r.samples = nil
	for i, s := range all {
		if slices.Contains(rows, i) {
			r.samples = append(r.samples, s)
		} else {
			r.without = append(r.without, i)
		}
	}
	r.warnings = []string{leftOut("a model gives NaN or infinity for them", n, len(r.without), all[r.without[0]].Name)}
	return nil
}

// leftOut is the warning of images that count no more.
func leftOut(why string, of, n int, first string) string {
	return fmt.Sprintf("%d of %d images are left out: %s (the first is %s)", n, of, why, first)
}

// invert finds the images of one inversion, or takes those that an earlier run has found, or a job with the same reference
// model.
func (r *run) invert(ctx context.Context, v inversion) (*invert.Found, error) {
	o, err := r.settings.options().Resolved()
	if err != nil {
		return nil, err
	}
	factor := int64(gradientWork)
	if v.kind != Arbitrary {
		factor *= 2
	}
	before := r.work
	r.work += factor * int64(o.Steps+1) * int64(len(r.samples))
	if f := r.kept.done[v.name()]; f != nil {
		return f, nil
	}
	shared := r.shared(v, o)
	if shared != nil {
		if f, err := loadShared(shared, r.x.Shape); f != nil || err != nil {
			return f, err
		}
	}
	found, err := r.search(ctx, v, o, func(p invert.Progress) {
		r.job.Progress(before+factor*p.Done, fmt.Sprintf("%s inversion, distance %.3g", v.kind, p.Loss))
	})
	if err == nil && shared != nil {
		err = saveShared(shared, found)
	}
	if err != nil {
		return nil, err
	}
	return found, r.kept.add(v.name(), found)
}

// shared is where the inversion is kept for other jobs; nil where it depends on the second model.
func (r *run) shared(v inversion, o invert.Options) train.Checkpoint {
	if v.kind != Arbitrary || r.job.Shared == nil {
		return nil
	}
	name := fmt.Sprintf("stir %d, layer %q, start %s, optimiser %s, %d steps of %v, %d images of data, batch %d",
		r.Version(), r.job.A.Layers[v.a].Name, r.settings.Start, o.Optimiser, o.Steps, o.StepSize, len(r.samples), o.Batch)
	if len(r.without) > 0 {
		name += fmt.Sprintf(", without %v", r.without)
	}
	return r.job.Shared(name)
}

func (r *run) search(ctx context.Context, v inversion, o invert.Options, progress func(invert.Progress)) (*invert.Found, error) {
	start, err := r.begin(v.kind)
	if err != nil {
		return nil, err
	}
	s, err := invert.New(r.objective(v), o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Run(ctx, invert.Problem{Images: r.x, Start: start, Names: r.names(), Checkpoint: r.kept, Progress: progress})
}

func (r *run) names() []string {
	names := make([]string, len(r.samples))
	for i, s := range r.samples {
		names[i] = s.Name
	}
	return names
}

func (r *run) objective(v inversion) invert.Objective {
	a, layerA := r.job.A.Model, r.job.A.Layers[v.a]
	if v.kind == Arbitrary {
		return invert.Match(a, layerA)
	}
	b, layerB := r.job.B.Model, r.job.B.Layers[v.b]
	if r.settings.Normalised {
		return invert.NormalisedContrast(a, layerA, b, layerB, r.settings.Beta)
	}
	return invert.Contrast(a, layerA, b, layerB)
}
