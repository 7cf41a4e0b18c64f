package spec_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/study/spec"
)

// trainings writes folders of trainings as noether train does, some of them damaged, and returns
// the parent folder. summary.json is written at the end of a training, and "kept" is the epoch of
// its final network; runs.csv lists the trainings of a file that varies a setting; epochs/ holds
// the checkpoints, which are empty files here.
func trainings(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"one/summary.json":           `{"name": "one", "kept": 9}`,
		"one/epochs/001.onnx":        "",
		"one/epochs/002.onnx":        "",
		"one/epochs/003.onnx":        "",
		"one/epochs/010.onnx":        "",
		"one/epochs/notes.txt":       "",
		"many/runs.csv":              "run,seed,epochs\nseed-1,1,9\nseed-2,2,\n",
		"many/seed-1/summary.json":   `{"kept": 3, "tags": {"seed": "1", "augment": "none"}}`,
		"many/seed-2/summary.json":   `{"kept": 4, "tags": {"seed": "2", "augment": "none"}}`,
		"unfinished/runs.csv":        "run\na\n",
		"unfinished/a/training.yaml": "name: a\n",
		"outside/runs.csv":           "run\n../one\n",
		"wrong-header/runs.csv":      "training\na\n",
		"empty/runs.csv":             "",
		"truncated/summary.json":     `{"kept": 9, "tags"`,
		"not-training/summary.json":  `{"study": "x"}`,
		"ragged/runs.csv":            "run,seed\na\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// checkpointStudy parses a study file in dir with the given value of models, which is in line 4.
func checkpointStudy(dir, models string) (*spec.Study, error) {
	return catalog.Parse(filepath.Join(dir, "s.yaml"), []byte("name: s\ndata: {name: d, shapes: {n: 4}}\nmeasures: distance\nmodels: "+models+"\n"), nil)
}

// An entry with checkpoints becomes an entry for each network, tagged with its run and epoch.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	dir := trainings(t)
	type network struct{ name, file, run, epoch, seed, layers string }
	for models, want := range map[string][]network{
		"{checkpoints: one}": {{"one", "one/model.onnx", "one", "9", "", ""}},
		"{checkpoints: one, every: 2, name: first, layers: output, tags: {seed: 7}}": {
			{"first/epoch-1", "one/epochs/001.onnx", "first", "1", "7", "output"},
			{"first/epoch-2", "one/epochs/002.onnx", "first", "2", "7", "output"},
			{"first/epoch-10", "one/epochs/010.onnx", "first", "10", "7", "output"},
		},
		"[{checkpoints: many/}, {name: x, onnx: x.onnx}, {checkpoints: one, tags: {run: a, epoch: b}}]": {
			{"many/seed-1", "many/seed-1/model.onnx", "many/seed-1", "3", "1", ""},
			{"many/seed-2", "many/seed-2/model.onnx", "many/seed-2", "4", "2", ""},
			{"x", "x.onnx", "", "", "", ""},
			{"one", "one/model.onnx", "a", "b", "", ""},
		},
	} {
		s, err := checkpointStudy(dir, models)
		if err != nil {
			t.Errorf("%s: %v", models, err)
			continue
		}
		var got []network
		for _, m := range s.Models {
			got = append(got, network{m.Name, filepath.ToSlash(m.ONNX.String()), m.Tags["run"], m.Tags["epoch"], m.Tags["seed"], strings.Join(m.Layers, ",")})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", models, got, want)
		}
	}
}

func TestCheckpointErrors(t *testing.T) {
	t.Parallel()
	dir := trainings(t)
	for models, want := range map[string]string{
		"{checkpoints: gone}":                             "no training by noether train",
		"{checkpoints: unfinished}":                       "not finished",
		"{checkpoints: outside}":                          "not a list of trainings",
		"{checkpoints: wrong-header}":                     "not a list of trainings",
		"{checkpoints: empty}":                            "not a list of trainings",
		"{checkpoints: ragged}":                           "wrong number of fields",
		"{checkpoints: truncated}":                        "not the summary of a training",
		"{checkpoints: not-training}":                     "names no epoch",
		"{checkpoints: many, every: 1}":                   "save-every",
		"{checkpoints: one, every: 0}":                    "at least 1",
		"{checkpoints: one, every: often}":                "whole number",
		"{checkpoints: [one]}":                            "expected text",
		"{checkpoints: https://h/one}":                    "not a URL",
		"{checkpoints: one, onnx: x.onnx}":                "leave out onnx",
		"{name: x, onnx: x.onnx, every: 1}":               "every needs checkpoints",
		"{checkpoints: one, tag: {}}":                     `did you mean "tags"`,
		"{checkpoints: one, tags: 3}":                     "expected a mapping",
		"[{checkpoints: one}, {name: one, onnx: x.onnx}]": "occurs twice",
		"{checkpoint: one}":                               `did you mean "checkpoints"`,
	} {
		_, err := checkpointStudy(dir, models)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "s.yaml:4:") {
			t.Errorf("%s: error %v, want one line with %q and a position in line 4", models, err, want)
		}
	}
}
