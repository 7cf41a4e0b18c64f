// Package flips measures how often the prediction changes from frame to frame of a sequence, such as
// a video in which a photograph turns slowly: the flip rate of ImageNet-P.
//
// Let f(x_1), ..., f(x_n) be the predicted classes of the n frames of a sequence. Hendrycks and
// Dietterich 2019 define, as means over sequences,
//
//	flip rate           1/(n-1) sum over j > 1 of 1(f(x_j) != f(x_{j-1}))
//	top-5 distance      1/(n-1) sum over j > 1 of d(tau(x_j), tau(x_{j-1})),
//
// where tau ranks the classes by their scores. For a class of rank i in the earlier frame and of rank
// s(i) in the later one (from 1; equal scores in the order of the classes),
//
//	d = sum over i <= 5 of |i - min(s(i), 6)|,
//
// from 0 to 15: how far the five classes that were ranked first move, where all places beyond the
// fifth are one. For sequences of independent draws of noise the frames are compared with the first
// one in place of the one before; both kinds are computed.
//
// The null compares each frame with a frame of another sequence.
package flips

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/tensor"
)

// Settings are the settings of the measure: it has none.
type Settings struct{}

// New returns the measure flip-rate.
func New(Settings) (procedure.Procedure, error) { return method{}, nil }

type method struct{}

func (method) Name() string                   { return "flip-rate" }
func (method) Descriptor() measure.Descriptor { return Descriptor() }
func (method) Version() int                   { return 1 }
func (method) Settings() any                  { return Settings{} }
func (method) Needs() procedure.Needs         { return procedure.Needs{Prediction: true, Sequences: true} }

func (method) Skip(j *procedure.Job) string {
	if j.A.Model.Classes() < 2 {
		return "it has no output of class scores"
	}
	return ""
}

// usualFrames is the number of frames of a sequence of ImageNet-P, by which the work is estimated.
const usualFrames = 31

func (method) Work(j *procedure.Job) int64 { return int64(j.Data.Len()) * usualFrames }

// ranked is the number of classes whose places are compared.
const ranked = 5

// A ranking holds the first classes of a frame, in the order of their scores.
type ranking [ranked]int

// rankingOf returns the ranking of the scores of all classes; -1 in the places that fewer than five
// classes leave. Equal scores are in the order of the classes.
func rankingOf(scores []float32) ranking {
	var r ranking
	for i := range r {
		r[i] = -1
	}
	for k, v := range scores {
		at := ranked
		for at > 0 && (r[at-1] < 0 || v > scores[r[at-1]]) {
			at--
		}
		if at < ranked {
			copy(r[at+1:], r[at:])
			r[at] = k
		}
	}
	return r
}

// flip is 1 if two frames have other predictions.
func flip(a, b ranking) float64 {
	if a[0] != b[0] {
		return 1
	}
	return 0
}

// distance is the top-5 distance of two frames.
func distance(a, b ranking) float64 {
	sum := 0
	for i, class := range a {
		if class < 0 {
			break
		}
		place := ranked
		for k, other := range b {
			if other == class {
				place = k
			}
		}
		if place > i {
			sum += place - i
		} else {
			sum += i - place
		}
	}
	return float64(sum)
}

// statistics are the columns of a sequence: flips and distances to the frame before and to the first
// one, and the same for another sequence in place of the earlier frames.
var statistics = []struct {
	name string
	high float64
}{{"flip-rate", 1}, {"top-5-distance", 15}, {"flip-rate-first", 1}, {"top-5-distance-first", 15}}

// compare returns the statistics of a sequence whose frames are compared with earlier ones of the
// sequence other, which is the sequence itself but for the null.
func compare(frames, other []ranking) []float64 {
	out := make([]float64, len(statistics))
	n := float64(len(frames) - 1)
	for j, r := range frames[1:] {
		before, first := other[min(j, len(other)-1)], other[0]
		for k, v := range []float64{flip(before, r), distance(before, r), flip(first, r), distance(first, r)} {
			out[k] += v / n
		}
	}
	return out
}

// A run is a job in progress.
type run struct {
	job      *procedure.Job
	session  *model.Session
	buffers  *model.Buffers
	next     int       // position of the next sample
	values   []float64 // sequences x statistics
	nulls    []float64 // the same against the sequence before; of the first, NaN
	rankings []int     // of the frames of the last sequence, ranked places each
}

// batch is the number of frames that the model gets at once.
const batch = 32

// together is the number of sequences that are read at once.
const together = 4

