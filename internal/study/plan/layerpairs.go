package plan

import (
	"slices"

	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// pairLayers returns the layers that an entry compares, and the pairs as indices into them; nil for
// a measure that reads no layers. Same pairs layers by name, else by order; then it is an error if
// their numbers differ. Matched pairs those of two forms of one model, and is an error if there are
// none. Grid pairs each with each.
func pairLayers(m spec.MeasureSpec, a, b *Model) (layersA, layersB []tensor.Layer, pairs [][2]int, err error) {
	switch m.LayerPairing() {
	case measure.PairPenultimate:
		return a.penultimate, b.penultimate, diagonal(1), nil
	case measure.PairSame:
		if pairs = sameNames(a.layers, b.layers); pairs != nil {
			return a.layers, b.layers, pairs, nil
		}
		if len(a.layers) != len(b.layers) {
			return nil, nil, nil, m.Errorf("layers: same needs the same number of layers of both models, but %s has %d and %s has %d: select corresponding layers, or write layers: grid",
				a.Entry.Name, len(a.layers), b.Entry.Name, len(b.layers))
		}
		return a.layers, b.layers, diagonal(len(a.layers)), nil
	case measure.PairMatched:
		if pairs, err = matchedLayers(a, b); err != nil {
			return nil, nil, nil, m.Errorf("%s and %s: %w", a.Entry.Name, b.Entry.Name, err)
		}
		return a.layers, b.layers, pairs, nil
	case measure.PairGrid:
		for i := range a.layers {
			for j := range b.layers {
				pairs = append(pairs, [2]int{i, j})
			}
		}
		return a.layers, b.layers, pairs, nil
	}
	return nil, nil, nil, nil
}

// sameNames returns nil unless every layer of both models has a partner of its name.
func sameNames(a, b []tensor.Layer) [][2]int {
	if len(a) != len(b) {
		return nil
	}
	var pairs [][2]int
	for i, l := range a {
		j := slices.IndexFunc(b, func(k tensor.Layer) bool { return k.Name == l.Name })
		if j < 0 {
			return nil
		}
		pairs = append(pairs, [2]int{i, j})
	}
	return pairs
}

func diagonal(n int) [][2]int {
	pairs := make([][2]int, n)
	for i := range pairs {
		pairs[i] = [2]int{i, i}
	}
	return pairs
}

// procedureLayers returns the layers that a procedure reads of a single model, or nil.
func procedureLayers(m spec.MeasureSpec, model *Model) []tensor.Layer {
	switch m.LayerPairing() {
	case "":
		return nil
	case measure.PairPenultimate:
		return model.penultimate
	}
	return model.layers
}
