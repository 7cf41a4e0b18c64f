package parity_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/parity"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// TestGolden compares the statistics of a quantised network with those of onnxruntime and numpy:
// see testdata/make.py.
func TestGolden(t *testing.T) {
	t.Parallel()
	var golden struct {
		Layers map[string]map[string]any
	}
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	images, err := dataset.OpenArrays(t.Context(), dataset.ArraysOptions{Images: "testdata/images.npy"})
	if err != nil {
		t.Fatal(err)
	}
	r, unmatched := compare(t, "testdata/float.onnx", "testdata/quantised.onnx", images)
	if len(r.Layers) != len(golden.Layers) || r.N != 24 || r.NoLocal != "" {
		t.Fatalf("%d layers of %d samples (%s), want %d of 24", len(r.Layers), r.N, r.NoLocal, len(golden.Layers))
	}
	for _, l := range unmatched { // they are computed together with the ReLU after them
		if l.Name != "conv1" && l.Name != "sum" {
			t.Errorf("layer %s has no counterpart", l.Name)
		}
	}
	for _, l := range r.Layers {
		want := golden.Layers[l.Original.Name]
		if l.Other.Name != want["other"] || !l.Quantised || l.By != "name" || l.Doubt != "" {
			t.Errorf("layer %s is matched to %s by %s (%s), want %s", l.Original.Name, l.Other.Name, l.By, l.Doubt, want["other"])
		}
		for _, s := range l.Accumulated {
			near(t, l.Original.Name+" "+s.Statistic, s.Value, want[s.Statistic].(float64))
			if s.Value > 0 && !(s.Low <= s.Value && s.Value <= s.High) {
				t.Errorf("layer %s: the interval of %s is [%g, %g] around %g", l.Original.Name, s.Statistic, s.Low, s.High, s.Value)
			}
		}
		if len(l.Accumulated) != 5 {
			t.Errorf("layer %s has %d statistics, want 5", l.Original.Name, len(l.Accumulated))
		}
		near(t, l.Original.Name+" local", parity.Value(l.Local, parity.RelativeL2), want["local-relative-l2"].(float64))
	}
}

