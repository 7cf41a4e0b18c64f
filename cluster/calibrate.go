package cluster

import (
	"context"
	"os"
	"time"

	"github.com/noether-ml/noether/study"
)

// trialSamples is how many samples of each data set a calibration feeds: two blocks.
const trialSamples = 64

// Calibrate measures what a model of a study takes here, with the threads of o, by running it on the first samples of
// each data set under the first value of the first transformation. It ends when ctx does, with what it has learnt until
// then, and fails where that is nothing.
func Calibrate(ctx context.Context, s *study.Study, work study.Work, o study.Options) (Cost, error) {
	dir, err := os.MkdirTemp("", "noether-calibrate-")
	if err != nil {
		return Cost{}, err
	}
	defer os.RemoveAll(dir)
	var w watch
	o.Only, o.Part, o.Every = []string{work.Model}, study.Part{}, time.Hour
	o.Progress = w.tick
	w.start()
	result, err := study.Run(ctx, s.Trial(trialSamples), dir, o)
	w.end()
	if err != nil && (ctx.Err() == nil || w.rate() == 0) {
		return Cost{}, err
	}
	cells := 0
	if err == nil {
		cells = result.Record.Cells
	}
	return w.cost(work, cells), nil
}

// A watch takes the times of a trial run.
type watch struct {
	began, last  time.Time
	pass         int
	done         int64
	first        time.Duration // from the start to the first batch's end
	firstN       int64         // samples of that batch
	feeding      time.Duration // between batches of one pass
	fed          int64         // samples of those
	between      time.Duration // from the last batch of a pass to the first of the next, or to the end
	betweenFirst int64         // samples of the first batches of later passes
}

func (w *watch) start() { w.began = time.Now() }

// tick is called when the engine has run a batch and the measures have seen it.
func (w *watch) tick(p study.Progress) {
	now := time.Now()
	n := p.Done - w.done
	switch {
	case w.last.IsZero():
		w.first, w.firstN = now.Sub(w.began), n
	case p.Pass == w.pass:
		w.feeding += now.Sub(w.last)
		w.fed += n
	default:
		w.between += now.Sub(w.last)
		w.betweenFirst += n
	}
	w.last, w.pass, w.done = now, p.Pass, p.Done
}

func (w *watch) end() {
	if !w.last.IsZero() {
		w.between += time.Since(w.last)
	}
}

// rate is the seconds for a sample, forward; 0 where nothing was learnt.
func (w *watch) rate() float64 {
	if w.fed > 0 {
		return w.feeding.Seconds() / float64(w.fed)
	}
	if w.firstN > 0 {
		return w.first.Seconds() / float64(w.firstN) // one batch, opening included: too much rather than too little
	}
	return 0
}

// cost extrapolates from a trial of so many cells to all the work of a model. With no cells the trial was cut short.
func (w *watch) cost(work study.Work, cells int) Cost {
	out := Cost{Model: work.Model, Blocks: work.Blocks, Measured: true}
	out.Open = max(0, w.first.Seconds()-w.rate()*float64(w.firstN))
	out.Samples = w.rate() * float64(work.Forwards)
	if cells > 0 {
		out.Scores = max(0, w.between.Seconds()-w.rate()*float64(w.betweenFirst)) * float64(work.Cells) / float64(cells)
	}
	return out
}

// Guess is the cost of a model in no unit: parameters times the numbers of an input times forwards.
func Guess(w study.Work) Cost {
	return Cost{Model: w.Model, Blocks: w.Blocks,
		Samples: float64(max(1, w.Parameters)) * float64(max(1, w.InputBytes/4)) * float64(w.Forwards)}
}

// Costs finds the cost of every model: measured by calibrate, or a guess where calibrate is nil or fails. Guesses beside
// measured costs are brought to their scale. A model without cells that are left to do costs nothing.
func Costs(ctx context.Context, work []study.Work, calibrate func(context.Context, study.Work) (Cost, error)) ([]Cost, error) {
	guesses := make([]Cost, len(work))
	out := make([]Cost, len(work))
	for i, w := range work {
		guesses[i] = Guess(w)
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
	toScale(out, guesses)
	return out, nil
}

// toScale gives guesses the unit of what was measured, by the ratio of the totals of those models that have both.
func toScale(costs, guesses []Cost) {
	var measured, guessed float64
	for i, c := range costs {
		if c.Measured {
			measured += c.whole()
			guessed += guesses[i].Samples
		}
	}
	for i := range costs {
		if c := &costs[i]; !c.Measured && guessed > 0 {
			c.Samples *= measured / guessed
		}
	}
}
