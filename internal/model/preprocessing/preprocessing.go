// Package preprocessing describes the steps between a sample and the input of a model. It reads
// them by the name of a preset and from the preprocessor_config.json of a model of Hugging Face.
package preprocessing

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model/logmel"
	"github.com/noether-ml/noether/tensor"
)

// Settings describe the steps between an image and the input of a model. The frame (size and
// channels of images, or rate and length of waveforms) is applied while decoding. Transformations
// act on values in [0, 1]. Normalise then converts them to the values that the model was trained
// on:
//
//	out[c] = (low + in[c'] (high - low) - Mean[c]) / Std[c]
//
// for channel c, where [low, high] is Range and c' is c, or 2 - c if Order is "bgr". The zero
// Settings change nothing.
//
// A waveform x has values in [-1, 1]. Mean and Std have at most one value for it. Range has the
// values for -1 and 1 (zero: [-1, 1]). Before Range, Mean and Std, Standardise replaces x by (x -
// mean(x)) / sqrt(var(x) + 1e-7), as in wav2vec 2.0. Features (log-mel spectrograms) are computed
// last.
type Settings struct {
	Frame dataset.Frame
	Mean  []float32  // one for each channel in the model's order, or one for all; empty: 0
	Std   []float32  // like Mean; empty: 1
	Order string     // "rgb" (default) or "bgr": the model's order of the channels
	Range [2]float32 // low and high: the values for 0 and 1 before Mean and Std; zero: [0, 1]

	Standardise bool             `json:",omitzero"` // audio: each waveform is standardised to mean 0 and deviation 1
	Features    *logmel.Settings `json:",omitzero"` // audio: the model takes these features, computed as part of its graph
}

// presets are the named preprocessings.
var presets = map[string]Settings{
	"none": {},
	"imagenet": {
		Frame: dataset.Frame{Resize: 256, Height: 224, Width: 224, Channels: 3},
		Mean:  []float32{0.485, 0.456, 0.406},
		Std:   []float32{0.229, 0.224, 0.225},
	},
	"cifar10": {
		Frame: dataset.Frame{Height: 32, Width: 32, Channels: 3},
		Mean:  []float32{0.4914, 0.4822, 0.4465},
		Std:   []float32{0.2470, 0.2435, 0.2616},
	},
	"clip": {
		Frame: dataset.Frame{Resize: 224, Height: 224, Width: 224, Channels: 3, Interpolation: "bicubic"},
		Mean:  []float32{0.48145466, 0.4578275, 0.40821073},
		Std:   []float32{0.26862954, 0.26130258, 0.27577711},
	},
}

// LetterboxFill is the grey with which YOLO detectors pad images.
const LetterboxFill = 114. / 255

// Preset returns "imagenet" (torchvision's classifiers), "cifar10", "clip" or "none".
func Preset(name string) (Settings, error) {
	p, ok := presets[name]
	if !ok {
		known := slices.Sorted(maps.Keys(presets))
		return Settings{}, fmt.Errorf("preprocess: unknown preset %q: use %s", name, strings.Join(known, ", "))
	}
	p.Mean, p.Std = slices.Clone(p.Mean), slices.Clone(p.Std)
	return p, nil
}

// A KeyError is caused by one key of a preprocessing.
type KeyError struct {
	Key string // as in study files, for instance "mean"
	Err error
}

func (e *KeyError) Error() string { return e.Err.Error() }

func (e *KeyError) Unwrap() error { return e.Err }

func keyErrorf(key, format string, args ...any) error {
	return &KeyError{Key: key, Err: fmt.Errorf(format, args...)}
}

// Check returns an error if the preprocessing does not fit images of that many channels.
func (p Settings) Check(channels int) error {
	if err := p.Frame.Check(); err != nil {
		return err
	}
	if p.Frame.Rate > 0 || p.Frame.Length > 0 || p.Standardise || p.Features != nil {
		return keyErrorf("rate", "preprocess: rate, length, standardise and features are for audio, and the model takes images")
	}
	if err := p.checkNumbers(channels); err != nil {
		return err
	}
	switch p.Order {
	case "", "rgb":
	case "bgr":
		if channels != 3 {
			return keyErrorf("order", "preprocess: order bgr needs 3 channels and the model takes %d", channels)
		}
	default:
		return keyErrorf("order", "preprocess: unknown order %q: use rgb or bgr", p.Order)
	}
	return nil
}

