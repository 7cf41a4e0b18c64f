package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/tensor"
)

const (
	// maxFirstRun is the estimated time above which noether init limits the number of samples.
	maxFirstRun     = 80 * time.Second
	minFirstSamples = 20 // smallest limit
	// seisOperations bounds the floating-point operations of seis, to about ten seconds on two
	// cores. A study that needs more gets reducedPositions.
	seisOperations   = 1e12
	reducedPositions = 256
	defaultPositions = 1024
)

// limitFirstRun returns the text of a study, with a limit on samples if its estimated time exceeds
// maxFirstRun, and that time.
func limitFirstRun(ctx context.Context, engine *engineFlags, g *templateInfo, folder string) (string, time.Duration, error) {
	text, cost, err := estimateTemplate(ctx, engine, *g, folder)
	if err != nil {
		return "", 0, err
	}
	n := samplesWithin(maxFirstRun, cost)
	if n == cost.Samples {
		return text, cost.Total, nil
	}
	total := cost.fixed() + time.Duration(n)*cost.perSample()
	g.Limit, g.Time = n, total.Round(time.Second).String()
	text, err = studyText(*g)
	return text, total, err
}

// seisPositions returns the setting positions of seis; 0 is the default. It counts operations for
// the eight views of a study that noether init writes. A view of a layer with c channels and d
// positions takes, for each sample, five products of a c x d matrix with its transpose, c d²
// operations each since they are symmetric. The scores of a view take about 100 d³.
func seisPositions(layers []tensor.Layer, samples int) int {
	const views, products, scoring = 8, 5, 100
	operations, largest := 0.0, 0
	for _, l := range layers {
		channels, positions := extentOf(l)
		largest = max(largest, positions)
		if positions > 1 {
			d := float64(min(positions, defaultPositions))
			operations += views * d * d * (products*float64(samples)*float64(channels) + scoring*d)
		}
	}
	if operations > seisOperations && largest > reducedPositions {
		return reducedPositions
	}
	return 0
}

// extentOf returns channels and positions of a layer. Shape lacks the batch axis.
func extentOf(l tensor.Layer) (channels, positions int) {
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

// An initCost is the cost of a study with one model and one data set.
type initCost struct{ study.Cost }

// fixed is the time that does not depend on the number of samples.
func (c initCost) fixed() time.Duration { return c.Open + c.Score + c.Save }

// perSample is the time that each sample adds.
func (c initCost) perSample() time.Duration {
	return (c.Read + c.Engine + c.Measure) / time.Duration(max(1, c.Samples))
}

// samplesWithin returns a multiple of ten, or of a hundred if there are many, and at least
// minFirstSamples.
func samplesWithin(limit time.Duration, c initCost) int {
	if c.Total <= limit || c.perSample() == 0 {
		return c.Samples
	}
	n := int((limit - c.fixed()) / c.perSample())
	step := 10
	if n >= 300 {
		step = 100
	}
	return min(c.Samples, max(minFirstSamples, n/step*step))
}

// estimateTemplate returns the text of a study and its estimated cost.
func estimateTemplate(ctx context.Context, engine *engineFlags, g templateInfo, folder string) (string, initCost, error) {
	text, err := studyText(g)
	if err != nil {
		return "", initCost{}, err
	}
	s, err := study.Parse(filepath.Join(folder, "study.yaml"), []byte(text), nil)
	if err != nil {
		return "", initCost{}, err
	}
	o, err := engine.open()
	if err != nil {
		return "", initCost{}, err
	}
	o.Free = machine.FreeMemory()
	costs, err := estimateAll(ctx, s, o)
	if ctx.Err() != nil {
		return "", initCost{}, ctx.Err()
	}
	if err != nil { // the study is written nevertheless, because the user can correct it
		note("the study's time is not known: " + err.Error())
		return text, initCost{}, nil
	}
	return text, initCost{costs[0]}, nil
}

// estimateAll returns at least one cost. A study without cells is an error.
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
