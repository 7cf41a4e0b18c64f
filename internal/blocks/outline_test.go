package blocks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noether-ml/noether/internal/blocks"
	"github.com/noether-ml/noether/onnx"
)

// outline builds a network and returns its operations as "group: tensor < tensors that it reads". A
// group is a part of the network that a drawing can fold.
func outline(t *testing.T, build func(n *net, x onnx.Value)) []string {
	t.Helper()
	n := &net{Builder: onnx.NewBuilder(onnx.DefaultOpset)}
	build(n, n.Input("x", onnx.Float, -1, 3, 32, 32))
	m, err := n.Model()
	if err != nil {
		t.Fatal(err)
	}
	var outputs, out []string
	for _, o := range m.Outputs() {
		outputs = append(outputs, o.Name)
	}
	all := blocks.Outline(m, "x", outputs...)
	for i, o := range all {
		reads := []string{}
		for _, from := range o.Reads {
			if from >= i || all[from].Group > o.Group {
				t.Errorf("operation %d in group %d reads operation %d in group %d", i, o.Group, from, all[from].Group)
			}
			reads = append(reads, all[from].Tensor)
		}
		out = append(out, fmt.Sprintf("%d: %s < %s", o.Group, o.Tensor, strings.Join(reads, ", ")))
	}
	return out
}

// TestOutline lists the operations of a residual network with a second output, features, between
// its blocks. The stem, each block, the pooling and the classifier are groups. features is in the
// group of the block that follows. choose_test.go has the functions that add layers: the arguments
// of conv are x, channels of input and output, kernel size and stride.
func TestOutline(t *testing.T) {
	t.Parallel()
	got := outline(t, func(n *net, x onnx.Value) {
		x = n.pool(n.Scope("stem").Relu(n.conv(x, 3, 4, 3, 1)))
		x = residual(n, "a", x, 4, 4, 1) // channels of input and output, and stride
		n.Output("features", n.Scope("features").Sigmoid(x))
		x = residual(n, "b", x, 4, 8, 2)
		n.classify(x, 8)
	})
	want := []string{
		"0: Conv < ", "0: stem/Relu < Conv", "0: MaxPool < stem/Relu",
		"1: Conv_1 < MaxPool", "1: a/Relu < Conv_1", "1: Conv_2 < a/Relu", "1: a/Add < MaxPool, Conv_2", "1: a/LeakyRelu < a/Add",
		"2: features < a/LeakyRelu",
		"2: Conv_3 < a/LeakyRelu", "2: Conv_4 < a/LeakyRelu", "2: b/Relu < Conv_4", "2: Conv_5 < b/Relu", "2: b/Add < Conv_3, Conv_5", "2: b/LeakyRelu < b/Add",
		"3: GlobalAveragePool < b/LeakyRelu", "3: head/Flatten < GlobalAveragePool",
		"4: scores < head/Flatten",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestOutlineOfLargeBlock checks that a block of more than 64 operations is divided into a group
// for each convolution.
func TestOutlineOfLargeBlock(t *testing.T) {
	t.Parallel()
	const layers = 40
	got := outline(t, func(n *net, x onnx.Value) {
		y := x
		for i := range layers {
			y = n.Scope(fmt.Sprint("c", i)).Relu(n.conv(y, 3, 3, 3, 1))
		}
		n.Output("scores", n.Concat(1, y, x))
	})
	if len(got) != 2*layers+1 || got[0] != "0: Conv < " || got[2] != "1: Conv_1 < c0/Relu" || got[2*layers] != "39: scores < c39/Relu" {
		t.Errorf("%d operations: %q", len(got), got)
	}
}
