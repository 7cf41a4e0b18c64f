package invert_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// flat returns a model of c x h x w images, to which it resizes images with an interpolation. Its
// layer "z" is the flattened image.
func flat(t *testing.T, opset int, interpolation string, c, h, w int) *model.Model {
	t.Helper()
	b := onnx.NewBuilder(opset)
	b.Output("z", b.Flatten(b.Input("x", onnx.Float, -1, c, h, w), 1))
	path := testmodel.Save(t, filepath.Join(t.TempDir(), "flat.onnx"), b)
	opened, err := modeltest.Open(t, path, model.Options{Layers: []string{"z"}, Preprocess: model.Preprocess{Frame: dataset.Frame{Interpolation: interpolation}}})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// TestModelInput checks that the graph of a search (gradient descent on images x', from start)
// resizes images like dataset.Frame, and that the loss decreases along its gradient. The loss is a
// weighted sum of distances |f(x') - f(x)| at layers f of two models. Images have the size of the
// first; for the second, of another size, other channels or another operator set, the graph
// converts them. invert.Represent returns f of images, which it resizes by dataset.Frame. The
// function search is in invert_test.go.
func TestModelInput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		opset         int    // of the second model
		interpolation string // of the second model
		a, b          [3]int // c, h and w of the two models
	}{
		{"larger", 13, "", [3]int{3, 5, 7}, [3]int{3, 8, 9}},
		{"smaller", 11, "", [3]int{3, 9, 8}, [3]int{3, 4, 5}},
		{"bicubic", 17, "bicubic", [3]int{1, 6, 5}, [3]int{1, 4, 8}},
		{"nearest", 16, "nearest", [3]int{1, 6, 5}, [3]int{1, 7, 3}},
		{"grey", 18, "", [3]int{3, 5, 7}, [3]int{1, 5, 7}},
		{"colour", 15, "", [3]int{1, 5, 7}, [3]int{3, 6, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, b := flat(t, 13, "", c.a[0], c.a[1], c.a[2]), flat(t, c.opset, c.interpolation, c.b[0], c.b[1], c.b[2])
			r := seed.Rand(3, c.name)
			draw := func() tensor.Tensor {
				x := tensor.New(4, c.a[0], c.a[1], c.a[2])
				for i := range x.Data {
					x.Data[i] = r.Float32()
				}
				return x
			}
			x, start := draw(), draw()
			distances := invert.Distances{{Model: a, Layer: a.Layers()[0], Weight: 0.1}, {Model: b, Layer: b.Layers()[0], Weight: 2}}
			loss := func(y tensor.Tensor, sample int) float64 {
				var sum float64
				for _, term := range distances {
					want, err := invert.Represent(t.Context(), term.Model, term.Layer, x)
					if err != nil {
						t.Fatal(err)
					}
					got, err := invert.Represent(t.Context(), term.Model, term.Layer, y)
					if err != nil {
						t.Fatal(err)
					}
					var square float64
					for i, v := range want.At(sample).Data {
						square += math.Pow(float64(v-got.At(sample).Data[i]), 2)
					}
					sum += term.Weight * math.Sqrt(square)
				}
				return sum
			}
			found := search(t, distances, invert.Options{Steps: 40, StepSize: 0.1}, invert.Problem{Images: x, Start: start})
			for i, got := range found.Loss {
				if want := loss(found.Images, i); math.Abs(got-want) > 1e-4*(1+want) {
					t.Errorf("loss of sample %d = %v, want %v as computed by the models", i, got, want)
				}
				if first := loss(start, i); got > 0.5*first {
					t.Errorf("loss of sample %d decreased from %v to %v, want at most half", i, first, got)
				}
			}
		})
	}
}
