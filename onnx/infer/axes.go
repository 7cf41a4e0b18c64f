package infer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
)

// Axes returns the axes of every tensor of the main graph, by name. They are empty for a tensor of
// unknown rank.
//
// stated are axes of some tensors that the caller knows better than the inference, such as those of
// an input whose channels are last. The axes of what is computed from these tensors follow. It is
// an error to state axes of a tensor that does not exist, or for another rank.
func Axes(m *onnx.Model, stated map[string]onnx.Axes) (map[string]onnx.Axes, error) {
	known := infer(m, nil, false).facts
	for _, name := range slices.Sorted(maps.Keys(stated)) {
		f, ok := known[name]
		switch axes := stated[name]; {
		case !ok:
			return nil, fmt.Errorf("setting axes: the model has no tensor %q", name)
		case axes == "" || strings.Trim(string(axes), "NCHWT?") != "":
			return nil, fmt.Errorf("setting axes of %q: %q has other letters than N, C, H, W, T and ?", name, axes)
		case f.layout != nil && len(f.layout) != len(axes):
			return nil, fmt.Errorf("setting axes of %q: %q names %d axes, and the tensor has %d", name, axes, len(axes), len(f.layout))
		}
	}
	if len(stated) > 0 {
		known = infer(m, stated, false).facts
	}
	axes := make(map[string]onnx.Axes, len(known))
	for name, f := range known {
		axes[name] = f.layout.axes()
	}
	return axes, nil
}
