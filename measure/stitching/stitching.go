// Package stitching measures whether one model can continue from a layer of another one: model
// stitching (Lenc and Vedaldi 2015; Bansal, Nakkiran and Barak 2021; Csiszárik et al. 2021).
//
// The front of the first model, a, ends at a layer. A linear map, the stitch, turns the activations
// of that layer into activations of a layer of the second model, b, from which the rest of b
// computes the class. The stitch is trained to classify, with all weights of both models fixed:
//
//	x -> front of a -> stitch -> back of b -> class
//
// If both layers are feature maps, the stitch is a 1 x 1 convolution, that is, one linear map of the
// channels at each position; maps of different sizes are resized first. Otherwise it is a linear map
// of all values. It is trained by Adam on some of the samples and tested on the others.
//
// A model that is stitched to itself by the identity has exactly its own accuracy:
//
//	s := stitching.Defaults()
//	s.Start, s.Epochs = "identity", 0
//	m, err := stitching.New(s)
package stitching

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/train"
)

// New returns the measure stitching. Its statistics are accuracy, gain and penalty.
func New(s Settings) (procedure.Procedure, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &stitching{s}, nil
}

type stitching struct{ settings Settings }

func (*stitching) Name() string { return "stitching" }

func (*stitching) Descriptor() measure.Descriptor { return Descriptor() }

func (*stitching) Version() int { return 1 }

func (m *stitching) Settings() any { return m.settings }

func (m *stitching) Needs() procedure.Needs {
	return procedure.Needs{Pair: true, Directional: true, Labels: true, Layers: procedure.Same, Samples: m.settings.Images}
}

func (m *stitching) Skip(j *procedure.Job) string {
	for _, s := range []procedure.Subject{j.A, j.B} {
		if s.Model.Batch() > 0 {
			return fmt.Sprintf("%s takes %d images at a time: export it with a free batch size", s.Name, s.Model.Batch())
		}
	}
	switch {
	case j.B.Model.Classes() == 0:
		return fmt.Sprintf("the model %s has no class scores", j.B.Name)
	case j.B.Outputs != nil && len(j.B.Outputs) < 2:
		return "a classifier needs at least two classes"
	case j.A.Model.Input().Type == onnx.Uint8:
		return fmt.Sprintf("%s has a uint8 input: export it with a float input", j.A.Name)
	case m.trained(j.Data.Len()) < 2 || j.Data.Len()-m.trained(j.Data.Len()) < 2:
		return fmt.Sprintf("%d samples are too few: two train the stitch, and two others test it", j.Data.Len())
	}
	return ""
}

// trained returns how many of n samples train the stitches.
func (m *stitching) trained(n int) int { return int(math.Round(m.settings.Train * float64(n))) }

// Work returns the number of forward passes of one sample. A training step counts as three, and the
// fit by least squares as one of each model. The tests are those of the untrained and the trained
// stitches and of the second model.
func (m *stitching) Work(j *procedure.Job) int64 {
	n := j.Data.Len()
	tests := int64(n - m.trained(n))
	return tests + int64(len(j.Pairs))*m.workOf(n)
}

// workOf returns the work of one stitch with n samples.
func (m *stitching) workOf(n int) int64 {
	passes := 3 * m.settings.Epochs
	if m.settings.Start == leastSquares {
		passes += 2
	}
	return int64(passes)*int64(m.trained(n)) + 2*int64(n-m.trained(n))
}

func (m *stitching) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	scores, err := m.run(ctx, j)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return scores, err
}

func (m *stitching) run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	r, err := m.newRun(ctx, j)
	if err != nil {
		return nil, err
	}
	var out []measure.PairScore
	for _, p := range j.Pairs {
		scores, err := r.stitch(ctx, j.A.Layers[p[0]], j.B.Layers[p[1]])
		if err != nil {
			return nil, fmt.Errorf("stitching layer %q of %s to layer %q of %s: %w", j.A.Layers[p[0]].Name, j.A.Name, j.B.Layers[p[1]].Name, j.B.Name, err)
		}
		for _, s := range scores {
			out = append(out, measure.PairScore{A: p[0], B: p[1], Score: s})
		}
	}
	return out, nil
}

