package parity_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/x448/float16"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/parity"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// twoConvs are the weights of two convolutions with ReLUs, a mean over positions and a linear layer.
type twoConvs struct {
	w [2]tensor.Tensor
	v tensor.Tensor
}

func newTwoConvs() twoConvs {
	r := seed.Rand(7, "weights")
	random := func(shape ...int) tensor.Tensor {
		t := tensor.New(shape...)
		for i := range t.Data {
			t.Data[i] = float32(r.NormFloat64()) * 0.3
		}
		return t
	}
	return twoConvs{[2]tensor.Tensor{random(6, 3, 3, 3), random(6, 6, 3, 3)}, random(6, 5)}
}

var padded = onnx.Attrs{"pads": []int{1, 1, 1, 1}}

func (n twoConvs) head(b *onnx.Builder, z onnx.Value) {
	b.Output("logits", b.Gemm(b.Flatten(z, 1), b.Const("v", n.v), "", nil))
}

func (n twoConvs) float(t *testing.T) string {
	b := onnx.NewBuilder(17)
	z := b.Input("x", onnx.Float, -1, 3, 8, 8)
	for i, name := range []string{"relu1", "relu2"} {
		z = b.Relu(b.Conv(z, b.Const("w"+name, n.w[i]), "", padded))
		b.Output(name, z)
		z = onnx.Value(name)
	}
	b.Output("pool", b.Op("GlobalAveragePool", nil, z))
	n.head(b, "pool")
	return write(t, b)
}

