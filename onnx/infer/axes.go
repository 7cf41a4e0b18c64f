package infer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Axes returns the axes of every tensor of the main graph, by name.
//
// stated sets the axes of some tensors in place of inferred ones, for example of an input whose
// channels are last; the axes of tensors computed from these follow. Unknown tensors, wrong ranks
// and unknown letters are errors.
func Axes(m *onnx.Model, stated map[string]tensor.Axes) (map[string]tensor.Axes, error) {
	// Inference runs on sizes. For dimensions that the model leaves open it assumes typical ones.
	known := infer(m, nil, withTypicalSizes).facts
	for _, name := range slices.Sorted(maps.Keys(stated)) {
		f, ok := known[name]
		switch axes := stated[name]; {
		case !ok:
			return nil, fmt.Errorf("setting axes: the model has no tensor %q", name)
		case axes == "" || strings.Trim(string(axes), "NCHWT?") != "":
			return nil, fmt.Errorf("setting axes of %q: %q has letters other than N, C, H, W, T and ?", name, axes)
		case f.layout != nil && len(f.layout) != len(axes):
			return nil, fmt.Errorf("setting axes of %q: %q names %d axes, and the tensor has %d", name, axes, len(axes), len(f.layout))
		}
	}
	if len(stated) > 0 {
		known = infer(m, stated, withTypicalSizes).facts
	}
	axes := make(map[string]tensor.Axes, len(known))
	for name, f := range known {
		axes[name] = f.layout.axes()
	}
	return axes, nil
}