// A run is one job in progress.
type run struct {
	*stitching
	job     *procedure.Job
	x       tensor.Tensor   // all images: n x c x h x w, in the frame of the first model
	labels  []int           // of each image: index into the outputs of the second model that are used (Subject.Outputs)
	indices []int           // indices of the images in the data set
	trains  int             // number of training images, which come first; the others test the stitches
	second  []tensor.Tensor // the training images in the frame of the second model
	own     []float64       // 1 for each test image that the unchanged second model classifies correctly, else 0
	work    int64           // finished work, in the units of Work
}

// newRun reads the labelled samples in the frames of both models, and tests the second model.
func (m *stitching) newRun(ctx context.Context, j *procedure.Job) (*run, error) {
	drawn := dataset.Indices(min(j.Data.Len(), m.settings.Images))
	samples, err := j.Read(ctx, drawn, j.A.Model.Frame())
	if err != nil {
		return nil, err
	}
	second, err := j.Read(ctx, drawn, j.B.Model.Frame())
	if err != nil {
		return nil, err
	}
	framed := map[int]dataset.Sample{}
	for _, s := range second {
		framed[s.Index] = s
	}
	var used, ofB []dataset.Sample
	for _, s := range samples {
		if b, ok := framed[s.Index]; ok && s.Label != dataset.NoLabel {
			used, ofB = append(used, s), append(ofB, b)
		}
	}
	n := len(used)
	r := &run{stitching: m, job: j, trains: m.trained(n), x: tensor.New(append([]int{n}, j.A.Model.ImageShape()...)...)}
	if r.trains < 2 || n-r.trains < 2 {
		return nil, fmt.Errorf("%w: %d have a label; two train the stitch, and two others test it", measure.ErrTooFew, n)
	}
	for i, s := range used {
		copy(r.x.At(i).Data, s.Input.Data)
		r.labels, r.indices = append(r.labels, s.Label), append(r.indices, s.Index)
	}
	correct, err := procedure.CorrectPredictions(ctx, j.B, ofB[r.trains:])
	if err != nil {
		return nil, err
	}
	for _, s := range ofB[:r.trains] {
		r.second = append(r.second, s.Input)
	}
	for _, yes := range correct {
		r.own = append(r.own, indicator(yes))
	}
	r.progress(int64(len(correct)), "")
	return r, nil
}

// indicator returns 1 for true and 0 for false.
func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (r *run) progress(work int64, note string) {
	r.work += work
	r.job.Progress(r.work, note)
}

