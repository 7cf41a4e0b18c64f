package main

import (
	_ "embed"
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

// A templateInfo is what a study file is written from.
type templateInfo struct {
	Name      string // of the study
	Model     string // path as written in the study
	Data      string // path as written in the study
	Table     string // of labels or factors in the folder of the data, as written in the study; "": there is none
	LocalData string // path relative to the working directory; for an archive, the folder it is unpacked into
	Classes   int    // 0: the model gives no class scores
	Inputs    string // guessed values of the inputs beside the samples', as YAML; "": there are none
	Decoded   string // decoding of boxes or maps, such as "{boxes: yolov8}"; "": no such output
	Channels  int    // of the model's input
	Space     bool   // some layer has positions: feature maps, or tokens
	Maps      bool   // the data are arrays that the model takes as they are, of maps such as the frames of videos
	Square    bool   // these maps are as high as wide
	Rate      int    // sampling rate of the audio in Hz; 0: the data are images or arrays
	Length    int    // number of waveform samples that the model takes
	// GuessedLength: the model failed on a second of audio, and Length is a usual window.
	GuessedLength bool
	Resampled     bool // Rate is the model's, and not that of the audio
	Layers        []templateLayer
	Preprocess    string // value of the key preprocess as YAML, or a file; see PreprocessIsFile
	Normalises    string // what the model's first nodes do, such as "subtract 1 and divide by 2"; "": nothing
	Recorded      bool   // Preprocess is what noether train recorded in the model
	// PreprocessIsFile: Preprocess is a preprocessor_config.json, which a run finds beside the
	// model.
	PreprocessIsFile bool

	Limit     int    // number of samples to measure; 0: the default of 1,000
	Samples   int    // number of samples of the data
	Time      string // estimated time of the engine with this limit, such as "1m0s"
	Positions int    // most positions of a map that the measure seis does not pool; 0: its default

	Labels         []string // names of the classes of the data; nil: the samples have no labels
	UnknownOutputs bool     // it cannot be inferred which of the model's outputs these classes are
}

type templateLayer struct {
	Pattern string // name or pattern of layers
	Comment string // comment on its line
}

// Line returns the entry as YAML, the pattern padded to width, so that comments are aligned.
func (l templateLayer) Line(width int) string {
	return fmt.Sprintf("%-*s   # %s", width, quote(l.Pattern), l.Comment)
}

// quote quotes a name that YAML would read as something else: "data #2", "true".
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

// studyText returns an error if LocalData does not exist or is of no known kind.
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

func layerWidth(layers []templateLayer) int {
	width := 0
	for _, l := range layers {
		width = max(width, len(quote(l.Pattern)))
	}
	return width
}

// numberedNames returns "0, 1, 2", and of more than ten the first ten and "...".
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

// fileName returns the base name without extension, or that of the folder for model.onnx and
// onnx/model.onnx, or of the repository for a model of the Hugging Face hub.
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

//go:embed study.yaml.tmpl
var studyTemplate string
