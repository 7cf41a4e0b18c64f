package stitching

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/proceduretest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// source is a data set of random images of 3 x side x side. The label of an image is the channel
// with the largest mean.
type source struct {
	x      tensor.Tensor
	labels []int
}

func newSource(n, side int) source {
	s := source{x: tensor.New(n, 3, side, side)}
	r := seed.Rand(3)
	for i := range n {
		label := r.IntN(3)
		image := s.x.At(i)
		for c := range 3 {
			for j := range image.At(c).Data {
				image.At(c).Data[j] = 0.4 + 0.2*r.Float32()
				if c == label {
					image.At(c).Data[j] += 0.1
				}
			}
		}
		s.labels = append(s.labels, label)
	}
	return s
}

func (s source) Len() int            { return s.x.Shape[0] }
func (s source) Classes() []string   { return []string{"red", "green", "blue"} }
func (s source) Factors() []string   { return nil }
func (s source) Fingerprint() string { return fmt.Sprint("random ", s.x.Shape) }
func (s source) At(_ context.Context, i int, f dataset.Frame) (dataset.Sample, error) {
	t, err := f.Tensor(s.x.At(i).Clone())
	return dataset.Sample{Index: i, Name: fmt.Sprint("image ", i), Input: t, Label: s.labels[i]}, err
}

// An architecture describes a test network. Its layers are stem (convolution and ReLU), inner
// (convolution), block (ReLU of the sum of both), pooled (mean over space) and scores (linear
// layer).
type architecture struct {
	side         int  // of the input images, in pixels
	stride       int  // of the first convolution
	width        int  // channels of each convolution
	softmax      bool // the scores are probabilities
	channelsLast bool // the layer block is b x h x w x c
	oneClass     bool // instead of three
}

