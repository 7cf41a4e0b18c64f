package train

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A ConvNet is a plain convolutional network. Each of its stages is a number of convolutions with
// kernels of 3 positions along each axis, each followed by BatchNormalization and ReLU. In every
// stage but the first the first convolution has stride 2. Global average pooling, Dropout and a
// linear layer follow. It takes images (c x h x w), spectrograms (1 x bands x frames) and signals
// (c x n).
type ConvNet struct {
	Shape   []int // of a sample: channels, and one to three spatial axes
	Classes int
	Seed    uint64  // of the weights
	Widths  []int   `key:"widths,required" doc:"channels of each stage; every stage but the first halves the sides"`
	Depth   int     `key:"depth" default:"2" min:"1" doc:"convolutions in each stage"` // 0: 2
	Halve   bool    `key:"halve" doc:"the first stage halves the sides too"`
	Dropout float64 `key:"dropout" min:"0" doc:"dropout probability before the last layer"`
}

// Build returns the network with random weights. Its input is "x", batch x Shape, and its output
// "y", batch x Classes. Weights and activations are named after their layers:
// "stage1.conv1.weight", "stage1.norm1.scale", "linear.weight", "stage1/conv1/Relu" and so on.
func (n ConvNet) Build() (*onnx.Model, error) {
	n.Depth = cmp.Or(n.Depth, 2)
	l, x, err := newLayers(n.Seed, n.Shape, n.Classes, n.Dropout)
	if err == nil && (len(n.Widths) == 0 || slices.Min(n.Widths) < 1 || n.Depth < 1) {
		err = fmt.Errorf("stages of %v channels with %d convolutions each: at least one stage, channel and convolution is needed", n.Widths, n.Depth)
	}
	if err != nil {
		return nil, fmt.Errorf("building a convolutional network: %w", err)
	}
	width := n.Shape[0]
	for i, out := range n.Widths {
		for j := range n.Depth {
			stride := 1
			if j == 0 && (i > 0 || n.Halve) {
				stride = 2
			}
			x = l.convNormRelu(x, fmt.Sprintf("stage%d", i+1), j+1, width, out, stride)
			width = out
		}
	}
	return l.finish(l.dropout(l.pool(x), n.Dropout), width, n.Classes)
}
