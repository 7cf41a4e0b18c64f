// Package transform moves an input: it rotates, shifts, blurs or recolours an image, in the way that the
// torchvision functions of the same name do.
//
// A Transform is a family T_theta with a distribution for its parameter. Draw returns one member, an Op,
// which is a plain function of tensors. Images are c x h x w with values in [0, 1], after resize and crop and before
// mean and deviation. Geometric Ops also move feature maps of any number of channels and any values; OnMaps
// tells which transforms do.
//
// Angles are degrees counter-clockwise; translations are fractions of the side, to the right and down; grey is
// 0.2989 R + 0.587 G + 0.114 B.
//
// Transforms can be written as Go values, Rotate{Angle: Uniform(-15, 15)}, or made by name from the table of
// Kinds, which checks every parameter. Values written by hand are trusted to lie in the ranges given there.
package transform

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/tensor"
)

// An Op is a transformation whose parameters are fixed. It holds no scratch space: one Op may be applied by
// several goroutines at once.
type Op interface {
	// Apply writes T(src) to dst. Both are c x h x w and do not overlap.
	Apply(dst, src tensor.Tensor)
}

// A AudioOp is an Op that moves sounds.
type AudioOp interface {
	Op
	// ApplySound returns T of a waveform of so many samples a second. It may be of another length; it is not wave itself unless the
	// Op leaves it as it is.
	ApplyAudio(wave []float32, rate int) []float32
}

// A Transform is a distribution over Ops of one kind.
type Transform interface {
	// Draw picks an Op. A transform with fixed parameters and no noise of its own leaves r untouched.
	Draw(r *rand.Rand) Op
}
