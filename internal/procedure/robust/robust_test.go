package robust_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/proceduretest"
	"github.com/noether-ml/noether/internal/procedure/robust"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// weights are those of a linear classifier of images of 1 x 2 x 2 pixels: 4 pixels x 2 classes.
var weights = []float32{3, 0, 0, 1, -1, 0, 0, 0.5}

// linear returns the linear classifier with these weights.
func linear(t testing.TB) *model.Model {
	t.Helper()
	return build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.MatMul(b.Flatten(x, 1), b.Const("w", tensor.Tensor{Shape: []int{4, 2}, Data: weights}))
	})
}

// build returns a model whose output is what make returns for the input x.
func build(t testing.TB, make func(b *onnx.Builder, x onnx.Value) onnx.Value) *model.Model {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	b.Output("z", make(b, b.Input("x", onnx.Float, -1, 1, 2, 2)))
	path := testmodel.Save(t, filepath.Join(t.TempDir(), "net.onnx"), b)
	opened, err := modeltest.Open(t, path, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// source is a source of images with labels.
type source struct {
	x      tensor.Tensor
	labels []int
}

func (s source) Len() int            { return s.x.Shape[0] }
func (s source) Classes() []string   { return nil }
func (s source) Factors() []string   { return nil }
func (s source) Fingerprint() string { return "" }
func (s source) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	return dataset.Sample{Index: i, Name: fmt.Sprint("image ", i), Input: s.x.At(i), Label: s.labels[i]}, nil
}

// job returns a job, one run of the measure, that attacks the model on the images.
func job(m *model.Model, s dataset.Source) *procedure.Job {
	return proceduretest.Job(procedure.Subject{Name: "net", Model: m}, s)
}

// run returns the robust accuracy (under attack) and the clean accuracy (without).
func run(t testing.TB, s robust.Settings, j *procedure.Job) (robustScore, clean measure.Score) {
	t.Helper()
	p, err := robust.New(s)
	scores := proceduretest.RunJob(t, p, err, j)
	if len(scores) != 2 || scores[0].Statistic != "robust" || scores[1].Statistic != "clean" {
		t.Fatalf("scores %v", scores)
	}
	return scores[0].Score, scores[1].Score
}

// TestLinearClassifier checks that a linear classifier of two classes is robust for exactly the
// images whose margin is above radius |w0 - w1|. The margin is the score of the right class minus
// the other, w0 and w1 are the weights of the classes, and the norm is l2 for attacks within an l2
// ball and l1 for those within an linf ball. No pixel reaches 0 or 1.
func TestLinearClassifier(t *testing.T) {
	t.Parallel()
	m := linear(t)
	x, r := tensor.New(200, 1, 2, 2), seed.Rand(1)
	labels := make([]int, 200)
	margins := make([]float64, 200)
	for i := range 200 {
		for k := range 4 {
			x.At(i).Data[k] = 0.4 + 0.2*r.Float32()
			margins[i] += float64(x.At(i).Data[k]) * float64(weights[2*k]-weights[2*k+1])
		}
		labels[i] = r.IntN(2)
		if labels[i] == 1 {
			margins[i] = -margins[i]
		}
	}
	for norm, slope := range map[string]float64{"l2": math.Sqrt(9 + 1 + 1 + 0.25), "linf": 5.5} {
		s := robust.Defaults()
		// The median margin of correct predictions is above 0.2, so more than half of them are
		// robust.
		s.Norm, s.Radius = norm, 0.2/slope
		s.Random = false // start at the image, so that all steps are towards the decision boundary
		robustScore, clean := run(t, s, job(m, source{x, labels}))
		correct, robustCount := 0, 0
		for _, v := range margins {
			if v > 0 {
				correct++
			}
			if v > 0.2 {
				robustCount++
			}
		}
		if robustCount < 20 || correct-robustCount < 20 {
			t.Fatalf("%d predictions are correct and %d robust: too few to test", correct, robustCount)
		}
		if got := int(math.Round(clean.Value * 200)); got != correct {
			t.Errorf("%s: %d of 200 predictions are correct, want %d", norm, got, correct)
		}
		if got := int(math.Round(robustScore.Value * 200)); got != robustCount {
			t.Errorf("%s: %d of 200 are robust, want %d", norm, got, robustCount)
		}
		if !(robustScore.Low < robustScore.Value && robustScore.Value < robustScore.High && robustScore.N == 200) {
			t.Errorf("%s: %+v, want an interval around the value, of 200 samples", norm, robustScore)
		}
	}
}

// TestStrongerAttacks checks that robust accuracy does not increase with the radius, and that
// nearly all attacks with the largest radius succeed.
func TestStrongerAttacks(t *testing.T) {
	t.Parallel()
	path := testdata.Path(t, "models", "resnet20-cifar10.onnx")
	m, err := modeltest.Open(t, path, model.Options{Preprocess: model.Preprocess{Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}}})
	if err != nil {
		t.Fatal(err)
	}
	src, err := dataset.OpenCIFAR10(t.Context(), dataset.CIFAROptions{Paths: []string{testdata.Path(t, "cifar10", "test_batch.bin")}})
	if err != nil {
		t.Fatal(err)
	}
	defer dataset.Close(src)
	s := robust.Defaults()
	s.Images, s.Steps = 24, 6
	last := 1.0
	for _, radius := range []float64{0.01, 0.1, 0.5} {
		s.Radius = radius
		robustScore, clean := run(t, s, job(m, src))
		if robustScore.Value > min(last, clean.Value) || radius == 0.5 && robustScore.Value > 0.1 {
			t.Errorf("radius %v: robust accuracy %v, want at most that of the smaller radius, %v, and the clean accuracy, %v; at most 0.1 for radius 0.5", radius, robustScore.Value, last, clean.Value)
		}
		last = robustScore.Value
	}
}

