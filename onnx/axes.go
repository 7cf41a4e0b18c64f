package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// WithAxes returns a model in which the named tensors, inputs among them, have the axes that the caller says. What is
// computed from them follows. Use it where the guess is wrong: an input whose channels are last, for instance.
func (m *Model) WithAxes(axes map[string]Axes) (*Model, error) {
	layouts := m.layouts()
	given := maps.Clone(m.given)
	if given == nil {
		given = map[string]Axes{}
	}
	for _, name := range slices.Sorted(maps.Keys(axes)) {
		l, known := layouts[name]
		switch said := axes[name]; {
		case !known:
			return nil, fmt.Errorf("setting axes: the model has no tensor %q", name)
		case said == "" || strings.Trim(string(said), "NCHWT?") != "":
			return nil, fmt.Errorf("setting axes of %q: %q has other letters than N, C, H, W, T and ?", name, said)
		case l != nil && len(l) != len(said):
			return nil, fmt.Errorf("setting axes of %q: %q names %d axes, and the tensor has %d", name, said, len(said), len(l))
		}
		given[name] = axes[name]
	}
	c := *m
	c.given = given
	return &c, nil
}

// axes are the axes of every tensor of the main graph, empty where not even their number is known.
func (m *Model) axes() map[string]Axes {
	axes := map[string]Axes{}
	for name, l := range m.layouts() {
		axes[name] = l.axes()
	}
	return axes
}
