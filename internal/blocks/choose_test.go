package blocks_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noether-ml/noether/internal/blocks"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/tensor"
)

// A net builds a network layer by layer. Its methods take and return feature maps of b x c x h x w
// (batch, channels, height, width) or, in encoder, tokens of b x t x c.
type net struct {
	*onnx.Builder
	weights int // number of weights so far, for their names
}

func (n *net) weight(shape ...int) onnx.Value {
	n.weights++
	return n.Const(fmt.Sprint("w", n.weights), tensor.New(shape...))
}

// conv adds a convolution whose padding keeps the size, but for the stride.
func (n *net) conv(x onnx.Value, in, out, kernel, stride int) onnx.Value {
	return n.Conv(x, n.weight(out, in, kernel, kernel), n.weight(out), onnx.Attrs{"kernel_shape": []int{kernel, kernel},
		"strides": []int{stride, stride}, "pads": []int{kernel / 2, kernel / 2, kernel / 2, kernel / 2}})
}

func (n *net) pool(x onnx.Value) onnx.Value {
	return n.Op("MaxPool", onnx.Attrs{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}}, x)
}

// classify adds global average pooling of feature maps and a linear classifier of ten classes.
func (n *net) classify(x onnx.Value, channels int) {
	x = n.Scope("head").Flatten(n.Op("GlobalAveragePool", nil, x), 1)
	n.Output("scores", n.Gemm(x, n.weight(channels, 10), n.weight(10), nil))
}

