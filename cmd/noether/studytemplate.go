package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"unicode"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/internal/study/open"
)

// A templateInfo holds what is known about a model and data before they are measured. Template
// writes a study file, which says what to measure, from it.
type templateInfo struct {
	Name       string // of the study
	Model      string // path as written in the study
	Data       string // path as written in the study
	LocalData  string // path relative to the working directory; for an archive, the folder it is unpacked into
	Classes    int    // 0: the model gives no class scores
	Decoded    string // decoding of boxes or maps, such as "{boxes: yolov8}"; "": no such output
	Channels   int    // of the model's input
	Space      bool   // some layer has positions: feature maps, or tokens
	Rate       int    // sampling rate of the audio in Hz; 0: the data are images
	Length     int    // number of waveform samples that the model takes
	Layers     []templateLayer
	Preprocess string // value of the key preprocess as YAML, or a file; see PreprocessIsFile
	Normalises string // what the model's first nodes do, such as "subtract 1 and divide by 2"; "": nothing
	Recorded   bool   // Preprocess is what noether train recorded in the model
	// PreprocessIsFile says that Preprocess is the path of a preprocessor_config.json, which a run
	// finds beside the model.
	PreprocessIsFile bool

	Limit     int    // number of samples to measure; 0: the default of 1,000
	Samples   int    // number of samples of the data
	Time      string // estimated time of the study with this limit, such as "1m30s"
	Positions int    // most positions of a map that the measure seis does not pool; 0: its default

	Labels         []string // names of the classes of the data; nil: the samples have no labels
	UnknownOutputs bool     // it cannot be inferred which of the model's outputs these classes are
}

// A templateLayer is an entry of the list layers in the template.
type templateLayer struct {
	Pattern string // name or pattern of layers
	Comment string // comment on its line
}

// Line returns the entry as YAML. The pattern is padded to the given width, so that the comments of
// all entries start in one column.
func (l templateLayer) Line(width int) string {
	return fmt.Sprintf("%-*s   # %s", width, quote(l.Pattern), l.Comment)
}

// quote returns a name as YAML, in quotes where YAML would read it as something else: "data #2", or
// "true".
func quote(name string) string {
	if plainName.MatchString(name) {
		if n, err := config.Parse("", []byte(name), nil); err == nil && n.Kind == config.String {
			return name
		}
	}
	return strconv.Quote(name)
}

// comment returns a text as one line for a comment: quoted if it has control characters.
func comment(text string) string {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return strconv.Quote(text)
	}
	return text
}

// plainName matches names without characters that YAML gives a meaning.
var plainName = regexp.MustCompile(`^([a-z0-9]+://)?[A-Za-z_/][A-Za-z0-9_./@%-]*$`)

// studyText returns a commented study file for a model and data, ready to run and to edit. It
// returns an error if LocalData does not exist or is of no known kind.
func studyText(g templateInfo) (string, error) {
	kind, err := open.GuessKind(g.LocalData)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	study := template.New("study").Funcs(template.FuncMap{"quote": quote, "comment": comment})
	err = template.Must(study.Parse(studyTemplate)).Execute(&b, map[string]any{
		"G": g, "Kind": kind, "ModelName": fileName(g.Model), "DataName": fileName(g.Data),
		"Width":      layerWidth(g.Layers),
		"Seconds":    float64(g.Length) / float64(max(g.Rate, 1)),
		"OutputList": numberedNames(len(g.Labels)), "FirstLabels": firstLabels(g.Labels),
	})
	return b.String(), err
}

// layerWidth returns the width of the longest pattern.
func layerWidth(layers []templateLayer) int {
	width := 0
	for _, l := range layers {
		width = max(width, len(quote(l.Pattern)))
	}
	return width
}

// numberedNames returns the numbers below n as text, such as "0, 1, 2", and of more than ten the
// first ten and "...".
func numberedNames(n int) string {
	text := ""
	for i := range min(n, 10) {
		text += ", " + strconv.Itoa(i)
	}
	if n > 10 {
		text += ", ..."
	}
	return strings.TrimPrefix(text, ", ")
}

// firstLabels returns the first three labels, such as "cat, dog, horse, ...".
func firstLabels(labels []string) string {
	var first []string
	for _, label := range labels[:min(len(labels), 3)] {
		first = append(first, quote(label))
	}
	if len(labels) > len(first) {
		first = append(first, "...")
	}
	return strings.Join(first, ", ")
}

// fileName returns a name for a file: its base name without extension, or that of the folder for
// model.onnx and onnx/model.onnx. The name of a model of the Hugging Face hub is that of its
// repository.
func fileName(path string) string {
	if uri.IsHub(path) {
		return uri.HubName(path)
	}
	base, dir := filepath.Base(path), filepath.Dir(path)
	if base == "model.onnx" && filepath.Base(dir) == "onnx" {
		dir = filepath.Dir(dir)
	}
	if folder := filepath.Base(dir); base == "model.onnx" && folder != "." && folder != ".." {
		return folder
	}
	return strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), filepath.Ext(strings.TrimSuffix(base, ".gz")))
}

