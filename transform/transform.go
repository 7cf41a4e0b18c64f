// Package transform provides transformations of images and audio. It rotates, shifts, blurs and
// changes the colours of images as functions of torchvision do, which the comments name, and has
// the corruptions of ImageNet-C. It stretches audio, shifts its pitch, filters it, and adds
// reverberation and noise.
//
// A Transform is a family T_theta with a distribution of its parameter theta. Draw returns an Op,
// the transformation of one drawn parameter:
//
//	rotate := transform.Rotate{Angle: transform.Uniform(-15, 15)}
//	rotate.Draw(random).Apply(rotated, image) // c x h x w, by an angle that is drawn from random
//
// Images are c x h x w with values in [0, 1], after resize and crop and before normalisation by
// mean and deviation. Geometric Ops also apply to feature maps with any number of channels and any
// values; OnMaps reports which transforms do.
//
// Angles are degrees counter-clockwise; translations are fractions of the side, to the right and
// down; grey is 0.2989 R + 0.587 G + 0.114 B.
//
// Kinds lists the transformations by name. Kind.Make makes one of them and checks every parameter.
// The fields of Go values such as Rotate are not checked; they must lie in the ranges that the Kind
// gives.
package transform

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/tensor"
)

// An Op is a transformation with fixed parameters; several goroutines may apply it.
type Op interface {
	// Apply writes T(src), the transformed src, to dst. Both are c x h x w and do not overlap.
	Apply(dst, src tensor.Tensor)
}

// An AudioOp is an Op on audio.
type AudioOp interface {
	Op
	// ApplyAudio returns T of a waveform of rate samples a second, maybe of another length. It does
	// not change wave, and returns it only for the identity.
	ApplyAudio(wave []float32, rate int) []float32
}

// A Transform is a distribution over Ops of one kind.
type Transform interface {
	// Draw returns an Op with parameters from r, which fixed transforms without noise do not use.
	Draw(r *rand.Rand) Op
}
