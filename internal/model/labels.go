package model

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/model/output"
)

// ConfigBeside returns the path of a file with the given name that describes a model, or "" if
// there is none. The file is in the model's folder or, if this folder is called onnx, in its
// parent, as in repositories of the Hugging Face hub.
func ConfigBeside(modelPath, name string) string {
	dir := filepath.Dir(modelPath)
	dirs := []string{dir}
	if filepath.Base(dir) == "onnx" {
		dirs = append(dirs, filepath.Dir(dir))
	}
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file
		}
	}
	return ""
}

// ClassNames returns the names of the classes in the order of the output that scores them. They are
// those of the entry names in the metadata of the network, else of id2label of the config.json that
// describes it (see ConfigBeside). It returns nil if there are none, if the names only number the
// classes (LABEL_0, LABEL_1), or if the model scores no classes. Names of another number of
// classes, or not numbered from 0, are an error.
func (m *Model) ClassNames() ([]string, error) {
	n := m.scores.classes
	if n == 0 {
		return nil, nil
	}
	source := "names in the metadata of the model"
	names := output.ParseNames(m.properties["names"])
	if names == nil {
		config, err := readConfig(m.name)
		if err == nil {
			source = config.file + ": id2label"
			names, err = config.labels()
		}
		if err != nil {
			return nil, err
		}
	}
	if m.scores.single && len(names) == 1 { // of the second class
		return nil, nil
	}
	if names != nil && len(names) != n {
		return nil, fmt.Errorf("%s names %d classes, and the model has %d", source, len(names), n)
	}
	return names, nil
}

// A modelConfig is what config.json says of a model: that of Hugging Face's transformers, or of
// timm.
type modelConfig struct {
	file          string
	Labels        map[string]string `json:"id2label"`
	Architectures []string          `json:"architectures"`
	Problem       string            `json:"problem_type"`
	Classes       int               `json:"num_labels"`
	TimmClasses   int               `json:"num_classes"`
}

// readConfig reads the config.json that describes a model (see ConfigBeside). Without one the
// result is empty.
func readConfig(modelPath string) (*modelConfig, error) {
	config := &modelConfig{file: ConfigBeside(modelPath, "config.json")}
	if config.file == "" {
		return config, nil
	}
	raw, err := filesys.ReadFile(config.file)
	if err != nil {
		return nil, fmt.Errorf("reading names of classes: %w", err)
	}
	if err := json.Unmarshal(raw, config); err != nil {
		return nil, fmt.Errorf("reading names of classes in %s: %w", config.file, err)
	}
	return config, nil
}

// labels returns id2label in the order of the numbers, or nil.
func (c *modelConfig) labels() ([]string, error) {
	if len(c.Labels) == 0 {
		return nil, nil
	}
	names := make([]string, len(c.Labels))
	numbered := true
	for i := range names {
		id := strconv.Itoa(i)
		name, ok := c.Labels[id]
		if !ok {
			return nil, fmt.Errorf("%s: id2label names %d classes, but none has the number %d", c.file, len(names), i)
		}
		names[i] = name
		numbered = numbered && strings.EqualFold(name, "label_"+id)
	}
	if numbered {
		return nil, nil
	}
	return names, nil
}
