package recipe

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/train"
)

// varyText is a training file with a series of four trainings. A training is one network that is
// trained: under vary there is one for each combination of the listed values. plainText, the
// settings of one training, is in file_test.go; the helpers parse (with changes "text ->
// replacement"), must (which trains and returns the summary), read and options are in run_test.go.
const varyText = plainText + `vary:
  seed: [1, 2]
  augment: {plain: none, turned: {affine: {rotate: [-20, 20]}}}
  optimiser.sgd.rate: [0.05]
`

// A training under vary writes the same network as a file that states its values. An interrupted
// series resumes and writes identical networks.
func TestVary(t *testing.T) {
	t.Parallel()
	change := "epochs: 3 -> epochs: 2" // in the text of the file, see parse
	dir, interrupted := t.TempDir(), t.TempDir()
	summaries, err := RunAll(t.Context(), parse(t, varyText, change), dir, options(t))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(read(t, dir, spec.RunsFile))).ReadAll()
	if err != nil || len(rows) != 5 || len(summaries) != 4 {
		t.Fatalf("%d summaries; %s holds %q, error %v", len(summaries), spec.RunsFile, rows, err)
	}
	if got, want := rows[0][:4], []string{"run", "augment", "rate", "seed"}; !slices.Equal(got, want) {
		t.Errorf("columns %q, want %q", got, want)
	}
	// The fifth column is the number of epochs.
	if got, want := rows[4][:5], []string{"seed-2-augment-turned-rate-0.05", "turned", "0.05", "2", "2"}; !slices.Equal(got, want) {
		t.Errorf("row %q, want %q", got, want)
	}
	if s := summaries[2]; s.Name != "plain/seed-2-augment-plain-rate-0.05" || s.Tags["augment"] != "plain" || s.Tags["seed"] != "2" {
		t.Errorf("the third summary is %+v", s)
	}
	alone := t.TempDir()
	must(t, parse(t, plainText, change, "augment: [{flip: {}}, {affine: {rotate: [-20, 20]}}] -> augment: [{affine: {rotate: [-20, 20]}}]", "epochs: 2 -> seed: 2\nepochs: 2"), alone)
	if !bytes.Equal(read(t, alone, modelFile), read(t, dir, rows[4][0], modelFile)) {
		t.Error("a training under vary writes another network than a file that states its values")
	}

	ctx, cancel := context.WithCancel(t.Context())
	o := options(t)
	var totals []int64
	o.Progress = func(p Progress) { totals = append(totals, p.Total) }
	epochs := 0
	o.Epoch = func(train.Epoch) {
		if epochs++; epochs == 3 { // the first epoch of the second training
			cancel()
		}
	}
	if s, err := RunAll(ctx, parse(t, varyText, change), interrupted, o); !errors.Is(err, context.Canceled) || len(s) != 1 {
		t.Fatalf("%d summaries, %v", len(s), err)
	}
	if len(totals) == 0 || totals[0] != 4*2*96 { // trainings x epochs x training samples (80 % of 120)
		t.Errorf("the progress counts %v samples, want %d", totals, 4*2*96)
	}
	if _, err := RunAll(t.Context(), parse(t, varyText, change), interrupted, options(t)); err != nil {
		t.Fatal(err)
	}
	for i, row := range rows[1:] {
		a := read(t, dir, row[0], modelFile)
		if !bytes.Equal(a, read(t, interrupted, row[0], modelFile)) {
			t.Errorf("%s: the networks differ", row[0])
		}
		if i > 0 && bytes.Equal(a, read(t, dir, rows[i][0], modelFile)) {
			t.Errorf("%s and %s are the same network", rows[i][0], row[0])
		}
	}
	// The settings in the folder of a training are a training file.
	folder := filepath.Join(dir, rows[4][0])
	f, err := Load(filepath.Join(folder, settingsFile), nil)
	if err != nil {
		t.Fatal(err)
	}
	// Identity is a hash of settings, data and initial weights.
	if s := must(t, f, folder); s.Identity != summaries[3].Identity {
		t.Error("the settings in the folder describe another training")
	}
}

