package train

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A VGG is the plain convolutional network of Simonyan and Zisserman 2015, table 1, in the form
// that is usual for CIFAR: five stages of convolutions with 3 x 3 kernels, each followed by
// BatchNormalization and ReLU. Max-pooling of 2 x 2 ends each stage. The mean over what remains of
// the image, Dropout and a linear layer follow. The stages have w, 2 w, 4 w, 8 w and 8 w channels.
type VGG struct {
	Shape   []int // of a sample: channels, and one to three spatial axes of at least 32
	Classes int
	Seed    uint64  // of the weights
	Depth   int     `key:"depth" default:"16" doc:"11, 13, 16 or 19"`                               // 0: 16
	Width   int     `key:"width" default:"64" min:"1" max:"4096" doc:"channels of the first stage"` // w; 0: 64
	Dropout float64 `key:"dropout" min:"0" doc:"dropout probability before the last layer"`
}

// vggStages holds the number of convolutions of each stage, by depth: columns A, B, D and E of
// table 1.
var vggStages = map[int][]int{11: {1, 1, 2, 2, 2}, 13: {2, 2, 2, 2, 2}, 16: {2, 2, 3, 3, 3}, 19: {2, 2, 4, 4, 4}}

// Build returns the network with random weights. Its input, output and names are like those of a
// ConvNet: "stage1.conv1.weight", "stage1/conv1/Relu" and so on.
func (n VGG) Build() (*onnx.Model, error) {
	n.Depth = cmp.Or(n.Depth, 16)
	n.Width = cmp.Or(n.Width, 64)
	l, x, err := newLayers(n.Seed, n.Shape, n.Classes, n.Dropout)
	switch {
	case err != nil:
	case vggStages[n.Depth] == nil:
		err = fmt.Errorf("the depth is %d: it must be 11, 13, 16 or 19", n.Depth)
	case n.Width < 1:
		err = fmt.Errorf("the width is %d: it must be at least 1", n.Width)
	case slices.Min(n.Shape[1:]) < 32:
		err = fmt.Errorf("samples have the shape %v: five poolings need sides of at least 32", n.Shape)
	}
	if err != nil {
		return nil, fmt.Errorf("building a VGG: %w", err)
	}
	width := n.Shape[0]
	for i, depth := range vggStages[n.Depth] {
		out := n.Width << min(i, 3)
		for j := range depth {
			x = l.convNormRelu(x, fmt.Sprintf("stage%d", i+1), j+1, width, out, 1)
			width = out
		}
		x = l.scope("stage%d", i+1).maxPool(x)
	}
	return l.finish(l.dropout(l.pool(x), n.Dropout), width, n.Classes)
}

// maxPool returns the maximum over disjoint windows of two positions along each spatial axis.
func (l *layers) maxPool(x onnx.Value) onnx.Value {
	two := slices.Repeat([]int{2}, l.axes)
	return l.Op("MaxPool", onnx.Attrs{"kernel_shape": two, "strides": two}, x)
}

// convNormRelu returns convolution j of a stage, from in to out channels, with kernels of 3
// positions along each axis, BatchNormalization and ReLU: "stage1.conv2.weight",
// "stage1.norm2.scale", "stage1/conv2/Relu".
func (l *layers) convNormRelu(x onnx.Value, stage string, j, in, out, stride int) onnx.Value {
	s := l.scope("%s/conv%d", stage, j)
	x = s.conv(x, fmt.Sprintf("%s.conv%d", stage, j), in, out, 3, stride)
	return s.Relu(s.norm(x, fmt.Sprintf("%s.norm%d", stage, j), out))
}
