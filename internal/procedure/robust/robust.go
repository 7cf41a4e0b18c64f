// Package robust measures accuracy under attack: the fraction of samples for which an attack finds
// no misclassified image in a ball around the image x.
//
// The attack is projected gradient descent on the cross-entropy (Madry et al. 2018) by package
// invert. Each step is
//
//	x' <- P(x' + alpha u(grad -log p_y(x'))),
//
// where p_y is the probability of the label y, alpha the length of a step, P projects onto the
// ball, and u divides each image's gradient by its norm (l2 ball) or takes its sign (linf ball). Of
// all steps the attack returns the image with the smallest margin: the score of the label minus the
// largest score of another class. The image is misclassified if its margin is not positive. The
// attack starts from a random point in the ball. With restarts, it is repeated for the samples for
// which all attacks so far have failed. The accuracy under a stronger attack (more steps, more
// restarts) is lower, so the result is an upper bound of it. The defaults are those of Table 2 of
// Nanda et al. 2022: l2, radius 1.
//
// With attack: autoattack, the attacks are those of package autoattack instead, one after the other,
// each on the samples that those before it have not broken.
//
// The measure is a procedure, which works in steps on samples in memory. Gradients are those of
// the model's graph, or of a served model that offers them.
package robust

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/tensor"
)

// Settings are the settings of the measure.
type Settings struct {
	Images   int     `key:"images" json:"images" default:"1000" min:"1" doc:"largest number of images, taken in random order"`
	Attack   string  `key:"attack" json:"attack,omitempty" enum:"pgd|autoattack" doc:"pgd (default), projected gradient descent, or autoattack, the standard version of AutoAttack"`
	Norm     string  `key:"norm" json:"norm" default:"l2" enum:"l2|linf" doc:"norm of the ball"`
	Radius   float64 `key:"radius" json:"radius" default:"1" min:"0" doc:"radius of the ball, for images with values in [0, 1]"`
	Steps    int     `key:"steps" json:"steps" default:"20" min:"1" doc:"number of steps of an attack"`
	StepSize float64 `key:"step-size" json:"stepSize" min:"0" doc:"length of a step (linf: change of a pixel); default: 2.5 radius / steps"`
	Random   bool    `key:"random-start" json:"randomStart" default:"true" doc:"start at a random point in the ball, not at x"`
	Restarts int     `key:"restarts" json:"restarts" default:"1" min:"1" doc:"largest number of attacks on a sample, each from another starting point, until one succeeds"`
	Batch    int     `key:"batch" json:"batch" min:"1" doc:"images that are attacked together, divided among concurrent runs of the engine; default: by the size of the model"`
}

// New returns the measure robust-accuracy: robust, the accuracy under attack, and clean. Settings
// outside their ranges are an error.
func New(s Settings) (procedure.Procedure, error) {
	if s.Attack == "pgd" {
		s.Attack = ""
	}
	switch {
	case s.Attack != "" && s.Attack != autoAttack:
		return nil, fmt.Errorf("unknown attack %q: it must be pgd or %s", s.Attack, autoAttack)
	case s.Attack == autoAttack && (s.Steps != defaultSteps || s.StepSize != 0 || !s.Random || s.Restarts != 1):
		return nil, errors.New("steps, step-size, random-start and restarts are those of pgd: autoattack has its own, so leave them out")
	case s.Images < 1:
		return nil, fmt.Errorf("images is %d: it must be at least 1", s.Images)
	case s.Restarts < 1:
		return nil, fmt.Errorf("restarts is %d: it must be at least 1", s.Restarts)
	case s.Restarts > 1 && !s.Random:
		return nil, errors.New("restarts has no effect with random-start: false: set one of them only")
	}
	if _, err := s.options().WithDefaults(); err != nil {
		return nil, err
	}
	return &robust{s}, nil
}

const (
	autoAttack   = "autoattack"
	defaultSteps = 20
)

type robust struct{ settings Settings }

func (s Settings) options() invert.Options {
	o := invert.Options{Steps: s.Steps, StepSize: s.StepSize, Ball: invert.Ball{Norm: invert.Norm(s.Norm), Radius: s.Radius}, Batch: s.Batch}
	if o.StepSize == 0 && s.Steps > 0 {
		o.StepSize = 2.5 * s.Radius / float64(s.Steps)
	}
	return o
}

func (*robust) Name() string { return "robust-accuracy" }

func (*robust) Descriptor() measure.Descriptor { return Descriptor() }

func (*robust) Version() int { return 2 }

func (m *robust) Settings() any { return m.settings }

func (m *robust) Needs() procedure.Needs {
	return procedure.Needs{Labels: true, Prediction: true, Samples: m.settings.Images}
}

func (*robust) Skip(j *procedure.Job) string {
	switch {
	case j.A.Model.TakesAudio():
		return "it takes audio, but attacks are on images"
	case j.A.Model.TakesArrays():
		return "it takes arrays, but attacks are on images"
	case j.A.Model.Classes() == 0:
		return "it has no output of class scores"
	case j.A.Model.NoGradient() != "":
		return "it " + j.A.Model.NoGradient()
	}
	return ""
}

// gradientWork is the cost of a forward and a backward pass, in forward passes.
const gradientWork = 3

func (m *robust) Work(j *procedure.Job) int64 {
	n := int64(min(j.Data.Len(), m.settings.Images))
	if m.settings.Attack == autoAttack {
		return n * (1 + standardWork(classes(j.A)))
	}
	return n * (1 + int64(m.settings.Restarts)*m.settings.attackWork())
}

// attackWork is the cost per sample: each step, and the evaluation after the last.
func (s Settings) attackWork() int64 { return gradientWork * int64(s.Steps+1) }