// TestResume checks that a job that was cancelled and resumed from its checkpoint gives an
// identical score.
func TestResume(t *testing.T) {
	t.Parallel()
	m := linear(t)
	x, r := tensor.New(40, 1, 2, 2), seed.Rand(1)
	for i := range x.Data {
		x.Data[i] = r.Float32()
	}
	s := robust.Defaults()
	s.Radius, s.Restarts, s.Steps = 0.3, 3, 5
	method, err := robust.New(s)
	if err != nil {
		t.Fatal(err)
	}
	j := job(m, source{x, make([]int, 40)})
	want, _ := run(t, s, job(m, source{x, make([]int, 40)}))
	for _, stop := range []int{1, 5, 8, 14} { // the call of Progress at which the job is cancelled
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		j.Checkpoint = &checkpoint.Memory{}
		j.Progress = func(int64, string) {
			if calls++; calls == stop {
				cancel()
			}
		}
		if _, err := method.Run(ctx, j); !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at %d: error %v, want %v", stop, err, context.Canceled)
		}
		j.Progress = func(int64, string) {}
		if got, _ := run(t, s, j); got.Value != want.Value {
			t.Errorf("stopped at %d: %v after resuming, want %v", stop, got.Value, want.Value)
		}
	}
}

// TestSuccessBeforeNaN checks that a sample that an attack has made misclassified counts so, though
// a later step gives NaN.
func TestSuccessBeforeNaN(t *testing.T) {
	t.Parallel()
	// The margin is 3 v - 1 for the first pixel v, and NaN below 0.2.
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		v := b.Slice(b.Flatten(x, 1), 1, 0, 1, 1)
		nan := b.Mul(b.Sqrt(b.Sub(v, b.Scalar(0.2))), b.Scalar(0))
		return b.Concat(1, b.Add(b.Sub(b.Mul(v, b.Scalar(3)), b.Scalar(1)), nan), b.Mul(v, b.Scalar(0)))
	})
	x := tensor.New(6, 1, 2, 2)
	for i := range x.Data {
		x.Data[i] = 0.5
	}
	s := robust.Defaults()
	s.Radius, s.Random, s.StepSize = 0.5, false, 0.05
	got, clean := run(t, s, job(m, source{x, make([]int, 6)}))
	if got.Value != 0 || clean.Value != 1 || len(got.Warnings) > 0 {
		t.Errorf("robust %v, clean %v, warnings %q; want 0, 1 and none", got.Value, clean.Value, got.Warnings)
	}
}

