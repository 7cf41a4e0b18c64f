package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/measure/similarity"
	"github.com/noether-ml/noether/scores"
)

// A layerPopulation is a layer of each of two models on all images of some files of CIFAR-10. Sets
// of n images are drawn from it: a set has no image twice, but two sets may share some.
type layerPopulation struct {
	n, first, sets int    // sets first, first + 1, ...
	models, layers string // two each, separated by a comma
	measure        string // similarity, geometry or prediction-agreement
	statistics     string // of the measure, separated by commas; empty: those that the function statistics returns
	folder, scores string // folder that stores the representations; file to which the scores are written
}

// run draws the sets and writes their scores to the file p.scores, and their table to out.
func (p layerPopulation) run(ctx context.Context, files []string, out io.Writer) error {
	models, layers := strings.Split(p.models, ","), strings.Split(p.layers, ",")
	if len(models) != 2 || len(layers) != 2 {
		return errors.New("-models and -layers take two names each, separated by a comma")
	}
	blas.Load() // a fast BLAS
	var tables [2]*features.Table
	for i := range tables {
		var err error
		if tables[i], err = p.extract(ctx, models[i], layers[i], files); err != nil {
			return err
		}
	}
	settings := similarity.Defaults()
	settings.Null = false // no scores on shuffled pairs, which show what chance gives
	if settings.Statistics = statistics(); p.statistics != "" {
		settings.Statistics = strings.Split(p.statistics, ",")
	}
	measured, err := p.measureOf(tables, settings, files)
	if err != nil {
		return err
	}
	rows := make([][]scores.Row, p.sets)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for set := range p.sets {
		group.Go(func() (err error) {
			rows[set], err = p.set(ctx, measured, tables[0].Len(), uint64(p.first+set))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var all []scores.Row
	for _, r := range rows {
		for i := range r {
			r[i].Layer = layers[0] + " - " + layers[1]
		}
		all = append(all, r...)
	}
	f, err := os.Create(p.scores)
	if err != nil {
		return err
	}
	if err := errors.Join(scores.WriteCSV(f, all), f.Close()); err != nil {
		return err
	}
	return write(out, all)
}

// extract returns the means of the channels of a layer of the model at path on all images. It keeps
// them in p.folder.
func (p layerPopulation) extract(ctx context.Context, path, layer string, files []string) (*features.Table, error) {
	library, _, err := ort.Find("")
	if err != nil {
		return nil, err
	}
	rt, err := ort.Load(library)
	if err != nil {
		return nil, err
	}
	preprocess := model.Preprocess{Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}}
	net, err := rt.OpenNetwork(path, ort.NetworkOptions{})
	if err != nil {
		return nil, err
	}
	m, err := model.Open(ctx, net, model.Options{Layers: []string{layer}, Preprocess: preprocess})
	if err != nil {
		return nil, err
	}
	source, err := dataset.OpenCIFAR10(ctx, dataset.CIFAROptions{Paths: files})
	if err != nil {
		return nil, err
	}
	defer source.Close()
	store := features.Store{Dir: p.folder}
	tables, err := store.Layers(ctx, features.Request{
		Model: m, Layers: m.Layers(), Pool: pooling.Mean, Data: source.Fingerprint(), N: source.Len(), Memory: 1 << 30,
		Read: func(ctx context.Context, positions []int, f dataset.Frame) (out []dataset.Sample, err error) {
			for s, err := range dataset.Read(ctx, source, positions, f, dataset.ReadOptions{}) {
				if err != nil {
					return nil, err
				}
				out = append(out, s)
			}
			return out, nil
		},
	})
	if err != nil {
		return nil, err
	}
	if len(tables) != 1 {
		return nil, fmt.Errorf("%q selects %d layers of %s; one is needed", layer, len(tables), path)
	}
	return tables[0], nil
}

// set returns the scores of one set of p.n images of all, whose number is all. seed is the number
// of the set.
func (p layerPopulation) set(ctx context.Context, measured setMeasure, all int, seed uint64) ([]scores.Row, error) {
	if p.n < 20 || p.n > all { // a jackknife has up to twenty groups of images
		return nil, fmt.Errorf("sets of %d images: there must be 20 to %d", p.n, all)
	}
	found, err := measured(ctx, rand.New(rand.NewPCG(seed, 1)).Perm(all)[:p.n], seed)
	var rows []scores.Row
	for _, s := range found {
		rows = append(rows, scores.Row{Study: "coverage", Measure: p.measure, Statistic: s.Statistic, Value: s.Value, Low: s.Low, High: s.High, Null: math.NaN(), N: s.N,
			Data: fmt.Sprintf("%03d", seed), Warning: strings.Join(s.Warnings, "; ")})
	}
	return rows, err
}
