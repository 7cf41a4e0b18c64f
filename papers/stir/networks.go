package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/papers/internal/tablefile"
)

// networkTitles maps values of keys of training files to names in the table.
var networkTitles = map[string]string{
	"resnet18": "ResNet-18", "vgg16": "VGG-16", "resnet34": "ResNet-34", "vgg19": "VGG-19", "plain": "plain", "at": "AT", "one": "AT, 1 step", "trades": "TRADES", "mart": "MART",
}

// trainings holds the results of the trainings of one training file that differ only in the seed.
type trainings struct {
	name             string    // architecture and kind of training, such as "ResNet-18, AT"
	accuracy, robust []float64 // on test images, unchanged and adversarial: a value for each seed
}

// networkRows returns the table of the networks: for each training file, and for each kind of its
// networks, the number of seeds and the mean test accuracies over seeds, with intervals. folder
// holds the trainings. The rows of a training file that has none there are taken from stored, the
// table as it was.
func networkRows(folder string, stored [][]string) ([][]string, error) {
	out := [][]string{{"training file", "networks", "statistic", "value", "low", "high"}}
	for _, name := range []string{"stir", "stir-defences", "stir-updates", "stir-shapes"} {
		list, err := readRuns(filepath.Join(folder, name, "runs.csv"))
		if errors.Is(err, fs.ErrNotExist) {
			out = append(out, beginning(stored, name+".yaml")...)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			out = append(out, []string{name + ".yaml", t.name, "seeds", strconv.Itoa(len(t.accuracy)), "", ""})
			for _, s := range []struct {
				title  string
				values []float64
			}{{"test accuracy", t.accuracy}, {"robust accuracy", t.robust}} {
				if len(s.values) > 0 {
					mean, low, high := tablefile.Interval(s.values)
					out = append(out, append([]string{name + ".yaml", t.name, s.title}, tablefile.Cells("%.3f", mean, max(low, 0), min(high, 1))...))
				}
			}
		}
	}
	return out, nil
}

// readRuns reads a file runs.csv, which has a row for each training: its name, the varied keys in
// alphabetical order, the number of epochs, and results.
func readRuns(path string) ([]trainings, error) {
	records, err := tablefile.Read(path)
	if err != nil {
		return nil, err
	}
	head := records[0]
	epochs, accuracy, robust := slices.Index(head, "epochs"), slices.Index(head, "test_accuracy"), slices.Index(head, "test_robust_accuracy")
	if min(epochs, accuracy, robust) < 0 {
		return nil, fmt.Errorf("%s: the columns epochs, test_accuracy and test_robust_accuracy are needed, and there are %q", path, head)
	}
	var list []trainings
	for _, r := range records[1:] {
		if r[accuracy] == "" {
			continue // not trained yet
		}
		var words []string
		for i := epochs - 1; i > 0; i-- { // backwards, so that the network comes before the kind of training
			if head[i] == "seed" {
				continue
			}
			word := r[i]
			if t, ok := networkTitles[word]; ok {
				word = t
			} else {
				word += " images" // the number of training images
			}
			words = append(words, word)
		}
		name := strings.Join(words, ", ")
		k := slices.IndexFunc(list, func(t trainings) bool { return t.name == name })
		if k < 0 {
			k, list = len(list), append(list, trainings{name: name})
		}
		for values, column := range map[*[]float64]int{&list[k].accuracy: accuracy, &list[k].robust: robust} {
			if r[column] == "" {
				continue
			}
			v, err := strconv.ParseFloat(r[column], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			*values = append(*values, v)
		}
	}
	return list, nil
}
