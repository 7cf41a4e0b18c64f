package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/measure/similarity"
	"github.com/noether-ml/noether/tensor"
)

// A setMeasure returns the scores of a set of images, given by their positions among all images.
// The seed is that of the measure similarity.
type setMeasure func(ctx context.Context, chosen []int, seed uint64) ([]measure.Score, error)

// measureOf returns the measure of sets. tables hold the activations of the two layers, of which
// geometry takes the first; files have the labels for prediction-agreement.
func (p layerPopulation) measureOf(tables [2]*features.Table, settings similarity.Settings, files []string) (setMeasure, error) {
	switch p.measure {
	case "similarity":
		return func(ctx context.Context, chosen []int, seed uint64) ([]measure.Score, error) {
			var sources [2]similarity.Source
			for i, t := range tables {
				values, err := rowsOf(t, chosen)
				if err != nil {
					return nil, err
				}
				if sources[i], err = similarity.Of(values, len(chosen), t.Dim); err != nil {
					return nil, err
				}
			}
			return similarity.Compare(ctx, sources[0], sources[1], similarity.Options{Settings: settings, Seed: seed})
		}, nil
	case "geometry":
		m, err := similarity.NewGeometry(similarity.GeometrySettings{Pool: "none", Samples: 4096})
		return func(_ context.Context, chosen []int, _ uint64) ([]measure.Score, error) {
			values, err := rowsOf(tables[0], chosen)
			if err != nil {
				return nil, err
			}
			return scoresOf(m, nil, make([]int, len(chosen)), values, nil) // geometry needs neither classes nor labels
		}, err
	case "prediction-agreement":
		labels, err := labelsOf(files)
		return func(_ context.Context, chosen []int, _ uint64) ([]measure.Score, error) {
			var views [2][]float32 // log probabilities of the classes by each model
			for i, t := range tables {
				values, err := rowsOf(t, chosen)
				if err != nil {
					return nil, err
				}
				views[i] = logSoftmax(values, t.Dim)
			}
			var labelsOfSet []int
			for _, at := range chosen {
				labelsOfSet = append(labelsOfSet, labels[at])
			}
			classes := make([]string, tables[0].Dim) // only their number matters
			return scoresOf(prediction.ModelAgreement(prediction.ModelSettings{}), classes, labelsOfSet, views[0], views[1])
		}, err
	}
	return nil, fmt.Errorf("-measure is %q: it must be similarity, geometry or prediction-agreement", p.measure)
}

// rowsOf returns rows of a table, one after another.
func rowsOf(t *features.Table, rows []int) ([]float32, error) {
	values := make([]float32, len(rows)*t.Dim)
	for i, at := range rows {
		if err := t.Row(values[i*t.Dim:(i+1)*t.Dim], at); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// scoresOf returns the scores of a measure of n = len(labels) samples with len(clean) / n values
// each. moved is of the transformed samples, or of a second model; it may be nil.
func scoresOf(m measure.Measure, classes []string, labels []int, clean, moved []float32) ([]measure.Score, error) {
	n := len(labels)
	shape := []int{len(clean) / n}
	a, err := m.New(measure.Site{Layer: tensor.Layer{Name: "layer", Shape: shape, Axes: "NC"}, Layout: measure.NewLayout(n), Classes: classes})
	if err != nil {
		return nil, err
	}
	b := &measure.Batch{Label: labels, Clean: tensor.Tensor{Shape: []int{n, shape[0]}, Data: clean}}
	if moved != nil {
		b.Transformed = tensor.Tensor{Shape: b.Clean.Shape, Data: moved}
	}
	for i := range n { // Place is the position in the Layout's order, Index that in the data
		b.Place, b.Index = append(b.Place, i), append(b.Index, i)
	}
	if err := a.Update(b); err != nil {
		return nil, err
	}
	return a.Scores()
}

// labelsOf returns the labels of the images of binary files of CIFAR-10.
func labelsOf(files []string) (labels []int, err error) {
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for image := range slices.Chunk(data, record) { // record: bytes of a label and its image
			labels = append(labels, int(image[0]))
		}
	}
	return labels, nil
}

// logSoftmax returns the natural logarithms of the probabilities of k classes, given their logits.
func logSoftmax(logits []float32, k int) []float32 {
	out := make([]float32, 0, len(logits))
	for row := range slices.Chunk(logits, k) {
		top, sum := float64(slices.Max(row)), 0.
		for _, v := range row {
			sum += math.Exp(float64(v) - top)
		}
		for _, v := range row {
			out = append(out, float32(float64(v)-top-math.Log(sum)))
		}
	}
	return out
}
