package dataset

import (
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A Waveform is the waveform that the Input of a sample is a part of: transformations act on all of it, and the item is cut out
// again afterwards.
type Waveform struct {
	Rate    int       // samples a second
	Seconds float64   // seconds of every item of the source; 0: as much as each sound has
	Data    []float32 // the whole sound, with the zeros that make it as long as an item; nil in a description
	Start   int       // where Input starts in it
}

// Apply returns T(x): the sample's image under an Op, or its sound.
//
// A sound is transformed whole, and the item is then taken from where it was: where n samples became n', from places n'/n as far
// along. If that stretch is longer than the item (the sound was slowed down), the item is a part of it that starts at random; if it
// is shorter, it is repeated before and after itself, in random shares. Neither the length of a silence nor where it lies then
// tells by how much a sound was stretched. The rule is that of the code of Plachouras et al. 2025; what is random is
// part of the Op.
func (s Sample) Apply(op transform.Op) (tensor.Tensor, error) {
	if s.Waveform == nil {
		out := tensor.New(s.Input.Shape...)
		op.Apply(out, s.Input)
		return out, nil
	}
	sounding, ok := op.(transform.AudioOp)
	if !ok {
		return tensor.Tensor{}, errors.New("a transformation of images meets a sound")
	}
	wave := sounding.ApplyAudio(s.Waveform.Data, s.Waveform.Rate)
	if len(wave) == 0 {
		return tensor.Tensor{}, fmt.Errorf("%s: nothing is left of the sound", s.Name)
	}
	return tensor.Tensor{Shape: s.Input.Shape, Data: s.Waveform.excerpt(wave, s.Input.Len(), transform.CropPosition(op))}, nil
}

// excerpt takes an item of n samples from the transformed sound; place, in [0, 1), decides what is left open.
func (s *Waveform) excerpt(wave []float32, n int, place float64) []float32 {
	scale := float64(len(wave)) / float64(len(s.Data))
	from := int(math.Round(float64(s.Start) * scale))
	to := min(len(wave), max(from+1, int(math.Round(float64(s.Start+n)*scale))))
	part := wave[min(from, len(wave)-1):to]
	out := make([]float32, n)
	if spare := len(part) - n; spare >= 0 {
		copy(out, part[int(place*float64(spare+1)):])
		return out
	}
	before := int(place * float64(n-len(part)+1))
	for i := range out {
		out[i] = part[((i-before)%len(part)+len(part))%len(part)]
	}
	return out
}
