package firing_test

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
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/firing"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// On gratings (images of stripes) the measure agrees with ScoreUnits, which computes the same
// scores from stored activations, for every unit (one value of a layer) of a network. A trajectory
// is a grating with its versions of other phases, or of other orientations. A job, which runJob
// runs, is one run of the measure on a model and its data. The invariance of a layer is the mean
// score of the fraction 0.2 of its units with the best scores.
func TestGratings(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	base, data := shuffledGratings(t)
	var k recorder
	scores := runJob(t, firing.Defaults(), newJob(m, data, &k))
	for layer := range m.Layers() {
		for _, path := range []struct {
			factor       string
			trajectories *dataset.GratingTrajectories
		}{{"phase", base.AlongPhase()}, {"orientation", base.AlongOrientation()}} {
			z := activations(t, m, layer, drawn(t, path.trajectories, m.Frame()))
			s := firing.Defaults()
			s.References = 1
			want, err := firing.ScoreUnits(firing.Responses{Inputs: z.Slice(0, base.Len()), Images: z, Steps: path.trajectories.Trajectory}, s)
			if err != nil {
				t.Fatal(err)
			}
			rows := rowsOf(k.units, layer, path.factor)
			sameUnits(t, fmt.Sprint(m.Layers()[layer].Name, " ", path.factor), rows, want)
			var all []float64
			for _, r := range rows {
				all = append(all, r.Score)
			}
			got := find(t, scores, layer, path.factor, "invariance")
			if math.Abs(got.Value-firing.NetworkScore(all, 0.2)) > 1e-9 || got.N != len(rows) || !(got.Null < got.Value) {
				t.Errorf("layer %d, %s: %+v, want the mean %v of the top fifth", layer, path.factor, got, firing.NetworkScore(all, 0.2))
			}
		}
	}
	checkCurves(t, k)
}

// checkCurves checks the number of tuning curves (the values of a unit on the steps of the
// trajectory of its reference, the input that activates it most), and that the fraction of the
// steps at which the unit fires, that is, reaches its threshold, is its local firing rate.
func checkCurves(t *testing.T, k recorder) {
	t.Helper()
	type id struct {
		layer, unit int
		factor      string
	}
	fires, steps := map[id]int{}, map[id]int{}
	for _, c := range k.curves {
		i := id{c.Layer, c.Unit, c.Factor}
		steps[i]++
		if float64(c.Sign)*c.Value >= float64(c.Sign)*c.Threshold {
			fires[i]++
		}
	}
	if len(steps) != 4*4*2 {
		t.Errorf("%d curves, want %d: 4 of each of 4 layers along 2 kinds of trajectory", len(steps), 4*4*2)
	}
	for _, u := range k.units {
		if i := (id{u.Layer, u.Unit, u.Factor}); steps[i] > 0 {
			if got := float64(fires[i]) / float64(steps[i]); math.Abs(got-u.Local) > 1e-12 {
				t.Errorf("unit %+v fires on %v of the steps of its curve, want its local rate %v", u, got, u.Local)
			}
		}
	}
}

