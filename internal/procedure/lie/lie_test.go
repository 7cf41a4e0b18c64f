package lie_test

import (
	"context"
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
	"github.com/noether-ml/noether/internal/procedure/lie"
	"github.com/noether-ml/noether/internal/procedure/proceduretest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// images is a source of images without labels.
type images struct{ x tensor.Tensor }

func (s images) Len() int            { return s.x.Shape[0] }
func (s images) Classes() []string   { return nil }
func (s images) Factors() []string   { return nil }
func (s images) Fingerprint() string { return "" }
func (s images) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	return dataset.Sample{Index: i, Name: fmt.Sprint("image ", i), Input: s.x.At(i), Label: dataset.NoLabel}, nil
}

// random returns uniform values in [0, 1), seeded by purpose.
func random(purpose string, shape ...int) tensor.Tensor {
	t, r := tensor.New(shape...), seed.Rand(3, purpose)
	for i := range t.Data {
		t.Data[i] = r.Float32()
	}
	return t
}

// build opens a model of images of 3 x 8 x 8 with the outputs that addOutputs adds.
func build(t testing.TB, addOutputs func(b *onnx.Builder, x onnx.Value)) *model.Model {
	t.Helper()
	b := onnx.NewBuilder(19)
	addOutputs(b, b.Input("x", onnx.Float, -1, 3, 8, 8))
	path := testmodel.Save(t, filepath.Join(t.TempDir(), "net.onnx"), b)
	opened, err := modeltest.Open(t, path, model.Options{Layers: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// scoresOf runs the measure on the layers with the given names, and returns the scores by layer,
// generator and statistic. The Lie derivative L f of a layer f is the derivative by t, at 0, of
// T_-t f(T_t x) for transformations T_t; the generator is the derivative of T_t. The statistics are
// lee (local equivariance error, the mean of |L f|^2 per value of the layer), relative (the mean of
// |L f| / |f|) and contribution (the part of the output's error that arises in the layer).
func scoresOf(t testing.TB, m *model.Model, s lie.Settings, x tensor.Tensor, names ...string) map[string]measure.Score {
	t.Helper()
	var layers []tensor.Layer
	for _, l := range m.Layers() {
		for _, name := range names {
			if l.Name == name {
				layers = append(layers, l)
			}
		}
	}
	if len(layers) != len(names) {
		t.Fatalf("the model has the layers %v, want %v", layers, names)
	}
	p, err := lie.New(s)
	out := map[string]measure.Score{}
	for _, result := range proceduretest.RunJob(t, p, err, proceduretest.Job(procedure.Subject{Name: "net", Model: m, Layers: layers}, images{x})) {
		layer := "output" // A is negative
		if result.A >= 0 {
			layer = layers[result.A].Name
		}
		out[layer+" "+result.Factor+" "+result.Statistic] = result.Score
	}
	return out
}

// settings returns the defaults with the given generators. slopes says how slopes along rows and
// columns are computed: by circular, central or forward differences.
func settings(slopes string, generators ...string) lie.Settings {
	s := lie.Defaults()
	s.Slopes, s.Generators = slopes, generators
	return s
}

// TestCircularConvolution checks that the Lie derivative of a convolution under circular
// translations is 0 with circular padding and not with zero padding, and that the identity's is
// always 0. The null of a score is its value by chance: for the maps of one image and the movement
// of those of another.
func TestCircularConvolution(t *testing.T) {
	t.Parallel()
	w := random("kernel", 4, 3, 3, 3)
	m := build(t, func(b *onnx.Builder, x onnx.Value) {
		wrapped := b.Op("Pad", onnx.Attrs{"mode": "wrap"}, x, b.Ints(0, 0, 1, 1, 0, 0, 1, 1))
		b.Output("circular", b.Tanh(b.Mul(b.Conv(wrapped, b.Const("w", w), "", nil), b.Scalar(0.1))))
		b.Output("zeros", b.Conv(x, "w", "", onnx.Attrs{"pads": []int{1, 1, 1, 1}}))
		b.Output("same", b.Identity(x))
		b.Output("logits", b.ReduceMean(b.Identity("circular"), false, 2, 3))
	})
	x := random("images", 5, 3, 8, 8)
	linear := build(t, func(b *onnx.Builder, x onnx.Value) {
		wrapped := b.Op("Pad", onnx.Attrs{"mode": "wrap"}, x, b.Ints(0, 0, 1, 1, 0, 0, 1, 1))
		circular := b.Conv(wrapped, b.Const("w", w), "", nil)
		// No output states its shape, so the model takes the first as its prediction, the layer
		// "output" of scoresOf.
		b.Output("logits", b.ReduceMean(b.Identity(circular), false, 2, 3))
		b.Output("circular", circular)
		b.Output("zeros", b.Conv(x, "w", "", onnx.Attrs{"pads": []int{1, 1, 1, 1}}))
		b.Output("same", b.Identity(x))
	})
	scores := scoresOf(t, linear, settings(lie.Circular, "translate-x", "translate-y"), x, "circular", "zeros", "same")
	for _, g := range []string{"translate-x", "translate-y"} {
		for _, layer := range []string{"circular", "same", "output"} {
			if s, ok := scores[layer+" "+g+" relative"]; !ok || !(s.Value < 1e-5) {
				t.Errorf("%s of %s: %g (scored: %v), want 0", g, layer, s.Value, ok)
			}
		}
		zeros := scores["zeros "+g+" relative"]
		if !(zeros.Low > 0.1 && zeros.Null > zeros.Value) {
			t.Errorf("%s with zero padding: %+v, want more than 0.1 and less than the null", g, zeros)
		}
	}
	generators := []string{"rotate", "scale", "shear-y", "stretch-x"}
	scores = scoresOf(t, linear, settings(lie.Central, generators...), x, "same")
	for _, g := range generators {
		if s := scores["same "+g+" lee"]; !(s.Value < 1e-9 && s.Null > 0.01) {
			t.Errorf("lee of %s: %g (null %g), want 0 and a null above 0.01", g, s.Value, s.Null)
		}
	}
	// Where values pass a nonlinear function, differences of neighbours are no longer exact.
	if s := scoresOf(t, m, settings(lie.Circular, "translate-x"), x, "circular")["circular translate-x relative"]; !(s.Value > 0.001 && s.Value < s.Null) {
		t.Errorf("after tanh: %+v, want a small error", s)
	}
}

// TestLinearLayer checks the closed form for a linear layer y = W x: L y = W X x, where X is the
// generator. Under a translation X x is minus the width times the slope, here the difference of
// both neighbours divided by their distance.
func TestLinearLayer(t *testing.T) {
	t.Parallel()
	const n, classes = 3, 4
	w := random("matrix", 3*64, classes)
	m := build(t, func(b *onnx.Builder, x onnx.Value) {
		b.Output("y", b.MatMul(b.Flatten(x, 1), b.Const("w", w)))
		b.Output("logits", b.Mul("y", b.Scalar(0.1)))
	})
	x := random("images", n, 3, 8, 8)
	scores := scoresOf(t, m, settings(lie.Central, "translate-x", "brightness", "contrast", "saturation"), x, "y")
	want := map[string]float64{}
	for i := range n {
		image := x.At(i).Data
		var mean float64
		grey := make([]float64, 64)
		for p := range 64 {
			grey[p] = 0.2989*float64(image[p]) + 0.587*float64(image[64+p]) + 0.114*float64(image[128+p])
			mean += grey[p] / 64
		}
		generators := map[string]func(c, row, col int) float64{
			"brightness": func(c, row, col int) float64 { return float64(image[c*64+row*8+col]) },
			"contrast":   func(c, row, col int) float64 { return float64(image[c*64+row*8+col]) - mean },
			"saturation": func(c, row, col int) float64 { return float64(image[c*64+row*8+col]) - grey[row*8+col] },
			"translate-x": func(c, row, col int) float64 {
				low, high := max(col-1, 0), min(col+1, 7)
				at := func(col int) float64 { return float64(image[c*64+row*8+col]) }
				return -8 * (at(high) - at(low)) / float64(high-low)
			},
		}
		for g, f := range generators {
			for k := range classes {
				var y float64
				for p := range 3 * 64 {
					y += f(p/64, p%64/8, p%8) * float64(w.Data[p*classes+k])
				}
				want[g] += y * y / classes / n
			}
		}
	}
	for g, v := range want {
		if got := scores["y "+g+" lee"]; !(math.Abs(got.Value-v) <= 1e-4*v) || !math.IsNaN(got.Null) {
			t.Errorf("%s: %g (null %g), want %g without a null", g, got.Value, got.Null, v)
		}
		// The whole error of the output arises in the linear layer.
		if all, one := scores["output "+g+" lee"], scores["y "+g+" contribution"]; !(all.Value > 0 && math.Abs(all.Value-one.Value) <= 1e-4*all.Value) {
			t.Errorf("%s: the lee of the output is %g, and the only layer contributes %g", g, all.Value, one.Value)
		}
		if rest, ok := scores["output "+g+" contribution"]; !ok || !(rest.Value <= 1e-9) {
			t.Errorf("%s: the part after the layer contributes %g, want 0", g, rest.Value)
		}
	}
}

// TestBatchSize checks that lee does not depend on the number of images in one run of the engine.
func TestBatchSize(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) {
		b.Output("maps", b.Relu(b.Conv(x, b.Const("w", random("kernel", 4, 3, 3, 3)), "", onnx.Attrs{"strides": []int{2, 2}})))
		b.Output("logits", b.ReduceMean(b.Identity("maps"), false, 2, 3))
	})
	x := random("images", 11, 3, 8, 8)
	a, b := settings(lie.Central, "rotate"), settings(lie.Central, "rotate")
	a.Batch, b.Batch = 2, 7
	first, second := scoresOf(t, m, a, x, "maps"), scoresOf(t, m, b, x, "maps")
	if !(first["maps rotate lee"].Value > 0) || len(first) != len(second) {
		t.Errorf("scores %v in batches of 2, %v in batches of 7", first, second)
	}
	for key, s := range first {
		if o, ok := second[key]; !ok || !(math.Abs(s.Value-o.Value) <= 1e-5*s.Value+1e-12) || s.N != 11 || !(s.Low <= s.Value && s.Value <= s.High) {
			t.Errorf("%s: %+v in batches of 2, %+v in batches of 7", key, s, o)
		}
	}
}

// TestResume checks that a stopped run continues and gives the scores of an uninterrupted one. 20
// images in batches of 8, for two generators, are 6 batches.
func TestResume(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) {
		b.Output("maps", b.Relu(b.Conv(x, b.Const("w", random("kernel", 4, 3, 3, 3)), "", nil)))
		b.Output("logits", b.ReduceMean(b.Identity("maps"), false, 2, 3))
	})
	p, err := lie.New(settings(lie.Central, "rotate", "scale"))
	if err != nil {
		t.Fatal(err)
	}
	saved := &checkpoint.Memory{}
	job := func() *procedure.Job {
		j := proceduretest.Job(procedure.Subject{Name: "net", Model: m, Layers: m.Layers()[:2]}, images{random("images", 20, 3, 8, 8)})
		j.Checkpoint = saved
		return j
	}
	ctx, cancel := context.WithCancel(t.Context())
	j := job()
	calls := 0
	j.Progress = func(int64, string) {
		if calls++; calls == 4 {
			cancel()
		}
	}
	if _, err := p.Run(ctx, j); err != context.Canceled {
		t.Fatalf("a cancelled run returned %v", err)
	}
	j = job()
	remaining := 0
	j.Progress = func(int64, string) { remaining++ }
	resumed, err := p.Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if remaining != 2 {
		t.Errorf("%d batches after the stop at the fourth, want 2 of 6", remaining)
	}
	saved = &checkpoint.Memory{}
	whole, err := p.Run(t.Context(), job())
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if whole[i].Value != resumed[i].Value || whole[i].High != resumed[i].High {
			t.Errorf("%+v after a stop, %+v without", resumed[i], whole[i])
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(s *lie.Settings)
		want   string
	}{
		{func(s *lie.Settings) { s.Generators = []string{"rotat"} }, `unknown generator "rotat"`},
		{func(s *lie.Settings) { s.Generators = []string{"rotate", "rotate"} }, "twice"},
		{func(s *lie.Settings) { s.Generators = nil }, "is empty"},
		{func(s *lie.Settings) { s.Batch = 1 }, "batch"},
		{func(s *lie.Settings) { s.Slopes = "steep" }, `"steep"`},
	} {
		s := lie.Defaults()
		c.change(&s)
		if _, err := lie.New(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", s, err, c.want)
		}
	}
}

// TestNonFinite checks that a layer whose derivative is NaN (that of a square root at 0) makes only
// the scores of that layer undefined.
func TestNonFinite(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) {
		b.Output("good", b.Mul(x, b.Scalar(2)))
		b.Output("bad", b.Sqrt(b.Sub(x, x)))
		b.Output("logits", b.ReduceMean(b.Identity("good"), false, 2, 3))
	})
	scores := scoresOf(t, m, settings(lie.Central, "scale"), random("images", 4, 3, 8, 8), "good", "bad")
	if s := scores["bad scale lee"]; !math.IsNaN(s.Value) || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "image 0") {
		t.Errorf("the layer with NaN has %+v, want NaN and a warning that names the image", s)
	}
	if s := scores["good scale lee"]; !(s.Value < 1e-9) {
		t.Errorf("the other layer has %+v, want 0", s)
	}
}
