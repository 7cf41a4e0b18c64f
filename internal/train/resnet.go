package train

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A ResNet is the residual network of He et al. 2016: a first convolution, then stages of residual
// blocks, all with BatchNormalization. From the second stage on the first block has stride 2, and a
// 1 x 1 convolution in its shortcut (for small images the paper pads channels with zeros there).
// Global average pooling, Dropout and a linear layer follow. StandardResNet returns the networks of
// published depths.
//
// A block has two convolutions of 3 x 3. With Bottleneck it has three, of 1 x 1, 3 x 3 and 1 x 1,
// and the last has 4 times the channels; the stride is that of the 3 x 3 convolution, as in
// torchvision (in the paper it is that of the first).
type ResNet struct {
	Shape      []int // of a sample: channels, and one to three spatial axes
	Classes    int
	Widths     []int // channels of each stage, with Bottleneck inside its blocks; none: 16, 32, 64
	Blocks     []int // of each stage, or one number for all; none: 3
	Bottleneck bool
	Stem       Stem
	Dropout    float64 // before the linear layer
	Seed       uint64  // of the weights
}

// A Stem is the part of a ResNet before its stages.
type Stem string

const (
	// CIFARStem is a convolution of 3 x 3, as usual for small images. So is the empty stem.
	CIFARStem Stem = "cifar"
	// ImageNetStem is a convolution of 7 x 7 with stride 2 and a maximum over 3 x 3 positions with
	// stride 2 (He et al. 2016, table 1): the stages see a quarter of the sides.
	ImageNetStem Stem = "imagenet"
)

// expansion is the number of channels that leave a block for one inside it.
func (n *ResNet) expansion() int {
	if n.Bottleneck {
		return 4
	}
	return 1
}

// fourStages holds the number of blocks of each stage, by depth: table 1 of He et al. 2016.
var fourStages = map[int][]int{18: {2, 2, 2, 2}, 34: {3, 4, 6, 3}, 50: {3, 4, 6, 3}, 101: {3, 4, 23, 3}, 152: {3, 8, 36, 3}}

// StandardResNet returns the stages of a residual network of a published depth, with the first
// layer of CIFARStem: 18, 34, 50, 101 or 152 (He et al. 2016, table 1), with stages of w, 2 w, 4 w
// and 8 w channels, from depth 50 on with bottlenecks; or 6 n + 2 from 8 to 1202, with n blocks in
// each stage (section 4.2: 20, 32, 44, 56, 110), with stages of w, 2 w and 4 w channels. width is
// w; 0: 64 with four stages, else 16. Any other depth is an error, and so is 164, which is
// published with other blocks.
func StandardResNet(depth, width int) (ResNet, error) {
	n, stages, byDefault := ResNet{Blocks: fourStages[depth], Bottleneck: depth >= 50}, 4, 64
	if n.Blocks == nil {
		if depth < 8 || depth > 1202 || depth%6 != 2 || depth == 164 { // 1202 is the deepest of the paper
			return ResNet{}, fmt.Errorf("a residual network has no depth of %d: it is 18, 34, 50, 101, 152, or 6 n + 2, such as 20 or 56", depth)
		}
		n, stages, byDefault = ResNet{Blocks: []int{(depth - 2) / 6}}, 3, 16
	}
	width = cmp.Or(width, byDefault)
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
	case n.Stem != "" && n.Stem != CIFARStem && n.Stem != ImageNetStem:
		return n, fmt.Errorf("unknown stem %q: use %s or %s", n.Stem, CIFARStem, ImageNetStem)
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
	last := maps[len(maps)-1]
	return l.finish(l.dropout(l.pool(last.value), n.Dropout), last.channels, n.Classes)
}

// A featureMap is the output of a part of an encoder.
type featureMap struct {
	value    onnx.Value
	channels int
	stride   int // positions of the input for one position of the map, along each axis
}

// encode returns the output of each stage, and before them that of an ImageNetStem before its
// pooling.
func (l *layers) encode(x onnx.Value, n ResNet) (maps []featureMap) {
	at := featureMap{channels: n.Widths[0], stride: 1}
	kernel := 3
	if n.Stem == ImageNetStem {
		kernel, at.stride = 7, 2
	}
	at.value = l.Relu(l.norm(l.conv(x, "conv", n.Shape[0], at.channels, kernel, at.stride), "norm", at.channels))
	if n.Stem == ImageNetStem {
		maps = append(maps, at)
		three, two, one := slices.Repeat([]int{3}, l.axes), slices.Repeat([]int{2}, l.axes), slices.Repeat([]int{1}, 2*l.axes)
		at.value, at.stride = l.Op("MaxPool", onnx.Attrs{"kernel_shape": three, "strides": two, "pads": one}, at.value), 4
	}
	for i, width := range n.Widths {
		for j := range n.Blocks[i] {
			stride := 1
			if i > 0 && j == 0 {
				stride = 2
			}
			out := width * n.expansion()
			at.value = l.scope("stage%d/block%d", i+1, j+1).block(at.value, fmt.Sprintf("stage%d.block%d", i+1, j+1), at.channels, width, out, stride)
			at.channels, at.stride = out, at.stride*stride
		}
		maps = append(maps, at)
	}
	return maps
}

// block returns relu(x + f(x)), where f has two convolutions if width is out, and else three, with
// width channels between them. Where f changes the shape, a 1 x 1 convolution of x takes the place
// of x.
func (l *layers) block(x onnx.Value, name string, in, width, out, stride int) onnx.Value {
	conv := func(y onnx.Value, i, in, out, k, stride int) onnx.Value {
		return l.norm(l.conv(y, fmt.Sprintf("%s.conv%d", name, i), in, out, k, stride), fmt.Sprintf("%s.norm%d", name, i), out)
	}
	var y onnx.Value
	if width == out {
		y = conv(l.Relu(conv(x, 1, in, width, 3, stride)), 2, width, out, 3, 1)
	} else {
		y = l.Relu(conv(x, 1, in, width, 1, 1))
		y = conv(l.Relu(conv(y, 2, width, width, 3, stride)), 3, width, out, 1, 1)
	}
	if stride > 1 || in != out {
		x = l.norm(l.conv(x, name+".shortcut.conv", in, out, 1, stride), name+".shortcut.norm", out)
	}
	return l.Relu(l.Add(x, y))
}