// Among the angles of a rotation 0, the identity, is no step of its own: the untransformed image is
// already on the trajectory, as the reference.
func TestTransformation(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	data := shapes(t, 150)
	j := newJob(m, data, nil)
	var k recorder
	j.Units, j.Transform = func(u []measure.UnitScore) error { k.units = append(k.units, u...); return nil }, turns(-20, 0, 20, 40)
	j.Curves = nil
	runJob(t, firing.Defaults(), j)
	images := make([]tensor.Tensor, 4*data.Len()) // image 4 i: sample i; 4 i + 1 to 4 i + 3: rotated
	for position := range data.Len() {
		s, err := data.At(t.Context(), position, m.Frame())
		if err != nil {
			t.Fatal(err)
		}
		images[4*s.Index] = s.Input
		for v, degrees := range []float64{-20, 20, 40} {
			moved := tensor.New(s.Input.Shape...)
			transform.Rotate{Angle: transform.Fixed(degrees)}.Draw(nil).Apply(moved, s.Input)
			images[4*s.Index+v+1] = moved
		}
	}
	for layer := range m.Layers() {
		z := activations(t, m, layer, images)
		inputs := tensor.New(data.Len(), z.Shape[1])
		for i := range data.Len() {
			copy(inputs.At(i).Data, z.At(4*i).Data)
		}
		want, err := firing.ScoreUnits(firing.Responses{Inputs: inputs, Images: z, Steps: func(i int) []int { return []int{4 * i, 4*i + 1, 4*i + 2, 4*i + 3} }}, firing.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		sameUnits(t, m.Layers()[layer].Name, rowsOf(k.units, layer, ""), want)
	}
}

// With positions: channels a unit is a channel, and its response the maximum over positions.
func TestChannelsAsUnits(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	base, data := shuffledGratings(t)
	s := firing.Defaults()
	s.Positions = firing.Channels
	var k recorder
	runJob(t, s, newJob(m, data, &k))
	trajectories := base.AlongPhase()
	z := activations(t, m, 0, drawn(t, trajectories, m.Frame()))
	maxima := tensor.New(trajectories.Len(), 6)
	for i := range maxima.Data { // a channel of the layer, which has 6, has 64 positions
		maxima.Data[i] = slices.Max(z.Data[i*64 : (i+1)*64])
	}
	s.References = 1
	want, err := firing.ScoreUnits(firing.Responses{Inputs: maxima.Slice(0, base.Len()), Images: maxima, Steps: trajectories.Trajectory}, s)
	if err != nil {
		t.Fatal(err)
	}
	sameUnits(t, "channels", rowsOf(k.units, 0, "phase"), want)
}

// blackImages is a source of black images.
type blackImages struct{ dataset.Source }

func (blackImages) Len() int { return 120 }

func (blackImages) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	return dataset.Sample{Index: i, Input: tensor.New(3, 16, 16), Label: dataset.NoLabel}, nil
}

// Constant units fire at every input. The statistic selective is the fraction of units that do not.
func TestConstantUnits(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	var k recorder
	j := newJob(m, blackImages{}, &k)
	j.Transform = turns(90)
	count := map[string]int{} // scores by statistic
	for _, s := range runJob(t, firing.Defaults(), j) {
		count[s.Statistic]++
		switch {
		case s.Statistic == "selective" && s.Value != 0:
			t.Errorf("selective of a constant layer = %+v, want 0", s)
		case s.Statistic == "invariance" && (!math.IsNaN(s.Value) || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "constant")):
			t.Errorf("score of a constant layer = %+v, want NaN with a warning", s)
		}
	}
	if n := len(m.Layers()); count["selective"] != n || count["invariance"] != n {
		t.Errorf("numbers of scores: %v, want %d each of selective and invariance", count, n)
	}
	if len(k.units) == 0 {
		t.Fatal("no units are reported")
	}
	for _, u := range k.units {
		if u.Score != 1 || u.Selective {
			t.Fatalf("a constant unit is reported as %+v, want score 1 and not selective", u)
		}
	}
}

