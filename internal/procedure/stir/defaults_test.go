package stir

import (
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/measure/similarity"
)

// Defaults returns the settings of Nanda et al. 2022.
func Defaults() Settings {
	return Settings{Images: 1000, Inversions: []string{Arbitrary}, Similarity: []string{similarity.LinearCKA},
		Start: string(invert.Noise), Optimiser: string(invert.Paper), Beta: defaultBeta, Delta: 0.1}
}
