package stir

import (
	"context"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// New returns the measure stir (Similarity Through Inverted Representations): how similar are the
// second model's representations of images and of inverted images, which the first one, the
// reference, maps to the same representations? The package comment lists its statistics.
func New(s Settings) (procedure.Procedure, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &stir{s}, nil
}

type stir struct{ settings Settings }

func (*stir) Name() string { return "stir" }

func (*stir) Descriptor() measure.Descriptor { return Descriptor() }

func (*stir) Version() int { return 2 }

func (m *stir) Settings() any { return m.settings }

func (m *stir) Needs() procedure.Needs {
	return procedure.Needs{Pair: true, Directional: true, Layers: measure.PairPenultimate, Samples: m.settings.Images, NewSamples: true}
}

func (m *stir) Skip(j *procedure.Job) string {
	switch {
	case j.A.Model.TakesAudio() || j.B.Model.TakesAudio():
		return "inversions are of images, but a model takes audio"
	case j.A.Model.TakesArrays() || j.B.Model.TakesArrays():
		return "inversions are of images, but a model takes arrays"
	case j.Data.Len() < 2:
		return "a similarity needs at least two images"
	case j.A.Model.NoGradient() != "":
		return j.A.Name + " " + j.A.Model.NoGradient()
	}
	for _, kind := range m.settings.Inversions {
		if why := contrastProblem(j); kind != Arbitrary && why != "" {
			return kind + " inversion: " + why
		}
	}
	return ""
}

// contrastProblem returns why the two models cannot be combined in one loss, or "".
func contrastProblem(j *procedure.Job) string {
	a, b := j.A.Model, j.B.Model
	if why := b.NoGradient(); why != "" {
		return j.B.Name + " " + why
	}
	opset := max(a.Opset(), b.Opset())
	for _, s := range []procedure.Subject{j.A, j.B} {
		if graph := s.Model.Graph(); graph == nil {
			continue
		} else if err := graph.CompatibleWith(opset); err != nil {
			return fmt.Sprintf("%s beside a model of opset %d: %v", s.Name, opset, err)
		}
	}
	return ""
}

// gradientWork is the cost of a forward and a backward pass, in forward passes.
const gradientWork = 3

func (m *stir) Work(j *procedure.Job) int64 {
	o, err := m.settings.options().WithDefaults()
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
		// The search computes the loss after the last step too. Then both models run on the result.
		work += n * (models*gradientWork*int64(o.Steps+1) + 2)
	}
	return work + 2*n // both models run on the samples
}

// An inversion is one search for all images. An Adversarial one also makes the second model
// represent the result differently; a Controversial one does so from the images with a little
// noise.
type inversion struct {
	kind  string   // Arbitrary, Adversarial or Controversial
	a, b  int      // index of the layer of each model; b is -1 if only the reference model is used
	pairs [][2]int // of layers that are scored with the result
}

func (v inversion) name() string { return fmt.Sprintf("%s %d %d", v.kind, v.a, v.b) }