// rareUnits is a network with three ReLU units. The first is 0 for every input. The others are the
// first pixel minus 0.9925, rarely above 0, and minus 0.5.
func rareUnits(t *testing.T) *model.Model {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 1, 2, 2)
	v := b.MatMul(b.Flatten(x, 1), b.Const("w", tensor.Tensor{Shape: []int{4, 3}, Data: []float32{0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}}))
	b.Output("z", b.Relu(b.Add(v, b.Const("b", tensor.Tensor{Shape: []int{3}, Data: []float32{-1, -0.9925, -0.5}}))))
	m, err := modeltest.Open(t, testmodel.Save(t, filepath.Join(t.TempDir(), "net.onnx"), b), model.Options{Layers: []string{"z"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// greyImages is a source of uniform grey images: image i has the value i / 200.
type greyImages struct{ dataset.Source }

func (greyImages) Len() int { return 200 }

func (greyImages) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	x := tensor.New(1, 2, 2)
	for k := range x.Data {
		x.Data[k] = float32(i) / 200
	}
	return dataset.Sample{Index: i, Input: x, Label: dataset.NoLabel}, nil
}

// Sparse units, which fire only at high values, may be above 0 at fewer than the fraction 0.01 of
// the inputs, the rate at which units shall fire. Warnings count these units apart from constant
// ones, and say if there are more references than inputs at which a unit fires. The default is 10
// references.
func TestRareUnits(t *testing.T) {
	t.Parallel()
	s := firing.Defaults()
	s.Sparse, s.Top = []string{"all"}, 1
	var k recorder
	j := newJob(rareUnits(t), greyImages{}, &k)
	j.Transform = turns(10)
	scores := runJob(t, s, j)
	if got := find(t, scores, 0, "", "selective"); math.Abs(got.Value-1./3) > 1e-12 {
		t.Errorf("selective %v, want 1/3", got.Value)
	}
	want := []string{
		"10 references, but a unit fires at about 2 of 200 inputs: its other references are below its threshold; set references: 2, or take more inputs",
		"1 of 3 units are constant on these inputs and never selective: they fire at every input, with a score of 1",
		"1 of 3 units exceed their smallest value at fewer than 0.01 of the inputs: that value is their threshold, so they fire at every input, with a score of 1",
		"the interval may be too narrow: it is over the units of 3 channels, of which 3 count, and not over samples",
	}
	if got := find(t, scores, 0, "", "invariance"); !slices.Equal(got.Warnings, want) {
		t.Errorf("warnings %q, want %q", got.Warnings, want)
	}
	s.References = 2
	if got := find(t, runJob(t, s, j), 0, "", "invariance"); !slices.Equal(got.Warnings, want[1:]) {
		t.Errorf("warnings with two references %q, want %q", got.Warnings, want[1:])
	}
}

// The statistic goodfellow-normal, whose thresholds are computed from mean and standard deviation,
// warns of units with a global firing rate (over the samples) G = 0 and a local one (over brighter
// versions of them) L > 0, for which the score L / G is not defined.
func TestNormalWithoutFiring(t *testing.T) {
	t.Parallel()
	s := firing.Defaults()
	s.Also = []string{firing.NormalThreshold}
	j := newJob(rareUnits(t), twoGreys{}, &recorder{})
	j.Transform = &procedure.Transform{Name: "brighter", Values: []procedure.Value{{Parameter: "1.6", Transform: transform.Brightness{Factor: transform.Fixed(1.6)}}}}
	got := find(t, runJob(t, s, j), 0, "", "goodfellow-normal")
	const want = "units are left out: they exceed the normal threshold on transformed samples, but on no sample itself (G = 0)"
	if len(got.Warnings) != 1 || !strings.HasSuffix(got.Warnings[0], want) {
		t.Errorf("warnings %q, want %q", got.Warnings, want)
	}
}

// twoGreys is a source of uniform grey images, alternately 0.2 and 0.6.
type twoGreys struct{ greyImages }

func (twoGreys) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	x := tensor.New(1, 2, 2)
	for k := range x.Data {
		x.Data[k] = 0.2 + 0.4*float32(i%2)
	}
	return dataset.Sample{Index: i, Input: x, Label: dataset.NoLabel}, nil
}

// unlabelled is a source with classes and without labels.
type unlabelled struct{ dataset.Source }

func (n unlabelled) At(ctx context.Context, i int, f dataset.Frame) (dataset.Sample, error) {
	s, err := n.Source.At(ctx, i, f)
	s.Label = dataset.NoLabel
	return s, err
}

// Without labels there is a warning and no score of mutual information.
func TestInformationWithoutLabels(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	s := firing.Defaults()
	s.Also = []string{firing.MutualInformation}
	var k recorder
	j := newJob(m, unlabelled{shapes(t, 100)}, &k)
	j.Transform = turns(10)
	got := find(t, runJob(t, s, j), 0, "", "mutual-information")
	if !math.IsNaN(got.Value) || !math.IsNaN(got.Null) || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "two classes") {
		t.Errorf("mutual information without labels is %+v, want NaN with a warning", got)
	}
	for _, u := range k.units {
		if !math.IsNaN(u.MutualInformation) {
			t.Fatalf("without labels unit %+v has mutual information, want NaN", u)
		}
	}
}

