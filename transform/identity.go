package transform

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/tensor"
)

// Identity returns the input unchanged.
type Identity struct{}

func (t Identity) Draw(*rand.Rand) Op     { return t }
func (t Identity) Random() bool           { return false }
func (t Identity) OnMaps() bool           { return true }
func (t Identity) Permutes(h, w int) bool { return true }

func (t Identity) Apply(dst, src tensor.Tensor) {
	dims(dst, src) // panics unless the shapes are equal
	copy(dst.Data, src.Data)
}

func (t Identity) OnAudio() bool                                 { return true }
func (t Identity) ApplyAudio(wave []float32, rate int) []float32 { return wave }
