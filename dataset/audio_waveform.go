package dataset

import (
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A Waveform is the whole recording that the Input of a sample is cut from. Apply transforms the
// whole waveform and then cuts the transformed input out of the result.
type Waveform struct {
	Rate    int     // samples per second
	Seconds float64 // length of Input that the options of the source set; 0: none
	// At least as long as Input, padded with zeros; nil in a Sample without values.
	Data  []float32
	Start int // index in Data of the first value of Input
}

// Apply returns the sample's image or audio, transformed by op: a transformation whose random
// parameters have been drawn.
//
// For audio the whole waveform is transformed. If its N values become N', positions scale by N'/N,
// and the excerpt that was Input starts and ends at the scaled positions. An excerpt that is longer
// than Input is cropped at a random position. A shorter one is placed at a random position, and
// copies of it fill the rest. So neither the length nor the position of silence reveals how much
// the audio was stretched. The code of Plachouras et al. 2025 (see package
// internal/procedure/probe) does the same. The random position is part of op. An op for images only
// is an error for audio.
func (s Sample) Apply(op transform.Op) (tensor.Tensor, error) {
	if s.Waveform == nil {
		out := tensor.New(s.Input.Shape...)
		op.Apply(out, s.Input)
		return out, transform.Err(op)
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

// excerpt cuts the n values of the transformed Input out of wave, the transformed waveform, as
// Apply describes. position, in [0, 1), is the random position.
func (s *Waveform) excerpt(wave []float32, n int, position float64) []float32 {
	scale := float64(len(wave)) / float64(len(s.Data))
	from := int(math.Round(float64(s.Start) * scale))
	to := min(len(wave), max(from+1, int(math.Round(float64(s.Start+n)*scale))))
	part := wave[min(from, len(wave)-1):to]
	out := make([]float32, n)
	if spare := len(part) - n; spare >= 0 {
		copy(out, part[int(position*float64(spare+1)):])
		return out
	}
	before := int(position * float64(n-len(part)+1))
	for i := range out {
		out[i] = part[((i-before)%len(part)+len(part))%len(part)]
	}
	return out
}