func (method) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	r := &run{job: j}
	if err := state.Load(j.Checkpoint, stateKind, stateVersion, r.Code); err != nil {
		return nil, err
	}
	var err error
	if r.session, err = j.A.Model.NewSession(nil, true); err != nil { // no layers, the class scores
		return nil, err
	}
	defer r.session.Close()
	if r.buffers, err = r.session.NewBuffers(batch); err != nil {
		return nil, err
	}
	frame := j.A.Model.Frame()
	frame.Frames = true
	for r.next < j.Data.Len() {
		end := min(r.next+together, j.Data.Len())
		var positions []int
		for i := r.next; i < end; i++ {
			positions = append(positions, i)
		}
		samples, err := j.Read(ctx, positions, frame)
		if err == nil {
			err = r.add(ctx, samples)
		}
		r.next = end
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		j.Progress(int64(r.next)*usualFrames, "")
		if state.Due(j.Checkpoint) {
			if err := state.Save(j.Checkpoint, stateKind, stateVersion, r.Code); err != nil {
				return nil, err
			}
		}
	}
	return r.scores()
}

// add adds sequences.
func (r *run) add(ctx context.Context, samples []dataset.Sample) error {
	for _, s := range samples {
		if len(s.Frames) == 0 {
			return fmt.Errorf("%s has one frame: a sequence has at least two", s.Name)
		}
		frames, err := r.rank(ctx, s)
		if err != nil {
			return err
		}
		r.values = append(r.values, compare(frames, frames)...)
		if last := r.last(); last != nil {
			r.nulls = append(r.nulls, compare(frames, last)...)
		}
		r.rankings = r.rankings[:0]
		for _, f := range frames {
			r.rankings = append(r.rankings, f[:]...)
		}
	}
	return nil
}

// last returns the rankings of the last sequence; nil if there is none.
func (r *run) last() []ranking {
	var out []ranking
	for at := 0; at < len(r.rankings); at += ranked {
		out = append(out, ranking(r.rankings[at:at+ranked]))
	}
	return out
}

// rank returns the rankings of the frames of a sequence.
func (r *run) rank(ctx context.Context, s dataset.Sample) ([]ranking, error) {
	all := append([]tensor.Tensor{s.Input}, s.Frames...)
	var out []ranking
	for at := 0; at < len(all); at += r.buffers.Cap() {
		if err := r.session.Run(ctx, all[at:min(at+r.buffers.Cap(), len(all))], r.buffers); err != nil {
			return nil, err
		}
		logs, err := r.buffers.LogProbs(r.job.A.Outputs)
		if err != nil {
			return nil, err
		}
		for i := range logs.Shape[0] {
			row := logs.At(i)
			if row.FirstNonFinite() >= 0 {
				return nil, fmt.Errorf("model %s: the class scores of frame %d of %s contain NaN or infinity", r.job.A.Name, at+i+1, s.Name)
			}
			out = append(out, rankingOf(row.Data))
		}
	}
	return out, nil
}

// scores returns the means over sequences, with jackknife intervals.
func (r *run) scores() ([]measure.PairScore, error) {
	width := len(statistics)
	n := len(r.values) / width
	if n == 0 {
		return nil, fmt.Errorf("%w: no sequence could be read", measure.ErrTooFew)
	}
	column := func(of []float64, k int) (terms []float64, mean float64) {
		rows := len(of) / width
		for i := range rows {
			v := of[i*width+k]
			terms, mean = append(terms, v), mean+v/float64(rows)
		}
		return terms, mean
	}
	var out []measure.PairScore
	for k, about := range statistics {
		terms, mean := column(r.values, k)
		s := measure.Plain(about.name, mean, n)
		within := measure.Range{High: about.high}
		s.Min, s.Max = within.Low, within.High
		s.Replicates = resample.MeanWithoutGroups(terms)
		e := resample.Mean(terms, within, 0.05)
		s.Low, s.High = e.Low, e.High
		if len(r.nulls) > 0 {
			_, s.Null = column(r.nulls, k)
		}
		out = append(out, measure.PairScore{A: measure.WholeModel, B: measure.WholeModel, Score: s})
	}
	return out, nil
}

// A checkpoint is a state of this kind and version.
const (
	stateKind    = "flip-rate"
	stateVersion = 1
)

// Code reads or writes the state.
func (r *run) Code(c *state.Codec) {
	if !c.Matches(r.job.Data.Len()) {
		return
	}
	c.Values(&r.next, &r.values, &r.nulls, &r.rankings)
	width := len(statistics)
	c.Check(r.next >= 0 && r.next <= r.job.Data.Len() && len(r.values)%width == 0 && len(r.nulls)%width == 0 && len(r.rankings)%ranked == 0,
		"the state is of %d sequences of %d", r.next, r.job.Data.Len())
}
