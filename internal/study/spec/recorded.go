package spec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx"
)

// PreprocessKey is the key of a model's metadata that holds its preprocessing, as PreprocessText
// writes it.
const PreprocessKey = "noether.preprocess"

// PreprocessText returns a preprocessing as the YAML of the key preprocess of a study file. ok is
// false if it contains one of two steps that the text does not express: a spectrogram, and a
// resizing of both sides that ignores the aspect ratio.
func PreprocessText(p model.Preprocess) (text string, ok bool) {
	if p.Features != nil || p.Frame.Square {
		return "", false
	}
	var keys []string
	add := func(set bool, format string, values ...any) {
		if set {
			keys = append(keys, fmt.Sprintf(format, values...))
		}
	}
	f := p.Frame
	add(f.Resize > 0, "resize: %d", f.Resize)
	add(f.Height > 0 && f.Height == f.Width, "crop: %d", f.Height)
	add(f.Height != f.Width, "crop: [%d, %d]", f.Height, f.Width)
	add(f.Channels > 0, "channels: %d", f.Channels)
	add(f.Interpolation != "", "interpolation: %s", f.Interpolation)
	add(len(p.Mean) > 0, "mean: %s", numbers(p.Mean))
	add(len(p.Std) > 0, "std: %s", numbers(p.Std))
	add(p.Order != "", "order: %s", p.Order)
	add(p.Range != [2]float32{}, "range: %s", numbers(p.Range[:]))
	add(f.Rate > 0, "rate: %d", f.Rate)
	add(f.Length > 0, "length: %d", f.Length)
	add(p.Standardise, "standardise: true")
	if len(keys) == 0 {
		return "none", true
	}
	return "{" + strings.Join(keys, ", ") + "}", true
}

// numbers writes a list of numbers as YAML.
func numbers(values []float32) string {
	text := make([]string, len(values))
	for i, v := range values {
		text[i] = strconv.FormatFloat(float64(v), 'g', -1, 32)
	}
	return "[" + strings.Join(text, ", ") + "]"
}

// RecordedPreprocess returns the preprocessing that noether train has recorded in the metadata of
// the ONNX file at path, and its text. found is false if there is none, or if the file cannot be
// read. The error is that of a text that is not a preprocessing.
func RecordedPreprocess(path string) (p model.Preprocess, text string, found bool, err error) {
	text, err = onnx.ReadMetadata(path, PreprocessKey)
	if err != nil || text == "" {
		return p, "", false, nil // opening the model reports the error
	}
	var keys Preprocess
	node, err := config.Parse(path, []byte(text), nil)
	if err == nil {
		err = keys.DecodeNode(node)
	}
	if err != nil {
		return p, text, false, fmt.Errorf("%s in the metadata of %s is %q: %w; set preprocess to ignore it", PreprocessKey, path, text, err)
	}
	return keys.Preprocess, text, true, nil
}
