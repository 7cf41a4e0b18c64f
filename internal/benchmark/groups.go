package benchmark

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// laionList has a line for each class of LAION-C, which is the name of a folder: the class and the
// synsets of ImageNet's classes that belong to it, as its authors publish them.
//
//go:embed laion-c.txt
var laionList string

// laionGroups returns the synsets of each class of LAION-C.
func laionGroups(string) (map[string][]string, error) {
	out := map[string][]string{}
	for line := range strings.Lines(laionList) {
		fields := strings.Fields(line)
		out[fields[0]] = fields[1:]
	}
	return out, nil
}

// objectNetClasses is the number of the classes of ObjectNet's 313 that ImageNet has, and
// objectNetChance the accuracy of guessing one of ImageNet's 1,000 of them: several are of one
// class, 125 in all (imagenet_pytorch_id_to_objectnet_id.json of the authors' program).
const (
	objectNetClasses = 113
	objectNetChance  = 125. / 113 / 1000
)

// objectNetGroups reads the folder mappings of ObjectNet as published. It returns for the folder of
// each class that ImageNet has the outputs of an ImageNet classifier, as PyTorch orders them.
//
//	folder_to_objectnet_label.json       {"alarm_clock": "Alarm clock", ...}
//	objectnet_to_imagenet_1k.json        {"Alarm clock": "analog clock; digital clock", ...}
//	imagenet_to_label_2012_v2            a line for each ID of the 2012 challenge: the label
//	pytorch_to_imagenet_2012_id.json     {"0": 449, ...}, the ID of each output
func objectNetGroups(root string) (map[string][]string, error) {
	dir := filepath.Join(root, "mappings")
	var labels, overlap map[string]string
	var ids map[string]int
	const idsName = "pytorch_to_imagenet_2012_id.json"
	for _, file := range []struct {
		name string
		to   any
	}{{"folder_to_objectnet_label.json", &labels}, {"objectnet_to_imagenet_1k.json", &overlap}, {idsName, &ids}} {
		data, err := readMapping(dir, file.name)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, file.to); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, file.name), err)
		}
	}
	text, err := readMapping(dir, "imagenet_to_label_2012_v2")
	if err != nil {
		return nil, err
	}
	outputOf := map[int]string{} // by ID
	for output, id := range ids {
		if n, err := strconv.Atoi(output); err != nil || n < 0 || n >= 1000 {
			return nil, fmt.Errorf("%s: %q is not the number of an output", filepath.Join(dir, idsName), output)
		}
		outputOf[id] = output
	}
	labelled := map[string]string{} // by label, the output
	id := 0
	for line := range strings.Lines(string(text)) {
		if output, ok := outputOf[id]; ok {
			labelled[strings.TrimSpace(line)] = output
		}
		id++
	}
	out := map[string][]string{}
	for folder, label := range labels {
		names, shared := overlap[label]
		if !shared {
			continue
		}
		for _, name := range strings.Split(names, "; ") {
			output, ok := labelled[strings.TrimSpace(name)]
			if !ok {
				return nil, fmt.Errorf("%s: %q, ImageNet's name for %s, is no line of imagenet_to_label_2012_v2", dir, name, folder)
			}
			out[folder] = append(out[folder], output)
		}
	}
	if len(out) != objectNetClasses {
		return nil, fmt.Errorf("%s: the files map %d classes to ImageNet's, and the published ones %d: the copy is incomplete", dir, len(out), objectNetClasses)
	}
	return out, nil
}

func readMapping(dir, name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s, one of the files that map ObjectNet's classes to ImageNet's: path is the folder objectnet-1.0 as published, with images and mappings", filepath.Join(dir, name))
	}
	return data, err
}
