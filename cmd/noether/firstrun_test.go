package main

import (
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/tensor"
)

// TestSamplesWithin checks the number of samples to which noether init limits a study so that the
// engine takes at most a minute: rounded down to tens, or to hundreds from 300 on, and at least 20
// if there are so many.
func TestSamplesWithin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		samples int
		took    time.Duration // of the engine for all samples
		want    int           // samples that take at most a minute
	}{
		{"short", 200, 20 * time.Second, 200},
		{"long", 200, 200 * time.Second, 60},
		{"many samples", 1000, 75 * time.Second, 800},
		{"slow", 200, 200 * time.Minute, 20},
		{"slow and few", 8, 8 * time.Minute, 8},
		{"nothing to do", 0, 0, 0},
	} {
		if got := samplesWithin(time.Minute, c.took, c.samples); got != c.want {
			t.Errorf("%s: %d samples, want %d", c.name, got, c.want)
		}
	}
}

// TestSEISPositions checks the number of spatial positions (height x width) of feature maps that
// noether init writes for the measure SEIS, equivariance and invariance scores whose cost grows
// with the square of that number: fewer than by default for layers with many channels and
// positions.
func TestSEISPositions(t *testing.T) {
	t.Parallel()
	wide := tensor.Layer{Shape: []int{512, 28, 28}, Axes: "NCHW"}
	narrow := tensor.Layer{Shape: []int{24, 28, 28}, Axes: "NCHW"}
	tokens := tensor.Layer{Shape: []int{196, 768}, Axes: "NTC"}
	deep := tensor.Layer{Shape: []int{7, 7, 2048}, Axes: "NHWC"}
	unknown := tensor.Layer{Axes: "NCHW"}
	for _, c := range []struct {
		name    string
		layers  []tensor.Layer
		samples int
		want    int // 0: the default
	}{
		{"wide maps", []tensor.Layer{wide}, 200, 256},
		{"few samples", []tensor.Layer{wide}, 20, 0},
		{"one narrow map", []tensor.Layer{narrow}, 200, 0},
		{"two narrow maps", []tensor.Layer{narrow, narrow}, 200, 256},
		{"many tokens", []tensor.Layer{tokens, tokens, tokens, tokens}, 400, 0},
		{"small maps", []tensor.Layer{deep, deep}, 1000, 0},
		{"unknown shape", []tensor.Layer{unknown}, 1000, 0},
	} {
		if got := seisPositions(c.layers, c.samples); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestTemplateOfLongStudy checks that the template of a long study limits its samples and the
// positions of SEIS, and that it can be parsed. Space: the model has a layer with positions.
func TestTemplateOfLongStudy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := templateInfo{Name: "m", Model: "m.onnx", Data: dir, LocalData: dir, Classes: 10, Channels: 3, Space: true, Preprocess: "imagenet",
		Layers: []templateLayer{{Pattern: "a", Comment: "b"}}, Samples: 200, Limit: 70, Time: "1m20s", Positions: 256}
	text, err := studyText(g)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"limit: 70 ", "# of 200 samples: the model takes about 1m20s for these", "- seis: {positions: 256} "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if _, err := study.Parse("study.yaml", []byte(text), nil); err != nil {
		t.Error(err)
	}
}