// integers writes the network with operators on integers, whose results have the ranges [0, high].
func (n twoConvs) integers(t *testing.T, high [3]float64) string {
	b := onnx.NewBuilder(17)
	b.NeedDomain("com.microsoft", 1)
	scalar := func(name string, typ onnx.Type, raw ...byte) onnx.Value {
		return b.Initializer(&pb.TensorProto{Name: &name, DataType: new(int32(typ)), RawData: raw})
	}
	float := func(name string, v float64) onnx.Value {
		bits := math.Float32bits(float32(v))
		return scalar(name, onnx.Float, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	zero, zeroW := scalar("zero", onnx.Uint8, 0), scalar("zero w", onnx.Int8, 0)
	scale := float("scale x", 1./255)
	z := b.Op("QuantizeLinear", nil, b.Input("x", onnx.Float, -1, 3, 8, 8), scale, zero)
	for i, name := range []string{"relu1", "relu2"} {
		w := n.w[i]
		largest := 0.
		for _, v := range w.Data {
			largest = max(largest, math.Abs(float64(v)))
		}
		raw := make([]byte, len(w.Data))
		for k, v := range w.Data {
			raw[k] = byte(int8(math.RoundToEven(float64(v) / largest * 127)))
		}
		title := "w" + name
		var dims []int64
		for _, d := range w.Shape {
			dims = append(dims, int64(d))
		}
		weights := b.Initializer(&pb.TensorProto{Name: &title, DataType: new(int32(onnx.Int8)), Dims: dims, RawData: raw})
		to := float("scale "+name, high[i]/255)
		z = b.Op("QLinearConv", padded, z, scale, zero, weights, float("scale "+title, largest/127), zeroW, to, zero)
		b.Output(name+"_quantized", z)
		z, scale = onnx.Value(name+"_quantized"), to
	}
	to := float("scale pool", high[2]/255)
	z = b.Node("com.microsoft", "QLinearGlobalAveragePool", 1, nil, z, scale, zero, to, zero)[0]
	b.Output("pool", b.Op("DequantizeLinear", nil, z, to, zero))
	n.head(b, "pool")
	return write(t, b)
}

// write writes a network with the output logits.
func write(t *testing.T, b *onnx.Builder) string {
	t.Helper()
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
	path := filepath.Join(t.TempDir(), "net.onnx")
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestIntegerOperators compares a network with one of operators on integers, whose tensors are
// dequantised. If one of them has a range that is too small, the layer saturates, its own error is
// the largest, and its nodes are to be left in float.
func TestIntegerOperators(t *testing.T) {
	t.Parallel()
	n := newTwoConvs()
	src := images(t)
	for name, c := range map[string]struct {
		high  [3]float64
		worst string
	}{"wide": {[3]float64{5, 9, 3}, ""}, "narrow": {[3]float64{5, 1, 3}, "relu2"}} {
		path := n.integers(t, c.high)
		if form := parity.Form(open(t, path)); form != "quantised, as QOperator" {
			t.Errorf("the form is %q", form)
		}
		r, _ := compare(t, n.float(t), path, src)
		if r.NoLocal != "" {
			t.Errorf("%s: no local errors: %s", name, r.NoLocal)
		}
		found := map[string]*parity.Layer{}
		for i := range r.Layers {
			found[r.Layers[i].Original.Name] = &r.Layers[i]
		}
		for _, layer := range []string{"relu1", "relu2", "pool", "logits"} {
			l := found[layer]
			if l == nil {
				t.Fatalf("%s: layer %s is not compared", name, layer)
			}
			d, own := parity.Value(l.Accumulated, parity.RelativeL2), r.Own(l)
			if layer != "logits" && (!l.Quantised || math.IsNaN(parity.Value(l.Accumulated, parity.Saturated))) || l.By != "name" || l.Doubt != "" {
				t.Errorf("%s: layer %s is matched by %s (%s), quantised: %v", name, layer, l.By, l.Doubt, l.Quantised)
			}
			if c.worst == "" && !(d > 1e-4 && d < 0.03 && own < 0.03) {
				t.Errorf("%s: layer %s differs by %g and adds %g, want the rounding of 8 bits", name, layer, d, own)
			}
		}
		if c.worst == "" {
			continue
		}
		v := r.Judge(0.01, true)
		if s := parity.Value(found["relu2"].Accumulated, parity.Saturated); !(s > 0.05) || v.Worst[0].Original.Name != c.worst {
			t.Errorf("%s: %g of relu2 saturate, and the largest error is that of %s", name, s, v.Worst[0].Original.Name)
		}
		if own := r.Own(found["logits"]); own > 1e-3 {
			t.Errorf("%s: the float layer adds %g", name, own)
		}
	}
}

// TestHalf compares a network with its float16 file, whose activations are rounded: values that
// float16 has, and infinity beyond its range.
func TestHalf(t *testing.T) {
	t.Parallel()
	n := newTwoConvs()
	src := images(t)
	for _, factor := range []float32{1, 5e4} {
		for i := range n.w[0].Data {
			n.w[0].Data[i] *= factor
		}
		float := n.float(t)
		m, err := onnx.Read(float)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := halved(t, m).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		half := filepath.Join(t.TempDir(), "half.onnx")
		if err := os.WriteFile(half, raw, 0o666); err != nil {
			t.Fatal(err)
		}
		r := compareRounded(t, float, half, src)
		i := slices.IndexFunc(r.Layers, func(l parity.Layer) bool { return l.Original.Name == "relu2" })
		if i < 0 {
			t.Fatal("relu2 is not compared")
		}
		d := parity.Value(r.Layers[i].Accumulated, parity.RelativeL2)
		if factor == 1 && !(d > 1e-4 && d < 2e-3) {
			t.Errorf("relu2 differs by %g, want the rounding of float16", d)
		}
		if factor > 1 && len(r.Layers[i].Warnings) == 0 {
			t.Errorf("relu2 differs by %g, want infinity", d)
		}
	}
}

// halved returns a model with float16 in place of float32.
func halved(t *testing.T, m *onnx.Model) *onnx.Model {
	t.Helper()
	p := proto.CloneOf(m.Proto())
	for _, w := range p.Graph.Initializer {
		v, err := m.Tensor(w.GetName())
		if err != nil {
			continue // no floats
		}
		w.DataType, w.FloatData, w.RawData = new(int32(onnx.Float16)), nil, nil
		for _, x := range v.Data {
			w.RawData = binary.LittleEndian.AppendUint16(w.RawData, float16.Fromfloat32(x).Bits())
		}
	}
	for _, v := range slices.Concat(p.Graph.Input, p.Graph.Output, p.Graph.ValueInfo) {
		v.GetType().GetTensorType().ElemType = new(int32(onnx.Float16))
	}
	return m.WithProto(p)
}

// compareRounded compares a float32 file with a float16 one, whose activations are rounded.
func compareRounded(t *testing.T, float, half string, src dataset.Source) *parity.Result {
	t.Helper()
	a := open(t, float)
	b, err := modeltest.Open(t, half, model.Options{Layers: []string{"all"}}, ort.NetworkOptions{RoundHalf: true})
	if err != nil {
		t.Fatal(err)
	}
	pairs, unmatched := parity.Match(a, b)
	for _, l := range unmatched {
		t.Errorf("layer %s has no counterpart", l.Name)
	}
	r, err := parity.Compare(t.Context(), a, b, pairs, parity.Samples{Source: src, Order: dataset.Indices(src.Len()), Layout: measure.NewLayout(src.Len())}, parity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
