package model

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// ReadClassNames returns the names of a model's n classes from id2label of its config.json, or nil
// if there are none or they only number the classes (LABEL_0, LABEL_1). Names of a number of
// classes other than n, or not numbered from 0, are an error.
func ReadClassNames(modelPath string, n int) ([]string, error) {
	if n == 0 {
		return nil, nil
	}
	names, err := readLabels(modelPath)
	if err == nil && names != nil && len(names) != n {
		err = fmt.Errorf("%s: id2label names %d classes, and the model has %d", ConfigBeside(modelPath, "config.json"), len(names), n)
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
	raw, err := os.ReadFile(file)
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
