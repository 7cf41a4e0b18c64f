package probe

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/proceduretest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// pixelFactors are the factors of variation (known properties of a sample) that the pixels of
// factorImages hold, one each, scaled to [0, 1]: pixel 0 is the hue, and so on.
var pixelFactors = []string{"hue", "rotation", "x", "y"}

// factorImages is a data set of 2 x 2 images. The pixels of image i are the factors of image i of
// the generated data set Shapes.
type factorImages struct{ *dataset.Shapes }

func (f factorImages) Factors() []string { return pixelFactors }

func (f factorImages) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	figure, label := f.Figure(i)
	values := []float64{figure.Hue / 360, figure.Rotation / 360, figure.X + 0.5, figure.Y + 0.5}
	s := dataset.Sample{Index: i, Input: tensor.New(1, 2, 2), Label: label, Factors: map[string]float64{}}
	for k, name := range pixelFactors {
		s.Input.Data[k] = float32(values[k])
		s.Factors[name] = values[k]
	}
	return s, nil
}

// addToPixel is a transformation that adds a random number to one pixel.
type addToPixel struct {
	pixel        int
	distribution transform.Distribution
}

type addToPixelOp struct {
	pixel int
	by    float64
}

func (t addToPixel) Draw(r *rand.Rand) transform.Op {
	return addToPixelOp{t.pixel, t.distribution.Draw(r)}
}
func (t addToPixel) Random() bool         { return !t.distribution.Fixed() }
func (o addToPixelOp) Parameter() float64 { return o.by }

func (o addToPixelOp) Apply(dst, src tensor.Tensor) {
	copy(dst.Data, src.Data)
	dst.Data[o.pixel] += float32(o.by)
}

// swap is a transformation that exchanges two pixels.
type swap struct{ a, b int }

func (t swap) Draw(*rand.Rand) transform.Op { return t }
func (t swap) Random() bool                 { return false }

func (t swap) Apply(dst, src tensor.Tensor) {
	copy(dst.Data, src.Data)
	dst.Data[t.a], dst.Data[t.b] = src.Data[t.b], src.Data[t.a]
}

