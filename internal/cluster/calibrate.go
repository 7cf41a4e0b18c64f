package cluster

import (
	"context"
	"time"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/tempfolder"
)

// calibrationSamples is the number of samples of each data set in a calibration.
const calibrationSamples = 64

// Calibrate measures the cost (seconds of computation) of a model on this machine. It runs some
// samples of each data set under the first value of the first transformation. Of the options o it
// sets these itself: Only (the models to run), Shard (the part of the samples to measure; zero:
// all), SaveInterval and Progress. When ctx ends it returns the cost estimated from the
// measurements so far, or an error if there are none. Cost.Scores, the time to compute the scores,
// is then 0.
func Calibrate(ctx context.Context, s *study.Study, work study.Work, o study.Options) (Cost, error) {
	dir, remove, err := tempfolder.New("calibrate")
	if err != nil {
		return Cost{}, err
	}
	defer remove()
	var w stopwatch
	o.Only, o.Shard, o.SaveInterval = []string{work.Model}, study.Shard{}, time.Hour
	o.Progress = w.tick
	w.start()
	result, err := study.Run(ctx, s.Reduced(calibrationSamples), dir, o)
	w.end()
	if err != nil && (ctx.Err() == nil || w.secondsPerSample() == 0) {
		return Cost{}, err
	}
	cells := 0
	if err == nil {
		cells = result.Record.Cells
	}
	return w.cost(work, cells), nil
}

// A stopwatch records the times of a calibration run. A pass is one reading of the samples of a
// data set, from the first to the last; a run consists of one or several.
type stopwatch struct {
	began, last  time.Time     // of the start, and of the last tick
	pass         int           // number of the pass at the last tick
	done         int64         // samples that were run up to the last tick, in all passes
	first        time.Duration // from the start to the end of the first batch
	firstSamples int64         // samples of the first batch
	batches      time.Duration // of the later batches of each pass
	batchSamples int64         // samples of these batches
	// between is the sum of the times from the last batch of a pass to the end of the first batch
	// of the next pass, or to the end of the run.
	between      time.Duration
	betweenFirst int64 // samples of these first batches
}

func (w *stopwatch) start() { w.began = time.Now() }

// tick is called after each batch has been run and passed to the measures.
func (w *stopwatch) tick(p study.Progress) {
	now := time.Now()
	n := p.Done - w.done
	switch {
	case w.last.IsZero():
		w.first, w.firstSamples = now.Sub(w.began), n
	case p.Pass == w.pass:
		w.batches += now.Sub(w.last)
		w.batchSamples += n
	default:
		w.between += now.Sub(w.last)
		w.betweenFirst += n
	}
	w.last, w.pass, w.done = now, p.Pass, p.Done
}

func (w *stopwatch) end() {
	if !w.last.IsZero() {
		w.between += time.Since(w.last)
	}
}

// secondsPerSample returns the time to run one sample and pass it to the measures; 0 if nothing was
// measured.
func (w *stopwatch) secondsPerSample() float64 {
	if w.batchSamples > 0 {
		return w.batches.Seconds() / float64(w.batchSamples)
	}
	if w.firstSamples > 0 { // with the time to open the model: an upper bound
		return w.first.Seconds() / float64(w.firstSamples)
	}
	return 0
}

// cost extrapolates from a calibration run to all work of a model. cells is the number of cells
// that were run (a cell is one measure of the model on one data set, under one transformation
// value, in one trial, that is, one repetition of all random draws); 0 if the run was interrupted.
// Cost.Blocks is the largest number of parts into which the samples can be divided.
func (w *stopwatch) cost(work study.Work, cells int) Cost {
	out := Cost{Model: work.Model, Blocks: work.Blocks, Measured: true}
	out.Open = max(0, w.first.Seconds()-w.secondsPerSample()*float64(w.firstSamples))
	out.Samples = w.secondsPerSample() * float64(work.Forwards)
	if cells > 0 {
		out.Scores = max(0, w.between.Seconds()-w.secondsPerSample()*float64(w.betweenFirst)) * float64(work.Cells) / float64(cells)
	}
	return out
}

// guess returns a cost in an unknown unit: the number of the model's parameters, times the number
// of values of an input (4 bytes each), times the number of samples in all forward passes.
func guess(w study.Work) Cost {
	return Cost{Model: w.Model, Blocks: w.Blocks,
		Samples: float64(max(1, w.Parameters)) * float64(max(1, w.InputBytes/4)) * float64(w.Forwards)}
}

// Costs returns the cost of each model: measured by calibrate, or a guess where calibrate is nil or
// fails; Cost.Note then has the error. If some models were measured, the guesses for the others are
// scaled to seconds. A model without unfinished cells costs nothing. Costs returns an error only if
// ctx ends.
func Costs(ctx context.Context, work []study.Work, calibrate func(context.Context, study.Work) (Cost, error)) ([]Cost, error) {
	guesses := make([]Cost, len(work))
	out := make([]Cost, len(work))
	for i, w := range work {
		guesses[i] = guess(w)
		out[i] = guesses[i]
		if calibrate == nil || w.Cells == 0 {
			continue
		}
		measured, err := calibrate(ctx, w)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			out[i].Note = err.Error()
			continue
		}
		out[i] = measured
	}
	scaleGuesses(out, guesses)
	return out, nil
}

// scaleGuesses converts guesses to seconds, by the ratio of the totals over the measured models.
func scaleGuesses(costs, guesses []Cost) {
	var measured, guessed float64
	for i, c := range costs {
		if c.Measured {
			measured += c.total()
			guessed += guesses[i].Samples
		}
	}
	for i := range costs {
		if c := &costs[i]; !c.Measured && guessed > 0 {
			c.Samples *= measured / guessed
		}
	}
}