// near allows for values at the boundary of two steps, which libraries of other versions round to
// the other one.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 0.01*math.Abs(want)+1e-6) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// compare compares two files on samples.
func compare(t *testing.T, original, other string, src dataset.Source) (*parity.Result, []tensor.Layer) {
	t.Helper()
	a, b := open(t, original), open(t, other)
	pairs, unmatched := parity.Match(a, b)
	samples := parity.Samples{Source: src, Order: dataset.Indices(src.Len()), Layout: measure.NewLayout(src.Len())}
	// The memory is that of a few samples, so that there are several batches, the last one smaller.
	r, err := parity.Compare(t.Context(), a, b, pairs, samples, parity.Options{Memory: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	return r, unmatched
}

func open(t *testing.T, path string) *model.Model {
	t.Helper()
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// chainOptions change a network of three convolutions.
type chainOptions struct {
	name       func(layer string) string // of tensors; nil: as they are
	weight     func(layer string) string // of weights
	scale      map[string]float32        // of the weights of a layer; 0: 1
	fold, last bool                      // no normalisation of its own; channels last
	batch      int                       // 0: any
}

// chain writes a network of images of 3 x 8 x 8: three times a convolution, a normalisation and a
// ReLU, then a linear layer.
func chain(t *testing.T, o chainOptions) string {
	t.Helper()
	if o.name == nil {
		o.name = func(layer string) string { return layer }
	}
	if o.weight == nil {
		o.weight = func(layer string) string { return layer + " w" }
	}
	if o.batch == 0 {
		o.batch = -1
	}
	b := onnx.NewBuilder(17)
	z := b.Input("x", onnx.Float, o.batch, 3, 8, 8)
	channels := 3
	for _, layer := range []string{"a", "b", "c"} {
		r := seed.Rand(3, layer)
		random := func(shape ...int) tensor.Tensor {
			w := tensor.New(shape...)
			for i := range w.Data {
				w.Data[i] = float32(r.NormFloat64()) * 0.3
			}
			return w
		}
		w, gain, shift := random(4, channels, 3, 3), random(4), random(4)
		zero, one := tensor.New(4), tensor.New(4)
		for i := range gain.Data {
			gain.Data[i] += 1
			one.Data[i] = 1
		}
		if s := o.scale[layer]; s != 0 {
			for i := range w.Data {
				w.Data[i] *= s
			}
		}
		if o.fold {
			for i := range w.Data {
				w.Data[i] *= gain.Data[i/(len(w.Data)/4)]
			}
			z = b.Conv(z, b.Const(o.weight(layer), w), b.Const(layer+" b", shift), onnx.Attrs{"pads": []int{1, 1, 1, 1}})
			b.Output(o.name(layer+" conv"), z)
			z = onnx.Value(o.name(layer + " conv"))
		} else {
			z = b.Conv(z, b.Const(o.weight(layer), w), "", onnx.Attrs{"pads": []int{1, 1, 1, 1}})
			b.Output(o.name(layer+" conv"), z)
			z = b.Op("BatchNormalization", onnx.Attrs{"epsilon": 1e-12}, onnx.Value(o.name(layer+" conv")), b.Const(layer+" gain", gain), b.Const(layer+" shift", shift), b.Const(layer+" mean", zero), b.Const(layer+" variance", one))
			b.Output(o.name(layer+" norm"), z)
			z = onnx.Value(o.name(layer + " norm"))
		}
		if o.last { // computed channels last
			z = b.Transpose(z, 0, 2, 3, 1)
		}
		z = b.Relu(z)
		b.Output(o.name(layer+" relu"), z)
		z = onnx.Value(o.name(layer + " relu"))
		if o.last {
			z = b.Transpose(z, 0, 3, 1, 2)
		}
		channels = 4
	}
	v := tensor.New(4, 5)
	for i := range v.Data {
		v.Data[i] = float32(i%7) - 3
	}
	b.Output("logits", b.Gemm(b.Flatten(b.Op("GlobalAveragePool", nil, z), 1), b.Const("v", v), "", nil))
	m, err := b.Model()
	if err == nil {
		m, err = rewrite.WithOutputs(m, []string{"logits"})
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "chain.onnx")
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// images returns random samples.
func images(t *testing.T) dataset.Source {
	t.Helper()
	x := tensor.New(11, 8, 8, 3)
	r := seed.Rand(1, "images")
	for i := range x.Data {
		x.Data[i] = r.Float32()
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "images.npy"))
	if err == nil {
		err = dataset.WriteNPY(f, x)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	src, err := dataset.OpenArrays(t.Context(), dataset.ArraysOptions{Images: f.Name()})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestLocalErrors changes one convolution: it alone has an error of its own, the layers after it
// have what it brings, and those before have none. The network takes any number of images, or one.
func TestLocalErrors(t *testing.T) {
	t.Parallel()
	src := images(t)
	for _, batch := range []int{0, 1, 4} {
		r, _ := compare(t, chain(t, chainOptions{}), chain(t, chainOptions{scale: map[string]float32{"b": 1.1}, batch: batch}), src)
		v := r.Judge(0.01, false)
		if v.Begins == nil || v.Begins.Original.Name != "b conv" || len(v.Worst) == 0 || v.Worst[0] != v.Begins || len(v.Nodes) > 0 {
			t.Fatalf("batch %d: the verdict is %+v, want that b conv differs", batch, v)
		}
		near(t, "relative l2 of b conv", parity.Value(v.Begins.Accumulated, parity.RelativeL2), 0.1)
		near(t, "snr of b conv", parity.Value(v.Begins.Accumulated, parity.SNR), 20)
		after := false
		for i := range r.Layers {
			l := &r.Layers[i]
			own, accumulated := r.Own(l), parity.Value(l.Accumulated, parity.RelativeL2)
			if l.Original.Name == "b conv" {
				after = true
				continue
			}
			if own > 1e-6 || after != (accumulated > 0.01) || after != (r.Brought(l) > 0.01) {
				t.Errorf("batch %d: layer %s adds %g to %g, and has %g", batch, l.Original.Name, own, r.Brought(l), accumulated)
			}
		}
	}
}

// TestUnconfirmed compares networks without a name in common, in which a convolution differs so
// much that its match by order is not confirmed. It is left out, and so are the layers after it,
// but not a layer whose match is certain.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	other := chainOptions{name: func(layer string) string { return "renamed " + layer }, scale: map[string]float32{"b": -9}}
	r, _ := compare(t, chain(t, chainOptions{}), chain(t, other), images(t))
	dropped := map[string]bool{}
	for _, p := range r.Dropped {
		dropped[p.Original.Name] = true
	}
	if !dropped["b conv"] || dropped["a conv"] || dropped["logits"] {
		t.Errorf("left out are %v, want b conv, and neither a conv nor logits", dropped)
	}
	for _, l := range r.Layers {
		if dropped[l.Original.Name] {
			t.Errorf("layer %s is left out and compared", l.Original.Name)
		}
	}
}

// TestMatch matches a network with forms of it whose tensors have other names, other axes and fewer
// nodes. All forms compute the same, so that a wrong match has an error.
func TestMatch(t *testing.T) {
	t.Parallel()
	src := images(t)
	renamed := func(layer string) string { return "renamed " + layer }
	modules := func(layer string) string { return "stage." + layer + ".weight" }
	original := chain(t, chainOptions{weight: modules})
	for name, c := range map[string]struct {
		other   chainOptions
		by      map[string]string // of some layers
		fused   []string          // of a norm
		matched int
	}{
		"renamed":       {chainOptions{name: renamed}, map[string]string{"b conv": "order", "logits": "name"}, nil, 12},
		"modules":       {chainOptions{name: renamed, weight: modules}, map[string]string{"b conv": "module", "b relu": "order"}, nil, 12},
		"channels last": {chainOptions{name: renamed, last: true}, map[string]string{"b relu": "order"}, nil, 12},
		"folded":        {chainOptions{name: renamed, fold: true}, map[string]string{"b norm": "order"}, []string{"Conv", "BatchNormalization"}, 9},
		"folded, named": {chainOptions{weight: modules, fold: true}, map[string]string{"b norm": "name"}, []string{"Conv", "BatchNormalization"}, 9},
	} {
		r, _ := compare(t, original, chain(t, c.other), src)
		if len(r.Layers) < c.matched {
			t.Errorf("%s: %d layers are matched, want at least %d", name, len(r.Layers), c.matched)
		}
		for _, l := range r.Layers {
			if d := parity.Value(l.Accumulated, parity.RelativeL2); !(d < 1e-4) || !(r.Own(&l) < 1e-4) {
				t.Errorf("%s: %s is matched to %s, which differs by %g", name, l.Original.Name, l.Other.Name, d)
			}
			if by := c.by[l.Original.Name]; by != "" && by != l.By {
				t.Errorf("%s: %s is matched by %s, want %s", name, l.Original.Name, l.By, by)
			}
			if l.Original.Name == "b norm" && !slices.Equal(l.Fused, c.fused) {
				t.Errorf("%s: the operators %v are fused, want %v", name, l.Fused, c.fused)
			}
		}
	}
}
