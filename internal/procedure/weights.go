package procedure

import (
	"maps"
	"slices"

	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/tensor"
)

const (
	weightsKind    = "weights"
	weightsVersion = 1
)

// LoadWeights sets trained weights, by name, to those that SaveWeights has stored. It returns false
// if there are none of the same names and shapes; some may be set nevertheless.
func LoadWeights(s *features.Store, name string, weights map[string]tensor.Tensor) bool {
	raw, err := s.Load(name)
	return err == nil && raw != nil && state.Unmarshal(raw, weightsKind, weightsVersion,
		codeWeights(weights)) == nil
}

// SaveWeights stores trained weights, by name.
func SaveWeights(s *features.Store, name string, weights map[string]tensor.Tensor) error {
	raw, err := state.Marshal(weightsKind, weightsVersion, codeWeights(weights))
	if err != nil {
		return err
	}
	return s.Save(name, raw)
}

func codeWeights(weights map[string]tensor.Tensor) func(*state.Codec) {
	return func(c *state.Codec) {
		c.Matches(len(weights))
		for _, name := range slices.Sorted(maps.Keys(weights)) {
			if c.Matches(name) && c.Matches(weights[name].Shape) {
				c.Values(weights[name].Data)
			}
		}
	}
}
