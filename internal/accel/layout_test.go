package accel_test

import (
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/accel"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// normal returns a tensor of normally distributed values with mean 0 and the given standard
// deviation. The key seeds them.
func normal(key uint64, deviation float64, shape ...int) tensor.Tensor {
	t, r := tensor.New(shape...), seed.Rand(key, "channels last")
	for i := range t.Data {
		t.Data[i] = float32(r.NormFloat64() * deviation)
	}
	return t
}

// run returns the outputs of a model for its inputs in order. The session does not rewrite the
// model (NoAcceleration).
func run(t *testing.T, m *onnx.Model, inputs ...tensor.Tensor) []tensor.Tensor {
	t.Helper()
	rt := orttest.Load(t)
	s, err := rt.NewSession(m, ort.Options{Threads: 2, NoAcceleration: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var in []*ort.Value
	for _, x := range inputs {
		v, err := ort.Wrap(rt, x.Data, x.Shape...)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		in = append(in, v)
	}
	out := make([]*ort.Value, len(s.Outputs()))
	if err := s.Run(t.Context(), in, out); err != nil {
		t.Fatal(err)
	}
	var list []tensor.Tensor
	for _, v := range out {
		list = append(list, v.Tensor().Clone())
		v.Close()
	}
	return list
}

// rewritten returns m with native operators, the operators of package accel: in NHWC layout
// (channels last) the convolution is ConvChannelsLast, and ChannelsFirst converts NHWC to NCHW.
func rewritten(t *testing.T, m *onnx.Model) *onnx.Model {
	t.Helper()
	r, err := accel.Rewrite(m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// count returns the number of nodes with an operator.
func count(m *onnx.Model, op string) int {
	n := 0
	for _, node := range m.Nodes() {
		if node.GetOpType() == op {
			n++
		}
	}
	return n
}

func skipWithoutOperators(t *testing.T) {
	t.Helper()
	if accel.Width() == 0 {
		t.Skip("native operators are not in this program, or need AVX2")
	}
}

// TestRewriteNetworks checks that the output and every feature map of networks agree with those of
// the standard operators. want is the number of native convolutions, or 0 for a network that is
// left as it is, since native operators would not make it faster.
func TestRewriteNetworks(t *testing.T) {
	skipWithoutOperators(t)
	for name, want := range map[string]int{
		"cifar_resnet20": 19, "tiny_densenet": 0, "mnasnet0_5": 0, "mobilenet_v3_small": 0, "shufflenet_v2_x0_5": 0, "tiny_convnext": 0, "tiny_mobilenet": 0, "tiny_swin": 0, "tiny_vit": 0,
	} {
		m, err := onnx.Read(testdata.Path(t, "nets", name, "model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		r := rewritten(t, m)
		if want == 0 {
			if r != m {
				t.Errorf("%s was rewritten", name)
			}
			continue
		}
		if got := count(r, "ConvChannelsLast"); got != want || count(r, "Relu")+count(r, "Add") != 0 {
			t.Errorf("%s has %d native convolutions, %d ReLUs and %d sums, want %d, 0 and 0", name, got, count(r, "Relu"), count(r, "Add"), want)
		}
		var layers []string
		for _, l := range m.Layers() {
			layers = append(layers, l.Name)
		}
		for _, outputs := range [][]string{layers, layers[len(layers)-1:]} {
			if m, err = rewrite.WithOutputs(m, outputs); err != nil {
				t.Fatal(err)
			}
			r := rewritten(t, m)
			if n := count(r, "Relu") + count(r, "Add") + count(r, "ChannelsFirst"); n != 0 {
				t.Errorf("%s with %d outputs has %d ReLUs, sums and ChannelsFirst, want 0: the convolutions include them", name, len(outputs), n)
			}
			x := normal(1, 1, 5, 3, 32, 32)
			got, want := run(t, r, x), run(t, m, x)
			for i, name := range outputs {
				assertClose(t, name, got[i], want[i])
			}
		}
	}
}

// assertClose checks that no value differs by more than 1e-5 of the largest value of want.
func assertClose(t *testing.T, name string, got, want tensor.Tensor) {
	t.Helper()
	if !slices.Equal(got.Shape, want.Shape) {
		t.Fatalf("%s has shape %v, want %v", name, got.Shape, want.Shape)
	}
	var worst, largest float64
	for i, v := range want.Data {
		largest = max(largest, math.Abs(float64(v)))
		worst = max(worst, math.Abs(float64(got.Data[i]-v)))
	}
	if !(worst <= 1e-5*largest) {
		t.Errorf("%s differs by %.2g of its largest value, want at most 1e-5", name, worst/largest)
	}
}

// network returns a network of seven convolutions for images of size x size pixels: a strided one
// with a ReLU, a second one after which addNodes adds nodes, four more with ReLUs before them, and
// one in a shortcut from the first ReLU to the output.
func network(t *testing.T, size int, addNodes func(b *onnx.Builder, x onnx.Value) onnx.Value) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(16)
	conv := func(x onnx.Value, in int, seed uint64, kernel int, stride int) onnx.Value {
		w := normal(seed, 1/math.Sqrt(float64(in*kernel*kernel)), 64, in, kernel, kernel)
		return b.Conv(x, b.Const("", w), b.Const("", normal(seed+10, 1, 64)), onnx.Attrs{"pads": []int{kernel / 2, kernel / 2, kernel / 2, kernel / 2}, "strides": []int{stride, stride}})
	}
	x := b.Relu(conv(b.Input("x", onnx.Float, -1, 3, size, size), 3, 1, 5, 2))
	y := addNodes(b, conv(x, 64, 2, 3, 1))
	for seed := range uint64(4) {
		y = conv(b.Relu(y), 64, 5+seed, 3, 1)
	}
	b.Output("y", b.Add(y, conv(x, 64, 4, 1, 1)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func relu(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Relu(x) }

// TestRewriteAllOutputs checks a network with its one output, and with all tensors as outputs. In
// both, native convolutions include the sums and ReLUs. A convolution whose result is read in NCHW
// only leaves out its first output, the result in NHWC.
func TestRewriteAllOutputs(t *testing.T) {
	skipWithoutOperators(t)
	m := network(t, 27, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		pooled := b.Op("MaxPool", onnx.Attrs{"kernel_shape": []int{3, 3}, "pads": []int{1, 1, 1, 1}}, b.Relu(x))
		return b.Relu(b.Add(x, pooled))
	})
	var names []string
	for _, l := range m.Layers() {
		names = append(names, l.Name)
	}
	all, err := rewrite.WithOutputs(m, names)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*onnx.Model{m, all} {
		r, x := rewritten(t, m), normal(5, 1, 3, 3, 27, 27)
		onlyNCHW := 0
		for _, n := range r.Nodes() {
			if n.GetOpType() == "ConvChannelsLast" && n.Output[0] == "" {
				onlyNCHW++
			}
		}
		if n := count(r, "ConvChannelsLast"); n != 7 || onlyNCHW == 0 {
			t.Errorf("%d native convolutions, of which %d write only NCHW, want 7 and at least 1", n, onlyNCHW)
		}
		got, want := run(t, r, x), run(t, m, x)
		for i, o := range r.Outputs() {
			assertClose(t, o.Name, got[i], want[i])
		}
	}
}

// TestRewriteBatchSize checks that the result of a sample is the same to the bit in batches of any
// size.
func TestRewriteBatchSize(t *testing.T) {
	skipWithoutOperators(t)
	m := rewritten(t, network(t, 27, relu))
	if count(m, "ConvChannelsLast") != 7 {
		t.Fatalf("there are %d native convolutions, want 7", count(m, "ConvChannelsLast"))
	}
	x := normal(5, 1, 256, 3, 27, 27)
	batch := run(t, m, x)[0]
	for _, n := range []int{1, 7, 128} {
		for from := 0; from < 256; from += max(n, 64) { // of small batches only some
			to := min(from+n, 256)
			if got := run(t, m, x.Slice(from, to))[0]; !slices.Equal(got.Data, batch.Slice(from, to).Data) {
				t.Errorf("samples %d to %d differ from the same in a larger batch", from, to)
			}
		}
	}
}

// TestRewriteNonFinite checks that NaN and infinity in a sample reach the output of this sample
// only.
func TestRewriteNonFinite(t *testing.T) {
	skipWithoutOperators(t)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		x := normal(5, 1, 3, 3, 27, 27)
		x.At(1).Data[700] = float32(v)
		y := run(t, rewritten(t, network(t, 27, relu)), x)[0]
		for s := range 3 {
			finite := !slices.ContainsFunc(y.At(s).Data, func(v float32) bool { return v-v != 0 })
			if finite != (s != 1) {
				t.Errorf("%g in sample 1: the output of sample %d is finite: %v", v, s, finite)
			}
		}
	}
}

// TestRewriteLeavesConvolutions checks that a convolution before a BatchNormalization stays a
// standard operator, since ONNX Runtime folds the two into one. So do all convolutions of a network
// for images of unknown size.
func TestRewriteLeavesConvolutions(t *testing.T) {
	skipWithoutOperators(t)
	m := network(t, 27, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		ones := normal(1, 0, 64)
		for i := range ones.Data {
			ones.Data[i] = 1
		}
		one := b.Const("", ones)
		return b.Op("BatchNormalization", nil, x, one, one, one, one)
	})
	if got := count(rewritten(t, m), "Conv"); got != 1 {
		t.Errorf("%d standard convolutions, want 1, the one before BatchNormalization", got)
	}
	if m := network(t, -1, relu); rewritten(t, m) != m {
		t.Error("a network for images of any size was rewritten")
	}
}

// TestRewriteConditions checks networks in which what is positive in a layer is a condition, as in
// a LeakyReLU that dynamo's exporter has decomposed, and perhaps a mask beside that. Booleans have
// no NHWC.
func TestRewriteConditions(t *testing.T) {
	skipWithoutOperators(t)
	x := normal(6, 1, 2, 3, 27, 27)
	for name, nodes := range map[string]func(b *onnx.Builder, x, positive onnx.Value) onnx.Value{
		"condition": func(b *onnx.Builder, x, positive onnx.Value) onnx.Value {
			return b.Where(positive, x, b.Mul(x, b.Scalar(0.1)))
		},
		"condition and mask": func(b *onnx.Builder, x, positive onnx.Value) onnx.Value {
			return b.Add(b.Mul(x, b.Cast(positive, onnx.Float)), b.Where(positive, x, b.Mul(x, b.Scalar(0.1))))
		},
		"mask": func(b *onnx.Builder, x, positive onnx.Value) onnx.Value {
			return b.Mul(x, b.Cast(positive, onnx.Float))
		},
		"mask of a mask": func(b *onnx.Builder, x, positive onnx.Value) onnx.Value {
			return b.Mul(b.Relu(x), b.Cast(b.Op("Not", nil, positive), onnx.Float))
		},
		"condition as whole": func(b *onnx.Builder, x, positive onnx.Value) onnx.Value {
			return b.Add(b.Mul(x, b.Cast(positive, onnx.Float)), b.Reshape(b.Cast(b.Op("Not", nil, positive), onnx.Float), -1, 64, 14, 14))
		},
	} {
		m := network(t, 27, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return nodes(b, x, b.Op("Greater", nil, x, b.Scalar(0)))
		})
		r := rewritten(t, m)
		if count(r, "ConvChannelsLast") == 0 {
			t.Errorf("%s: no native convolution", name)
		}
		assertClose(t, name, run(t, r, x)[0], run(t, m, x)[0])
	}
}
