package model

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestClassNames reads the names of a model's three classes from id2label in the config.json
// that describes it, as on the Hugging Face hub.
func TestClassNames(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, config string
		want         []string
		err          string
	}{
		{"names", `{"id2label": {"1": "dog", "0": "cat", "2": "owl"}, "hidden_size": 3}`, []string{"cat", "dog", "owl"}, ""},
		{"names that are only numbers", `{"id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}}`, nil, ""},
		{"no id2label", `{"architectures": []}`, nil, ""},
		{"fewer classes than the model", `{"id2label": {"0": "cat", "1": "dog"}}`, nil, "id2label names 2 classes, and the model has 3"},
		{"a missing number", `{"id2label": {"0": "cat", "1": "dog", "3": "owl"}}`, nil, "id2label names 3 classes"},
		{"not JSON", `{`, nil, "reading names of classes in "},
		{"a list", `{"id2label": ["cat"]}`, nil, "reading names of classes in "},
	}
	for _, c := range cases {
		for _, model := range []string{"model.onnx", "onnx/model.onnx"} {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			m := &Model{name: filepath.Join(dir, filepath.FromSlash(model)), scores: scores{classes: 3}}
			got, err := m.ClassNames()
			if !slices.Equal(got, c.want) || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s, %s: %q, %v; want %q, an error with %q", c.name, model, got, err, c.want, c.err)
			}
		}
	}
	m := &Model{name: filepath.Join(t.TempDir(), "model.onnx"), scores: scores{classes: 3}}
	if got, err := m.ClassNames(); got != nil || err != nil {
		t.Errorf("without a file: %q, %v", got, err)
	}
	m.properties = map[string]string{"names": `{0: 'cat', 2: "driver's cab", 1: 'dog'}`}
	if got, err := m.ClassNames(); err != nil || !slices.Equal(got, []string{"cat", "dog", "driver's cab"}) {
		t.Errorf("names in the metadata: %q, %v", got, err)
	}
	m.properties["names"] = "['cat', 'dog']"
	if _, err := m.ClassNames(); err == nil || !strings.Contains(err.Error(), "names 2 classes, and the model has 3") {
		t.Errorf("two names in the metadata: %v", err)
	}
}

// TestConfigBeside checks that config.json is found in the folder of the model, and in the parent
// of a folder called onnx.
func TestConfigBeside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.json")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]string{"m.onnx": config, "onnx/m.onnx": config, "other/m.onnx": "", "onnx/onnx/m.onnx": ""} {
		if got := ConfigBeside(filepath.Join(dir, filepath.FromSlash(model)), "config.json"); got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
}
