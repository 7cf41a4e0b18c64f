package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/internal/study/spec"
)

// imageSizes describes the sizes of some images of a data set, in pixels.
type imageSizes struct {
	height, width int  // of the first
	same          bool // all images have the size of the first
	short         int  // median of the shorter sides; 0 if no image could be decoded
}

// sizesOf reads at most sixteen images, evenly spaced. It ignores those that cannot be decoded.
func sizesOf(ctx context.Context, data dataset.Source) (imageSizes, error) {
	sizes := imageSizes{same: true}
	var short []int
	n := min(data.Len(), 16)
	for i := range n {
		s, err := data.At(ctx, i*data.Len()/n, dataset.Frame{}) // the zero Frame: neither resized nor cropped
		if bad := (*dataset.BadSample)(nil); errors.As(err, &bad) {
			continue
		}
		if err != nil {
			return sizes, err
		}
		h, w := s.Input.Shape[1], s.Input.Shape[2]
		if sizes.height == 0 {
			sizes.height, sizes.width = h, w
		}
		sizes.same = sizes.same && h == sizes.height && w == sizes.width
		short = append(short, min(h, w))
	}
	if len(short) > 0 {
		slices.Sort(short)
		sizes.short = short[len(short)/2]
	}
	return sizes, nil
}

// candidates returns sizes to try for a model of free size, the best first: some divide it until 1
// is left, as those that read a line of text, others into halves that they join again.
func (s imageSizes) candidates() [][2]int {
	height, width := freeSize(s)
	square, above := largestSquare(s), func(side int) int { return (side + 31) / 32 * 32 }
	var sizes [][2]int
	for _, size := range [][2]int{{height, width}, {above(height), above(width)}, {square, square}, {224, 224}, {48, 320}, {32, 320}, {64, 256}} {
		if !slices.Contains(sizes, size) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// guessPreprocess returns YAML: a resize that keeps the aspect ratio, a centre crop to the model's
// size, or to the given one if it takes any, and a normalisation, unless the model normalises its
// input.
func guessPreprocess(m *model.Model, sizes imageSizes, free [2]int) string {
	preset := "none"
	height, width := m.Frame().Height, m.Frame().Width // of the images that the model takes; 0: any
	if height == 0 || width == 0 {
		height, width = free[0], free[1]
	}
	// inside is true if the model normalises its input itself; one that takes 8-bit images must.
	inside := m.Normalisation() != nil || m.TakesBytes()
	if text := letterboxOf(m, height, width); text != "" && !inside {
		return text
	}
	switch {
	case inside || m.Frame().Channels != 3:
	case height <= 64 && width > 2*height: // a line of text
		return fmt.Sprintf("{crop: %s, mean: 0.5, std: 0.5}", side(height, width))
	case min(height, width) >= 128: // most networks of large images are trained on ImageNet
		preset = "imagenet"
	case height == 32 && width == 32:
		preset = "cifar10"
	}
	if p, err := preprocessing.Preset(preset); err == nil && m.QuantisedConflict(p.Mean, p.Std, 0, 1) != "" && m.QuantisedConflict(nil, nil, 0, 1) == "" {
		preset = "none" // it was calibrated on images that are not normalised
	}
	var keys []string
	if preset != "none" {
		keys = append(keys, "preset: "+preset)
	}
	if fits := sizes.same && sizes.height == height && sizes.width == width; !fits || preset == "imagenet" {
		resize := max(height, width)
		if height == width && preset == "imagenet" && !fits {
			resize = (height*256 + 112) / 224 // rounded; the usual ratio of resize and crop for ImageNet
		}
		keys = append(keys, fmt.Sprintf("resize: %d", resize), "crop: "+side(height, width))
	}
	if n := m.Normalisation(); n != nil && n.Range[1] == 255 && !m.TakesBytes() {
		keys = append(keys, "range: [0, 255]") // the values of black and white
	}
	switch text := "{" + strings.Join(keys, ", ") + "}"; text {
	case "{}":
		return "none"
	case "{preset: imagenet, resize: 256, crop: 224}":
		return "imagenet"
	case "{preset: cifar10}":
		return "cifar10"
	default:
		return text
	}
}

// letterboxOf returns the preprocessing of a detector of the YOLO family, as YAML, or "" for another
// model. Those of Megvii (YOLOX) take blue, green and red from 0 to 255, the others values from 0 to
// 1.
func letterboxOf(m *model.Model, height, width int) string {
	f, _ := m.Decoded()
	if f == nil || m.Frame().Channels != 3 {
		return ""
	}
	switch f.Layout {
	case "yolox":
		return "{letterbox: " + side(height, width) + ", order: bgr, range: [0, 255]}"
	case "yolov5", "yolov8", "yolov10", "suppressed":
		return "{letterbox: " + side(height, width) + "}"
	}
	return ""
}

// suggested returns the preprocessing that noether init guesses for some images, as the value of a
// study file, or nil for a model of other inputs.
func suggested(ctx context.Context, m *model.Model, path string) (value any, err error) {
	if m.TakesArrays() || m.TakesAudio() {
		return nil, nil
	}
	local, err := open.UnpackedData(ctx, path)
	if err != nil {
		return nil, err
	}
	data, err := open.OpenPath(ctx, local)
	if err != nil {
		return nil, err
	}
	defer dataset.Close(data) // data are only read
	if open.RateOf(local) > 0 {
		return nil, fmt.Errorf("%s contains audio, and the model takes %s", path, takes(m))
	}
	sizes, err := sizesOf(ctx, data)
	if err != nil {
		return nil, err
	}
	height, width := freeSize(sizes)
	return value, yaml.Unmarshal([]byte(guessPreprocess(m, sizes, [2]int{height, width})), &value)
}

// recordedPreprocess returns the preprocessing that noether train recorded, as YAML. A resize and a
// crop are added if it has neither and the images have another size than the model takes.
func recordedPreprocess(m *model.Model, sizes imageSizes) (text string, found bool, err error) {
	p, text, found, err := open.RecordedPreprocess(m.Path())
	if !found || err != nil {
		return "", false, err
	}
	height, width := m.Frame().Height, m.Frame().Width // of the images that the model takes; 0: any
	if fits := sizes.same && sizes.height == height && sizes.width == width; fits || height == 0 || width == 0 || p.Frame.Resize > 0 || p.Frame.Height > 0 {
		return text, true, nil
	}
	p.Frame.Resize, p.Frame.Height, p.Frame.Width = max(height, width), height, width
	text, found = spec.PreprocessText(p)
	return text, found, nil
}

// freeSize returns the height and width for a model that takes any size: that of the images if they
// have a common one that is small or a multiple of 32, which the strides of usual networks divide;
// else a square, the largest multiple of 32, at most 224, that does not enlarge most images.
func freeSize(sizes imageSizes) (height, width int) {
	if sizes.same && (sizes.short < 64 || sizes.height%32 == 0 && sizes.width%32 == 0) {
		return sizes.height, sizes.width
	}
	side := largestSquare(sizes)
	return side, side
}

func largestSquare(sizes imageSizes) int { return max(min(sizes.short, 224)/32, 1) * 32 }

// side writes the size of a crop as YAML.
func side(height, width int) string {
	if height == width {
		return fmt.Sprint(height)
	}
	return fmt.Sprintf("[%d, %d]", height, width)
}

// perChannel writes one value for each channel, or one for all if they are equal.
func perChannel(values []float32) string {
	if len(slices.Compact(slices.Clone(values))) == 1 {
		return fmt.Sprintf("%.4g", values[0])
	}
	text := make([]string, len(values))
	for i, v := range values {
		text[i] = fmt.Sprintf("%.4g", v)
	}
	return "[" + strings.Join(text, ", ") + "]"
}
