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
// classes (LABEL_0, LABEL_1), or if the model scores no classes. Names of another number of classes,
// or not numbered from 0, are an error.
func (m *Model) ClassNames() ([]string, error) {
	n := m.scores.classes
	if n == 0 {
		return nil, nil
	}
	source := "names in the metadata of the model"
	names, err := output.ParseNames(m.properties["names"]), error(nil)
	if names == nil {
		source = ConfigBeside(m.name, "config.json") + ": id2label"
		names, err = readLabels(m.name)
	}
	if err == nil && names != nil && len(names) != n {
		err = fmt.Errorf("%s names %d classes, and the model has %d", source, len(names), n)
	}
	if err != nil {
		return nil, err
	}
	return names, nil
}

// readLabels returns id2label in the order of the numbers, or nil.
func readLabels(modelPath string) ([]string, error) {
	file := ConfigBeside(modelPath, "config.json")
	if file == "" {
		return nil, nil
	}
	raw, err := filesys.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading names of classes: %w", err)
	}
	var config struct {
		Labels map[string]string `json:"id2label"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, fmt.Errorf("reading names of classes in %s: %w", file, err)
	}
	if len(config.Labels) == 0 {
		return nil, nil
	}
	names := make([]string, len(config.Labels))
	numbered := true
	for i := range names {
		id := strconv.Itoa(i)
		name, ok := config.Labels[id]
		if !ok {
			return nil, fmt.Errorf("%s: id2label names %d classes, but none has the number %d", file, len(names), i)
		}
		names[i] = name
		numbered = numbered && strings.EqualFold(name, "label_"+id)
	}
	if numbered {
		return nil, nil
	}
	return names, nil
}
