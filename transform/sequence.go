package transform

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/noether-ml/noether/tensor"
)

// A Sequence applies its transforms in order. An empty one is the identity.
type Sequence []Transform

// Draw draws each member's Op, in order.
func (t Sequence) Draw(r *rand.Rand) Op {
	ops := make(sequenceOp, len(t))
	for i, member := range t {
		ops[i] = member.Draw(r)
	}
	return ops.typed()
}

func (t Sequence) Random() bool { return slices.ContainsFunc(t, Random) }

// Version increases if the version of a member does, since its results have changed.
func (t Sequence) Version() int {
	version := 1
	for _, member := range t {
		version += Version(member) - 1
	}
	return version
}

func (t Sequence) OnMaps() bool   { return t.all(OnMaps) }
func (t Sequence) OnAudio() bool  { return t.all(OnAudio) }
func (t Sequence) OnImages() bool { return t.all(OnImages) }

// all reports whether all members have a trait, such as OnAudio.
func (t Sequence) all(trait func(Transform) bool) bool {
	return !slices.ContainsFunc(t, func(member Transform) bool { return !trait(member) })
}

type sequenceOp []Op

// Permutes reports whether all steps only permute the pixels of an h x w image.
func (o sequenceOp) Permutes(h, w int) bool {
	return !slices.ContainsFunc(o, func(op Op) bool { return !Permutes(op, h, w) })
}

func (o sequenceOp) Describe() string {
	var parts []string
	for _, op := range o {
		if text := describe(op); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// Err returns the first error of a step.
func (o sequenceOp) Err() error {
	for _, op := range o {
		if err := Err(op); err != nil {
			return err
		}
	}
	return nil
}

// Renew returns the sequence with the same parameters and new noise.
func (o sequenceOp) Renew(r *rand.Rand) Op {
	renewed := make(sequenceOp, len(o))
	for i, op := range o {
		renewed[i] = Renew(op, r)
	}
	return renewed.typed()
}

// typed returns the sequence as an AudioOp if all of its members are, and there is at least one.
func (o sequenceOp) typed() Op {
	if len(o) == 0 || slices.ContainsFunc(o, func(op Op) bool { _, ok := op.(AudioOp); return !ok }) {
		return o
	}
	return audioSequenceOp{o}
}

type audioSequenceOp struct{ sequenceOp }

func (o audioSequenceOp) ApplyAudio(wave []float32, rate int) []float32 {
	for _, op := range o.sequenceOp {
		wave = op.(AudioOp).ApplyAudio(wave, rate)
	}
	return wave
}

// CropPosition is that of the first member that lengthens the audio, 0 if none does.
func (o audioSequenceOp) CropPosition() float64 {
	for _, op := range o.sequenceOp {
		if p := CropPosition(op); p != 0 {
			return p
		}
	}
	return 0
}

func (o sequenceOp) Apply(dst, src tensor.Tensor) {
	if len(o) == 0 {
		Identity{}.Apply(dst, src)
		return
	}
	if len(o) == 1 {
		o[0].Apply(dst, src)
		return
	}
	// Results alternate between dst and a scratch tensor, so that the last one is in dst.
	current, next := dst, tensor.New(src.Shape...)
	if len(o)%2 == 0 {
		current, next = next, current
	}
	for _, op := range o {
		op.Apply(current, src)
		src, current, next = current, next, current
	}
}
