package results

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// TestMeanChannel averages two channels of three values, cut and followed by zeros.
func TestMeanChannel(t *testing.T) {
	t.Parallel()
	clip := tensor.Tensor{Shape: []int{2, 3}, Data: []float32{1, 2, 3, 3, 4, 5}}
	for n, want := range map[int][]float32{2: {2, 3}, 3: {2, 3, 4}, 5: {2, 3, 4, 0, 0}} {
		if got := meanChannel(clip, n); !slices.Equal(got, want) {
			t.Errorf("%d values: %v, want %v", n, got, want)
		}
	}
}

// TestSoundLines checks the order in which samples get sound: those that a model gets wrong, then
// those that change most and least, then the others, each once.
func TestSoundLines(t *testing.T) {
	t.Parallel()
	sheet := &scores.SampleSheet{Samples: make([]scores.SheetSample, 6), Models: []scores.SheetModel{
		{Fails: []int{4}, Most: []int{4, 1}, Least: []int{0}}, {Fails: []int{2}, Most: []int{1, 5}}}}
	if got, want := soundLines(sheet), []int{4, 2, 1, 5, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