// linearModel returns a model that multiplies the pixels of a 2 x 2 image by w (4 x d).
func linearModel(t testing.TB, w tensor.Tensor) *model.Model {
	t.Helper()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 1, 2, 2)
	b.Output("z", b.MatMul(b.Reshape(x, -1, 4), b.Const("w", w)))
	path := testmodel.Save(t, filepath.Join(t.TempDir(), "linear.onnx"), b)
	out, err := modeltest.Open(t, path, model.Options{Layers: []string{"z"}, Scores: "none"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// matrix returns a matrix, 4 x d, row by row.
func matrix(d int, values ...float32) tensor.Tensor {
	return tensor.Tensor{Shape: []int{4, d}, Data: values}
}

// identity returns the 4 x 4 identity matrix.
func identity() tensor.Tensor {
	return matrix(4, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1)
}

// factorJob returns a job, one run of a measure, on m and n factorImages. tr may be nil. The job
// measures layer 0. Its store is a folder for representations and trained probes, small networks
// that predict a factor from a representation.
func factorJob(t testing.TB, n int, m *model.Model, tr *procedure.Transform) *procedure.Job {
	t.Helper()
	shapes, err := dataset.OpenShapes(dataset.ShapesOptions{N: n, Size: 8, Kinds: []string{"triangle"}})
	if err != nil {
		t.Fatal(err)
	}
	j := proceduretest.Job(procedure.Subject{Name: "linear", Model: m, Layers: m.Layers()}, factorImages{shapes})
	j.Pairs, j.Transform, j.Key.Data, j.Graphs, j.Store = [][2]int{{0, 0}}, tr, "factors", ort.Compiler{Runtime: orttest.Load(t)}, &features.Store{Dir: t.TempDir()}
	if tr != nil {
		j.Key.Transform = tr.Name
	}
	return j
}

// shiftOf returns a transformation that adds a uniform random number between low and high to a
// pixel.
func shiftOf(pixel int, low, high float64) *procedure.Transform {
	distribution := transform.Uniform(low, high)
	return &procedure.Transform{Name: "shift", Identity: "shift", Values: []procedure.Value{{Transform: addToPixel{pixel, distribution}}}, Range: &distribution}
}

// mustRun runs a job and returns its scores by "statistic variant factor parameter", without those
// that are empty. The variant is the kind of probe: slp (one linear layer), mlp (hidden layers) or
// ridge (ridge regression). err is the error of creating p.
func mustRun(t testing.TB, p procedure.Procedure, err error, j *procedure.Job) map[string]measure.Score {
	t.Helper()
	rows := proceduretest.RunJob(t, p, err, j)
	out := map[string]measure.Score{}
	for _, s := range rows {
		name := s.Statistic
		for _, part := range []string{s.Variant, s.Factor, s.Parameter} {
			if part != "" {
				name += " " + part
			}
		}
		if _, ok := out[name]; ok {
			t.Errorf("two scores of %s", name)
		}
		out[name] = s.Score
		if s.Low > s.Value || s.High < s.Value {
			t.Errorf("%s is %v, want it within its interval, %v to %v", name, s.Value, s.Low, s.High)
		}
	}
	return out
}

// quickSettings returns settings with which probes converge on a few samples. The hue is not
// divided by its usual scale, since factorImages scale it.
func quickSettings() InformativenessSettings {
	s := informativenessDefaults()
	s.Probe, s.Rate, s.Decay, s.Seeds, s.Epochs, s.Patience = []string{SLP, Ridge}, 0.03, 0, 1, 40, 5
	s.Scale, s.Standardise = map[string]float64{"hue": 1}, true
	return s
}

// TestInformativeness checks that probes predict factors that are part of the representation. The
// scores are those of the test samples, a tenth of 500. The null is the score of probes that were
// trained on shuffled targets, and the baseline that of predicting the mean.
func TestInformativeness(t *testing.T) {
	t.Parallel()
	s := quickSettings()
	s.Probe = []string{SLP, MLP, Ridge}
	s.Hidden = []int{32, 16}
	m, err := Informativeness(s)
	found := mustRun(t, m, err, factorJob(t, 500, linearModel(t, identity()), nil))
	for _, kind := range s.Probe {
		for _, name := range pixelFactors {
			r2 := found["r2 "+kind+" "+name]
			if r2.Value < 0.99 || r2.Null > 0.6 || r2.N != 50 {
				t.Errorf("r2 of %s with %s = %+v, want at least 0.99 with a null of at most 0.6 and n = 50", name, kind, r2)
			}
		}
	}
	if b, rmse := found["baseline-rmse x"], found["rmse ridge x"]; b.Value < 0.05 || rmse.Value > 1e-4 || math.Abs(rmse.Null-b.Value) > 0.03 {
		t.Errorf("rmse of ridge = %+v and of the baseline %+v, want 0 with a null near the baseline", rmse, b)
	}
}

// TestWithoutNulls checks that scores have no nulls if none are asked for, and are otherwise the
// same, that fewer probes are predicted and trained, and that the key of a cell is the old one with
// nulls.
func TestWithoutNulls(t *testing.T) {
	t.Parallel()
	s := quickSettings()
	if text, err := json.Marshal(s); err != nil || strings.Contains(string(text), "nulls") {
		t.Errorf("the settings are %s, %v", text, err)
	}
	job := func() *procedure.Job { return factorJob(t, 200, linearModel(t, identity()), nil) }
	with, err := Informativeness(s)
	want := mustRun(t, with, err, job())
	s.Nulls = NoNulls
	without, err := Informativeness(s)
	got := mustRun(t, without, err, job())
	for name, w := range want {
		if g := got[name]; g.Value != w.Value || g.Low != w.Low || !math.IsNaN(g.Null) {
			t.Errorf("%s is %+v without nulls, and %+v with them", name, g, w)
		}
	}
	samples := int64(200) // forward passes of the model
	if a, b := with.Work(job())-samples, without.Work(job())-samples; a != 2*b {
		t.Errorf("the work is %d with nulls and %d without", a, b)
	}
	s.Nulls = "no"
	if _, err := Informativeness(s); err == nil || !strings.Contains(err.Error(), `nulls is "no"`) {
		t.Errorf("nulls: no: %v", err)
	}
}

// TestInformativenessLinearMaps checks that the R^2 of a factor that is removed from the
// representation is that of the null (the score of a probe trained on shuffled targets), and that
// an orthogonal map of the representation does not affect linear probes.
func TestInformativenessLinearMaps(t *testing.T) {
	t.Parallel()
	m, err := Informativeness(quickSettings())
	// The matrix drops pixel 0, the hue.
	without := mustRun(t, m, err, factorJob(t, 500, linearModel(t, matrix(3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1)), nil))
	for _, kind := range []string{SLP, Ridge} {
		hue, y := without["r2 "+kind+" hue"], without["r2 "+kind+" y"]
		if hue.Value > 0.05 || hue.High < hue.Null || math.Abs(hue.Value-hue.Null) > 0.2 || y.Value < 0.99 {
			t.Errorf("r2 with %s = %+v for a removed factor, want its null; %+v for another, want at least 0.99", kind, hue, y)
		}
	}
	h := float32(0.5) // a Hadamard matrix of order 4 times 1/2 is orthogonal
	rotated := mustRun(t, m, err, factorJob(t, 500, linearModel(t, matrix(4, h, h, h, h, h, -h, h, -h, h, h, -h, -h, h, -h, -h, h)), nil))
	for _, kind := range []string{SLP, Ridge} {
		for _, name := range pixelFactors {
			if r2 := rotated["r2 "+kind+" "+name]; r2.Value < 0.99 {
				t.Errorf("r2 of %s with %s = %+v after an orthogonal map, want at least 0.99", name, kind, r2)
			}
		}
	}
}

// TestParameterEquivariance checks that the amount by which a factor is shifted is predicted if the
// representation contains the factor, and not otherwise.
func TestParameterEquivariance(t *testing.T) {
	t.Parallel()
	s := equivarianceDefaults()
	s.Training = quickSettings().Training
	m, err := ParameterEquivariance(s)
	found := mustRun(t, m, err, factorJob(t, 500, linearModel(t, identity()), shiftOf(0, -0.5, 0.5)))
	for _, kind := range s.Probe {
		if rmse, r2 := found["rmse "+kind], found["r2 "+kind]; rmse.Value > 0.01 || r2.Value < 0.99 || rmse.Null < 0.2 || r2.Null > 0.2 {
			t.Errorf("rmse with %s = %+v and r2 %+v, want 0 and 1", kind, rmse, r2)
		}
	}
	if b := found["baseline-rmse"]; math.Abs(b.Value-1/math.Sqrt(12)) > 0.05 {
		t.Errorf("baseline-rmse = %v, want %v, the standard deviation of a uniform number", b.Value, 1/math.Sqrt(12))
	}
	without := mustRun(t, m, err, factorJob(t, 500, linearModel(t, matrix(3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1)), shiftOf(0, -0.5, 0.5)))
	if r2 := without["r2 ridge"]; r2.Value > 0.1 {
		t.Errorf("r2 = %+v for a representation that does not depend on the shift, want at most 0.1", r2)
	}
}

// TestParameterClasses checks that the values of a transformation without numeric parameters, here
// "up" and "down", are predicted as classes.
func TestParameterClasses(t *testing.T) {
	t.Parallel()
	s := equivarianceDefaults()
	s.Training = quickSettings().Training
	s.Probe = []string{SLP}
	m, err := ParameterEquivariance(s)
	tr := &procedure.Transform{Name: "either", Identity: "either", Values: []procedure.Value{{Parameter: "up", Transform: addToPixel{0, transform.Fixed(1)}}, {Parameter: "down", Transform: addToPixel{0, transform.Fixed(-1)}}}}
	found := mustRun(t, m, err, factorJob(t, 400, linearModel(t, identity()), tr))
	if a := found["accuracy slp"]; a.Value < 0.95 || found["baseline-accuracy"].Value > 0.75 {
		t.Errorf("accuracy = %+v and baseline-accuracy %+v, want at least 0.95 and at most 0.75", a, found["baseline-accuracy"])
	}
}

// TestRepresentationEquivariance checks that a linear probe predicts the effect of a linear
// transformation on a linear representation. The gain is 1 minus the mean square error of the probe
// divided by that of the prediction that nothing changes, which has the statistics identity-cosine
// and identity-mse.
func TestRepresentationEquivariance(t *testing.T) {
	t.Parallel()
	s := RepresentationSettings{EquivarianceSettings: equivarianceDefaults()}
	s.Training = quickSettings().Training
	m, err := RepresentationEquivariance(s)
	tr := &procedure.Transform{Name: "swap", Identity: "swap", Values: []procedure.Value{{Transform: swap{0, 3}}}}
	found := mustRun(t, m, err, factorJob(t, 500, linearModel(t, identity()), tr))
	for _, kind := range s.Probe {
		if c, g := found["cosine "+kind], found["gain "+kind]; c.Value < 0.999 || g.Value < 0.98 || c.Null > 0.99 {
			t.Errorf("cosine with %s = %+v and gain %+v, want 1 and 1", kind, c, g)
		}
	}
	if c := found["identity-cosine"]; c.Value > 0.98 || found["identity-mse"].Value == 0 {
		t.Errorf("identity-cosine = %+v and identity-mse %+v, want at most 0.98 and above 0", c, found["identity-mse"])
	}
	unchanged := mustRun(t, m, err, factorJob(t, 200, linearModel(t, identity()), &procedure.Transform{Name: "none", Identity: "none", Values: []procedure.Value{{Transform: transform.Identity{}}}}))
	if g := unchanged["gain ridge"]; !math.IsNaN(g.Value) || len(g.Warnings) != 1 || unchanged["identity-cosine"].Value < 1-1e-12 {
		t.Errorf("gain for the identity = %+v, want NaN with a warning", g)
	}
}

// TestRepresentationEquivarianceParameter checks that the effect of a random shift is predicted
// from its amount, the parameter.
func TestRepresentationEquivarianceParameter(t *testing.T) {
	t.Parallel()
	s := RepresentationSettings{EquivarianceSettings: equivarianceDefaults()}
	s.Probe, s.Seeds, s.Hidden, s.Decay, s.Rate, s.Epochs = []string{MLP}, 1, []int{64, 64}, 0, 1e-2, 40
	m, err := RepresentationEquivariance(s)
	found := mustRun(t, m, err, factorJob(t, 600, linearModel(t, identity()), shiftOf(0, -1, 1)))
	if c, g := found["cosine mlp"], found["gain mlp"]; c.Value < 0.99 || g.Value < 0.9 || g.Null > 0 {
		t.Errorf("cosine = %+v and gain %+v, want at least 0.99 and 0.9; identity-cosine is %v", c, g, found["identity-cosine"].Value)
	}
}

// TestDisentanglement checks that a shift of one factor changes the predictions of that factor
// only, over each quarter of the range of shifts (named by its middle) and over all of it.
func TestDisentanglement(t *testing.T) {
	t.Parallel()
	m, err := Disentanglement(quickSettings())
	found := mustRun(t, m, err, factorJob(t, 500, linearModel(t, identity()), shiftOf(0, -0.8, 0.8)))
	for _, kind := range []string{SLP, Ridge} {
		total := 0
		for _, quarter := range []string{" -0.6", " -0.2", " 0.2", " 0.6", ""} {
			for _, name := range pixelFactors {
				s, ok := found["rmse-change "+kind+" "+name+quarter]
				if !ok {
					t.Fatalf("no score of %s for quarter %q among %d scores", name, quarter, len(found))
				}
				if name != "hue" && math.Abs(s.Value) > 0.01 {
					t.Errorf("rmse-change of %s under a shift of hue by%s = %+v, want 0", name, quarter, s)
				}
				if name == "hue" && quarter != "" {
					total += s.N
				}
			}
		}
		// A shift by d changes the prediction by d, so the change of the RMSE over a quarter of the
		// range is the root of the mean of d^2: the middle squared plus the variance, 0.4^2 / 12.
		outer, inner := found["rmse-change "+kind+" hue 0.6"], found["rmse-change "+kind+" hue -0.2"]
		if math.Abs(outer.Value-math.Sqrt(0.36+0.16/12)) > 0.1 || math.Abs(inner.Value-math.Sqrt(0.04+0.16/12)) > 0.1 || total != 50 {
			t.Errorf("rmse-change of hue under a shift of hue = %+v by 0.6 and %+v by -0.2, with %d samples in all; want about 0.61 and 0.23, with 50", outer, inner, total)
		}
	}
	if h, want := found["rmse-change ridge hue"], 0.8/math.Sqrt(3); math.Abs(h.Value-want) > 0.1 {
		t.Errorf("rmse-change over the whole range = %v, want %v", h.Value, want)
	}
}

// TestInvarianceCurve checks that the cosine and the distance as functions of the shift of one
// pixel agree with those computed directly, for a list of shifts and for tenths of a range.
func TestInvarianceCurve(t *testing.T) {
	t.Parallel()
	m, err := Invariance(invarianceDefaults())
	list := &procedure.Transform{Name: "list", Identity: "list", Values: []procedure.Value{{Parameter: "0", Transform: addToPixel{2, transform.Fixed(0)}}, {Parameter: "1", Transform: addToPixel{2, transform.Fixed(1)}}, {Parameter: "3", Transform: addToPixel{2, transform.Fixed(3)}}}}
	j := factorJob(t, 300, linearModel(t, identity()), list)
	found := mustRun(t, m, err, j)
	sum := 0.0
	for i, by := range []float64{0, 1, 3} {
		var want float64
		for p := range 300 {
			s, _ := j.Data.At(t.Context(), p, dataset.Frame{})
			z, shifted := s.Input.Data, s.Input.Clone().Data
			shifted[2] += float32(by)
			want += cosine(z, shifted) / 300
		}
		sum += want / 3
		c, l := found["cosine "+list.Values[i].Parameter], found["l2 "+list.Values[i].Parameter]
		if math.Abs(c.Value-want) > 1e-6 || math.Abs(l.Value-by) > 1e-5 || c.N != 300 {
			t.Errorf("shift by %v: cosine = %+v, want %v; l2 = %+v, want %[1]v", by, c, want, l)
		}
	}
	if c := found["cosine"]; math.Abs(c.Value-sum) > 1e-6 {
		t.Errorf("cosine over all values = %v, want %v", c.Value, sum)
	}
	ranged := mustRun(t, m, err, factorJob(t, 300, linearModel(t, identity()), shiftOf(2, 0, 2)))
	total, last := 0, -1.0
	for _, part := range []string{"0.1", "0.3", "0.5", "0.7", "0.9", "1.1", "1.3", "1.5", "1.7", "1.9"} {
		l := ranged["l2 "+part]
		if total += l.N; l.Value <= last {
			t.Errorf("l2 at %s = %v, want more than %v, the previous value", part, l.Value, last)
		}
		last = l.Value
	}
	if total != 300 || math.Abs(ranged["l2"].Value-1) > 0.1 {
		t.Errorf("%d samples in all parts, want 300; l2 = %+v, want 1", total, ranged["l2"])
	}
}
