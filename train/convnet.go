package train

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A ConvNet is a plain convolutional network: stages of convolutions over 3 places along each axis, each with
// BatchNormalization and ReLU; from the second stage on the first convolution halves every axis. Then the mean over space, Dropout and
// a linear layer. It takes images (c x h x w), spectrograms (1 x bands x frames) and signals (c x n) alike.
type ConvNet struct {
	Shape   []int // of a sample: channels, and one to three axes of space
	Classes int
	Widths  []int // channels of each stage
	Depth   int   // convolutions in each stage; 0: 2
	// Halve lets the first stage halve the axes too, which makes the network four times as fast on images.
	Halve   bool
	Dropout float64 // before the linear layer
	Seed    uint64  // of the weights
}

// Build draws the weights. The input is "x", batch x Shape, the output "y", batch x Classes; weights are named by their layers:
// "stage1.conv1.weight", "stage1.norm1.scale", "linear.weight", ...
func (n ConvNet) Build() (*onnx.Model, error) {
	if n.Depth == 0 {
		n.Depth = 2
	}
	l, x, err := newLayers(n.Seed, n.Shape, n.Classes, n.Dropout)
	if err == nil && (len(n.Widths) == 0 || slices.Min(n.Widths) < 1 || n.Depth < 1) {
		err = fmt.Errorf("stages of %v channels with %d convolutions each: there is one at least, of one channel at least", n.Widths, n.Depth)
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
			x = l.conv(x, fmt.Sprintf("stage%d.conv%d", i+1, j+1), width, out, 3, stride)
			x = l.Relu(l.norm(x, fmt.Sprintf("stage%d.norm%d", i+1, j+1), out))
			width = out
		}
	}
	return l.end(l.dropout(l.pool(x), n.Dropout), width, n.Classes)
}
