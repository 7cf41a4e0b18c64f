package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/papers/internal/tablefile"
	"github.com/noether-ml/noether/scores"
)

// natural lists the data of the natural tests.
var natural = []string{"clips", "pan", "turn", "orbit"}

// A table holds scores of one statistic by model, layer and test. A layer is that of a network, and
// its name says how it was trained. A test is named by its data, followed for gratings by the
// factor.
type table map[string]map[string]map[string]scores.Row

// test returns the name of the test of a score.
func test(r scores.Row) string {
	if r.Factor != "" {
		return r.Data + " " + r.Factor
	}
	return r.Data
}

// read returns the scores of a statistic of the measure firing from the files of -scores.
func (p plan) read(statistic string) (table, error) {
	if len(p.scores) == 0 {
		return nil, errors.New("name the scores: -scores runs/NAME/scores.csv")
	}
	t := table{}
	rows, err := tablefile.ReadScores(p.scores...)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Measure == "firing" && r.Statistic == statistic {
			t.add(r)
		}
	}
	return t, nil
}

func (t table) add(r scores.Row) {
	if t[r.Model] == nil {
		t[r.Model] = map[string]map[string]scores.Row{}
	}
	if t[r.Model][r.Layer] == nil {
		t[r.Model][r.Layer] = map[string]scores.Row{}
	}
	t[r.Model][r.Layer][test(r)] = r
}

// layers returns the layers of a model whose names meet a condition (nil: all), sorted.
func (t table) layers(model string, condition func(layer string) bool) []string {
	var out []string
	for l := range t[model] {
		if condition == nil || condition(l) {
			out = append(out, l)
		}
	}
	slices.Sort(out)
	return out
}

// of returns the score of a layer in a test, or the mean over the natural tests for the test "";
// NaN if there is none.
func (t table) of(model, layer, test string) float64 {
	if test == "" {
		return t.mean(model, layer)
	}
	if r, ok := t[model][layer][test]; ok {
		return r.Value
	}
	return math.NaN()
}

// mean returns the mean over the natural tests with scores.
func (t table) mean(model, layer string) float64 {
	sum, n := 0.0, 0.0
	for _, d := range natural {
		if v := t.of(model, layer, d); !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / n
}

// hasNatural reports whether a model has scores of natural tests.
func (t table) hasNatural(model string) bool {
	return slices.ContainsFunc(t.layers(model, nil), func(l string) bool { return !math.IsNaN(t.mean(model, l)) })
}

// stack parses the weight decays up to a layer of depth.onnx: decays0.01,0,0.1/layer2 gives 0.01
// and 0.
func stack(layer string) ([]float64, error) {
	name, number, ok := strings.Cut(strings.TrimPrefix(layer, "decays"), "/layer")
	depth, err := strconv.Atoi(number)
	parts := strings.Split(name, ",")
	if !ok || err != nil || depth > len(parts) {
		return nil, fmt.Errorf("layer %q is not one of depth.onnx", layer)
	}
	var out []float64
	for _, part := range parts[:depth] {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return nil, fmt.Errorf("layer %q: %w", layer, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// best returns the weight decays of the best network of each depth, by the mean over the natural
// tests.
func (p plan) best() ([][]float64, error) {
	t, err := p.read("invariance")
	if err != nil {
		return nil, err
	}
	best, value := make([][]float64, maxLayers), slices.Repeat([]float64{math.Inf(-1)}, maxLayers)
	for _, l := range t.layers("depth", nil) {
		decays, err := stack(l)
		if err != nil {
			return nil, err
		}
		if v := t.mean("depth", l); v > value[len(decays)-1] {
			best[len(decays)-1], value[len(decays)-1] = decays, v
		}
	}
	for d, b := range best {
		if b == nil {
			return nil, fmt.Errorf("there are no scores of the networks of depth %d", d+1)
		}
	}
	return best, nil
}
