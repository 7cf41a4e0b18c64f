package dataset

import (
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A Waveform is the whole waveform that the Input of a sample is cut from. Transformations act on
// the waveform, and the item is cut out again afterwards.
type Waveform struct {
	Rate    int       // samples per second
	Seconds float64   // seconds of an item; 0: whole files
	Data    []float32 // the whole waveform, padded to the length of an item; nil in a description
	Start   int       // index of the first sample of Input
}

// Apply returns T(x): the sample's image, or its waveform, under an Op.
//
// A waveform is transformed whole. If its n samples became n', positions scale by n'/n, and the
// item is cut from the scaled position. If the scaled item is longer than before (a slower
// waveform), a part that starts at a random position is taken. If it is shorter, it is repeated
// before and after itself, in random shares. So neither the length nor the position of a silence
// reveals the stretching. This is the rule of the code of Plachouras et al. 2025. The random
// position is part of the Op.
func (s Sample) Apply(op transform.Op) (tensor.Tensor, error) {
	if s.Waveform == nil {
		out := tensor.New(s.Input.Shape...)
		op.Apply(out, s.Input)
		return out, nil
	}
	audioOp, ok := op.(transform.AudioOp)
	if !ok {
		return tensor.Tensor{}, errors.New("a transformation of images cannot be applied to audio")
	}
	wave := audioOp.ApplyAudio(s.Waveform.Data, s.Waveform.Rate)
	if len(wave) == 0 {
		return tensor.Tensor{}, fmt.Errorf("%s: the transformed waveform is empty", s.Name)
	}
	return tensor.Tensor{Shape: s.Input.Shape, Data: s.Waveform.excerpt(wave, s.Input.Len(), transform.CropPosition(op))}, nil
}

// excerpt cuts an item of n samples out of a transformed waveform. place, in [0, 1), is the random
// position.
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