// TestDroppedInAnyRestart checks that the warning counts the samples for which the attack from any
// random start ended in NaN, not only those of the last start.
func TestDroppedInAnyRestart(t *testing.T) {
	t.Parallel()
	const n = 60
	// No attack succeeds. Random starts with a second pixel above 0.55 give NaN.
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		v, w := b.Slice(b.Flatten(x, 1), 1, 0, 1, 1), b.Slice(b.Flatten(x, 1), 1, 1, 2, 1)
		nan := b.Mul(b.Sqrt(b.Sub(b.Scalar(0.55), w)), b.Scalar(0))
		return b.Concat(1, b.Add(b.Add(v, b.Scalar(10)), nan), b.Mul(v, b.Scalar(0)))
	})
	x := tensor.New(n, 1, 2, 2)
	for i := range x.Data {
		x.Data[i] = 0.5
	}
	count := func(restarts int) (dropped int) {
		s := robust.Defaults()
		s.Radius, s.Restarts, s.Steps = 0.2, restarts, 3
		got, _ := run(t, s, job(m, source{x, make([]int, n)}))
		if got.Value != 1 || len(got.Warnings) != 1 {
			t.Fatalf("robust %v, warnings %q; want 1 and one warning", got.Value, got.Warnings)
		}
		if _, err := fmt.Sscanf(got.Warnings[0], "attacks on %d samples ended", &dropped); err != nil {
			t.Fatal(err)
		}
		return dropped
	}
	if one, four := count(1), count(4); one == 0 || one > n/2 || four <= n/2 {
		t.Errorf("%d of %d samples have NaN with one start, %d with four; want at most half (but some) and more than half", one, n, four)
	}
}

// TestNaNGradient checks that there is no robust accuracy where each gradient is NaN.
func TestNaNGradient(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value { // the square root of 0 has no derivative
		v := b.Slice(b.Flatten(x, 1), 1, 0, 1, 1)
		zero := b.Mul(b.Sqrt(b.Mul(v, b.Scalar(0))), b.Scalar(0))
		return b.Concat(1, b.Add(b.Add(v, b.Scalar(10)), zero), b.Mul(v, b.Scalar(0)))
	})
	s := robust.Defaults()
	s.Steps, s.Random = 3, false
	got, clean := run(t, s, job(m, source{tensor.New(4, 1, 2, 2), make([]int, 4)}))
	if !math.IsNaN(got.Value) || clean.Value != 1 || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "all 4 samples") {
		t.Errorf("robust %v with warnings %q, clean %v; want no value, and 1", got.Value, got.Warnings, clean.Value)
	}
}

// TestErrors checks invalid settings, by a part of the error, and inputs without robust accuracy.
func TestErrors(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*robust.Settings){
		"images is 0":   func(s *robust.Settings) { s.Images = 0 },
		"restarts is 0": func(s *robust.Settings) { s.Restarts = 0 },
		"no effect":     func(s *robust.Settings) { s.Restarts, s.Random = 2, false },
		"radius 0":      func(s *robust.Settings) { s.Radius = 0 },
		`norm "l1"`:     func(s *robust.Settings) { s.Norm = "l1" },
		"steps is -1":   func(s *robust.Settings) { s.Steps = -1 },
		"step size -1":  func(s *robust.Settings) { s.StepSize = -1 },
	} {
		s := robust.Defaults()
		change(&s)
		if _, err := robust.New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: error %v, want %q in it", err, want)
		}
	}
	m, err := robust.New(robust.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.New(3, 1, 2, 2)
	if _, err := m.Run(t.Context(), job(linear(t), source{x, []int{-1, -1, -1}})); !errors.Is(err, measure.ErrTooFew) {
		t.Errorf("Run without labels: error %v, want %v", err, measure.ErrTooFew)
	}
	embedding := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.ReduceMean(b.Flatten(x, 1), true, 1) })
	if why := m.Skip(job(embedding, source{x, nil})); !strings.Contains(why, "no output of class scores") {
		t.Errorf("Skip of a model without class scores = %q, want a reason", why)
	}
	// Pixels are 0, so the class scores are log(-2), which is NaN.
	infinite := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.Log(b.Sub(b.Flatten(x, 1), b.Scalar(2)))
	})
	if _, err := m.Run(t.Context(), job(infinite, source{x, []int{0, 1, 2}})); err == nil || !strings.Contains(err.Error(), "class scores of image 0 contain NaN") {
		t.Errorf("Run on class scores with NaN: error %v, want one that names the image", err)
	}
}
