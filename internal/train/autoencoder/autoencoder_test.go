package autoencoder

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/dataset/video"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/internal/train/filters"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// golden holds testdata/layer.json, the training of a layer: an autoencoder whose units are sparse.
type golden struct {
	N, M, Steps                 int         // values of a pattern, units, epochs of one step each
	Decay, Target, Weight, Rate float64     // as in Settings
	X, Held                     [][]float32 // patterns (inputs) for training and for validation
	W1, W2                      [][]float32 // weights and biases after the last step
	B1, B2                      []float32
	Curve                       []float64 // validation error after each epoch
	// Weights before the first step, transposed.
	Start struct{ W1, W2 [][]float32 }
}

func matrix(rows [][]float32) tensor.Tensor {
	t := tensor.New(len(rows), len(rows[0]))
	for i, row := range rows {
		copy(t.Data[i*len(row):], row)
	}
	return t
}

func near(t *testing.T, name string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d values, want %d", name, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= tolerance) {
			t.Fatalf("%s: value %d is %g, want %g", name, i, got[i], want[i])
		}
	}
}

// TestStepsGolden checks that five training steps agree with those of testdata/layer.py, a NumPy
// implementation with explicit gradients.
func TestStepsGolden(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/layer.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	s := Settings{Units: g.M, Decay: g.Decay, Target: g.Target, Weight: g.Weight, Rate: g.Rate,
		FitOptions: train.FitOptions{Epochs: g.Steps, Batch: len(g.X), KeepLast: true}}
	network, err := network(g.N, s)
	if err == nil {
		network, err = rewrite.WithWeights(network, map[string]tensor.Tensor{w1: matrix(g.Start.W1), w2: matrix(g.Start.W2)})
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := fit(t.Context(), orttest.Load(t), network, matrix(g.X), matrix(g.Held), s)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "W1", l.W1.Data, matrix(g.W1).Data, 2e-5)
	near(t, "b1", l.B1.Data, g.B1, 2e-5)
	near(t, "W2", l.W2.Data, matrix(g.W2).Data, 2e-5)
	near(t, "b2", l.B2.Data, g.B2, 2e-5)
	for i, p := range l.Curve {
		if math.Abs(p.Validation-g.Curve[i]) > 1e-4 {
			t.Errorf("epoch %d: validation error %g, want %g", i+1, p.Validation, g.Curve[i])
		}
	}
}

// random returns a layer of m units with n inputs, whose weights and biases have the standard
// deviation size.
func random(m, n int, size float64, seed uint64) *Layer {
	r := rand.New(rand.NewPCG(seed, 0))
	fill := func(shape ...int) tensor.Tensor {
		t := tensor.New(shape...)
		for i := range t.Data {
			t.Data[i] = float32(size * r.NormFloat64())
		}
		return t
	}
	return &Layer{W1: fill(m, n), B1: fill(m), W2: fill(n, m), B2: fill(n)}
}

// activations returns tanh(W1 x + b1).
func activations(l *Layer, x []float32) []float32 {
	out := make([]float32, l.W1.Shape[0])
	for i := range out {
		sum := float64(l.B1.Data[i])
		for j, v := range x {
			sum += float64(l.W1.Data[i*len(x)+j]) * float64(v)
		}
		out[i] = float32(math.Tanh(sum))
	}
	return out
}