func TestSkip(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	method, err := firing.New(firing.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	few, untransformed, identity := newJob(m, shapes(t, 99), nil), newJob(m, shapes(t, 100), nil), newJob(m, shapes(t, 100), nil)
	few.Transform, identity.Transform = turns(10), turns(0)
	for want, j := range map[string]*procedure.Job{"at least 100 are needed": few, "names no transformation": untransformed, "no value but the identity": identity} {
		if got := method.Skip(j); !strings.Contains(got, want) {
			t.Errorf("skipped because of %q, want %q", got, want)
		}
	}
}

// The model has NaN in a weight of its convolution.
func TestNonFinite(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{Poison: float32(math.NaN())})
	j := newJob(m, shapes(t, 100), &recorder{})
	j.Transform = turns(10)
	method, err := firing.New(firing.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	_, err = method.Run(t.Context(), j)
	var bad *measure.NonFinite
	if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), `layer "conv": NaN or infinity`) {
		t.Errorf("error %v, want NaN or infinity in layer conv", err)
	}
}

// TestDescriptorStatesTheRate checks that the text of the measure has the global firing rate of the
// settings and the largest invariance that follows from it, 1 / rate.
func TestDescriptorStatesTheRate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64][2]string{0.01: {"for 1 % of the inputs", "global rate, 100."}, 0.05: {"for 5 % of the inputs", "global rate, 20."}} {
		s := firing.Defaults()
		s.Rate = rate
		m, err := firing.New(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if text := m.Descriptor().Reading; !strings.Contains(text, part) {
				t.Errorf("rate %v: no %q in %q", rate, part, text)
			}
		}
	}
}

// stillScenes is a source of scenes of ten frames that are all the same image. A trajectory holds a
// frame and its two neighbours; Amounts are their distances in frames.
type stillScenes struct{ dataset.Source }

func (s stillScenes) Len() int { return 10 * s.Source.Len() }

func (s stillScenes) At(ctx context.Context, i int, f dataset.Frame) (dataset.Sample, error) {
	sample, err := s.Source.At(ctx, i/10, f)
	sample.Index = i
	return sample, err
}

func (stillScenes) Amounts() []float64 { return []float64{-1, 0, 1} }

func (stillScenes) Trajectory(i int) []int {
	if i%10 == 0 || i%10 == 9 {
		return nil
	}
	return []int{i - 1, i, i + 1}
}

// The references of a unit are frames of the one scene at which it fires. The null, the score for
// random inputs in place of the references, takes frames of one scene too: a unit fires at all of
// them, or at none. So the null is 1 / (1 / 60) = 60, or 0.
func TestNullOfScenes(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	src := dataset.Shuffle(stillScenes{shapes(t, 60)}, 2)
	s := firing.Defaults()
	// A unit fires at one scene of 60. Eight of its ten frames have both neighbours.
	s.Rate, s.References, s.Sparse = 1./60, 8, []string{"all"}
	var k recorder
	runJob(t, s, newJob(m, src, &k))
	counts := map[float64]int{}
	for _, u := range k.units {
		if u.Selective && math.Abs(u.Global-1./60) < 1e-9 {
			counts[math.Round(1e6*u.Null)/1e6]++
		}
	}
	if counts[60] == 0 || counts[0] == 0 || len(counts) != 2 {
		t.Errorf("scores of the null and their numbers of units: %v, want 0 and 60 alone", counts)
	}
}
