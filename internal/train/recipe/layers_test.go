package recipe

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
)

// autoencoderText is a training file (the settings of a training) of an autoencoder with two layers
// of 10 and 6 units. The helpers parse (with changes "text -> replacement"), must (which trains and
// returns the summary), read and options are in run_test.go.
const autoencoderText = `name: autoencoder
data: {name: shapes, shapes: {n: 200, size: 12}}
validation: 0.2
network:
  autoencoder:
    layers: [{units: 10, decay: 0.01}, {units: 6, target: -0.8, weight: 10}]
preprocess: {mean: 0.5, std: 0.5}
optimiser: {adam: 2e-3}
schedule: cosine
epochs: 3
batch: 20
`

// cdbnText is a training file of a convolutional deep belief network (CDBN).
const cdbnText = `name: cdbn
data: {name: shapes, shapes: {n: 40, size: 17}}
network:
  cdbn:
    filter: 4
    layers: [{units: 5, decay: 0.001}, {units: 4, target: 0.01, weight: 0.5, rate-scale: 2}]
preprocess: {mean: 0.5, std: 0.5}
optimiser: {sgd: {rate: 0.1, momentum: 0.9}}
epochs: 3
batch: 4
`

// Training layer by layer, without labels, writes the output folder. The model takes images in
// [0, 1], since it contains its preprocessing, and its outputs are its layers. A second run finds
// the result and does not train again; one with other settings is an error.
func TestLayerwise(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text   string
		shapes [2][]int // of the layers
		column string   // of the log, which this network must fill
	}{
		"autoencoder": {autoencoderText, [2][]int{{10}, {6}}, "validation_error"},
		"cdbn":        {cdbnText, [2][]int{{5, 7, 7}, {4, 2, 2}}, "activation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := must(t, parse(t, c.text), dir)
			if len(s.Layers) != 2 || s.Epochs != 6 || s.Layers[1].Units != c.shapes[1][0] || !(s.Layers[0].End < s.Layers[0].Start) || s.Parameters == 0 {
				t.Errorf("the summary is %+v, want two layers of three epochs with decreasing errors", s)
			}
			rows, err := csv.NewReader(bytes.NewReader(read(t, dir, logFile))).ReadAll()
			// A header and 2 layers of 3 epochs; the first columns are layer and epoch.
			if err != nil || len(rows) != 7 || rows[6][0] != "2" || rows[6][1] != "3" {
				t.Fatalf("the log is %v, %v", rows, err)
			}
			if i := slices.Index(rows[0], c.column); i < 0 || rows[4][i] == "" {
				t.Errorf("%s is not in the log: %v", c.column, rows)
			}
			m, err := modeltest.Open(t, filepath.Join(dir, modelFile), model.Options{Layers: []string{"layer*"}, Scores: "none"})
			if err != nil {
				t.Fatal(err)
			}
			for i, l := range m.Layers() {
				if got, want := l.Shape, c.shapes[i]; len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
					t.Errorf("layer %s is %v, want %v", l.Name, got, want)
				}
			}
			// A contact sheet shows the filters of a layer as images, side by side.
			for _, sheet := range []string{"layer1.png", "layer2.png"} {
				if _, err := png.Decode(bytes.NewReader(read(t, dir, imagesFolder, sheet))); err != nil {
					t.Errorf("%s: %v", sheet, err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "checkpoint*")); len(left) > 0 {
				t.Errorf("checkpoints remain: %v", left)
			}
			if again := must(t, parse(t, c.text), dir); again.Seconds != s.Seconds || again.Identity != s.Identity {
				t.Errorf("the second run trained again: %+v", again)
			}
			if _, err := Run(t.Context(), parse(t, c.text, "epochs: 3 -> epochs: 4"), dir, options(t)); err == nil || !strings.Contains(err.Error(), "with other settings") {
				t.Errorf("other settings in the same folder: %v", err)
			}
			if _, err := Run(t.Context(), parse(t, c.text, "decay: 0.0 -> decay: 0.1"), dir, options(t)); err == nil || !strings.Contains(err.Error(), "with other settings") {
				t.Errorf("another network in the same folder: %v", err)
			}
		})
	}
}