// TestModelBranches checks a model of two branches, stacks of layers that share their first layer.
func TestModelBranches(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	bottom, a, b := random(5, 9, 0.5, 1), random(4, 5, 0.5, 2), random(3, 5, 0.5, 3)
	// The model takes images of 3 x 3 pixels and 1 channel.
	m, err := Model(3, 1, Branch{"a", []*Layer{bottom, a}}, Branch{"b", []*Layer{bottom, b}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := strings.Join(s.Outputs(), " "); got != "a/layer1 a/layer2 b/layer2" {
		t.Fatalf("outputs %s, want %s", got, "a/layer1 a/layer2 b/layer2")
	}
	x, err := rt.NewValue(onnx.Float, 1, 1, 3, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for i := range ort.Data[float32](x) {
		ort.Data[float32](x)[i] = float32(i)/5 - 0.8
	}
	out := make([]*ort.Value, 3)
	if err := s.Run(t.Context(), []*ort.Value{x}, out); err != nil {
		t.Fatal(err)
	}
	h := activations(bottom, ort.Data[float32](x))
	near(t, "a/layer1", ort.Data[float32](out[0]), h, 1e-6)
	near(t, "a/layer2", ort.Data[float32](out[1]), activations(a, h), 1e-6)
	near(t, "b/layer2", ort.Data[float32](out[2]), activations(b, h), 1e-6)
	in := tensor.New(1, 9)
	copy(in.Data, ort.Data[float32](x))
	encoded, err := Encode(t.Context(), rt, bottom, in)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "Encode", encoded.Data, h, 1e-6)
	for _, v := range out {
		v.Close()
	}
}

// TestEncodeRange checks that activations never exceed 1, so that the next layer accepts them as
// patterns.
func TestEncodeRange(t *testing.T) {
	t.Parallel()
	const n = 20_000
	x := tensor.New(n, 1)
	for i := range x.Data {
		x.Data[i] = 2*float32(i)/n - 1
	}
	l := &Layer{W1: tensor.Tensor{Shape: []int{1, 1}, Data: []float32{20}}, B1: tensor.New(1)}
	h, err := Encode(t.Context(), orttest.Load(t), l, x)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range h.Data {
		if !(v >= -1 && v <= 1) || math.Abs(float64(v)-math.Tanh(20*float64(x.Data[i]))) > 1e-6 {
			t.Fatalf("tanh(%v) is %v", 20*x.Data[i], v)
		}
	}
}

// TestImagesAreDerivatives checks the images of units: their filters in pixels, which treat units
// as linear. With small weights tanh is nearly linear, and the image of a unit is the derivative of
// its activation.
func TestImagesAreDerivatives(t *testing.T) {
	t.Parallel()
	first, second, third := random(6, 4, 1e-2, 1), random(5, 6, 1e-2, 2), random(3, 5, 1e-2, 3)
	for i := range third.B1.Data {
		third.B1.Data[i] = 0
	}
	output := func(x []float32) []float32 { return activations(third, activations(second, activations(first, x))) }
	images := Images(2, 1, first, second, third)
	atZero := output(make([]float32, 4))
	for j := range 4 {
		x := make([]float32, 4)
		x[j] = 1
		for i, v := range output(x) {
			if got, want := images[i].Data[j], v-atZero[i]; math.Abs(float64(got-want)) > 2e-3*math.Abs(float64(want))+2e-9 {
				t.Errorf("unit %d, pixel %d: the image has %g, the derivative is %g", i, j, got, want)
			}
		}
	}
}

func TestTrainErrors(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	x := tensor.New(4, 3)
	withNaN := tensor.New(4, 3)
	withNaN.Data[5] = float32(math.NaN())
	for _, c := range []struct {
		x, held tensor.Tensor
		s       Settings
		want    string
	}{
		{x, tensor.New(2, 2), Settings{Units: 2}, "both must be n x values"},
		{tensor.New(0, 3), x, Settings{Units: 2}, "no patterns are given"},
		{x, x, Settings{}, "units is 0"},
		{x, x, Settings{Units: 2, Decay: -1}, "at least 0"},
		{x, x, Settings{Units: 2, Weight: 1, Target: -1}, "must lie between -1 and 1"},
		{withNaN, x, Settings{Units: 2}, "pattern 1 has the value NaN"},
	} {
		if _, err := Train(t.Context(), rt, c.x, c.held, c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	if _, err := Model(3, 1, Branch{"a", []*Layer{random(5, 8, 1, 1)}}); err == nil {
		t.Error("a layer of 8 inputs on patches of 9 pixels: no error")
	}
}

// TestTrainNaturalPatches checks that on whitened patches of photos the validation error decreases
// in every epoch, and that units become localised and oriented: for at least 20 of 25 filters, a
// fitted Gabor function explains a larger fraction of the energy than for the best of 20 noise
// filters.
func TestTrainNaturalPatches(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on natural images")
	}
	folder, err := dataset.OpenFolder(t.Context(), dataset.FolderOptions{Dir: testdata.Path(t, "imagenet-samples")})
	if err != nil {
		t.Fatal(err)
	}
	const side = 10
	src, err := video.OpenCamera(t.Context(), video.CameraOptions{Images: dataset.Limit(folder, 40), Motion: "still",
		// Places are where patches are cut from an image, which are then whitened.
		Patches: video.Patches{Size: side, Places: 200, Width: 160, Height: 120}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	x := tensor.New(src.Len(), side*side)
	for i := range src.Len() {
		s, err := src.At(t.Context(), i, dataset.Frame{})
		if err != nil {
			t.Fatal(err)
		}
		for j, v := range s.Input.Data {
			x.Data[i*side*side+j] = 2*v - 1
		}
	}
	cut := 7000 * side * side // 200 patches of each of 40 images are 8000
	patterns := tensor.Tensor{Shape: []int{7000, side * side}, Data: x.Data[:cut]}
	held := tensor.Tensor{Shape: []int{1000, side * side}, Data: x.Data[cut:]}
	var epochs []train.Epoch
	l, err := Train(t.Context(), orttest.Load(t), patterns, held, Settings{Units: 25, Decay: 0.03,
		Target: -0.9, Weight: 100,
		FitOptions: train.FitOptions{Epochs: 20, KeepLast: true,
			AfterEpoch: func(e train.Epoch) error { epochs = append(epochs, e); return nil }}})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(l.Curve); i++ {
		if l.Curve[i].Validation > l.Curve[i-1].Validation {
			t.Errorf("the validation error increases in epoch %d: %g, before %g", i+1, l.Curve[i].Validation, l.Curve[i-1].Validation)
		}
	}
	if len(epochs) != len(l.Curve) {
		t.Errorf("AfterEpoch was called for %d epochs of %d", len(epochs), len(l.Curve))
	}
	noise, err := filters.Noise(side, side, 20, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	bestNoise, better := 0.0, 0
	for _, v := range noise {
		bestNoise = max(bestNoise, v)
	}
	for _, image := range Images(side, 1, l) {
		g, err := filters.Fit(tensor.Tensor{Shape: []int{side, side}, Data: image.Data})
		if err != nil {
			t.Fatal(err)
		}
		if g.Explained > bestNoise {
			better++
		}
	}
	t.Logf("Gabor functions fit %d of 25 filters better than the best of 20 noise filters (explained fraction %.2f); the validation error went from %.2f to %.2f", better, bestNoise, l.Curve[0].Validation, l.Curve[len(l.Curve)-1].Validation)
	if better < 20 {
		t.Errorf("Gabor functions fit only %d of 25 filters better than noise, want at least 20", better)
	}
}
