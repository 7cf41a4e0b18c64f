package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/engine"
)

type constantInput struct {
	info   engine.Port // with the known sizes of free axes, those whose size the model leaves open
	values []float64   // repeated if they are fewer than the input has
}

// constantInputs returns the inputs other than samples, with their values. sizes holds the known
// sizes of free axes other than the batch, by the name of the axis. Inputs without values or with a
// wrong number, and unknown names, are errors.
func constantInputs(inputs []engine.Port, samples []string, values map[string][]float64, sizes map[string]int) ([]constantInput, error) {
	var fixed []constantInput
	known := map[string]bool{}
	for _, in := range inputs {
		if slices.Contains(samples, in.Name) {
			continue
		}
		known[in.Name] = true
		v, ok := values[in.Name]
		if !ok {
			return nil, fmt.Errorf("input %s needs values: set them in inputs", describeInput(in))
		}
		in.Shape = slices.Clone(in.Shape)
		for i, d := range in.Shape {
			if size, known := sizes[d.Symbol]; known && d.Size < 0 && i > 0 {
				in.Shape[i].Size = size
			}
		}
		f := constantInput{info: in, values: v}
		if _, err := f.shape(1); err != nil {
			return nil, err
		}
		fixed = append(fixed, f)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !known[name] {
			return nil, fmt.Errorf("inputs: unknown input %q: the model has %s", name, list(inputs))
		}
	}
	return fixed, nil
}

// shape returns the shape of the input for n samples. If its first axis may have any size, it is
// the batch, and every sample has the same values. The size of one further free axis follows from
// the number of values; several are an error.
func (f constantInput) shape(n int) ([]int, error) {
	shape := f.info.Sizes()
	one := shape // the shape without the batch axis, which the values fill
	if len(shape) > 0 && shape[0] < 0 {
		shape[0] = n
		one = shape[1:]
	}
	open, size := -1, 1
	for i, d := range one {
		switch {
		case d >= 0:
			size *= d
		case open < 0:
			open = i
		default:
			return nil, fmt.Errorf("input %s does not fix several sizes besides the batch: export the model with fixed sizes", describeInput(f.info))
		}
	}
	switch given := len(f.values); {
	case given == 0:
		return nil, fmt.Errorf("input %s has no values: set them in inputs", describeInput(f.info))
	case open < 0 && given != size && given != 1:
		return nil, fmt.Errorf("input %s has %d values: set %d, or one for all", describeInput(f.info), given, size)
	case open >= 0 && (size == 0 || given%size != 0):
		return nil, fmt.Errorf("input %s has %d values: set a multiple of %d", describeInput(f.info), given, size)
	case open >= 0:
		one[open] = given / size
	}
	return shape, nil
}

func (f constantInput) value(n int) (*engine.Array, error) {
	shape, err := f.shape(n)
	if err != nil {
		return nil, err
	}
	a := engine.NewArray(f.info.Type, shape...)
	if a == nil {
		return nil, fmt.Errorf("input %s: values of this type are not supported", describeInput(f.info))
	}
	at := func(i int) float64 { return f.values[i%len(f.values)] }
	switch data := a.Data.(type) {
	case []float32:
		fillValues(data, at)
	case []float64:
		fillValues(data, at)
	case []int64:
		fillValues(data, at)
	case []int32:
		fillValues(data, at)
	case []int8:
		fillValues(data, at)
	case []uint8:
		fillValues(data, at)
	case []bool:
		for i := range data {
			data[i] = at(i) != 0
		}
	}
	return a, nil
}

func fillValues[T float32 | float64 | int64 | int32 | int8 | uint8](dst []T, at func(int) float64) {
	for i := range dst {
		dst[i] = T(at(i))
	}
}
