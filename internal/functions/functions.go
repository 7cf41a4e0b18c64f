// Package functions calls functions of a Python process, which serves them by the Open Inference
// Protocol (see engine/oip): transformations of images, and measures of pairs of vectors.
package functions

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/oip"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// Variable names the environment variable with the address of the process that serves functions,
// unix:SOCKET: (functions are models below it).
const Variable = "NOETHER_PYTHON"

// Transformation returns the kind of transformations that are functions of Python. Nothing is
// called before an image is transformed.
func Transformation() transform.Kind {
	return transform.NewKind(transform.Kind{
		Name: "python",
		Doc:  "A function of Python.",
		Params: []transform.Param{
			{Name: "function", Doc: "package.module:function, which noether run --allow-python calls; or the name under which noether_ml.measure serves it. A run appends @ and a hash of its source code", Text: true, Required: true},
			{Name: "dtype", Doc: "of the images that the function gets and returns: uint8, for images of 8 bits; by default floats in [0, 1]", Options: []string{"float32", "uint8"}},
			{Name: "strength", Doc: "number that is passed to the function; without it none is", Min: math.Inf(-1), Max: math.Inf(1)},
		},
	}, func(args transform.Args) (transform.Transform, error) {
		r := &remote{use: Transforms, name: string(args["function"].(transform.Option)), inputs: 3}
		r.bytes = args["dtype"] == transform.Option("uint8")
		f := transform.Function{Call: r.transform}
		if d, ok := args["strength"].(transform.Distribution); ok {
			f.Strength = &d
		}
		return f, nil
	})
}

// A remote is a function that a process serves. It is opened at the first call.
type remote struct {
	use    string // Transforms or Measures
	name   string
	inputs int  // their number
	bytes  bool // images are sent as such

	open sync.Once
	net  *oip.Network
	err  error
}

func (f *remote) connect() {
	name, _, _ := strings.Cut(f.name, "@")
	address := os.Getenv(Variable)
	switch w := find(f.use, name); {
	case w != nil:
		f.net, f.err = w.open(callContext(), oip.Options{})
	case strings.Contains(name, ":"):
		f.err = errors.New("this command runs no Python: noether run --allow-python does")
	case address == "":
		f.err = errors.New("no Python process serves it: run the study with noether_ml.measure of the Python package")
	default:
		f.net, f.err = oip.Open(callContext(), address+"/v2/models/"+f.name, oip.Options{})
	}
	if f.err == nil && len(f.net.Metadata().Inputs) != f.inputs {
		f.err = fmt.Errorf("it has %d inputs and not %d", len(f.net.Metadata().Inputs), f.inputs)
	}
	if f.err != nil {
		f.err = fmt.Errorf("function %s: %w", name, f.err)
	}
}

func (f *remote) call(inputs []*engine.Array, output string) (tensor.Tensor, error) {
	if f.open.Do(f.connect); f.err != nil {
		return tensor.Tensor{}, f.err
	}
	outputs, err := f.net.Compute(callContext(), inputs, []string{output})
	if err != nil {
		return tensor.Tensor{}, fmt.Errorf("function %s: %w", f.name, err)
	}
	return outputs[output], nil
}

// mostImages bounds the images of a call, and so the memory that it takes.
const mostImages = 32

// transform applies the function to images of c x h x w with values in [0, 1].
func (f *remote) transform(images []tensor.Tensor, strengths []float64, seeds []uint64) ([]tensor.Tensor, error) {
	if f.open.Do(f.connect); f.err != nil {
		return nil, f.err
	}
	if !math.IsNaN(strengths[0]) && !f.net.Takes("strength") {
		return nil, fmt.Errorf("function %s has no parameter for a strength, which the study sets", f.name)
	}
	most := 1
	if f.net.Takes("batches") {
		most = mostImages
	}
	var out []tensor.Tensor
	for start := 0; start < len(images); {
		end := start + 1
		for end < min(start+most, len(images)) && slices.Equal(images[end].Shape, images[start].Shape) {
			end++
		}
		transformed, err := f.transformBatch(images[start:end], strengths[start:end], seeds[start:end])
		if err != nil {
			return nil, err
		}
		out = append(out, transformed...)
		start = end
	}
	return out, nil
}

// transformBatch applies the function to images of one shape.
func (f *remote) transformBatch(images []tensor.Tensor, strengths []float64, seeds []uint64) ([]tensor.Tensor, error) {
	shape := append([]int{len(images)}, images[0].Shape...)
	var pixels []float32
	signed := make([]int64, len(seeds))
	for i, image := range images {
		pixels = append(pixels, image.Data...)
		signed[i] = int64(seeds[i] >> 1)
	}
	var data any = pixels
	if f.bytes {
		whole, err := wholeBytes(pixels)
		if err != nil {
			return nil, fmt.Errorf("function %s: %w", f.name, err)
		}
		data = whole
	}
	batch, err := f.call([]*engine.Array{
		{Shape: shape, Data: data},
		{Shape: []int{len(images)}, Data: strengths},
		{Shape: []int{len(images)}, Data: signed},
	}, "image")
	if err != nil {
		return nil, err
	}
	if !slices.Equal(batch.Shape, shape) {
		return nil, fmt.Errorf("function %s returns images of the shape %v for those of %v: it must keep the size", f.name, batch.Shape, shape)
	}
	if batch.FirstNonFinite() >= 0 {
		return nil, fmt.Errorf("function %s returns NaN or infinity", f.name)
	}
	out := make([]tensor.Tensor, len(images))
	for i := range out {
		out[i] = batch.At(i)
	}
	return out, nil
}

// wholeBytes returns values v / 255 as v.
func wholeBytes(values []float32) ([]uint8, error) {
	out := make([]uint8, len(values))
	for i, v := range values {
		out[i] = uint8(min(max(255*v+0.5, 0), 255))
		if float32(out[i])/255 != v {
			return nil, fmt.Errorf("dtype is uint8, but the value %g is no multiple of 1/255: leave dtype out for images that do not have 8 bits, such as those that another transformation has changed", v)
		}
	}
	return out, nil
}
