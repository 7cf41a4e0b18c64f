package equivariance_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/equivariance"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// goldenTransforms returns the transformations of testdata/golden.py.
func goldenTransforms() map[string]transform.Transform {
	f := transform.Fixed
	return map[string]transform.Transform{
		"quarter": transform.Rotate{Angle: f(90)}, "rotate": transform.Rotate{Angle: f(30)}, "flip": transform.Flip{},
		"scale": transform.Scale{Factor: f(1.25)}, "shift": transform.Translate{X: f(0.0625), Y: f(-0.09)},
		"wrap": transform.Translate{X: f(0.0625), Sampling: transform.Sampling{Outside: transform.Wrapped}},
	}
}

// TestGolden checks that the scores of layers of a ResNet-20 agree with an implementation in NumPy
// and PyTorch, testdata/golden.py.
func TestGolden(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden []struct {
		Transform, Layer string
		Margin           float64            // fraction of the sides that is left out at the border
		Scores, Null     map[string]float64 // Null: the scores of shuffled pairs
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	r := newReader(t, 40)
	clean := r.layers(transform.Identity{})
	transformed := map[string]map[string]tensor.Tensor{}
	for name, tr := range goldenTransforms() {
		transformed[name] = r.layers(tr)
	}
	// Label -1 stands for no label.
	for _, g := range golden {
		tr, layer := goldenTransforms()[g.Transform], r.layer(g.Layer)
		site := measure.Site{Layer: layer, Layout: measure.NewLayout(r.n), Motion: transform.Motions(tr)}
		a, err := equivariance.New(equivariance.Settings{Margin: g.Margin}).New(site)
		if err != nil {
			t.Fatal(err)
		}
		b := &measure.Batch{Clean: clean[g.Layer], Transformed: transformed[g.Transform][g.Layer]}
		for i := range r.n {
			b.Place, b.Index, b.Label, b.Motions = append(b.Place, i), append(b.Index, i), append(b.Label, -1), append(b.Motions, transform.MotionOf(tr.Draw(nil)))
		}
		if err := a.Update(b); err != nil {
			t.Fatal(err)
		}
		scores, err := a.Scores()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scores {
			if want := g.Scores[s.Statistic]; math.Abs(s.Value-want) > 1e-5 {
				t.Errorf("%s, margin %v, %s: %s is %v, want %v", g.Transform, g.Margin, g.Layer, s.Statistic, s.Value, want)
			}
			if want, ok := g.Null[s.Statistic]; ok && !(math.Abs(s.Null-want) <= 1e-5) {
				t.Errorf("%s, margin %v, %s: the null (the score of shuffled pairs) of %s is %v, want %v", g.Transform, g.Margin, g.Layer, s.Statistic, s.Null, want)
			}
		}
	}
	if len(golden) != 33 { // 3 layers, 6 transformations and 2 margins, but 1 margin for wrap
		t.Errorf("%d entries in golden.json, want 33", len(golden))
	}
}

// A reader reads layers of a ResNet-20 on the first images of a CIFAR-10 test set.
type reader struct {
	t      *testing.T
	n      int
	model  *model.Model
	images []tensor.Tensor
}

// newReader returns a reader of three layers on n images.
func newReader(t *testing.T, n int) *reader {
	t.Helper()
	data, err := dataset.OpenCIFAR10(t.Context(), dataset.CIFAROptions{Paths: []string{testdata.Path(t, "cifar10", "test_batch.bin")}})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"/conv1/Conv_output_0", "/layer2/layer2.2/Relu_1_output_0", "/layer3/layer3.2/Relu_1_output_0"}
	m, err := modeltest.Open(t, testdata.Path(t, "models", "resnet20-cifar10.onnx"), model.Options{Layers: names,
		Preprocess: model.Preprocess{Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}}})
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, n: n, model: m}
	for i := range n {
		s, err := data.At(t.Context(), i, m.Frame())
		if err != nil {
			t.Fatal(err)
		}
		r.images = append(r.images, s.Input)
	}
	return r
}

func (r *reader) layer(name string) tensor.Layer {
	r.t.Helper()
	for _, l := range r.model.Layers() {
		if l.Name == name {
			return l
		}
	}
	r.t.Fatalf("no layer %s", name)
	return tensor.Layer{}
}

// layers returns the layers' activations on the transformed images.
func (r *reader) layers(tr transform.Transform) map[string]tensor.Tensor {
	r.t.Helper()
	s, err := r.model.NewSession(r.model.Layers(), false)
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Close()
	buffers, err := s.NewBuffers(r.n)
	if err != nil {
		r.t.Fatal(err)
	}
	var inputs []tensor.Tensor
	for _, x := range r.images {
		input := tensor.New(x.Shape...)
		tr.Draw(nil).Apply(input, x)
		inputs = append(inputs, input)
	}
	if err := s.Run(r.t.Context(), inputs, buffers); err != nil {
		r.t.Fatal(err)
	}
	out := map[string]tensor.Tensor{}
	for i, l := range r.model.Layers() {
		z := buffers.Layer(i)
		out[l.Name] = tensor.Tensor{Shape: z.Shape, Data: append([]float32(nil), z.Data...)}
	}
	return out
}
