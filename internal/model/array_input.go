package model

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/onnx"
)

// An arrayInput is an input that takes an array of samples as it is, such as token ids. A sample is
// one vector of all its arrays (see dataset.RawArrays).
type arrayInput struct {
	info     engine.Port
	shape    []int // of one sample
	from, to int   // the values from to to - 1 of the vector of a sample
}

// TakesInput reports whether the network takes samples. One that does not looks up the activations
// of the samples that Buffers.Identify names.
func (m *Model) TakesInput() bool { return m.input.info.Name != "" }

// Recorded returns the number of samples of which the network has activations, 0 if it takes
// samples, and whether it lists which samples of the data these are.
func (m *Model) Recorded() (samples int, listed bool) {
	if r, ok := m.net.(interface{ Samples() (int, bool) }); ok {
		return r.Samples()
	}
	return 0, false
}

// TakesArrays reports whether the model takes ready-made arrays rather than images or audio.
func (m *Model) TakesArrays() bool { return m.input.arrays != nil }

// findArrays matches inputs with Options.Arrays by name, except inputs with constant values. The
// name of a single array does not matter if only one input is left. Arrays without an input of
// their name are not used.
func (m *Model) findArrays() error {
	o := m.options
	if !reflect.DeepEqual(o.Preprocess, Preprocess{}) {
		return settingError(errors.New("preprocess is for images and audio, and the data are arrays that the model takes as they are"), "preprocess")
	}
	var open []engine.Port // inputs without constant values
	for _, in := range m.inputs {
		if _, fixed := o.Inputs[in.Name]; !fixed {
			open = append(open, in)
		}
	}
	// The width will be the length of a sample's vector.
	p := input{channels: 1, height: 1, frame: dataset.Frame{}}
	sizes := map[string]int{} // sizes of free axes, by the name of the axis
	for _, array := range o.Arrays {
		from := p.width
		p.width += array.Len()
		at := slices.IndexFunc(open, func(in engine.Port) bool { return in.Name == array.Name })
		if at < 0 && len(open) == 1 && len(o.Arrays) == 1 {
			at = 0
		}
		if at < 0 {
			continue
		}
		if err := fitsArray(open[at], array); err != nil {
			return err
		}
		for i, d := range open[at].Shape[1:] {
			if d.Size < 0 && d.Symbol != "" {
				sizes[d.Symbol] = array.Shape[i]
			}
		}
		if size := open[at].Shape[0].Size; size > 0 {
			m.batch = size
		}
		p.arrays = append(p.arrays, arrayInput{open[at], array.Shape, from, p.width})
	}
	if len(p.arrays) == 0 {
		return fmt.Errorf("no input takes %s: the model has %s; name each array of an npz after its input", dataset.ArraysText(o.Arrays), list(m.inputs))
	}
	if p.width > maxInputValues {
		return fmt.Errorf("samples of %d values: the limit is %d", p.width, maxInputValues)
	}
	p.info = p.arrays[0].info
	for _, a := range p.arrays {
		if size := a.info.Shape[0].Size; size > 0 && size != m.batch {
			return fmt.Errorf("input %s takes another number of samples than %d", describeInput(a.info), m.batch)
		}
	}
	m.input = p
	var err error
	m.constants, err = constantInputs(m.inputs, m.input.names(), o.Inputs, sizes)
	return settingError(err, "inputs")
}

func fitsArray(in engine.Port, array dataset.Array) error {
	name := "the array"
	if array.Name != "" {
		name = fmt.Sprintf("array %q", array.Name)
	}
	switch in.Type {
	case engine.Float, engine.Double:
	case engine.Int64, engine.Int32, engine.Bool:
		if !array.Integer {
			return fmt.Errorf("input %s takes whole numbers, and %s has floats: save integers", describeInput(in), name)
		}
	default:
		return fmt.Errorf("input %s: arrays of this type are not supported", describeInput(in))
	}
	fits := len(in.Shape) == len(array.Shape)+1
	for i := 0; fits && i < len(array.Shape); i++ {
		size := in.Shape[i+1].Size
		fits = size < 0 || size == array.Shape[i]
	}
	if !fits {
		return fmt.Errorf("input %s does not take %s of shape [samples %s]", describeInput(in), name, spaced(array.Shape))
	}
	return nil
}

func spaced(shape []int) string {
	text := fmt.Sprint(shape)
	return text[1 : len(text)-1]
}

func (p input) names() []string {
	switch {
	case p.info.Name == "":
		return nil
	case p.arrays == nil:
		return []string{p.info.Name}
	}
	var out []string
	for _, a := range p.arrays {
		out = append(out, a.info.Name)
	}
	return out
}

// typeAndShape returns false if samples are not written to the named input.
func (p input) typeAndShape(name string, n int) (engine.Type, []int, bool) {
	if p.arrays == nil {
		return p.info.Type, p.batchShape(n), name == p.info.Name
	}
	for _, a := range p.arrays {
		if a.info.Name == name {
			return a.info.Type, slices.Concat([]int{n}, a.shape), true
		}
	}
	return "", nil, false
}

// fillArrays writes the arrays of one sample at index i of the batch. dst has the value of each
// input, nil where the session does not read it.
func (p input) fillArrays(sample []float32, dst []*engine.Array, i int) {
	for k, a := range p.arrays {
		if dst[k] == nil {
			continue
		}
		src := sample[a.from:a.to]
		n := len(src)
		switch a.info.Type {
		case engine.Float:
			copy(dst[k].Data.([]float32)[i*n:], src)
		case engine.Double:
			convertValues(dst[k].Data.([]float64)[i*n:], src)
		case engine.Int64:
			convertValues(dst[k].Data.([]int64)[i*n:], src)
		case engine.Int32:
			convertValues(dst[k].Data.([]int32)[i*n:], src)
		case engine.Bool:
			values := dst[k].Data.([]bool)[i*n:]
			for j, v := range src {
				values[j] = v != 0
			}
		}
	}
}

func convertValues[T float64 | int64 | int32](dst []T, src []float32) {
	for i, v := range src {
		dst[i] = T(v)
	}
}

// ArraysOf returns the arrays that the inputs of a graph need, except constant inputs, the keys of
// values. Shapes are without the batch axis. length is the size of axes of free size; if it is 0,
// such an axis is an error.
func ArraysOf(graph *onnx.Model, values map[string][]float64, length int) ([]dataset.Array, error) {
	var out []dataset.Array
	for _, in := range portsOf(graph.Inputs()) {
		if _, fixed := values[in.Name]; fixed {
			continue
		}
		if len(in.Shape) == 0 {
			return nil, fmt.Errorf("input %s has no axis for the batch", describeInput(in))
		}
		a := dataset.Array{Name: in.Name, Integer: in.Type != engine.Float && in.Type != engine.Double}
		for _, d := range in.Shape[1:] {
			if d.Size < 0 && length <= 0 {
				return nil, fmt.Errorf("input %s has an axis of free size", describeInput(in))
			}
			if d.Size < 0 {
				d.Size = length
			}
			a.Shape = append(a.Shape, d.Size)
		}
		out = append(out, a)
	}
	return out, nil
}