// A list under vary has the combinations of each of its mappings, but none across mappings.
func TestVaryList(t *testing.T) {
	t.Parallel()
	f := parse(t, plainText+"vary: [{seed: [1, 2], epochs: [1]}, {seed: [3], batch: [32]}]\n")
	var folders []string
	for _, training := range f.Trainings() {
		folders = append(folders, training.Folder())
	}
	if want := []string{"seed-1-epochs-1", "seed-2-epochs-1", "seed-3-batch-32"}; !slices.Equal(folders, want) {
		t.Errorf("folders %q, want %q", folders, want)
	}
	if last := f.Trainings()[2]; last.Seed != 3 || last.Batch != 32 || last.Epochs != 3 {
		t.Errorf("the third training has seed %d, batch %d, epochs %d, want 3, 32 and 3", last.Seed, last.Batch, last.Epochs)
	}
	dir := t.TempDir()
	if err := writeRuns(dir, f.Trainings(), make([]*Summary, 3)); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(read(t, dir, spec.RunsFile))).ReadAll()
	if err != nil || !slices.Equal(rows[0][:4], []string{"run", "batch", "epochs", "seed"}) || !slices.Equal(rows[3][:4], []string{"seed-3-batch-32", "32", "", "3"}) {
		t.Errorf("%s holds %q, error %v", spec.RunsFile, rows, err)
	}
}

func TestVaryErrors(t *testing.T) {
	t.Parallel()
	for vary, want := range map[string]string{
		"[1, 2]":                             "a mapping of keys",
		"[]":                                 "a mapping of keys",
		"[{seed: [1, 2]}, {seed: [2]}]":      `two trainings have the folder "seed-2"`,
		"{}":                                 "a mapping of keys",
		"{name: [a, b]}":                     "cannot vary",
		"{sed: [1, 2]}":                      `did you mean "seed"`,
		"{seed: 1}":                          "a list, or a mapping",
		"{seed: []}":                         "a list, or a mapping",
		"{seed: [1, 1]}":                     "occurs twice",
		"{seed: [1, x]}":                     "whole number",
		"{augment: [[{flip: {}}], none]}":    "need names",
		"{network: {a/b: none}}":             "becomes part of a folder",
		"{network: [none]}":                  `"network" is missing`,
		"{optimiser.adam.rate: [0.1]}":       `no key "adam"`,
		"{seed.x: [1]}":                      `no key "seed"`,
		"{epochs.x: [1]}":                    "no mapping",
		"{optimiser.sgd.rates: [1]}":         `did you mean "rate"`,
		"{data.limit: [1], test.limit: [2]}": `two keys end in "limit"`,
		"{seed: [" + strings.TrimSuffix(strings.Repeat("1, 2, 3, 4, 5, 6, 7, 8, 9, ", 200), ", ") + "]}": "occurs twice",
		"{a: {x: 1, y: 2}, b: {x: 1}, " + manyKeys() + "}":                                               "more than 1000 combinations",
	} {
		_, err := Parse("plain.yaml", []byte(plainText+"vary: "+vary+"\n"), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "plain.yaml:") {
			t.Errorf("%.100s: %v", vary, err)
		}
	}
}

// manyKeys returns ten keys with two values each, so 1024 combinations.
func manyKeys() string {
	var keys []string
	for _, key := range "cdefghijkl" {
		keys = append(keys, string(key)+": [1, 2]")
	}
	return strings.Join(keys, ", ")
}

// A series is not written into the folder of a single training.
func TestVaryNeedsItsOwnFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, parse(t, plainText, "epochs: 3 -> epochs: 1"), dir)
	if _, err := RunAll(t.Context(), parse(t, varyText), dir, options(t)); err == nil || !strings.Contains(err.Error(), "a single training") {
		t.Errorf("a series in the folder of a single training: error %v", err)
	}
}

// FuzzVary checks that an error has one line, and that the folders of the trainings differ and lie
// in that of the series.
func FuzzVary(f *testing.F) {
	f.Add("{seed: [1, 2], augment: {plain: none, turned: {rotate: 15}}}")
	f.Add("{data.shapes.n: [1, 2], network: {a: {mlp: 3}}}")
	f.Add("{a.b.c: [none], : [x]}")
	f.Fuzz(func(t *testing.T, vary string) {
		file, err := Parse("t.yaml", []byte(plainText+"vary: "+vary+"\n"), nil)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, training := range file.Trainings() {
			if folder := training.Folder(); seen[folder] || !filepath.IsLocal("x/"+folder) {
				t.Errorf("the folder %q occurs twice, or lies outside the folder of the series", folder)
			} else {
				seen[folder] = true
			}
		}
	})
}
