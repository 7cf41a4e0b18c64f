package transform

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/tensor"
)

// Identity returns the input unchanged.
type Identity struct{}

// Draw implements Transform. Identity is its own Op (a transformation with fixed parameters).
func (t Identity) Draw(*rand.Rand) Op { return t }

// Random is false: Draw draws nothing.
func (t Identity) Random() bool { return false }

// OnMaps is true: the transformation also acts on feature maps.
func (t Identity) OnMaps() bool { return true }

// Permutes is true: every output pixel is a copy of an input pixel, its own.
func (t Identity) Permutes(h, w int) bool { return true }

// Apply implements Op.
func (t Identity) Apply(dst, src tensor.Tensor) {
	dims(dst, src) // panics unless the shapes are equal
	copy(dst.Data, src.Data)
}

// OnAudio is true: the transformation also acts on audio.
func (t Identity) OnAudio() bool { return true }

// ApplyAudio implements AudioOp, an Op on audio.
func (t Identity) ApplyAudio(wave []float32, rate int) []float32 { return wave }
