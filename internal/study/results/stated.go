package results

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// accuracyKeys are the tags and the entries of a file's metadata that state the accuracy of a
// model.
var accuracyKeys = []string{"accuracy", "acc@1", "top-1", "top1", "top-1 accuracy"}

// statedAccuracy returns the accuracy that the study's tags, the metadata of a model's file or its
// card state; nil without one.
func statedAccuracy(m *plan.Model) *scores.StatedAccuracy {
	for _, key := range accuracyKeys {
		if v, ok := parseAccuracy(m.Entry.Tags[key]); ok {
			return &scores.StatedAccuracy{Accuracy: v, By: "the tag " + key + " of the study"}
		}
	}
	graph := m.Net.Graph()
	for _, key := range accuracyKeys {
		if graph == nil {
			break
		}
		if v, ok := parseAccuracy(graph.Metadata(key)); ok {
			return &scores.StatedAccuracy{Accuracy: v, By: "the metadata of its file"}
		}
	}
	path := m.Entry.Address().String()
	if uri.IsURL(path) {
		return nil
	}
	dir := filepath.Dir(path)
	for _, card := range []string{filepath.Join(dir, "README.md"), filepath.Join(dir, "..", "README.md")} {
		if v, ok := accuracyOfCard(card); ok {
			return &scores.StatedAccuracy{Accuracy: v, By: "its card (" + filepath.Base(card) + ")"}
		}
	}
	return nil
}

// parseAccuracy parses an accuracy, as a fraction or in percent.
func parseAccuracy(text string) (float64, bool) {
	text, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent || v > 1 {
		v /= 100
	}
	return v, err == nil && v > 0 && v <= 1
}

// accuracyOfCard returns the first accuracy of the index of results at the head of a model card, as
// the Hugging Face hub defines it.
func accuracyOfCard(path string) (float64, bool) {
	info, err := os.Stat(path)
	if err != nil || info.Size() > 1<<20 {
		return 0, false
	}
	text, err := os.ReadFile(path)
	head, ok := bytes.CutPrefix(text, []byte("---\n"))
	if err != nil || !ok {
		return 0, false
	}
	head, _, _ = bytes.Cut(head, []byte("\n---"))
	var card struct {
		Index []struct {
			Results []struct {
				Metrics []struct {
					Type  string `yaml:"type"`
					Value any    `yaml:"value"`
				} `yaml:"metrics"`
			} `yaml:"results"`
		} `yaml:"model-index"`
	}
	if yaml.Unmarshal(head, &card) != nil {
		return 0, false
	}
	for _, model := range card.Index {
		for _, result := range model.Results {
			for _, metric := range result.Metrics {
				if v, ok := metric.Value.(float64); ok && metric.Type == "accuracy" {
					return parseAccuracy(strconv.FormatFloat(v, 'g', -1, 64))
				}
			}
		}
	}
	return 0, false
}
