package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/study"
	"github.com/noether-ml/noether/study/spec"
)

const (
	// longRun is the time up to which a study measures all samples. Estimates are right to within
	// 50 %.
	longRun       = 80 * time.Second
	fewestSamples = 20
	// seisOperations bounds the floating-point operations of seis at its default resolution, some
	// ten seconds on two cores. A study above it has positionsOfFirstRun, 16 x 16.
	seisOperations      = 1e12
	positionsOfFirstRun = 256
	positionsByDefault  = 1024
)

// fitFirstRun returns the study of a guess and its estimated time. If that is long, the study gets
// fewer samples, so that the user can wait for the first run.
func fitFirstRun(ctx context.Context, engine *engineFlags, g *spec.TemplateInfo, folder string) (string, time.Duration, error) {
	text, cost, err := estimated(ctx, engine, *g, folder)
	if err != nil {
		return "", 0, err
	}
	n := samplesWithin(longRun, cost)
	if n == cost.Samples {
		return text, cost.Total, nil
	}
	total := cost.fixed() + time.Duration(n)*cost.perSample()
	g.Limit, g.Time = n, total.Round(time.Second).String()
	text, err = spec.Template(*g)
	return text, total, err
}

// positionsFor returns the bound of seis for layers and a number of samples; 0 is the default. For
// each of the eight transformed views of a sample, seis adds five products of channels x positions
// with itself, counted as half a multiplication and an addition for each pair of positions. For
// each view, its scores take about as long as 100 operations for each triple of positions.
func positionsFor(layers []onnx.Layer, samples int) int {
	const views, products, scoring = 8, 5, 100
	operations, largest := 0.0, 0
	for _, l := range layers {
		channels, positions := extentOf(l)
		largest = max(largest, positions)
		if positions > 1 {
			d := float64(min(positions, positionsByDefault))
			operations += views * d * d * (products*float64(samples)*float64(channels) + scoring*d)
		}
	}
	if operations > seisOperations && largest > positionsOfFirstRun {
		return positionsOfFirstRun
	}
	return 0
}

// extentOf returns the numbers of channels and of positions of one sample of a layer.
func extentOf(l onnx.Layer) (channels, positions int) {
	channels, positions = 1, 1
	if len(l.Shape) != len(l.Axes)-1 {
		return channels, positions
	}
	for i, axis := range string(l.Axes) {
		switch {
		case i == 0: // the batch
		case axis == 'C':
			channels *= l.Shape[i-1]
		default:
			positions *= l.Shape[i-1]
		}
	}
	return channels, positions
}

// A firstCost is the cost of a study with one model and one data set.
type firstCost struct{ study.Cost }

// fixed returns the time that does not depend on the number of samples.
func (c firstCost) fixed() time.Duration { return c.Open + c.Score + c.Save }

// perSample returns the time for each sample of the data.
func (c firstCost) perSample() time.Duration {
	return (c.Read + c.Engine + c.Measure) / time.Duration(max(1, c.Samples))
}

// samplesWithin returns how many samples can be measured within a time: a multiple of ten, or of a
// hundred if there are many, and at least fewestSamples.
func samplesWithin(limit time.Duration, c firstCost) int {
	if c.Total <= limit || c.perSample() == 0 {
		return c.Samples
	}
	n := int((limit - c.fixed()) / c.perSample())
	step := 10
	if n >= 300 {
		step = 100
	}
	return min(c.Samples, max(fewestSamples, n/step*step))
}

// estimated returns the study of a guess and what it costs.
func estimated(ctx context.Context, engine *engineFlags, g spec.TemplateInfo, folder string) (string, firstCost, error) {
	text, err := spec.Template(g)
	if err != nil {
		return "", firstCost{}, err
	}
	s, err := study.Parse(filepath.Join(folder, "study.yaml"), []byte(text), nil)
	if err != nil {
		return "", firstCost{}, err
	}
	o, err := engine.open()
	if err != nil {
		return "", firstCost{}, err
	}
	o.Free = machine.FreeMemory()
	costs, err := estimateAll(ctx, s, o)
	if ctx.Err() != nil {
		return "", firstCost{}, ctx.Err()
	}
	if err != nil { // the study can be mended by hand, so it is written all the same
		note("the study's time is not known: " + err.Error())
		return text, firstCost{}, nil
	}
	return text, firstCost{costs[0]}, nil
}

// estimateAll returns the costs of a study, of which there is at least one.
func estimateAll(ctx context.Context, s *study.Study, o study.Options) ([]study.Cost, error) {
	plan, err := study.NewPlan(ctx, s, o)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	costs, err := study.Estimate(ctx, plan, "", o)
	if err == nil && len(costs) == 0 {
		err = errors.New("it has no cells")
	}
	return costs, err
}
