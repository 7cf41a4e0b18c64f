package model_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// TestNormalisation checks the mean and standard deviation found in the first nodes of networks
// that normalise their images themselves. Range has the values of black and white before that. With
// such nodes, a mean in the preprocessing, which precedes the network, is a conflict.
func TestNormalisation(t *testing.T) {
	t.Parallel()
	perChannel := func(b *onnx.Builder, name string, v ...float32) onnx.Value {
		x, err := tensor.From(v, 3, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		return b.Const(name, x)
	}
	vector := func(b *onnx.Builder, name string, v ...float32) onnx.Value {
		x, err := tensor.From(v, 3)
		if err != nil {
			t.Fatal(err)
		}
		return b.Const(name, x)
	}
	want := &model.Normalisation{Mean: []float32{0.5, 0.4, 0.3}, Std: []float32{0.25, 0.2, 0.5}, Range: [2]float32{0, 1}}
	for _, c := range []struct {
		name  string
		first func(b *onnx.Builder, x onnx.Value) onnx.Value
		want  *model.Normalisation
	}{
		{"Sub and Div", func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Div(b.Sub(x, perChannel(b, "mean", 0.5, 0.4, 0.3)), perChannel(b, "std", 0.25, 0.2, 0.5))
		}, want},
		{"a constant with axes added by Unsqueeze", func(b *onnx.Builder, x onnx.Value) onnx.Value {
			mean := b.Unsqueeze(vector(b, "mean", 0.5, 0.4, 0.3), 1, 2)
			return b.Div(b.Sub(x, mean), perChannel(b, "std", 0.25, 0.2, 0.5))
		}, want},
		{"Mul and Add", func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Add(b.Mul(x, perChannel(b, "scale", 4, 5, 2)), perChannel(b, "shift", -2, -2, -0.6))
		}, want},
		{"BatchNormalization", func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("BatchNormalization", onnx.Attrs{"epsilon": float32(0)}, x, vector(b, "g", 1, 1, 2), vector(b, "b", 0, 0, 0),
				vector(b, "m", 0.5, 0.4, 0.3), vector(b, "v", 0.0625, 0.04, 1))
		}, want},
		{"0 to 255 mapped to [-1, 1]", func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Sub(b.Div(x, b.Scalar(127.5)), b.Scalar(1))
		}, &model.Normalisation{Mean: []float32{127.5, 127.5, 127.5}, Std: []float32{127.5, 127.5, 127.5}, Range: [2]float32{0, 255}}},
		{"0 to 255 with a mean alone", func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Sub(x, perChannel(b, "mean", 104, 117, 123))
		}, &model.Normalisation{Mean: []float32{104, 117, 123}, Std: []float32{1, 1, 1}, Range: [2]float32{0, 255}}},
		{"a change of normalisation, as in torchvision's GoogLeNet", func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Add(b.Mul(x, b.Scalar(0.458)), b.Scalar(-0.03))
		}, nil},
		{"no normalisation", func(b *onnx.Builder, x onnx.Value) onnx.Value { return x }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := save(t, func(b *onnx.Builder) {
				x := c.first(b, b.Input("x", onnx.Float, -1, 3, 8, 8))
				b.Output("y", b.Relu(b.Conv(x, b.Full(0.1, 4, 3, 1, 1), "", nil)))
			})
			m, err := modeltest.Open(t, path, model.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, m.Normalisation(), cmpopts.EquateApprox(1e-5, 1e-7)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			m, err = modeltest.Open(t, path, model.Options{Preprocess: model.Preprocess{Mean: []float32{0.5}}})
			if err != nil {
				t.Fatal(err)
			}
			if conflict := m.PreprocessConflict(); strings.Contains(conflict, "leave these out") != (c.want != nil) {
				t.Errorf("with a mean in the preprocessing: conflict %q", conflict)
			}
		})
	}
}

// TestQuantisedConflict checks that a preprocessing is compared with the range of values that the
// first node of a quantised model keeps.
func TestQuantisedConflict(t *testing.T) {
	t.Parallel()
	imagenet := model.Preprocess{Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}}
	for name, c := range map[string]struct {
		scale, zero float32
		typ         onnx.Type // of the zero point; 0: none
		preprocess  model.Preprocess
		conflict    bool
	}{
		"0 to 1":                          {1. / 255, 0, onnx.Uint8, model.Preprocess{}, false},
		"0 to 1, without a zero point":    {1. / 255, 0, 0, model.Preprocess{}, false},
		"0 to 1, normalised":              {1. / 255, 0, onnx.Uint8, imagenet, true},
		"0 to 1, of 8 bits with a sign":   {1. / 255, -128, onnx.Int8, imagenet, true},
		"normalised":                      {4.8 / 255, 113, onnx.Uint8, imagenet, false},
		"normalised, with a sign":         {4.8 / 255, -15, onnx.Int8, imagenet, false},
		"normalised, and images are not":  {4.8 / 255, 113, onnx.Uint8, model.Preprocess{}, true},
		"0 to 255":                        {1, 0, onnx.Uint8, model.Preprocess{Range: [2]float32{0, 255}}, false},
		"0 to 255, and images are 0 to 1": {1, 0, onnx.Uint8, model.Preprocess{}, true},
	} {
		b := onnx.NewBuilder(17)
		x := b.Input("x", onnx.Float, -1, 3, 16, 16)
		inputs := []onnx.Value{x, b.Scalar(c.scale)}
		if c.typ != 0 {
			inputs = append(inputs, b.Initializer(&pb.TensorProto{DataType: new(int32(c.typ)), RawData: []byte{byte(int(c.zero))}}))
		}
		inputs[0] = b.Op("QuantizeLinear", nil, inputs...)
		b.Output("y", b.Relu(b.Op("DequantizeLinear", nil, inputs...)))
		m, err := modeltest.Open(t, testmodel.Save(t, filepath.Join(t.TempDir(), "m.onnx"), b), model.Options{Preprocess: c.preprocess})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := m.PreprocessConflict(); strings.Contains(got, "quantises images") != c.conflict {
			t.Errorf("%s: %q", name, got)
		}
	}
}