// stitch returns the scores of a pair of layers.
func (r *run) stitch(ctx context.Context, from, to onnx.Layer) ([]measure.Score, error) {
	afterwards := r.work + r.workOf(len(r.labels))
	k := r.job.Key
	random := seed.Rand(k.Seed, "stitching", k.Data, k.Trial, from.Name, to.Name)
	net, err := r.settings.network(r.job.A, r.job.B, from, to, random)
	var bypassed *model.Bypassed
	var other incompatible
	if errors.As(err, &bypassed) || errors.As(err, &other) {
		r.progress(afterwards-r.work, "")
		return undefined(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	if r.settings.Start == leastSquares {
		if err := r.fit(ctx, net, to); err != nil {
			return nil, err
		}
	}
	whole, err := rewrite.WithOutputs(net.Model, []string{scoresName})
	if err != nil {
		return nil, err
	}
	untrained, err := r.test(ctx, whole)
	if err != nil {
		return nil, err
	}
	trained := untrained
	if r.settings.Epochs > 0 {
		if whole, err = r.train(ctx, whole, from, to, random.Uint64()); err != nil {
			return nil, err
		}
		if trained, err = r.test(ctx, whole); err != nil {
			return nil, err
		}
	}
	r.progress(afterwards-r.work, "")
	return r.scores(untrained, trained), nil
}

// engine returns the options of the sessions.
func (r *run) engine() ort.Options {
	return ort.Options{Threads: r.job.Threads, Device: r.job.Device}
}

// train returns the network with the trained stitch, which it loads from the store if it is there.
func (r *run) train(ctx context.Context, net *onnx.Model, from, to onnx.Layer, seed uint64) (*onnx.Model, error) {
	name := r.name(from, to)
	if r.job.Store != nil {
		if raw, err := r.job.Store.Load(name); err == nil && raw != nil {
			if weights, err := decode(raw, net); err == nil {
				return rewrite.WithWeights(net, weights)
			}
		}
	}
	t, err := train.New(r.job.Runtime, train.Spec{Model: net, Parameters: []string{weightName, biasName}, Loss: train.CrossEntropy,
		Optimiser: train.Adam{Rate: r.settings.Rate}, Schedule: train.Cosine(0), Engine: r.engine()})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	before := r.work
	_, err = t.Fit(ctx, &train.Arrays{Inputs: []tensor.Tensor{r.x.Slice(0, r.trains)}, Classes: r.labels[:r.trains]}, nil, train.FitOptions{
		Epochs: r.settings.Epochs, Batch: r.settings.Batch, Seed: seed, Checkpoint: &stitchCheckpoint{r.job.Checkpoint, name},
		AfterStep: func(p train.StepProgress) {
			r.job.Progress(before+3*int64((p.Epoch-1)*p.Total+p.Samples), fmt.Sprintf("layer %s to %s, epoch %d, loss %.3g", from.Name, to.Name, p.Epoch, p.Loss))
		}})
	if err != nil {
		return nil, err
	}
	weights := t.Weights()
	if r.job.Store != nil {
		if err := r.job.Store.Save(name, encode(weights)); err != nil {
			return nil, err
		}
	}
	return rewrite.WithWeights(net, weights)
}

// name returns a name for a trained stitch: a hash of everything that its weights depend on.
func (r *run) name(from, to onnx.Layer) string {
	j := r.job
	model := func(s procedure.Subject) string { return s.Identity + " " + s.Model.SHA256() }
	all := []any{"stitching", r.Version(), model(j.A), from.Name, model(j.B), to.Name, j.B.Outputs, j.Data.Fingerprint(), r.indices[:r.trains], r.labels[:r.trains],
		fmt.Sprintf("%+v", r.settings), j.Key.Seed, j.Key.Data, j.Key.Trial, j.Device}
	return fmt.Sprintf("stitch %x", sha256.Sum256([]byte(strings.Trim(fmt.Sprintf("%q", all), "[]"))))
}

const (
	stateKind    = "stitching"
	stateVersion = 1
)

func encode(weights map[string]tensor.Tensor) []byte {
	w := state.NewWriter(stateKind, stateVersion)
	w.Float32s(weights[weightName].Data)
	w.Float32s(weights[biasName].Data)
	return w.Bytes()
}

// decode reads the weights of the stitch of a network.
func decode(raw []byte, net *onnx.Model) (map[string]tensor.Tensor, error) {
	r, err := state.NewReader(raw, stateKind, stateVersion)
	if err != nil {
		return nil, err
	}
	out := map[string]tensor.Tensor{}
	for _, name := range []string{weightName, biasName} {
		t, err := net.Tensor(name)
		if err != nil {
			return nil, err
		}
		r.Float32sInto(t.Data)
		out[name] = t
	}
	return out, r.Close()
}

// A stitchCheckpoint holds the training of the current stitch. Those of other stitches are ignored.
type stitchCheckpoint struct {
	store train.Checkpoint // may be nil
	name  string
}

func (c *stitchCheckpoint) Load() (io.ReadCloser, error) {
	if c.store == nil {
		return nil, nil
	}
	var training []byte
	err := state.Load(c.store, stateKind, stateVersion, func(r *state.Reader) bool {
		if r.String() != c.name {
			return false
		}
		training = r.Raw()
		return true
	})
	if err != nil || training == nil {
		return nil, err
	}
	return io.NopCloser(strings.NewReader(string(training))), nil
}

func (c *stitchCheckpoint) Save(write func(io.Writer) error) error {
	if c.store == nil {
		return nil
	}
	return c.store.Save(func(to io.Writer) error {
		w := state.Stream(to, stateKind, stateVersion)
		w.String(c.name)
		if err := w.Nested(write); err != nil {
			return err
		}
		return w.Close()
	})
}

// test returns for each test image whether the network classifies it correctly: 1 or 0.
func (r *run) test(ctx context.Context, net *onnx.Model) ([]float64, error) {
	var out []float64
	err := r.outputs(ctx, net, r.trains, len(r.labels), func(at int, scores tensor.Tensor) error {
		for i := range scores.Shape[0] {
			row := scores.At(i)
			if row.FirstNonFinite() >= 0 {
				return fmt.Errorf("the class scores of sample %d contain NaN or infinity", r.indices[at+i])
			}
			out = append(out, indicator(procedure.IsLargest(row.Data, r.labels[at+i])))
		}
		return nil
	})
	return out, err
}

const batch = 32 // images in a run of the engine, except in training

// outputs runs a network on the images low to high - 1, in batches, and calls each with the index
// of the first image of a batch and the output for the batch. The output is valid during the call
// only.
func (r *run) outputs(ctx context.Context, net *onnx.Model, low, high int, each func(at int, output tensor.Tensor) error) error {
	session, err := r.job.Runtime.NewSession(net, r.engine())
	if err != nil {
		return err
	}
	defer session.Close()
	for at := low; at < high; at += batch {
		if err := r.output(ctx, session, r.x.Slice(at, min(at+batch, high)), func(output tensor.Tensor) error { return each(at, output) }); err != nil {
			return err
		}
	}
	return nil
}

// output runs a network on a batch and calls use with its output.
func (r *run) output(ctx context.Context, session *ort.Session, images tensor.Tensor, use func(tensor.Tensor) error) error {
	x, err := r.job.Runtime.NewValue(onnx.Float, images.Shape...)
	if err != nil {
		return err
	}
	defer x.Close()
	copy(x.Tensor().Data, images.Data)
	out := []*ort.Value{nil}
	if err := session.Run(ctx, []*ort.Value{x}, out); err != nil {
		return err
	}
	defer out[0].Close()
	return use(out[0].Tensor())
}

// scores returns the scores, given 1 for each correct prediction of a test image with the untrained
// and with the trained stitch, else 0.
func (r *run) scores(untrained, trained []float64) []measure.Score {
	accuracy := meanOf("accuracy", trained, nil, 0)
	accuracy.Low, accuracy.High = resample.Wilson(accuracy.Value, len(trained))
	return []measure.Score{accuracy, meanOf("gain", trained, untrained, -1), meanOf("penalty", r.own, trained, -1)}
}

// meanOf returns the mean of a or, if b is not nil, of a - b, with an interval between low and 1.
func meanOf(statistic string, a, b []float64, low float64) measure.Score {
	v := append([]float64(nil), a...)
	var sum float64
	for i := range v {
		if b != nil {
			v[i] -= b[i]
		}
		sum += v[i]
	}
	s := measure.Plain(statistic, sum/float64(len(v)), len(v))
	s.Min, s.Max = low, 1
	s.Replicates = resample.MeanWithoutGroups(v)
	if l, h := resample.Jackknife(s.Value, len(v), s.Replicates); !math.IsNaN(l) {
		s.Low, s.High = max(l, s.Min), min(h, s.Max)
	}
	return s
}

// undefined returns the scores of two layers that cannot be stitched, with the reason as a warning.
func undefined(why string) []measure.Score {
	var out []measure.Score
	for _, s := range Descriptor().Statistics {
		out = append(out, measure.Plain(s.Name, 0, 0).Undefined(why))
	}
	return out
}
