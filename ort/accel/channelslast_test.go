package accel_test

import (
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/ort/accel"
	"github.com/noether-ml/noether/ort/orttest"
	"github.com/noether-ml/noether/tensor"
)

// normal is a tensor of normal numbers of some scale.
func normal(base uint64, scale float64, shape ...int) tensor.Tensor {
	t, r := tensor.New(shape...), seed.Rand(base, "channels last")
	for i := range t.Data {
		t.Data[i] = float32(r.NormFloat64() * scale)
	}
	return t
}

// run gives the outputs of a model of one input.
func run(t *testing.T, m *onnx.Model, x tensor.Tensor) []tensor.Tensor {
	t.Helper()
	rt := orttest.Load(t)
	s, err := rt.NewSession(m, ort.Options{Threads: 2, NoAcceleration: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := ort.Wrap(rt, x.Data, x.Shape...)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out := make([]*ort.Value, len(s.Outputs()))
	if err := s.Run(t.Context(), []*ort.Value{in}, out); err != nil {
		t.Fatal(err)
	}
	var list []tensor.Tensor
	for _, v := range out {
		list = append(list, v.Tensor().Clone())
		v.Close()
	}
	return list
}

func forward(t *testing.T, m *onnx.Model) *onnx.Model {
	t.Helper()
	laid, err := accel.Rewrite(m)
	if err != nil {
		t.Fatal(err)
	}
	return laid
}

func count(m *onnx.Model, op string) int {
	n := 0
	for _, node := range m.Nodes() {
		if node.GetOpType() == op {
			n++
		}
	}
	return n
}

func needed(t *testing.T) {
	t.Helper()
	if accel.Width() == 0 {
		t.Skip("the native operators are left out, or slow on this processor")
	}
}

// The output and every feature map of networks are those of the engine, and networks of other convolutions stay as they are.
func TestForwardOfNets(t *testing.T) {
	needed(t)
	for name, want := range map[string]int{
		"cifar_resnet20": 19, "tiny_densenet": 0, "mnasnet0_5": 0, "mobilenet_v3_small": 0, "shufflenet_v2_x0_5": 0, "tiny_convnext": 0, "tiny_mobilenet": 0, "tiny_swin": 0, "tiny_vit": 0,
	} {
		m, err := onnx.Read(testdata.Path(t, "nets", name, "model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		laid := forward(t, m)
		if want == 0 {
			if laid != m {
				t.Errorf("%s was rewritten", name)
			}
			continue
		}
		if got := count(laid, "ConvChannelsLast"); got != want || count(laid, "Relu")+count(laid, "Add") != 0 {
			t.Errorf("%s has %d native convolutions, %d ReLUs and %d sums, want %d, 0 and 0", name, got, count(laid, "Relu"), count(laid, "Add"), want)
		}
		var maps []string
		for _, l := range m.Layers() {
			maps = append(maps, l.Name)
		}
		for _, outputs := range [][]string{maps, maps[len(maps)-1:]} {
			if m, err = rewrite.WithOutputs(m, outputs); err != nil {
				t.Fatal(err)
			}
			laid := forward(t, m)
			if n := count(laid, "Relu") + count(laid, "Add") + count(laid, "ChannelsFirst"); n != 0 {
				t.Errorf("%s with %d outputs has %d nodes for what its convolutions can write themselves", name, len(outputs), n)
			}
			x := normal(1, 1, 5, 3, 32, 32)
			got, want := run(t, laid, x), run(t, m, x)
			for i, name := range outputs {
				alike(t, name, got[i], want[i])
			}
		}
	}
}

func alike(t *testing.T, what string, got, want tensor.Tensor) {
	t.Helper()
	if !slices.Equal(got.Shape, want.Shape) {
		t.Fatalf("%s is %v, want %v", what, got.Shape, want.Shape)
	}
	var worst, largest float64
	for i, v := range want.Data {
		largest = max(largest, math.Abs(float64(v)))
		worst = max(worst, math.Abs(float64(got.Data[i]-v)))
	}
	if !(worst <= 1e-5*largest) {
		t.Errorf("%s is off by %.2g of its largest value", what, worst/largest)
	}
}

// network is a stem with strides, a convolution, what follows it, four more, and a shortcut.
func network(t *testing.T, size int, follow func(b *onnx.Builder, x onnx.Value) onnx.Value) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(16)
	conv := func(x onnx.Value, in int, seed uint64, size int, stride int) onnx.Value {
		w := normal(seed, 1/math.Sqrt(float64(in*size*size)), 64, in, size, size)
		return b.Conv(x, b.Const("", w), b.Const("", normal(seed+10, 1, 64)), onnx.Attrs{"pads": []int{size / 2, size / 2, size / 2, size / 2}, "strides": []int{stride, stride}})
	}
	x := b.Relu(conv(b.Input("x", onnx.Float, -1, 3, size, size), 3, 1, 5, 2))
	y := follow(b, conv(x, 64, 2, 3, 1))
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

// Every tensor of convolutions, sums and ReLUs is written by a convolution, and a result that is read with its channels first alone in no other layout.
func TestForwardOfTaps(t *testing.T) {
	needed(t)
	m := network(t, 27, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		pooled := b.Op("MaxPool", onnx.Attrs{"kernel_shape": []int{3, 3}, "pads": []int{1, 1, 1, 1}}, b.Relu(x))
		return b.Relu(b.Add(x, pooled))
	})
	var names []string
	for _, l := range m.Layers() {
		names = append(names, l.Name)
	}
	whole, err := rewrite.WithOutputs(m, names)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*onnx.Model{m, whole} {
		laid, x := forward(t, m), normal(5, 1, 3, 3, 27, 27)
		alone := 0
		for _, n := range laid.Nodes() {
			if n.GetOpType() == "ConvChannelsLast" && n.Output[0] == "" {
				alone++
			}
		}
		if n := count(laid, "ConvChannelsLast"); n != 7 || alone == 0 {
			t.Errorf("of %d native convolutions, %d write their results with the channels first alone, want 7 and some", n, alone)
		}
		got, want := run(t, laid, x), run(t, m, x)
		for i, o := range laid.Outputs() {
			alike(t, o.Name, got[i], want[i])
		}
	}
}

// A sample comes to the same bits in batches of any size.
func TestForwardOfBatches(t *testing.T) {
	needed(t)
	m := forward(t, network(t, 27, relu))
	if count(m, "ConvChannelsLast") != 7 {
		t.Fatalf("there are %d native convolutions, want 7", count(m, "ConvChannelsLast"))
	}
	x := normal(5, 1, 256, 3, 27, 27)
	whole := run(t, m, x)[0]
	for _, n := range []int{1, 7, 128} {
		for from := 0; from < 256; from += max(n, 64) {
			to := min(from+n, 256)
			if got := run(t, m, x.Slice(from, to))[0]; !slices.Equal(got.Data, whole.Slice(from, to).Data) {
				t.Errorf("images %d to %d alone differ from those of a batch", from, to)
			}
		}
	}
}

// What is not a number, or infinite, reaches what is read, and only of its own sample.
func TestForwardOfAbsurd(t *testing.T) {
	needed(t)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		x := normal(5, 1, 3, 3, 27, 27)
		x.At(1).Data[700] = float32(v)
		y := run(t, forward(t, network(t, 27, relu)), x)[0]
		for s := range 3 {
			finite := !slices.ContainsFunc(y.At(s).Data, func(v float32) bool { return v-v != 0 })
			if finite != (s != 1) {
				t.Errorf("with %g in sample 1, whether sample %d is finite is %v", v, s, finite)
			}
		}
	}
}

// A convolution whose result is normalised is the engine's, which folds that into its weights; so are those of images of unknown size.
func TestForwardLeaves(t *testing.T) {
	needed(t)
	m := network(t, 27, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		ones := normal(1, 0, 64)
		for i := range ones.Data {
			ones.Data[i] = 1
		}
		one := b.Const("", ones)
		return b.Op("BatchNormalization", nil, x, one, one, one, one)
	})
	if got := count(forward(t, m), "Conv"); got != 1 {
		t.Errorf("%d convolutions are left to the engine, want the one that is normalised", got)
	}
	if m := network(t, -1, relu); forward(t, m) != m {
		t.Error("a network for images of any size was rewritten")
	}
}
