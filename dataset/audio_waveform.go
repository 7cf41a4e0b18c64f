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
	// The channels, one after the other, of which Input has as many. Each is at least as long as Input,
	// padded with zeros. Nil in a Sample without values.
	Data  []float32
	Start int // index in a channel of the first value of Input
}

// Apply returns the sample's image, audio or array, transformed by op: a transformation whose random
// parameters have been drawn. An array is transformed as maps, if it has them (see MapsOf).
//
// For audio the whole waveform is transformed. If its N values become N', positions scale by N'/N,
// and the excerpt that was Input starts and ends at the scaled positions. An excerpt that is longer
// than Input is cropped at a random position. A shorter one is placed at a random position, and
// copies of it fill the rest. So neither the length nor the position of silence reveals how much
// the audio was stretched. The code of Plachouras et al. 2025 (see package
// internal/procedure/probe) does the same. The random position is part of op, which is the same for
// all channels, with its noise. An op for images only is an error for audio.
func (s Sample) Apply(op transform.Op) (tensor.Tensor, error) {
	if s.Waveform == nil {
		out := tensor.New(s.Input.Shape...)
		op.Apply(s.maps(out), s.maps(s.Input))
		return out, transform.Err(op)
	}
	audioOp, ok := op.(transform.AudioOp)
	if !ok {
		return tensor.Tensor{}, errors.New("a transformation of images cannot be applied to audio")
	}
	out := tensor.New(s.Input.Shape...)
	channels := s.Input.Shape[0]
	n, all := s.Input.Len()/channels, len(s.Waveform.Data)/channels
	for c := range channels {
		wave := audioOp.ApplyAudio(s.Waveform.Data[c*all:(c+1)*all:(c+1)*all], s.Waveform.Rate)
		if len(wave) == 0 {
			return tensor.Tensor{}, fmt.Errorf("%s: the transformed waveform is empty", s.Name)
		}
		s.Waveform.excerpt(out.Data[c*n:(c+1)*n], wave, all, transform.CropPosition(op))
	}
	return out, nil
}

// maps returns the input or the result of a transformation with the shape that is transformed.
func (s Sample) maps(t tensor.Tensor) tensor.Tensor {
	if shape := MapsOf(s.Arrays); shape != nil {
		t.Shape = shape
	}
	return t
}

// ApplyAll returns the transformed samples, as Apply does, for the Ops of draws of one transformation.
// The work is done by each (see transform.ApplyAll).
func ApplyAll(samples []Sample, ops []transform.Op, each func(n int, apply func(i int) error) error) ([]tensor.Tensor, error) {
	out, dst, src := make([]tensor.Tensor, len(samples)), make([]tensor.Tensor, len(samples)), make([]tensor.Tensor, len(samples))
	for i, s := range samples {
		if s.Waveform != nil {
			return out, each(len(samples), func(i int) (err error) {
				out[i], err = samples[i].Apply(ops[i])
				return err
			})
		}
		out[i] = tensor.New(s.Input.Shape...)
		dst[i], src[i] = s.maps(out[i]), s.maps(s.Input)
	}
	if err := transform.ApplyAll(dst, src, ops, each); err != nil {
		return nil, err
	}
	for _, op := range ops {
		if err := transform.Err(op); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// excerpt cuts the values of a channel of the transformed Input, out, out of wave, the transformed
// channel, which had all values before, as Apply describes. position, in [0, 1), is the random
// position.
func (s *Waveform) excerpt(out, wave []float32, all int, position float64) {
	n := len(out)
	scale := float64(len(wave)) / float64(all)
	from := int(math.Round(float64(s.Start) * scale))
	to := min(len(wave), max(from+1, int(math.Round(float64(s.Start+n)*scale))))
	part := wave[min(from, len(wave)-1):to]
	if spare := len(part) - n; spare >= 0 {
		copy(out, part[int(position*float64(spare+1)):])
		return
	}
	before := int(position * float64(n-len(part)+1))
	for i := range out {
		out[i] = part[((i-before)%len(part)+len(part))%len(part)]
	}
}