func (m *robust) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	r, err := m.newRun(ctx, j)
	var scored interface{ scores() []measure.Score } = r
	switch {
	case err != nil:
	case m.settings.Attack == autoAttack:
		scored, err = r.standard(ctx)
	default:
		err = r.attack(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	var out []measure.PairScore
	for _, s := range scored.scores() {
		out = append(out, measure.PairScore{A: measure.WholeModel, B: measure.WholeModel, Score: s})
	}
	return out, nil
}

type run struct {
	*robust
	job        *procedure.Job
	samples    []dataset.Sample
	correct    []bool      // whether the prediction on x is correct
	withstood  []bool      // whether the prediction on x is correct and all attacks so far have failed
	dropped    []bool      // whether an attack ended in NaN or infinity
	round      int         // number of finished attacks
	checkpoint *state.Part // of the current attack
}

func (m *robust) newRun(ctx context.Context, j *procedure.Job) (*run, error) {
	indices := dataset.Indices(min(j.Data.Len(), m.settings.Images))
	samples, err := j.Read(ctx, indices, j.A.Model.Frame())
	if err != nil {
		return nil, err
	}
	r := &run{robust: m, job: j}
	for _, s := range samples {
		if s.Label != dataset.NoLabel {
			r.samples = append(r.samples, s)
		}
	}
	if len(r.samples) == 0 {
		return nil, fmt.Errorf("%w: no sample has a label", measure.ErrTooFew)
	}
	if r.correct, err = procedure.CorrectPredictions(ctx, j.A, r.samples); err != nil {
		return nil, err
	}
	r.withstood, r.dropped = slices.Clone(r.correct), make([]bool, len(r.samples))
	return r, nil
}

func (r *run) attack(ctx context.Context) error {
	r.checkpoint = &state.Part{Store: r.job.Checkpoint, Kind: stateKind, Version: stateVersion,
		Code: r.Code}
	if err := r.checkpoint.Restore(); err != nil {
		return err
	}
	o := r.settings.options()
	o.Graphs = r.job.Graphs
	s, err := invert.New(invert.Misclassify(r.job.A.Model, r.job.A.Outputs), o)
	if err != nil {
		return err
	}
	defer s.Close()
	for ; r.round < r.settings.Restarts; r.round++ {
		var rows []int
		for i, holds := range r.withstood {
			if holds {
				rows = append(rows, i)
			}
		}
		if len(rows) == 0 {
			return nil
		}
		found, err := s.Run(ctx, r.problem(rows))
		if err != nil {
			return err
		}
		for k, row := range rows {
			if margin := found.Loss[k]; margin <= 0 {
				r.withstood[row] = false
			}
		}
		for _, k := range found.Dropped {
			r.dropped[rows[k]] = true
		}
	}
	return nil
}

func (r *run) problem(rows []int) invert.Problem {
	x := tensor.New(append([]int{len(rows)}, r.job.A.Model.ImageShape()...)...)
	start := tensor.New(x.Shape...)
	p := invert.Problem{Images: x, Start: start, Checkpoint: r.checkpoint}
	ball, k := r.settings.options().Ball, r.job.Key
	for i, row := range rows {
		sample := r.samples[row]
		copy(x.At(i).Data, sample.Input.Data)
		from := sample.Input
		if r.settings.Random {
			draw := seed.Rand(k.Seed, "robust: start", k.Data, k.Trial, r.round, sample.Index)
			from = ball.Draw(sample.Input, draw)
		}
		copy(start.At(i).Data, from.Data)
		p.Labels, p.Names = append(p.Labels, sample.Label), append(p.Names, sample.Name)
	}
	before := int64(len(r.samples)) * (1 + int64(r.round)*r.settings.attackWork())
	p.Progress = func(p invert.Progress) {
		r.job.Progress(before+gradientWork*p.Done, fmt.Sprintf("margin %.3g", p.Loss))
	}
	return p
}

// scores returns the accuracies. A sample that is misclassified without an attack is not robust. If
// the attacks on all samples that withstood them ended in NaN or infinity, as with a gradient that is
// always NaN, robust has no value.
func (r *run) scores() []measure.Score {
	score := func(statistic string, yes []bool) measure.Score {
		count := 0
		for _, y := range yes {
			if y {
				count++
			}
		}
		return fraction(statistic, count, len(yes))
	}
	robust := score("robust", r.withstood)
	dropped, held := 0, 0
	for i, holds := range r.withstood {
		if holds {
			held++
		}
		if holds && r.dropped[i] {
			dropped++
		}
	}
	if dropped > 0 && dropped == held {
		robust = robust.Undefined(fmt.Sprintf("the attacks on all %s that withstood them ended in NaN or infinity", plural.Of(held, "sample")))
	} else if dropped > 0 {
		robust.Warnings = append(robust.Warnings, fmt.Sprintf("attacks on %s ended in NaN or infinity without success: they count as robust", plural.Of(dropped, "sample")))
	}
	return []measure.Score{robust, score("clean", r.correct)}
}

// fraction returns a score of count of n samples.
func fraction(statistic string, count, n int) measure.Score {
	s := measure.Plain(statistic, float64(count)/float64(n), n)
	s.Low, s.High = resample.Wilson(s.Value, n)
	s.Max = 1
	return s
}

// A checkpoint is a state (saved results of an unfinished job) of this kind and version.
const (
	stateKind    = "robust"
	stateVersion = 2
)

func (r *run) Code(c *state.Codec) {
	if !c.Matches(len(r.withstood)) { // the set of readable samples has changed
		return
	}
	for i := range r.withstood {
		c.Values(&r.withstood[i], &r.dropped[i])
	}
	c.Values(&r.round)
	c.Check(r.round >= 0 && r.round < r.settings.Restarts,
		"the state is of attack %d, but there are %d", r.round+1, r.settings.Restarts)
}