// open returns a test network with the layers to measure. It predicts the colour channel with the
// largest mean, approximately, since small random weights are added.
func open(t testing.TB, name string, s architecture, layers ...string) procedure.Subject {
	t.Helper()
	r := seed.Rand(9, name)
	random := func(scale float64, shape ...int) tensor.Tensor {
		w := tensor.New(shape...)
		for i := range w.Data {
			w.Data[i] = float32(r.NormFloat64() * scale)
		}
		return w
	}
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, s.side, s.side)
	stemWeights := random(0.01, s.width, 3, 3, 3)
	for c := range s.width { // each channel is approximately a colour: the centre of one kernel is 1
		stemWeights.Data[(c*3+c%3)*9+4] = 1
	}
	pads := onnx.Attrs{"pads": []int{1, 1, 1, 1}}
	stem := b.Conv(x, b.Const("w", stemWeights), b.Const("b", tensor.New(s.width)), onnx.Attrs{"pads": []int{1, 1, 1, 1}, "strides": []int{s.stride, s.stride}})
	b.Output("stem", b.Relu(stem))
	b.Output("inner", b.Conv("stem", b.Const("v", random(0.01, s.width, s.width, 3, 3)), "", pads))
	block := b.Relu(b.Add("stem", "inner"))
	if s.channelsLast {
		block = b.Transpose(block, 0, 2, 3, 1)
	}
	b.Output("block", block)
	mean := b.ReduceMean("block", false, 2, 3)
	if s.channelsLast {
		mean = b.ReduceMean("block", false, 1, 2)
	}
	b.Output("pooled", mean)
	classes := 3
	if s.oneClass {
		classes = 1
	}
	outputWeights := tensor.New(s.width, classes)
	for c := range s.width {
		outputWeights.Data[classes*c+c%classes] = 30 / float32(s.width)
	}
	scores := b.MatMul("pooled", b.Const("u", outputWeights))
	if s.softmax {
		scores = b.Op("Softmax", onnx.Attrs{"axis": 1}, scores)
	}
	b.Output("scores", scores)
	m, err := modeltest.Open(t, testmodel.Save(t, filepath.Join(t.TempDir(), name+".onnx"), b, "scores"), model.Options{Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	return procedure.Subject{Name: name, Model: m, Layers: m.Layers()}
}

// jobOf returns a job that stitches each layer of a to the layer of b with the same index: a linear
// map, the stitch, turns activations of the first into activations of the second, from which the
// rest of b computes the classes. A job is one run of the measure on two models.
func jobOf(t testing.TB, a, b procedure.Subject, data dataset.Source) *procedure.Job {
	j := proceduretest.Job(a, data)
	j.B, j.Graphs, j.Threads = b, ort.Compiler{Runtime: orttest.Load(t), Options: ort.Options{Threads: 1}}, 1
	for i := range min(len(a.Layers), len(b.Layers)) {
		j.Pairs = append(j.Pairs, [2]int{i, i})
	}
	return j
}

// scoresOf returns the scores of a job. For each pair of layers these are accuracy (of the stitched
// network), gain (that accuracy minus the one with the untrained stitch) and penalty (the accuracy
// of network b minus that of the stitched network).
func scoresOf(t testing.TB, s Settings, j *procedure.Job) []measure.PairScore {
	t.Helper()
	p, err := New(s)
	return proceduretest.RunJob(t, p, err, j)
}

// untrained returns settings for a stitch that keeps its initial weights: start is identity,
// leastSquares or random.
func untrained(start string) Settings {
	s := Defaults()
	s.Start, s.Epochs = start, 0
	return s
}

// TestIdentity checks the limiting case: a model that is stitched to itself by the identity gives
// exactly its own predictions, at each layer that separates it into two parts.
func TestIdentity(t *testing.T) {
	t.Parallel()
	data := newSource(120, 8)
	for _, s := range []architecture{{side: 8, stride: 1, width: 6}, {side: 8, stride: 2, width: 6, softmax: true, channelsLast: true}} {
		net := open(t, "net", s, "stem", "block", "pooled", "scores")
		j := jobOf(t, net, net, data)
		samples, err := j.Read(t.Context(), dataset.Indices(120), net.Model.Frame())
		if err != nil {
			t.Fatal(err)
		}
		// The first half of the samples is for training, the second for the scores.
		correct, err := procedure.CorrectPredictions(t.Context(), net, samples[60:])
		if err != nil {
			t.Fatal(err)
		}
		var accuracy float64 // of the network itself
		for _, yes := range correct {
			accuracy += indicator(yes) / 60
		}
		scores := scoresOf(t, untrained(identity), j)
		if len(scores) != 4*3 || accuracy < 0.5 { // layers x statistics
			t.Fatalf("%d scores, and an accuracy of %v of the network itself", len(scores), accuracy)
		}
		for _, score := range scores {
			want := map[string]float64{"accuracy": accuracy, "gain": 0, "penalty": 0}[score.Statistic]
			if math.Abs(score.Value-want) > 1e-12 || score.N != 60 {
				t.Errorf("%+v, layer %s: %s is %v of %d samples, want %v", s, net.Layers[score.A].Name, score.Statistic, score.Value, score.N, want)
			}
		}
	}
}

// TestLeastSquares checks that least squares finds the map between two layers of one network: the
// identity between a layer and itself, and the mean over space between the layers block and pooled.
// The network is then as accurate as without a stitch.
func TestLeastSquares(t *testing.T) {
	t.Parallel()
	for _, s := range []architecture{{side: 4, stride: 1, width: 6}, {side: 8, stride: 2, width: 6, channelsLast: true}} {
		net := open(t, "net", s, "block", "pooled")
		j := jobOf(t, net, net, newSource(400, s.side))
		j.Pairs = [][2]int{{0, 0}, {1, 1}, {0, 1}}
		for _, score := range scoresOf(t, untrained(leastSquares), j) {
			// Half of the 400 samples are for the scores: one sample is 0.005.
			if score.Statistic == "penalty" && math.Abs(score.Value) > 0.011 {
				t.Errorf("%+v, layers %d and %d: the penalty is %v, want 0", s, score.A, score.B, score.Value)
			}
		}
	}
}

// TestTrained checks that a trained stitch between two networks of different widths, sizes and
// layouts (orders of axes) is nearly as accurate as the second network, and an untrained one is
// not. Half of the 400 samples are for the scores.
func TestTrained(t *testing.T) {
	t.Parallel()
	data := newSource(400, 8)
	a := open(t, "a", architecture{side: 8, stride: 1, width: 6}, "block", "pooled")
	b := open(t, "b", architecture{side: 8, stride: 2, width: 9, softmax: true, channelsLast: true}, "block", "pooled")
	settings := Defaults()
	settings.Start, settings.Epochs, settings.Rate = random, 20, 0.01
	scores := scoresOf(t, settings, jobOf(t, a, b, data))
	for i, name := range []string{"block", "pooled"} {
		accuracy, gain, penalty := scores[3*i], scores[3*i+1], scores[3*i+2]
		if accuracy.Value < 0.85 || gain.Value < 0.2 || math.Abs(penalty.Value) > 0.15 {
			t.Errorf("%s: accuracy %v, gain %v, penalty %v", name, accuracy.Value, gain.Value, penalty.Value)
		}
		if len(accuracy.Warnings)+len(penalty.Warnings) > 0 || !slices.Equal(gain.Warnings, []string{trainingWarning}) {
			t.Errorf("%s: warnings %q, %q and %q; want a warning of gain alone", name, accuracy.Warnings, gain.Warnings, penalty.Warnings)
		}
		for _, s := range []measure.PairScore{accuracy, gain, penalty} {
			if !(s.Low <= s.Value && s.Value <= s.High && s.High-s.Low < 0.4 && s.N == 200) {
				t.Errorf("%s: %s is %v in [%v, %v] of %d samples", name, s.Statistic, s.Value, s.Low, s.High, s.N)
			}
		}
	}
}

// noGraph hides the graph of a network, so that it is one that a server runs.
type noGraph struct{ engine.Network }

// TestFrontThatIsNoGraph checks that a first model that is no graph gives the scores of the graph,
// and that a second one is skipped.
func TestFrontThatIsNoGraph(t *testing.T) {
	t.Parallel()
	layers := []string{"stem", "block", "pooled"}
	a := open(t, "a", architecture{side: 8, stride: 1, width: 6}, layers...)
	b := open(t, "b", architecture{side: 8, stride: 2, width: 9, channelsLast: true}, layers...)
	net, err := orttest.Load(t).OpenNetwork(a.Model.Path(), ort.NetworkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	served := procedure.Subject{Name: "served"}
	if served.Model, err = model.Open(t.Context(), noGraph{net}, model.Options{Layers: layers}); err != nil {
		t.Fatal(err)
	}
	served.Layers = a.Layers
	if served.Model.Graph() != nil {
		t.Fatal("the model is a graph")
	}
	settings := Defaults()
	settings.Epochs, settings.Rate = 3, 0.01
	data := newSource(200, 8)
	want, got := scoresOf(t, settings, jobOf(t, a, b, data)), scoresOf(t, settings, jobOf(t, served, b, data))
	if len(want) != len(got) || len(want) != 9 {
		t.Fatalf("%d and %d scores", len(want), len(got))
	}
	for i, w := range want { // one of 100 samples may be classified otherwise by rounding
		if g := got[i]; g.A != w.A || g.Statistic != w.Statistic || math.Abs(g.Value-w.Value) > 0.011 || w.Statistic == "accuracy" && w.Value < 0.5 {
			t.Errorf("layer %d: %s is %v, and %v of the graph", w.A, w.Statistic, g.Value, w.Value)
		}
	}
	m, err := New(settings)
	if err != nil {
		t.Fatal(err)
	}
	if why := m.Skip(jobOf(t, b, served, data)); !strings.Contains(why, "served is no ONNX graph, into which") {
		t.Errorf("skipped because %q", why)
	}
}

// TestLayersThatCannotBeStitched checks that scores are undefined, with the reason, for a layer
// with a skip connection around it, and for an identity between different numbers of channels.
func TestLayersThatCannotBeStitched(t *testing.T) {
	t.Parallel()
	data := newSource(40, 8)
	a := open(t, "a", architecture{side: 8, stride: 1, width: 6}, "stem", "inner")
	b := open(t, "b", architecture{side: 8, stride: 1, width: 9}, "stem")
	for _, c := range []struct {
		from, to procedure.Subject
		pair     [2]int
		why      string
	}{
		{a, a, [2]int{0, 1}, "not only through layer \"inner\""},
		{a, b, [2]int{0, 0}, "equal numbers of channels, not 6 and 9"},
	} {
		j := jobOf(t, c.from, c.to, data)
		j.Pairs = [][2]int{c.pair}
		for _, s := range scoresOf(t, untrained(identity), j) {
			if !math.IsNaN(s.Value) || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], c.why) {
				t.Errorf("%s is %v with warnings %q, want no value because of %q", s.Statistic, s.Value, s.Warnings, c.why)
			}
		}
	}
}

