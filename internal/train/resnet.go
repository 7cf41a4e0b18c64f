package train

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A ResNet is the residual network for small images of He et al. 2016, section 4.2: a convolution,
// then stages of residual blocks with two convolutions each, all with BatchNormalization. From the
// second stage on the first block has stride 2, and a 1 x 1 convolution in its shortcut (the paper
// pads channels with zeros there). Global average pooling, Dropout and a linear layer follow.
// StandardResNet returns the networks of published depths.
type ResNet struct {
	Shape   []int // of a sample: channels, and one to three spatial axes
	Classes int
	Widths  []int   // channels of each stage; none: 16, 32, 64
	Blocks  []int   // of each stage, or one number for all; none: 3
	Dropout float64 // before the linear layer
	Seed    uint64  // of the weights
}

// StandardResNet returns the stages of a residual network of a published depth: 18 or 34 (He et al.
// 2016, table 1, with the first layer that is usual for CIFAR, one convolution of 3 x 3), with
// stages of w, 2 w, 4 w and 8 w channels; or 6 n + 2 from 8 to 1202, with n blocks in each stage
// (section 4.2: 20, 32, 44, 56, 110), with stages of w, 2 w and 4 w channels. width is w; 0: 64 for
// depths 18 and 34, else 16. Any other depth is an error.
func StandardResNet(depth, width int) (ResNet, error) {
	blocks, stages, byDefault := []int{(depth - 2) / 6}, 3, 16
	switch {
	case depth == 18:
		blocks, stages, byDefault = []int{2}, 4, 64
	case depth == 34:
		blocks, stages, byDefault = []int{3, 4, 6, 3}, 4, 64
	case depth < 8 || depth > 1202 || depth%6 != 2: // 1202 is the deepest of the paper
		return ResNet{}, fmt.Errorf("a residual network has no depth of %d: it is 18, 34, or 6 n + 2, such as 20 or 56", depth)
	}
	width = cmp.Or(width, byDefault)
	n := ResNet{Blocks: blocks}
	for i := range stages {
		n.Widths = append(n.Widths, width<<i)
	}
	return n, nil
}

func (n ResNet) withDefaults() (ResNet, error) {
	if len(n.Widths) == 0 {
		n.Widths = []int{16, 32, 64}
	}
	if len(n.Blocks) == 0 {
		n.Blocks = []int{3}
	}
	if len(n.Blocks) == 1 {
		n.Blocks = slices.Repeat(n.Blocks, len(n.Widths))
	}
	switch {
	case len(n.Blocks) != len(n.Widths):
		return n, fmt.Errorf("%d stages of %v channels, and numbers of blocks for %d stages", len(n.Widths), n.Widths, len(n.Blocks))
	case slices.Min(n.Widths) < 1 || slices.Min(n.Blocks) < 1:
		return n, fmt.Errorf("stages of %v channels with %v blocks: at least one channel and block is needed", n.Widths, n.Blocks)
	}
	return n, nil
}

// Build returns the network with random weights. Its input is "x", batch x Shape, and its output
// "y", batch x Classes. Weights and activations are named after their layers:
// "stage2.block1.conv1.weight", "stage2/block1/Relu" and so on.
func (n ResNet) Build() (*onnx.Model, error) {
	n, err := n.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("building a residual network: %w", err)
	}
	l, x, err := newLayers(n.Seed, n.Shape, n.Classes, n.Dropout)
	if err != nil {
		return nil, fmt.Errorf("building a residual network: %w", err)
	}
	maps := l.encode(x, n)
	last := len(maps) - 1
	return l.finish(l.dropout(l.pool(maps[last]), n.Dropout), n.Widths[last], n.Classes)
}

func (l *layers) encode(x onnx.Value, n ResNet) (maps []onnx.Value) {
	width := n.Widths[0]
	x = l.Relu(l.norm(l.conv(x, "conv", n.Shape[0], width, 3, 1), "norm", width))
	for i, out := range n.Widths {
		for j := range n.Blocks[i] {
			stride := 1
			if i > 0 && j == 0 {
				stride = 2
			}
			x = l.scope("stage%d/block%d", i+1, j+1).block(x, fmt.Sprintf("stage%d.block%d", i+1, j+1), width, out, stride)
			width = out
		}
		maps = append(maps, x)
	}
	return maps
}

// block returns relu(x + f(x)), where f has two convolutions. Where f changes the shape, a 1 x 1
// convolution of x takes the place of x.
func (l *layers) block(x onnx.Value, name string, in, out, stride int) onnx.Value {
	y := l.Relu(l.norm(l.conv(x, name+".conv1", in, out, 3, stride), name+".norm1", out))
	y = l.norm(l.conv(y, name+".conv2", out, out, 3, 1), name+".norm2", out)
	if stride > 1 || in != out {
		x = l.norm(l.conv(x, name+".shortcut.conv", in, out, 1, stride), name+".shortcut.norm", out)
	}
	return l.Relu(l.Add(x, y))
}