// choose builds a network and returns the layers that Choose finds, as "name: role".
func choose(t *testing.T, build func(n *net, x onnx.Value), shape ...int) []string {
	t.Helper()
	n := &net{Builder: onnx.NewBuilder(onnx.DefaultOpset)}
	build(n, n.Input("x", onnx.Float, shape...))
	m, err := n.Model()
	if err != nil {
		t.Fatal(err)
	}
	axes, err := infer.Axes(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	shapes := infer.Analyze(m)
	layers := m.Layers()
	for i := range layers {
		l := &layers[i]
		if l.Axes, l.Shape = axes[l.Name], shapes.Shape(l.Name); len(l.Shape) > 0 {
			l.Shape = l.Shape[1:]
		}
	}
	var found []string
	for _, l := range blocks.Choose(m, "x", "scores", layers) {
		found = append(found, l.Name+": "+l.Role)
	}
	return found
}

// residual adds a block of a ResNet: an activation follows the sum with the shortcut.
func residual(n *net, scope string, x onnx.Value, in, out, stride int) onnx.Value {
	b := n.Scope(scope)
	shortcut := x
	if in != out {
		shortcut = n.conv(x, in, out, 1, stride)
	}
	y := n.conv(b.Relu(n.conv(x, in, out, 3, stride)), out, out, 3, 1)
	return b.Op("LeakyRelu", nil, b.Add(y, shortcut))
}

// inverted adds an inverted residual block as in MobileNetV3, with squeeze-and-excitation. It has
// no shortcut where it changes the number of channels.
func inverted(n *net, scope string, x onnx.Value, in, out, stride int) onnx.Value {
	b := n.Scope(scope)
	y := b.Relu(n.conv(x, in, 2*in, 3, stride))
	gate := b.Sigmoid(n.conv(n.Op("GlobalAveragePool", nil, y), 2*in, 2*in, 1, 1))
	y = b.Identity(n.conv(b.Mul(y, gate), 2*in, out, 1, 1))
	if in != out {
		return y
	}
	return b.Add(x, y)
}

// fire adds a fire module of SqueezeNet.
func fire(n *net, scope string, x onnx.Value, in, out int) onnx.Value {
	b := n.Scope(scope)
	x = b.Relu(n.conv(x, in, 2, 1, 1))
	return b.Concat(1, b.Relu(n.conv(x, 2, out/2, 1, 1)), b.Relu(n.conv(x, 2, out/2, 3, 1)))
}

// encoder adds an encoder block of a transformer. Its tokens have c values.
func encoder(n *net, scope string, x onnx.Value, c int) onnx.Value {
	b := n.Scope(scope)
	normal := b.Op("LayerNormalization", nil, x, n.weight(c))
	q, k := b.MatMul(normal, n.weight(c, c)), b.MatMul(normal, n.weight(c, c))
	x = b.Scope("attention").Add(x, b.MatMul(b.Softmax(b.MatMul(q, b.Transpose(k, 0, 2, 1)), -1), b.MatMul(normal, n.weight(c, c))))
	hidden := b.MatMul(b.Op("LayerNormalization", nil, x, n.weight(c)), n.weight(c, 2*c))
	return b.Scope("mlp").Add(x, b.MatMul(b.Mul(hidden, b.Sigmoid(hidden)), n.weight(2*c, c)))
}

// TestChoose checks which layers Choose finds along the depth of networks: the stem (what precedes
// the first block), ends of blocks, and the input of the classifier. A stage is a run of blocks
// whose feature maps have the same size.
func TestChoose(t *testing.T) {
	t.Parallel()
	image := []int{-1, 3, 32, 32}
	for _, c := range []struct {
		name  string
		shape []int
		build func(n *net, x onnx.Value)
		want  []string
	}{
		{"ResNet", image, func(n *net, x onnx.Value) {
			x = n.Scope("stem").Relu(n.conv(x, 3, 4, 3, 1))
			for i := range 6 {
				x = residual(n, fmt.Sprint("a", i), x, 4, 4, 1)
			}
			x = residual(n, "b0", x, 4, 8, 2)
			for i := range 5 {
				x = residual(n, fmt.Sprint("b", i+1), x, 8, 8, 1)
			}
			n.classify(x, 8)
		}, []string{
			"stem/Relu: stem",
			"a1/LeakyRelu: stage 1, block 2 of 6", "a3/LeakyRelu: stage 1, block 4 of 6", "a5/LeakyRelu: stage 1, block 6 of 6",
			"b1/LeakyRelu: stage 2, block 2 of 6", "b3/LeakyRelu: stage 2, block 4 of 6", "b5/LeakyRelu: stage 2, block 6 of 6",
			"head/Flatten: read by the classifier",
		}},
		{"MobileNet", image, func(n *net, x onnx.Value) {
			x = n.Scope("stem").Relu(n.conv(x, 3, 4, 3, 2))
			for i, out := range []int{4, 4, 4, 6, 6, 6, 8, 8, 8} {
				in, stride := []int{4, 4, 4, 4, 6, 6, 6, 8, 8}[i], 1
				if in != out {
					stride = 2
				}
				x = inverted(n, fmt.Sprint("b", i), x, in, out, stride)
			}
			n.classify(x, 8)
		}, []string{
			"stem/Relu: stem",
			"b0/Add: stage 1, block 1 of 3", "b1/Add: stage 1, block 2 of 3", "b2/Add: stage 1, block 3 of 3",
			"b3/Identity: stage 2, block 1 of 3", "b4/Add: stage 2, block 2 of 3", "b5/Add: stage 2, block 3 of 3",
			"b6/Identity: stage 3, block 1 of 3", "b7/Add: stage 3, block 2 of 3", "b8/Add: stage 3, block 3 of 3",
			"head/Flatten: read by the classifier",
		}},
		{"SqueezeNet", image, func(n *net, x onnx.Value) {
			x = n.pool(n.Scope("stem").Relu(n.conv(x, 3, 4, 3, 1)))
			for i := range 8 {
				if x = fire(n, fmt.Sprint("f", i), x, 4, 4); i == 3 {
					x = n.pool(x)
				}
			}
			x = n.Relu(n.conv(x, 4, 10, 1, 1)) // the classifier
			n.Output("scores", n.Flatten(n.Op("GlobalAveragePool", nil, x), 1))
		}, []string{
			"stem/Relu: stem",
			"f0/Concat: stage 1, block 1 of 4", "f1/Concat: stage 1, block 2 of 4", "f2/Concat: stage 1, block 3 of 4", "f3/Concat: stage 1, block 4 of 4",
			"f4/Concat: stage 2, block 1 of 4", "f5/Concat: stage 2, block 2 of 4", "f6/Concat: stage 2, block 3 of 4", "f7/Concat: stage 2, block 4 of 4, read by the classifier",
		}},
		{"DenseNet", image, func(n *net, x onnx.Value) {
			x = n.conv(x, 3, 4, 3, 1)
			for i := range 3 {
				parts := []onnx.Value{x}
				for j := range 4 {
					b := n.Scope(fmt.Sprintf("d%d_%d", i, j))
					if j > 0 {
						x = b.Concat(1, parts...)
					}
					parts = append(parts, n.conv(b.Relu(x), 4+2*j, 2, 3, 1))
				}
				x = n.Scope(fmt.Sprint("end", i)).Concat(1, parts...)
				if i < 2 {
					x = n.pool(n.conv(x, 12, 4, 1, 1))
				}
			}
			n.classify(x, 12)
		}, []string{
			"d0_2/Concat: stage 1, block 2 of 4", "end0/Concat: stage 1, block 4 of 4",
			"d1_2/Concat: stage 2, block 2 of 4", "end1/Concat: stage 2, block 4 of 4",
			"d2_2/Concat: stage 3, block 2 of 4", "end2/Concat: stage 3, block 4 of 4",
			"head/Flatten: read by the classifier",
		}},
		{"VGG", image, func(n *net, x onnx.Value) {
			in := 3
			for i := range 8 {
				x = n.Scope(fmt.Sprint("c", i)).Relu(n.conv(x, in, 4, 3, 1))
				if in = 4; i%2 == 1 {
					x = n.pool(x)
				}
			}
			x = n.Scope("hidden").Relu(n.Gemm(n.Flatten(x, 1), n.weight(16, 12), n.weight(12), nil))
			n.Output("scores", n.Gemm(x, n.weight(12, 10), n.weight(10), nil))
		}, []string{
			"c0/Relu: stage 1, activation 1 of 2", "c1/Relu: stage 1, activation 2 of 2, before pooling",
			"c2/Relu: stage 2, activation 1 of 2", "c3/Relu: stage 2, activation 2 of 2, before pooling",
			"c4/Relu: stage 3, activation 1 of 2", "c5/Relu: stage 3, activation 2 of 2, before pooling",
			"c6/Relu: stage 4, activation 1 of 2", "c7/Relu: stage 4, activation 2 of 2, before pooling",
			"hidden/Relu: activation without positions, read by the classifier",
		}},
		{"transformer", image, func(n *net, x onnx.Value) {
			x = n.Conv(x, n.weight(6, 3, 8, 8), n.weight(6), onnx.Attrs{"kernel_shape": []int{8, 8}, "strides": []int{8, 8}})
			x = n.Scope("stem").Transpose(n.Reshape(x, 0, 6, 16), 0, 2, 1)
			for i := range 12 {
				x = encoder(n, fmt.Sprint("e", i), x, 6)
			}
			x = n.Scope("head").ReduceMean(x, false, 1)
			n.Output("scores", n.Gemm(x, n.weight(6, 10), n.weight(10), nil))
		}, []string{
			"stem/Transpose: stem",
			"e1/mlp/Add: block 2 of 12", "e3/mlp/Add: block 4 of 12", "e5/mlp/Add: block 6 of 12",
			"e7/mlp/Add: block 8 of 12", "e9/mlp/Add: block 10 of 12", "e11/mlp/Add: block 12 of 12",
			"head/ReduceMean: read by the classifier",
		}},
		{"transformer of two blocks", []int{-1, 16, 6}, func(n *net, x onnx.Value) {
			x = n.Scope("stem").MatMul(x, n.weight(6, 6))
			x = encoder(n, "e1", encoder(n, "e0", x, 6), 6)
			x = n.Scope("head").ReduceMean(x, false, 1)
			n.Output("scores", n.Gemm(x, n.weight(6, 10), n.weight(10), nil))
		}, []string{
			"stem/MatMul: stem",
			"e0/attention/Add: inside of block 1 of 2", "e0/mlp/Add: block 1 of 2",
			"e1/attention/Add: inside of block 2 of 2", "e1/mlp/Add: block 2 of 2",
			"head/ReduceMean: read by the classifier",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, choose(t, c.build, c.shape...)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestChooseOfManyStages checks that Choose returns at most twelve layers of a network with 15
// stages: each block has feature maps of another size, which makes it a stage of its own.
func TestChooseOfManyStages(t *testing.T) {
	t.Parallel()
	got := choose(t, func(n *net, x onnx.Value) {
		x = n.Scope("stem").Relu(n.conv(x, 3, 4, 3, 1))
		for i := range 15 { // each block reads one row less than the block before
			x = residual(n, fmt.Sprint("b", i), n.Slice(x, 2, 0, 31-i, 1), 4, 4, 1)
		}
		n.classify(x, 4)
	}, -1, 3, 32, 32)
	want := []string{"Slice: stem"} // the input of the first block
	for _, stage := range []int{1, 3, 4, 6, 7, 9, 10, 12, 13, 15} {
		want = append(want, fmt.Sprintf("b%d/LeakyRelu: stage %d, block 1 of 1", stage-1, stage))
	}
	want = append(want, "head/Flatten: read by the classifier")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestInBranches checks that of a residual network only the layer inside the block is in a branch,
// since the shortcut passes by it.
func TestInBranches(t *testing.T) {
	t.Parallel()
	n := &net{Builder: onnx.NewBuilder(onnx.DefaultOpset)}
	x := n.Scope("stem").Relu(n.conv(n.Input("x", onnx.Float, -1, 3, 8, 8), 3, 4, 3, 1))
	inner := n.Scope("block").Relu(n.conv(x, 4, 4, 3, 1))
	sum := n.Scope("block").Add(n.conv(inner, 4, 4, 3, 1), x)
	n.classify(n.Scope("block").Relu(sum), 4)
	m, err := n.Model()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, l := range m.Layers() {
		if l.Op == "Relu" || l.Op == "Add" {
			got[l.Name] = blocks.InBranches(m, "x", "scores", m.Layers())[l.Name]
		}
	}
	inside := 0
	for name, branch := range got {
		if branch {
			inside++
			if name != string(inner) {
				t.Errorf("%s is reported as inside a branch, want only %s", name, string(inner))
			}
		}
	}
	if len(got) != 4 || inside != 1 {
		t.Errorf("inside a branch: %v; want 4 layers, one of them inside", got)
	}
}