// interrupted returns a context that is cancelled after the given number of progress reports of the
// job.
func interrupted(t testing.TB, j *procedure.Job, reports int) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	j.Progress = func(int64, string) {
		if reports--; reports == 0 {
			cancel()
		}
	}
	return ctx
}

// TestResume checks that an interrupted job gives the same scores when it is resumed from its
// checkpoint, and when its checkpoint is lost but the store, a folder of results that jobs share,
// has the trained stitches.
func TestResume(t *testing.T) {
	t.Parallel()
	data := newSource(160, 8)
	a := open(t, "a", architecture{side: 8, stride: 1, width: 6}, "block", "pooled")
	b := open(t, "b", architecture{side: 8, stride: 2, width: 9}, "block", "pooled")
	settings := Defaults()
	settings.Epochs = 6
	m, err := New(settings)
	if err != nil {
		t.Fatal(err)
	}
	want := scoresOf(t, settings, jobOf(t, a, b, data))
	saved, store := &checkpoint.Memory{}, &features.Store{Dir: t.TempDir()}
	for _, reports := range []int{8, 14} {
		j := jobOf(t, a, b, data)
		j.Checkpoint, j.Store = saved, store
		if _, err := m.Run(interrupted(t, j, reports), j); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v, want that of the cancelled context", err)
		}
	}
	for range 2 {
		j := jobOf(t, a, b, data)
		j.Checkpoint, j.Store = saved, store
		got := scoresOf(t, settings, j)
		equal := slices.EqualFunc(got, want, func(a, b measure.PairScore) bool {
			return a.A == b.A && a.Statistic == b.Statistic && a.Value == b.Value && a.Low == b.Low && a.High == b.High
		})
		if !equal {
			t.Errorf("scores %v, want %v", got, want)
		}
		saved.State = nil // the second time all stitches come from the store
	}
}

