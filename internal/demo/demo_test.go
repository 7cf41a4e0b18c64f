package demo

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/measure/equivariance"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// TestNetworks tests three classifiers of shapes, on 300 shapes on which none was trained: plain
// was trained on upright shapes, augmented also on rotated, shifted and scaled ones, and symmetric,
// also trained on upright shapes, has feature maps that are exactly equivariant under quarter
// turns. The logits of symmetric are invariant to them. Its accuracy at 45 degrees may be anything.
func TestNetworks(t *testing.T) {
	rt := orttest.Load(t)
	study, err := Write(filepath.Join(t.TempDir(), "new", "folder"))
	if err != nil {
		t.Fatal(err)
	}
	images, labels := upright(t, 300)
	for _, c := range []struct {
		name             string
		lowest, highest  float64 // accuracy at 45 degrees
		exactEquivariant bool
	}{
		{"plain", 0, 0.8, false},
		{"augmented", 0.95, 1, false},
		{"symmetric", 0, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := onnx.Read(filepath.Join(filepath.Dir(study), c.name+".onnx"))
			if err != nil {
				t.Fatal(err)
			}
			layers := []string{"stage1/conv3/Relu", "stage4/conv3/Relu", "logits"}
			clean, turned := outputs(t, rt, m, layers, images), outputs(t, rt, m, layers, rotated(images, 90))
			if a := accuracy(clean[2], labels); a < 0.98 {
				t.Errorf("accuracy %.3f on upright shapes, want at least 0.98", a)
			}
			if a := accuracy(outputs(t, rt, m, []string{"logits"}, rotated(images, 45))[0], labels); a < c.lowest || a > c.highest {
				t.Errorf("accuracy %.3f at 45 degrees, want %g to %g", a, c.lowest, c.highest)
			}
			for i, name := range layers {
				want := clean[i]
				if len(want.Shape) == 4 { // feature maps
					if e := equivarianceError(t, clean[i], turned[i]); (e < 1e-5) != c.exactEquivariant {
						t.Errorf("the equivariance error of %s is %g under a quarter turn; exactly equivariant: %v", name, e, c.exactEquivariant)
					}
					want = rotated(want, 90)
				}
				if d := maxDifference(turned[i], want); (d < 1e-3) != c.exactEquivariant {
					t.Errorf("%s differs by %g from its rotation under a quarter turn; exactly equivariant: %v", name, d, c.exactEquivariant)
				}
			}
		})
	}
}

// equivarianceError returns the largest relative error, over samples, between the feature maps of
// the image turned by 90 degrees and the turned feature maps of the image.
func equivarianceError(t *testing.T, clean, turned tensor.Tensor) (largest float64) {
	t.Helper()
	// maps says how the values of a sample are arranged: channels, rows, columns.
	maps, why := tensor.Layer{Shape: clean.Shape[1:], Axes: "NCHW"}.Maps()
	if why != "" {
		t.Fatal(why)
	}
	turn := transform.Rotate{Angle: transform.Fixed(90)}.Draw(nil) // nil: nothing is drawn at random
	for i := range clean.Shape[0] {
		e, err := equivariance.Between(maps, transform.MotionOf(turn), equivariance.Settings{}, clean.At(i).Data, turned.At(i).Data)
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, e.RelativeError)
	}
	return largest
}

// upright returns n shapes with the options of demo.yaml, which rotate them by at most 15 degrees,
// but another seed. images: n x 3 x 32 x 32.
func upright(t *testing.T, n int) (images tensor.Tensor, labels []int) {
	t.Helper()
	source, err := dataset.OpenShapes(dataset.ShapesOptions{N: n, Size: 32, Seed: 3, Rotation: []float64{-15, 15}})
	if err != nil {
		t.Fatal(err)
	}
	images = tensor.New(n, 3, 32, 32)
	for i := range n {
		sample, err := source.At(context.Background(), i, dataset.Frame{})
		if err != nil {
			t.Fatal(err)
		}
		copy(images.At(i).Data, sample.Input.Data)
		labels = append(labels, sample.Label)
	}
	return images, labels
}

// outputs runs a model on images and returns the tensors of the given names.
func outputs(t *testing.T, rt *ort.Runtime, m *onnx.Model, names []string, images tensor.Tensor) (out []tensor.Tensor) {
	t.Helper()
	m, err := rewrite.WithOutputs(m, names)
	if err != nil {
		t.Fatal(err)
	}
	session, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	x, err := ort.Wrap(rt, images.Data, images.Shape...)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	values := make([]*ort.Value, len(names))
	if err := session.Run(context.Background(), []*ort.Value{x}, values); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		out = append(out, v.Tensor().Clone())
		v.Close()
	}
	return out
}

// rotated rotates images or feature maps counter-clockwise.
func rotated(x tensor.Tensor, degrees float64) tensor.Tensor {
	op := transform.Rotate{Angle: transform.Fixed(degrees)}.Draw(nil)
	out := tensor.New(x.Shape...)
	for i := range x.Shape[0] {
		op.Apply(out.At(i), x.At(i))
	}
	return out
}

func accuracy(logits tensor.Tensor, labels []int) float64 {
	correct := 0.0
	for i, label := range labels {
		if z := logits.At(i).Data; slices.Index(z, slices.Max(z)) == label {
			correct++
		}
	}
	return correct / float64(len(labels))
}

func maxDifference(a, b tensor.Tensor) float64 {
	d := 0.0
	for i, v := range a.Data {
		d = max(d, math.Abs(float64(v-b.Data[i])))
	}
	return d
}
