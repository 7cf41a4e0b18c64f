package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noether-ml/noether/engine"
)

type constantInput struct {
	info   engine.Port // with the known sizes of free axes, those whose size the model leaves open
	batch  string      // name of the batch axis of the samples' input; "": it has none
	values []float64   // repeated if they are fewer than the input has
}

// constantInputs returns the inputs other than samples, with their values. sizes holds the known
// sizes of free axes other than the batch, by the name of the axis. Inputs without values or with a
// wrong number, and unknown names, are errors.
func constantInputs(inputs []engine.Port, samples []string, values map[string][]float64, sizes map[string]int) ([]constantInput, error) {
	var fixed []constantInput
	known := map[string]bool{}
	batch := ""
	for _, in := range inputs {
		if slices.Contains(samples, in.Name) && len(in.Shape) > 0 {
			batch = in.Shape[0].Symbol
		}
	}
	for _, in := range inputs {
		if slices.Contains(samples, in.Name) {
			continue
		}
		known[in.Name] = true
		v, ok := values[in.Name]
		if !ok {
			return nil, missingValues(inputs, samples, values)
		}
		in.Shape = slices.Clone(in.Shape)
		for i, d := range in.Shape {
			if size, known := sizes[d.Symbol]; known && d.Size < 0 && i > 0 {
				in.Shape[i].Size = size
			}
		}
		f := constantInput{info: in, batch: batch, values: v}
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

// MissingInputs is the error for inputs without values.
type MissingInputs struct {
	Values map[string][]float64 // those that were set, and a guess for the others
	inputs []engine.Port        // that need values
	order  []string             // of all inputs but the samples'
}

// missingValues returns the error for inputs without values.
func missingValues(inputs []engine.Port, samples []string, values map[string][]float64) error {
	m := &MissingInputs{Values: maps.Clone(values)}
	if m.Values == nil {
		m.Values = map[string][]float64{}
	}
	for _, in := range inputs {
		if slices.Contains(samples, in.Name) {
			continue
		}
		m.order = append(m.order, in.Name)
		if _, ok := values[in.Name]; ok {
			continue
		}
		m.inputs = append(m.inputs, in)
		value := []float64{0}
		switch name := strings.ToLower(in.Name); {
		case IsRate(name), IsLength(name): // of a second
			value[0] = 16000
		case strings.Contains(name, "mask"), strings.Contains(name, "scale_factor"):
			value[0] = 1
		case strings.Contains(name, "fmax"):
			value[0] = 8000
		case containsAny(name, "size", "shape") && len(in.Shape) > 0 && in.Shape[len(in.Shape)-1].Size == 2:
			value = imageSize(inputs, samples, containsAny(name, "target_size"))
		}
		m.Values[in.Name] = value
	}
	return m
}

// imageSize returns the height and width of the images that the model takes, or the width first, as
// detectors need them to return pixels, or one value for both. Of a model that takes any size it is a
// usual one.
func imageSize(inputs []engine.Port, samples []string, widthFirst bool) []float64 {
	for _, in := range inputs {
		layout := layoutOf(in, "")
		if !slices.Contains(samples, in.Name) || layout == "" {
			continue
		}
		h, w := in.Shape[2].Size, in.Shape[3].Size
		if layout == "NHWC" {
			h, w = in.Shape[1].Size, in.Shape[2].Size
		}
		if widthFirst {
			h, w = w, h
		}
		if h > 0 && w > 0 {
			return []float64{float64(h), float64(w)}
		}
	}
	return []float64{640}
}

// IsLength reports whether the name of an input is that of the number of values of a waveform.
func IsLength(name string) bool {
	return hasWord(name, "length", "lengths", "len", "lens") || containsAny(name, "num_samples", "n_samples")
}

// IsRate reports whether the name of an input is that of a sampling rate.
func IsRate(name string) bool {
	return strings.EqualFold(name, "sr") || containsAny(name, "sample_rate", "sampling_rate")
}

// Setting returns the values as the value of the key inputs.
func (m *MissingInputs) Setting() string {
	var settings []string
	for _, name := range m.order {
		value := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(m.Values[name])), ", "), "[]")
		if len(m.Values[name]) > 1 {
			value = "[" + value + "]"
		}
		settings = append(settings, name+": "+value)
	}
	return "{" + strings.Join(settings, ", ") + "}"
}

// Error lists the inputs, with the setting.
func (m *MissingInputs) Error() string {
	var missing []string
	for _, in := range m.inputs {
		missing = append(missing, describeInput(in))
	}
	needs := "input %s needs"
	if len(missing) > 1 {
		needs = "inputs %s need"
	}
	return fmt.Sprintf(needs+" values: set inputs: %s, or other values, the same for every sample", strings.Join(missing, ", "), m.Setting())
}

// batchAxis returns the axis of the input that is the batch, or -1: the first free axis that has
// the name of the batch of the samples' input or a name with "batch", else the first axis if it is
// free, else, if there is one value for all, the first free axis.
func (f constantInput) batchAxis() int {
	axis := slices.IndexFunc(f.info.Shape, func(d engine.Dim) bool {
		return d.Size < 0 && d.Symbol != "" && (d.Symbol == f.batch || strings.Contains(strings.ToLower(d.Symbol), "batch"))
	})
	free := slices.IndexFunc(f.info.Shape, func(d engine.Dim) bool { return d.Size < 0 })
	if axis < 0 && (free == 0 || len(f.values) == 1) {
		return free
	}
	return axis
}

// shape returns the shape of the input for n samples. Every sample has the same values. The size of
// one free axis besides the batch follows from the number of values; several are an error.
func (f constantInput) shape(n int) ([]int, error) {
	shape := f.info.Sizes()
	batch := f.batchAxis()
	if batch >= 0 {
		shape[batch] = n
	}
	open, size := -1, 1
	for i, d := range shape {
		if i == batch {
			continue
		}
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
		shape[open] = given / size
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
	// The values are those of one sample: an index i of the array has outer, batch and inner parts.
	inner, stride := 1, 1
	if batch := f.batchAxis(); batch >= 0 {
		for _, d := range shape[batch+1:] {
			inner *= d
		}
		stride = n
	}
	at := func(i int) float64 { return f.values[(i/(inner*stride)*inner+i%inner)%len(f.values)] }
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