// inversions returns one for each layer of the reference, or for each pair if the other model is
// used too.
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
	r, err := m.newRun(ctx, j)
	if err != nil {
		return nil, err
	}
	scores, err := r.modelSimilarity(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range m.inversions(r.job) {
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
	return r.withOmitted(scores), nil
}

type run struct {
	*stir
	job        *procedure.Job
	samples    []dataset.Sample
	x          tensor.Tensor // n x c x h x w, with the size and channels of A's input
	a, b       *responses    // of the two models to x
	checkpoint *jobCheckpoint
	work       int64 // finished so far, in forward passes

	allPairs [][2]int         // all pairs of the job; job.Pairs is without those of omitted layers
	omitted  [2]map[int]error // for each model, by layer: why it is omitted (NaN or infinity)
	dropped  []int            // indices of the images for which a model gives NaN or infinity
	warnings []string         // of every score
}

func (m *stir) newRun(ctx context.Context, j *procedure.Job) (*run, error) {
	indices := dataset.Indices(min(j.Data.Len(), m.settings.Images))
	samples, err := j.Read(ctx, indices, j.A.Model.Frame())
	if err != nil {
		return nil, err
	}
	if len(samples) < 2 {
		return nil, fmt.Errorf("%w: %d images, but a similarity needs at least 2", measure.ErrTooFew, len(samples))
	}
	r := &run{stir: m, job: j, samples: samples, x: tensor.New(append([]int{len(samples)}, j.A.Model.ImageShape()...)...)}
	for i, s := range samples {
		copy(r.x.At(i).Data, s.Input.Data)
	}
	if err := r.dropNonFinite(ctx); err != nil {
		return nil, err
	}
	if j.Repeated { // a trial is a repetition of the measure with other images and noise
		r.warnings = append(r.warnings, "earlier trials take some of these images too, since there are too few for each: the interval over trials is too narrow; set images lower, or take more data")
	}
	r.checkpoint, err = loadCheckpoint(j.Checkpoint, r.x.Shape)
	return r, err
}

// dropNonFinite omits layers with NaN or infinity for most images, then drops images with them.
func (r *run) dropNonFinite(ctx context.Context) error {
	a, b, err := r.runModels(ctx, r.x)
	if err != nil {
		return err
	}
	n := len(r.samples)
	r.omitLayers(a, b)
	rows, err := r.finiteRows(n, a, b)
	if err != nil {
		return err
	}
	r.x, r.a, r.b = selectRows(r.x, rows), a.selectRows(rows), b.selectRows(rows)
	if len(rows) == n {
		return nil
	}
	all := r.samples
	r.samples = nil
	for i, s := range all {
		if slices.Contains(rows, i) {
			r.samples = append(r.samples, s)
		} else {
			r.dropped = append(r.dropped, i)
		}
	}
	r.warnings = []string{droppedWarning("a model gives NaN or infinity for them", n, len(r.dropped), all[r.dropped[0]].Name)}
	return nil
}

// first is the name of the first of the n images.
func droppedWarning(why string, total, n int, first string) string {
	return fmt.Sprintf("%d of %d images are left out: %s (the first is %s)", n, total, why, first)
}

// invert loads the result if an earlier run, or a job with the same reference model, has it.
func (r *run) invert(ctx context.Context, v inversion) (*invert.Result, error) {
	o, err := r.settings.options().WithDefaults()
	if err != nil {
		return nil, err
	}
	factor := int64(gradientWork)
	if v.kind != Arbitrary {
		factor *= 2
	}
	before := r.work
	r.work += factor * int64(o.Steps+1) * int64(len(r.samples))
	if f := r.checkpoint.done[v.name()]; f != nil {
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
	return found, r.checkpoint.add(v.name(), found)
}

// shared returns the checkpoint that jobs with the same reference model share for an inversion, or
// nil if the inversion depends on the second model.
func (r *run) shared(v inversion, o invert.Options) state.Checkpoint {
	if v.kind != Arbitrary || r.job.Shared == nil {
		return nil
	}
	name := fmt.Sprintf("stir %d, layer %q, start %s, optimiser %s, %d steps of %v, %d images of data, batch %d",
		r.Version(), r.job.A.Layers[v.a].Name, r.settings.Start, o.Optimiser, o.Steps, o.StepSize, len(r.samples), o.Batch)
	if len(r.dropped) > 0 {
		name += fmt.Sprintf(", without %v", r.dropped)
	}
	return r.job.Shared(name)
}

// search runs the search of an inversion, from its checkpoint if there is one.
func (r *run) search(ctx context.Context, v inversion, o invert.Options, progress func(invert.Progress)) (*invert.Result, error) {
	start, err := r.startImages(v.kind)
	if err != nil {
		return nil, err
	}
	o.Graphs = r.job.Graphs
	s, err := invert.New(r.objective(v), o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Run(ctx, invert.Problem{Images: r.x, Start: start, Names: r.names(), Checkpoint: r.checkpoint, Progress: progress})
}

func (r *run) names() []string {
	names := make([]string, len(r.samples))
	for i, s := range r.samples {
		names[i] = s.Name
	}
	return names
}

// objective returns the loss of an inversion. With two models and the setting Normalised, distances
// are divided by the norm of the representation, and Beta weights that of the second.
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
