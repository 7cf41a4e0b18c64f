package train

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A ResNet is the residual network for small images of He et al. 2016, section 4.2: a convolution,
// then stages of residual blocks with two convolutions each. From the second stage on the first
// block has stride 2, and a 1 x 1 convolution in its shortcut. Global average pooling, Dropout and
// a linear layer follow. ResNet-20 has stages of 16, 32 and 64 channels with 3 blocks each.
// ResNet-18 with the first layers that are usual for CIFAR has stages of 64, 128, 256 and 512
// channels with 2 blocks each.
type ResNet struct {
	Shape   []int // of a sample: channels, and one to three spatial axes
	Classes int
	Widths  []int // channels of each stage; none: 16, 32, 64
	Blocks  int   // in each stage; 0: 3
	Dropout float64
	Seed    uint64 // of the weights
}

// Build returns the network with random weights. Its input, output and names are like those of a
// ConvNet: "stage2.block1.conv1.weight", "stage2/block1/Relu" and so on.
func (n ResNet) Build() (*onnx.Model, error) {
	if len(n.Widths) == 0 {
		n.Widths = []int{16, 32, 64}
	}
	if n.Blocks == 0 {
		n.Blocks = 3
	}
	l, x, err := newLayers(n.Seed, n.Shape, n.Classes, n.Dropout)
	if err == nil && (slices.Min(n.Widths) < 1 || n.Blocks < 1) {
		err = fmt.Errorf("stages of %v channels with %d blocks each: at least one stage, channel and block is needed", n.Widths, n.Blocks)
	}
	if err != nil {
		return nil, fmt.Errorf("building a residual network: %w", err)
	}
	width := n.Widths[0]
	x = l.Relu(l.norm(l.conv(x, "conv", n.Shape[0], width, 3, 1), "norm", width))
	for i, out := range n.Widths {
		for j := range n.Blocks {
			stride := 1
			if i > 0 && j == 0 {
				stride = 2
			}
			x = l.scope("stage%d/block%d", i+1, j+1).block(x, fmt.Sprintf("stage%d.block%d", i+1, j+1), width, out, stride)
			width = out
		}
	}
	return l.finish(l.dropout(l.pool(x), n.Dropout), width, n.Classes)
}

// block returns relu(x + f(x)), where f has two convolutions.
func (l *layers) block(x onnx.Value, name string, in, out, stride int) onnx.Value {
	y := l.Relu(l.norm(l.conv(x, name+".conv1", in, out, 3, stride), name+".norm1", out))
	y = l.norm(l.conv(y, name+".conv2", out, out, 3, 1), name+".norm2", out)
	if stride > 1 || in != out {
		x = l.norm(l.conv(x, name+".shortcut.conv", in, out, 1, stride), name+".shortcut.norm", out)
	}
	return l.Relu(l.Add(x, y))
}
