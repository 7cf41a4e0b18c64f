package open

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/study/spec"
)

// Sound are the keys of a folder of WAV and FLAC files.
type Sound struct {
	Folder  spec.Path  `key:"folder,required" short:"true" doc:"folder of WAV and FLAC files"`
	Labels  *spec.Path `key:"labels" doc:"CSV file with the columns file and label (other columns are factors), or lines of file and label"`
	Label   string     `key:"label" doc:"column of the CSV file or field of the pattern with the label; default: label"`
	Pattern string     `key:"pattern" doc:"pattern of file names: the fields of {label}_{speaker}_{take}.wav are the label and factors"`
	Layout  string     `key:"layout" enum:"classes|flat" doc:"a folder for each class, or no classes; default: inferred"`
	items
}

// Open implements Source.
func (k *Sound) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findAll(ctx, d, []spec.Path{k.Folder}, k.Labels)
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenAudio(ctx, k.options(dataset.AudioOptions{Dir: paths[0], Labels: paths[1], Label: k.Label, Pattern: k.Pattern, Layout: k.Layout})))
}

// LibriSpeech are the keys of LibriSpeech as published.
type LibriSpeech struct {
	Folder spec.Path `key:"folder,required" short:"true" doc:"folder of the archive, or a parent of it"`
	Label  string    `key:"label" enum:"speaker|chapter" doc:"classes of the samples; default: none"`
	items
}

// Open implements Source.
func (k *LibriSpeech) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findAll(ctx, d, []spec.Path{k.Folder})
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenAudio(ctx, k.options(dataset.AudioOptions{Dir: paths[0], Label: k.Label, Layout: "librispeech"})))
}

// items set the sampling rate of audio and the length of the items.
type items struct {
	Rate   sampleRate `key:"rate" doc:"samples per second that audio is resampled to, or model: the rate of each model. Without it, the audio must have the rate of the model"`
	Length float64    `key:"length" min:"0" doc:"seconds of an item; default: the length that the model takes, else whole files"`
	Fit    string     `key:"fit" enum:"pad|crop|split" doc:"pad (default): shorter files are padded with zeros; crop: they are left out as unreadable; split: files are cut into several items. With pad and crop, longer files are cropped at their centre"`
}

// Fit says whether files of another length are padded, left out or split.
func (k items) options(o dataset.AudioOptions) dataset.AudioOptions {
	o.Rate, o.Length, o.Fit = int(k.Rate), k.Length, k.Fit
	return o
}

// A sampleRate is a number of samples per second, or dataset.ModelRate.
type sampleRate int

// DecodeNode implements config.Decoder.
func (r *sampleRate) DecodeNode(n *config.Node) error {
	if n.Kind == config.String && n.Text == "model" {
		*r = dataset.ModelRate
		return nil
	}
	v, err := n.Number()
	if err != nil || v < 1 || v != float64(int(v)) {
		return n.Errorf("a rate is an integer number of samples per second, or model")
	}
	*r = sampleRate(v)
	return nil
}

// JSONSchema implements config.Schemer.
func (sampleRate) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": 1}, map[string]any{"enum": []string{"model"}}}}
}