// The key take-back undoes epochs that increase the objective (the validation loss with penalties),
// and multiplies the learning rate by a factor. With it the objective of a layer never increases,
// even at a large rate. The log has all epochs; its column taken_back marks those that were undone
// (rolled back).
func TestLayersRollback(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := must(t, parse(t, autoencoderText, "adam: 2e-3 -> adam: 0.1", "schedule: cosine -> take-back: 0.5", "epochs: 3 -> epochs: 12"), dir)
	rows, err := csv.NewReader(bytes.NewReader(read(t, dir, logFile))).ReadAll()
	if err != nil || len(rows) != 25 { // a header and 2 layers of 12 epochs
		t.Fatalf("%d rows in the log, %v", len(rows), err)
	}
	column := func(row []string, name string) float64 {
		v, err := strconv.ParseFloat(row[slices.Index(rows[0], name)], 64)
		if err != nil {
			t.Fatalf("%s: %v in %v", name, err, row)
		}
		return v
	}
	rolledBack, before, layer, ends := 0, math.Inf(1), "1", map[string]float64{} // ends: the last error of each layer
	for _, row := range rows[1:] {
		if row[0] != layer {
			layer, before = row[0], math.Inf(1)
		}
		objective := column(row, "objective")
		if row[slices.Index(rows[0], "taken_back")] == "1" {
			rolledBack++
			continue
		}
		if objective > before {
			t.Errorf("the objective increases: %v", row)
		}
		before = objective
		ends[layer] = column(row, "validation_error")
	}
	if rolledBack == 0 {
		t.Error("no epoch was rolled back at a rate of 0.1")
	}
	for i, l := range s.Layers {
		if end := ends[fmt.Sprint(i+1)]; math.Abs(l.End-end) > 1e-4*end {
			t.Errorf("layer %d has the error %g, and the last epoch in the log that was not rolled back %g", i+1, l.End, end)
		}
	}
}

// A training that is interrupted in each of its two layers resumes there and writes the same
// network as one without interruption.
func TestLayersResume(t *testing.T) {
	t.Parallel()
	whole, dir := t.TempDir(), t.TempDir()
	must(t, parse(t, autoencoderText), whole)
	for _, stop := range []int{2, 5} { // epochs, counted over both layers of 3 epochs
		ctx, cancel := context.WithCancel(t.Context())
		o := options(t)
		o.Progress = func(p Progress) {
			if p.Epoch == stop {
				cancel()
			}
		}
		if _, err := Run(ctx, parse(t, autoencoderText), dir, o); !errors.Is(err, context.Canceled) {
			t.Fatalf("the training did not stop at epoch %d: %v", stop, err)
		}
		if _, err := os.Stat(filepath.Join(dir, modelFile)); err == nil {
			t.Fatal("a network was written before the end")
		}
	}
	must(t, parse(t, autoencoderText), dir)
	if !bytes.Equal(read(t, whole, modelFile), read(t, dir, modelFile)) {
		t.Error("the networks differ")
	}
	if rows, err := csv.NewReader(bytes.NewReader(read(t, dir, logFile))).ReadAll(); err != nil || len(rows) != 7 {
		t.Errorf("the log is %v, %v", rows, err)
	}
}

func TestLayerErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, change, want string }{
		{autoencoderText, "validation: 0.2\n -> ", "validation: 0.1"},
		{autoencoderText, "schedule: cosine -> target: x", "trained without labels"},
		{autoencoderText, "schedule: cosine -> augment: [{flip: {}}]", "trained without labels"},
		{autoencoderText, "units: 10 -> units: 0", "units"},
		{autoencoderText, "{mean: 0.5, std: 0.5} -> {mean: 0.5, std: 0.1}", "values must lie in [-1, 1]"},
		{autoencoderText, "target: -0.8 -> target: -1", "between -1 and 1"},
		{autoencoderText, "adam: 2e-3 -> sgd: {rate: 1e9}", "rate"},
		{autoencoderText, "[{units: 10, decay: 0.01}, {units: 6, target: -0.8, weight: 10}] -> []", "at least one layer"},
		{cdbnText, "sgd: {rate: 0.1, momentum: 0.9} -> adam: 1e-3", "contrastive divergence uses sgd"},
		{cdbnText, "epochs: 3 -> epochs: 3\nkeep: best", "no effect on contrastive divergence"},
		{cdbnText, "size: 17 -> size: 16", "not a multiple of the block"},
	} {
		text := strings.Replace(c.text, strings.Split(c.change, " -> ")[0], strings.Split(c.change, " -> ")[1], 1)
		if text == c.text {
			t.Fatalf("%s: the text to replace does not occur", c.change)
		}
		dir := t.TempDir()
		f, err := Parse(filepath.Join(dir, "t.yaml"), []byte(text), nil)
		if err == nil {
			_, err = Run(t.Context(), f, filepath.Join(dir, "out"), options(t))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.change, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "out", modelFile)); err == nil {
			t.Errorf("%s: a network was written", c.change)
		}
	}
}
