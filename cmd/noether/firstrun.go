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
	// maxFirstEngine is the estimated time of the engine above which noether init limits the number
	// of samples.
	maxFirstEngine  = time.Minute
	minFirstSamples = 20 // smallest limit
	// seisOperations bounds the floating-point operations of seis, to about ten seconds on two
	// cores. A study that needs more gets reducedPositions.
	seisOperations   = 1e12
	reducedPositions = 256
	defaultPositions = 1024
)

// limitFirstRun returns the text of a study, with a limit on samples if the estimated time of the
// engine exceeds maxFirstEngine.
func limitFirstRun(ctx context.Context, engine *engineFlags, g *templateInfo, folder string) (string, error) {
	text, err := studyText(*g)
	if err != nil {
		return "", err
	}
	took, samples, err := engineTime(ctx, engine, text, folder)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil { // the study is written nevertheless, because the user can correct it
		note("the study's time is not known: " + err.Error())
		return text, nil
	}
	n := samplesWithin(maxFirstEngine, took, samples)
	if n == samples {
		return text, nil
	}
	g.Limit, g.Time = n, (took * time.Duration(n) / time.Duration(samples)).Round(time.Second).String()
	return studyText(*g)
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

// samplesWithin returns how many of the samples the engine takes within a limit, if it needs the
// given time for all: a multiple of ten, or of a hundred if there are many, and at least
// minFirstSamples.
func samplesWithin(limit, took time.Duration, samples int) int {
	if took <= limit {
		return samples
	}
	n := int(float64(samples) * limit.Seconds() / took.Seconds())
	step := 10
	if n >= 300 {
		step = 100
	}
	return min(samples, max(minFirstSamples, n/step*step))
}

// engineTime returns the estimated time of the engine for a study's text, and its samples.
func engineTime(ctx context.Context, engine *engineFlags, text, folder string) (time.Duration, int, error) {
	s, err := study.Parse(filepath.Join(folder, "study.yaml"), []byte(text), nil)
	if err != nil {
		return 0, 0, err
	}
	o, err := engine.open()
	if err != nil {
		return 0, 0, err
	}
	o.Free = machine.FreeMemory()
	plan, err := study.NewPlan(ctx, s, o)
	if err != nil {
		return 0, 0, err
	}
	defer plan.Close()
	if len(plan.Cells) == 0 {
		return 0, 0, errors.New("it has no cells")
	}
	took, err := study.EngineTime(ctx, plan, o)
	return took, plan.Cells[0].Data.Order.Len(), err
}