const studyTemplate = `# A study: these models, on these data, under these transformations, by these measures.
# Print what it will cost:  noether run FILE --dry-run
# Run it:                   noether run FILE -o {{quote (print "runs/" .G.Name)}}
# Every key, completed by your editor:  noether schema > study.schema.json
# yaml-language-server: $schema=study.schema.json

name: {{quote .G.Name}}
seed: 1                      # of every random draw: the same seed gives the same scores

data:
  - name: {{quote .DataName}}
{{- if .G.Rate}}
    sound:
      folder: {{quote .G.Data}}
      length: {{.Seconds}}            # seconds of an item
      # pattern: "{label}_{speaker}_{take}.wav"   # of file names, where folders are not the classes
      # rate: model          # resample audio of another rate to the model's
    # where: {take: [0, 4]}  # only samples whose factor take is from 0 to 4
{{- else}}
    {{.Kind}}: {{quote .G.Data}}
{{- end}}
{{- if .G.Limit}}
    limit: {{printf "%-16d" .G.Limit}}  # of {{.G.Samples}} samples: with this limit the study takes about {{.G.Time}}; leave it out for all
{{- else}}
    limit: 1000              # leave it out for all samples
{{- end}}
{{- if and (eq .Kind "images") .G.Labels}}
    stratified: true         # from each class in its proportion: samples are sorted by class, and the first ones are of a few classes only
{{- else}}
    # shuffle: true          # before the limit is taken; without it, the first samples {{if eq .Kind "images" "sound"}}by name{{else}}of the file{{end}}
{{- end}}
{{- if .G.UnknownOutputs}}
    # classes: [{{.OutputList}}]   # which of the model's {{.G.Classes}} outputs each of the {{len .G.Labels}} classes is, in order: {{.FirstLabels}}
{{- end}}

models:
  - name: {{quote .ModelName}}
    onnx: {{quote .G.Model}}
{{- if .G.PreprocessIsFile}}
    # preprocess: found in {{comment .G.Preprocess}}
{{- else if .G.Rate}}
    # As in the model's training; add features: {log-mel: {mels: 40}} if it takes a spectrogram
    preprocess: {rate: {{.G.Rate}}}
{{- else}}
{{- if .G.Recorded}}
    # As the training recorded it in the model's metadata.
{{- else if .G.Normalises}}
    # The model's first nodes {{.G.Normalises}}, so mean and deviation are left out here.
{{- else}}
    # As in the model's training. A wrong mean or deviation makes every score wrong, so look it up:
{{- end}}
    # imagenet | cifar10 | clip | none, or {resize: 256, crop: 224, mean: [...], std: [...]}
    preprocess: {{.G.Preprocess}}
{{- end}}
    layers:                  # or all | op:TYPE | a glob on tensor names | residual | penultimate | output; see: noether inspect
{{- range .G.Layers}}
      - {{.Line $.Width}}
{{- end}}
    # tags: {family: resnet}           # carried to the report

transforms:
{{- if .G.Rate}}
  - {name: stretch, time-stretch: {values: [0.5, 0.8, 1.25, 2]}}   # scores for each value, and their mean
  - {name: noise, white-noise: {values: [30, 10, 0]}}              # signal-to-noise ratio in dB
  - {name: room, reverb: [0.2, 1]}                                 # reverberation time in seconds, drawn for each sample
  # - {name: pitch, pitch-shift: {values: [-4, 4]}}                # semitones
{{- else}}
  - {name: quarter, rotate: {values: [90, 180, 270]}}   # scores for each value, and their mean
{{- if ne .G.Channels 1}}
  - {name: gray, grayscale: {}}
{{- end}}
  - {name: tilt, rotate: {values: [-15, -5, 5, 15]}}    # degrees; rotate: [-15, 15] draws an angle for each sample
  # - {name: jitter, affine: {rotate: [-15, 15], translate: [-0.05, 0.05], scale: [0.9, 1.1]}}
  # - {name: blur, gaussian-blur: {values: [0.5, 1, 2]}}
{{- end}}

measures:
{{- if and .G.Classes .G.UnknownOutputs}}
  # - accuracy               # is the class right, on x and on T(x)? It needs the classes: entry above
{{- else if and .G.Classes .G.Labels}}
  - accuracy                 # is the class right, on x and on T(x)?
{{- end}}
{{- if .G.Classes}}
  - effective-invariance     # does the prediction hold, with confidence?
  - prediction-divergence    # how far do the probabilities move?
{{- end}}
{{- if .G.Decoded}}
  - dense-equivariance       # are the same things found at the moved positions? The output is read as {{.G.Decoded}}
{{- end}}
  - distance                 # how far does each layer's activation move?
  # - similarity             # how alike are a layer's representations of x and T(x)?
  # - similarity: {between: all}   # with more models: each layer of one with each of another
  # - stir: {between: all, images: 200, optimiser: adam}   # are two models invariant to the same changes?
{{- if and .G.Space (not .G.Rate)}}
{{- if .G.Positions}}
  - seis: {positions: {{.G.Positions}}}   # is spatial information still there (equivariance), and in place (invariance)?
                             # Larger maps are average-pooled to this many positions. The default, 1,024, takes longer.
{{- else}}
  - seis                     # is spatial information still there (equivariance), and in place (invariance)?
{{- end}}
{{- end}}

trials: 1                    # independent repetitions of every random draw
# samples: true              # keep per-sample values in samples.parquet
# memory: 256MiB             # for the running sums of all measures; more memory means fewer passes
`