// TestInterpolation checks the matrices, to x from and row-major, that interpolate linearly from
// one number of positions to another.
func TestInterpolation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to int
		want     []float32
	}{
		{2, 2, []float32{1, 0, 0, 1}},
		{2, 4, []float32{1, 0, 0.75, 0.25, 0.25, 0.75, 0, 1}},
		{4, 2, []float32{3. / 7, 3. / 7, 1. / 7, 0, 0, 1. / 7, 3. / 7, 3. / 7}},
	} {
		got := interpolation(c.from, c.to)
		for i, v := range got.Data {
			if math.Abs(float64(v-c.want[i])) > 1e-6 {
				t.Errorf("%d to %d: %v, want %v", c.from, c.to, got.Data, c.want)
				break
			}
		}
	}
}

func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	// Train is the fraction of the samples for training; Images is the largest number of samples.
	for want, change := range map[string]func(*Settings){
		"images is 3": func(s *Settings) { s.Images = 3 }, "train is 1": func(s *Settings) { s.Train = 1 }, "unknown start": func(s *Settings) { s.Start = "zero" },
		"epochs is -1": func(s *Settings) { s.Epochs = -1 }, "rate is 0": func(s *Settings) { s.Rate = 0 }, "batch is 0": func(s *Settings) { s.Batch = 0 },
	} {
		s := Defaults()
		change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not contain %q", err, want)
		}
	}
}

func TestTooFewSamples(t *testing.T) {
	t.Parallel()
	net := open(t, "net", architecture{side: 8, stride: 1, width: 6}, "block")
	m, err := New(Defaults())
	if err != nil {
		t.Fatal(err)
	}
	// Skip returns why a job cannot be run, or "".
	if why := m.Skip(jobOf(t, net, net, newSource(3, 8))); !strings.Contains(why, "3 samples are too few") {
		t.Errorf("skipped because %q", why)
	}
	data := newSource(10, 8)
	for i := range data.labels {
		data.labels[i] = dataset.NoLabel
	}
	if _, err := m.Run(t.Context(), jobOf(t, net, net, data)); !errors.Is(err, measure.ErrTooFew) {
		t.Errorf("error %v, want one that says that there are too few samples with labels", err)
	}
}

// TestTooFewClasses checks that a stitch needs a second model with at least two classes, of which
// at least two are used (Outputs). The first model may have one class. Skip returns why a job
// cannot be run, or "".
func TestTooFewClasses(t *testing.T) {
	t.Parallel()
	m, err := New(Defaults())
	if err != nil {
		t.Fatal(err)
	}
	net, data := open(t, "net", architecture{side: 8, stride: 1, width: 6}, "block"), newSource(40, 8)
	single := open(t, "single", architecture{side: 8, stride: 1, width: 6, oneClass: true}, "block")
	for outputs, want := range map[*[]int]string{{}: "at least two classes", {1}: "at least two classes", {0, 2}: ""} {
		b := net
		b.Outputs = *outputs
		if why := m.Skip(jobOf(t, net, b, data)); want == "" && why != "" || !strings.Contains(why, want) {
			t.Errorf("outputs %v: skipped because %q, want %q", *outputs, why, want)
		}
	}
	if single.Model.Classes() > 1 {
		t.Fatalf("the model has %d classes", single.Model.Classes())
	}
	if why := m.Skip(jobOf(t, net, single, data)); !strings.Contains(why, "class") {
		t.Errorf("one class: skipped because %q", why)
	}
	if why := m.Skip(jobOf(t, single, net, data)); why != "" {
		t.Errorf("a first model of one class: skipped because %q", why)
	}
}
