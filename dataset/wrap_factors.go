package dataset

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/tensor"
)

// A computed source adds factors that it computes from the image or audio of each sample.
type computed struct {
	wrapped
	names []string // of the computed factors
}

// factorFunctions are the functions that compute a factor from an image (hue, saturation, value) or
// from audio (level), by its name.
var factorFunctions = map[string]func(tensor.Tensor) (float64, error){
	"hue": hsvMean(0), "saturation": hsvMean(1), "value": hsvMean(2), "level": levelOf,
}

// ComputeFactors returns a source whose samples also carry the named factors, computed from their
// Input after its conversion to the Frame. An unknown or repeated name, and that of a factor of
// src, is an error.
//
//	hue         mean hue of an image in 8 bits, 0 to 179: half the angle in degrees
//	saturation  mean saturation, 0 to 255
//	value       mean over the pixels of the largest channel, 0 to 255
//	level       20 log10 of the root mean square of audio, in dB relative to 1; at least -200, its
//	            value for silence
//
// Hue, saturation and value are those of OpenCV's conversion of 8-bit images, rounded before the
// mean. With V the largest and m the smallest of the channels R, G and B of a pixel, the saturation
// is 255 (V - m) / V, and 0 for black. The hue is
//
//	30 (G - B) / (V - m)         if V is R, plus 180 if that is negative
//	60 + 30 (B - R) / (V - m)    if V is G
//	120 + 30 (R - G) / (V - m)   if V is B
//
// and 0 for grey. The mean hue is the arithmetic mean, not the circular one, as in Plachouras et
// al. 2025. In an image of one channel hue and saturation are 0.
//
// Factors that the function Describe returns can differ from those of At: Describe takes no Frame,
// so they are computed from the Input as it is stored.
func ComputeFactors(src Source, names []string) (Source, error) {
	if len(names) == 0 {
		return src, nil
	}
	for i, name := range names {
		switch {
		case factorFunctions[name] == nil:
			return nil, fmt.Errorf("unknown factor %q: use one of %s", name, strings.Join(slices.Sorted(maps.Keys(factorFunctions)), ", "))
		case slices.Contains(src.Factors(), name):
			return nil, fmt.Errorf("the data have a factor %q of their own", name)
		case slices.Contains(names[:i], name):
			return nil, fmt.Errorf("factor %q is listed twice", name)
		}
	}
	d := newDigest("measured")
	d.add(src.Fingerprint(), names)
	return computed{wrapped{src, d.String()}, slices.Clone(names)}, nil
}

func (m computed) Factors() []string {
	return slices.Sorted(slices.Values(slices.Concat(m.Source.Factors(), m.names)))
}

func (m computed) At(ctx context.Context, i int, f Frame) (Sample, error) {
	s, err := m.Source.At(ctx, i, f)
	if err != nil {
		return s, err
	}
	factors := make(map[string]float64, len(s.Factors)+len(m.names))
	maps.Copy(factors, s.Factors)
	for _, name := range m.names {
		if factors[name], err = factorFunctions[name](s.Input); err != nil {
			return s, fmt.Errorf("factor %s of %s: %w", name, s.Name, err)
		}
	}
	s.Factors = factors
	return s, nil
}

func (m computed) describe(ctx context.Context, i int) (Sample, error) {
	s, err := m.At(ctx, i, Frame{})
	s.Input, s.Transformed = tensor.Tensor{}, nil
	if s.Waveform != nil {
		described := *s.Waveform
		described.Data = nil
		s.Waveform = &described
	}
	return s, err
}

// hsvMean returns the function that averages one component of an image: hue, saturation or value.
func hsvMean(component int) func(tensor.Tensor) (float64, error) {
	return func(t tensor.Tensor) (float64, error) {
		if t.Rank() != 3 || t.Shape[0] != 1 && t.Shape[0] != 3 {
			return 0, fmt.Errorf("the factor is for images of 1 or 3 channels, not for shape %v", t.Shape)
		}
		n := t.Shape[1] * t.Shape[2]
		channel := func(c, i int) float64 {
			return math.RoundToEven(255 * float64(min(max(t.Data[min(c, t.Shape[0]-1)*n+i], 0), 1)))
		}
		var sum float64
		for i := range n {
			sum += hsv(channel(0, i), channel(1, i), channel(2, i))[component]
		}
		return sum / float64(n), nil
	}
}

// hsv returns hue, saturation and value of an 8-bit colour, as ComputeFactors defines them.
func hsv(r, g, b float64) [3]float64 {
	top, low := max(r, g, b), min(r, g, b)
	span := top - low
	if span == 0 {
		return [3]float64{0, 0, top}
	}
	var hue float64
	switch top {
	case r:
		hue = 30 * (g - b) / span
	case g:
		hue = 60 + 30*(b-r)/span
	default:
		hue = 120 + 30*(r-g)/span
	}
	if hue = math.Round(hue); hue < 0 {
		hue += 180
	}
	return [3]float64{hue, math.Round(255 * span / top), top}
}

// silence is the lowest level, that of a waveform of zeros, in dB relative to 1.
const silence = -200

// levelOf returns the level of a waveform in dB relative to 1.
func levelOf(t tensor.Tensor) (float64, error) {
	if t.Rank() != 2 {
		return 0, fmt.Errorf("the factor is for audio, not for shape %v", t.Shape)
	}
	var sum float64
	for _, v := range t.Data {
		sum += float64(v) * float64(v)
	}
	if sum == 0 {
		return silence, nil
	}
	return max(silence, 10*math.Log10(sum/float64(t.Len()))), nil
}
