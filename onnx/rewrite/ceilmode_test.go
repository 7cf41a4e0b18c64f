package rewrite_test

import (
	"fmt"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// TestFixCeilMode checks pools with ceil_mode whose last window would begin in the padding at the
// end. Runtimes leave out such a window, and after the rewrite the inferred shape does too.
// Cropping the input would change the indices of a MaxPool: it gets more padding instead, and no
// ceil_mode. The last three cases stay as they are: two have no such window, and opset 22 itself
// leaves it out.
func TestFixCeilMode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		opset   int
		attrs   onnx.Attrs
		shape   [2]int // height and width of the output
		pads    string // of the node after the rewrite
		read    [2]int // height and width of the node's input after the rewrite, cropped from 8 x 9
		indices bool   // a MaxPool with indices instead of an AveragePool
		mode    int    // ceil_mode of the node after the rewrite
	}{
		{"last window left out along the width, added along the height", 17, onnx.Attrs{"kernel_shape": []int{3, 2}, "strides": []int{2, 3}, "pads": []int{0, 0, 0, 1}}, [2]int{4, 3}, "[0 0 0 0]", [2]int{8, 8}, false, 1},
		{"count_include_pad", 17, onnx.Attrs{"kernel_shape": []int{3, 2}, "strides": []int{2, 3}, "pads": []int{0, 0, 0, 1}, "count_include_pad": 1},
			[2]int{4, 3}, "[0 0 0 0]", [2]int{8, 8}, false, 1},
		{"dilations", 19, onnx.Attrs{"kernel_shape": []int{2, 2}, "strides": []int{5, 3}, "dilations": []int{4, 1}, "pads": []int{0, 0, 0, 1}}, [2]int{2, 3}, "[0 0 0 0]", [2]int{8, 8}, false, 1},
		{"indices", 17, onnx.Attrs{"kernel_shape": []int{3, 2}, "strides": []int{2, 3}, "pads": []int{0, 0, 0, 1}}, [2]int{4, 3}, "[0 0 1 1]", [2]int{8, 9}, true, 0},
		{"last window begins before the padding", 17, onnx.Attrs{"kernel_shape": []int{3, 2}, "strides": []int{2, 3}, "pads": []int{0, 1, 0, 1}}, [2]int{4, 4}, "[0 1 0 1]", [2]int{8, 9}, false, 1},
		{"no padding", 17, onnx.Attrs{"kernel_shape": []int{3, 2}, "strides": []int{2, 2}}, [2]int{4, 5}, "[]", [2]int{8, 9}, false, 1},
		{"unchanged since opset 22", 22, onnx.Attrs{"kernel_shape": []int{3, 2}, "strides": []int{2, 3}, "pads": []int{0, 0, 0, 1}}, [2]int{4, 3}, "[0 0 0 1]", [2]int{8, 9}, false, 1},
	} {
		b := onnx.NewBuilder(c.opset)
		c.attrs["ceil_mode"] = 1
		op, outputs := "AveragePool", 1
		if c.indices {
			op, outputs = "MaxPool", 2
		}
		y := b.Ops(op, outputs, c.attrs, b.Input("x", onnx.Float, -1, 2, 8, 9))[0]
		b.Apply(rewrite.FixCeilMode)
		if b.Err() != nil {
			t.Fatal(b.Err())
		}
		nodes := b.Nodes()
		n := nodes[len(nodes)-1]
		if got := fmt.Sprint(onnx.AttrInts(n, "pads")); got != c.pads {
			t.Errorf("%s: pads %s, want %s", c.name, got, c.pads)
		}
		if mode := onnx.AttrInt(n, "ceil_mode", 0); mode != c.mode {
			t.Errorf("%s: ceil_mode %d, want %d", c.name, mode, c.mode)
		}
		s := infer.Analyze(b.Snapshot())
		if read := s.Shape(n.Input[0]); read[2] != c.read[0] || read[3] != c.read[1] {
			t.Errorf("%s: the input of the node has shape %v, want %v after batch and channels", c.name, read, c.read)
		}
		if s := s.Shape(string(y)); s[2] != c.shape[0] || s[3] != c.shape[1] {
			t.Errorf("%s: the output has shape %v, want %v after batch and channels", c.name, s, c.shape)
		}
	}
}