func (p Settings) checkNumbers(channels int) error {
	if err := checkPerChannel("mean", p.Mean, channels); err != nil {
		return err
	}
	if err := checkPerChannel("std", p.Std, channels); err != nil {
		return err
	}
	if i := slices.Index(p.Std, 0); i >= 0 {
		return keyErrorf("std", "preprocess: std[%d] is 0, and values are divided by it", i)
	}
	if low, high := p.Bounds(); !(low < high) || math.IsInf(float64(high-low), 0) {
		return keyErrorf("range", "preprocess: range [%v, %v] is empty: low must be below high", low, high)
	}
	return nil
}

func checkPerChannel(name string, v []float32, channels int) error {
	if n := len(v); n > 1 && n != channels {
		return keyErrorf(name, "preprocess: %s has %d values and the model takes %d channels: give %d, or one for all", name, n, channels, channels)
	}
	if i := slices.IndexFunc(v, func(x float32) bool { return x-x != 0 }); i >= 0 { // NaN or infinite
		return keyErrorf(name, "preprocess: %s[%d] is %v", name, i, v[i])
	}
	return nil
}

// Bounds returns the values that 0 and 1 of an image have before Mean and Std are applied.
func (p Settings) Bounds() (low, high float32) {
	if p.Range == [2]float32{} {
		return 0, 1
	}
	return p.Range[0], p.Range[1]
}

// Normalise writes to dst the model's input for src, an image of c x h x w with values in [0, 1] or
// a waveform of 1 x n. dst has the same length and may be src.Data itself unless the order is bgr.
// Check must have accepted the number of channels.
func (p Settings) Normalise(dst []float32, src tensor.Tensor) {
	if src.Rank() == 2 {
		p.normaliseAudio(dst, src.Data)
		return
	}
	channels := src.Shape[0]
	n := src.Shape[1] * src.Shape[2]
	low, high := p.Bounds()
	for c := range channels {
		from := c
		if p.Order == "bgr" {
			from = channels - 1 - c
		}
		mean, std := ChannelValue(p.Mean, c, 0), ChannelValue(p.Std, c, 1)
		in, out := src.Data[from*n:(from+1)*n], dst[c*n:(c+1)*n]
		if low == 0 && high == 1 {
			for i, v := range in {
				out[i] = (v - mean) / std
			}
			continue
		}
		for i, v := range in {
			out[i] = (low + v*(high-low) - mean) / std
		}
	}
}

// ChannelValue returns the value for channel c of a list of one value per channel or one for all.
func ChannelValue(v []float32, c int, none float32) float32 {
	switch len(v) {
	case 0:
		return none
	case 1:
		return v[0]
	}
	return v[c]
}

// CheckAudio returns an error if the preprocessing does not fit audio.
func (p Settings) CheckAudio() error {
	switch {
	case p.Frame.ForImages():
		return keyErrorf("crop", "preprocess: sizes and channels are for images, and the model takes audio")
	case p.Order != "":
		return keyErrorf("order", "preprocess: order is for images, and the model takes audio")
	case len(p.Mean) > 1:
		return keyErrorf("mean", "preprocess: mean has %d values, and audio has one channel", len(p.Mean))
	case len(p.Std) > 1:
		return keyErrorf("std", "preprocess: std has %d values, and audio has one channel", len(p.Std))
	}
	if err := p.Frame.Check(); err != nil {
		return err
	}
	if err := p.checkNumbers(1); err != nil {
		return err
	}
	if p.Features == nil {
		return nil
	}
	s := *p.Features
	s.Rate = cmp.Or(s.Rate, p.Frame.Rate)
	if err := s.Check(); err != nil {
		return &KeyError{Key: "features", Err: err}
	}
	return nil
}

// StandardiseOffset is added to the variance of a waveform before the square root.
const StandardiseOffset = 1e-7

// AudioScale returns Range, Mean and Std as a map of a waveform x to x scale + shift.
func (p Settings) AudioScale() (scale, shift float32) {
	low, high := float32(-1), float32(1)
	if p.Range != [2]float32{} {
		low, high = p.Range[0], p.Range[1]
	}
	std := ChannelValue(p.Std, 0, 1)
	return (high - low) / 2 / std, ((high+low)/2 - ChannelValue(p.Mean, 0, 0)) / std
}

func (p Settings) normaliseAudio(dst, src []float32) {
	scale, shift := p.AudioScale()
	if p.Standardise {
		var sum, squares float64
		for _, v := range src {
			sum += float64(v)
		}
		mean := sum / float64(len(src))
		for _, v := range src {
			squares += (float64(v) - mean) * (float64(v) - mean)
		}
		inverse := 1 / math.Sqrt(squares/float64(len(src))+StandardiseOffset)
		for i, v := range src {
			dst[i] = float32((float64(v)-mean)*inverse)*scale + shift
		}
		return
	}
	for i, v := range src {
		dst[i] = v*scale + shift
	}
}
