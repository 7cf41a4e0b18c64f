package plan

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/tensor"
)

// TestAlignOutputs checks the common form of the outputs of two models with other numbers of
// candidates and keypoints, or another order of classes.
func TestAlignOutputs(t *testing.T) {
	t.Parallel()
	one := &decoded.Format{Kind: decoded.BoxList, Candidates: 1, Keypoints: 1, Classes: 3}
	two := &decoded.Format{Kind: decoded.BoxList, Candidates: 2, Classes: 3}
	j := &jointOutput{formats: [2]*decoded.Format{one, two}, format: decoded.Format{Kind: decoded.BoxList, Candidates: 2, Classes: 3}, classes: []int{2, 0, 1}}
	for model, c := range []struct {
		row  []float32
		want []decoded.Box
	}{
		{[]float32{0.1, 0.2, 0.3, 0.4, 0.9, 1, 0.5, 0.5, 1}, []decoded.Box{{Class: 1, Score: 0.9}}},
		{[]float32{0.1, 0.2, 0.3, 0.4, 0.9, 0, 0, 0, 1, 1, 0.8, 2}, []decoded.Box{{Class: 2, Score: 0.9}, {Class: 1, Score: 0.8}}},
	} {
		z := tensor.Tensor{Shape: append([]int{1}, j.formats[model].Shape()...), Data: c.row}
		got, finite := j.format.Boxes(nil, j.align(model, z).Data)
		if !finite || !slices.EqualFunc(got, c.want, func(a, b decoded.Box) bool { return a.Class == b.Class && float32(a.Score) == float32(b.Score) }) {
			t.Errorf("model %d: %+v, want the scores and classes of %+v", model, got, c.want)
		}
	}

	one = &decoded.Format{Kind: decoded.ClassMap, Channels: 2, Height: 1, Width: 2, Classes: 3} // classes and their probabilities
	two = &decoded.Format{Kind: decoded.ClassMap, Channels: 1, Height: 1, Width: 2, Classes: 3}
	j = &jointOutput{formats: [2]*decoded.Format{one, two}, format: *two, classes: []int{2, 0, 1}}
	for model, c := range []struct{ row, want []float32 }{{[]float32{0, 2, 0.5, 0.6}, []float32{0, 2}}, {[]float32{0, 2}, []float32{2, 1}}} {
		z := tensor.Tensor{Shape: append([]int{1}, j.formats[model].Shape()...), Data: c.row}
		if got := j.align(model, z).Data; !slices.Equal(got, c.want) {
			t.Errorf("model %d: %v, want %v", model, got, c.want)
		}
	}
}
