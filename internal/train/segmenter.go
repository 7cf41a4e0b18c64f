package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
)

// A Segmenter is a network that gives every pixel of an image scores of classes: the stages of a
// ResNet, then a decoder. Each of the decoder's steps doubles the sides by a transposed convolution
// of 2 x 2, and has two convolutions of 3 x 3 with BatchNormalization and ReLU. The last layer is a
// convolution of 1 x 1. The decoder has as many channels at each size as the encoder; at the size
// of the image, which an encoder with ImageNetStem lacks, as many as at the size before.
//
// The decoder "fcn" sees the encoder's last stage only. In "unet" each step also gets the output of
// the encoder's stage of the same size, as in Ronneberger et al. 2015.
type Segmenter struct {
	Encoder ResNet // stages and seed; its Shape is that of an image, c x h x w
	Decoder string // "fcn" or "unet"
	Classes int
	Heads   []Head // further outputs
}

// A Head is a linear layer on the mean over space of the encoder's last stage, for Spec.Tasks.
type Head struct {
	Name    string // of the output
	Outputs int
}

// Build returns the network with random weights. Its input is "x", batch x Shape, its outputs "y",
// batch x Classes x h x w, and those of the heads, batch x Outputs. The encoder's names are those
// of a ResNet; the decoder's are "decoder1.up.weight", "decoder1/conv2/Relu" and so on. Images
// whose sides are not divisible by those that one position of the encoder's last map stands for are
// an error.
func (n Segmenter) Build() (*onnx.Model, error) {
	m, err := n.build()
	if err != nil {
		return nil, fmt.Errorf("building a segmenter: %w", err)
	}
	return m, nil
}

func (n Segmenter) build() (*onnx.Model, error) {
	e, err := n.Encoder.withDefaults()
	if err != nil {
		return nil, err
	}
	l, x, err := newLayers(e.Seed, e.Shape, n.Classes, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case n.Decoder != "fcn" && n.Decoder != "unet":
		return nil, fmt.Errorf("unknown decoder %q: use fcn or unet", n.Decoder)
	case len(e.Shape) != 3:
		return nil, fmt.Errorf("samples have the shape %v: they must be images, channels x height x width", e.Shape)
	}
	maps := l.encode(x, e)
	last := maps[len(maps)-1]
	if d := last.stride; e.Shape[1]%d != 0 || e.Shape[2]%d != 0 {
		return nil, fmt.Errorf("images have %d x %d pixels: with %d stages the sides must be divisible by %d", e.Shape[1], e.Shape[2], len(e.Widths), d)
	}
	at := last
	for step := 1; at.stride > 1; step++ {
		name := fmt.Sprintf("decoder%d", step)
		beside := featureMap{channels: at.channels} // the encoder's map of the size to reach; no value: none
		if i := slices.IndexFunc(maps, func(m featureMap) bool { return m.stride == at.stride/2 }); i >= 0 {
			beside = maps[i]
		}
		in, out := at.channels, beside.channels
		x = l.scope("%s/up", name).double(at.value, name+".up", in, out)
		if in = out; n.Decoder == "unet" && beside.value != "" {
			x, in = l.scope("%s", name).Concat(1, beside.value, x), 2*out
		}
		// Convolutions 1 and 2 of the step, with stride 1.
		x = l.convNormRelu(x, name, 1, in, out, 1)
		at = featureMap{l.convNormRelu(x, name, 2, out, out, 1), out, at.stride / 2}
	}
	l.Output("y", l.scope("scores").conv(at.value, "scores", at.channels, n.Classes, 1, 1))
	pooled := onnx.Value("")
	for _, h := range n.Heads {
		if h.Outputs < 1 || h.Name == "" {
			return nil, fmt.Errorf("the head %q has %d outputs: it needs a name and at least one", h.Name, h.Outputs)
		}
		if pooled == "" {
			pooled = l.pool(last.value)
		}
		l.Output(h.Name, linear(l.Builder, pooled, h.Name+".linear", l.seed, last.channels, h.Outputs))
	}
	return l.Model()
}

// double returns a transposed convolution that doubles both sides. Each position of the result
// depends on one position of x, so the weights are normal with variance 2 / in.
func (l *layers) double(x onnx.Value, name string, in, out int) onnx.Value {
	r, deviation := seed.Rand(l.seed, "train: weights", name), math.Sqrt(2/float64(in))
	w := l.weights(name+".weight", func() float64 { return deviation * r.NormFloat64() }, in, out, 2, 2)
	return l.Op("ConvTranspose", onnx.Attrs{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}}, x, w)
}
