package firing

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/noether-ml/noether/internal/state"
)

// A checkpoint holds the state of a run, the work on one model and data set. The run divides the
// units of all layers into groups that fit into memory. For each group it goes through stages, each
// a pass over images. An image is any input on a trajectory: an input and its transformed versions.

const (
	stateKind    = "firing"
	stateVersion = 3
	saveEvery    = time.Minute
	saveFactor   = 20 // smallest ratio of the time between two saves to the duration of a save
)

// saveIfDue saves a checkpoint once a minute, or less often if saving takes long.
func (r *run) saveIfDue() error {
	if time.Since(r.lastSave) < max(saveEvery, saveFactor*r.saveTime) {
		return nil
	}
	return r.save()
}

// stageVersion is increased when the stages change, so that no run continues other stages.
const stageVersion = 3

// A checkpoint with another division cannot be used. rank is k, where the threshold of a unit is
// its k-th largest value; references counts the reference stimuli of a unit.
func (r *run) division() []int {
	out := []int{stageVersion, r.job.Data.Len(), len(r.trajectories), len(r.groups), r.rank, r.references}
	for _, g := range r.groups {
		for _, c := range g {
			out = append(out, c.layer, c.lo, c.hi)
		}
	}
	return out
}

func (r *run) save() error {
	if r.job.Checkpoint == nil {
		r.lastSave = time.Now()
		return nil
	}
	started := time.Now()
	err := r.job.Checkpoint.Save(r.write)
	r.lastSave, r.saveTime = time.Now(), time.Since(started)
	return err
}

// write writes the progress, the sample index and label by place, the results by layer, and the
// accumulators of the current group by chunk. A side is an index of a sign: 0 if units fire at high
// values, 1 if at low ones.
func (r *run) write(to io.Writer) error {
	w := state.Stream(to, stateKind, stateVersion)
	w.Ints(r.division())
	w.Ints([]int{r.group, r.stage, r.seen, int(r.done)})
	w.Int32s(r.index)
	w.Int32s(r.label)
	for _, f := range r.results {
		f.write(w)
	}
	w.Int(len(r.estimators))
	for _, e := range r.estimators {
		e.write(w)
	}
	w.Int(len(r.moments))
	for _, m := range r.moments {
		w.Int(m.n)
		w.Floats(m.mean)
		w.Floats(m.m2)
	}
	w.Int(len(r.fullStats))
	for _, m := range r.fullStats {
		w.Int(m.images)
		for _, f := range m.all() {
			w.Floats(f)
		}
	}
	w.Int(len(r.classCounts))
	for _, t := range r.classCounts {
		for side := range t.fires {
			w.Int32s(t.fires[side])
			w.Int32s(t.null[side])
		}
	}
	return w.Close()
}

func (r *run) restore() error {
	if r.job.Checkpoint == nil {
		return nil
	}
	return state.Load(r.job.Checkpoint, stateKind, stateVersion, func(f *state.Reader) bool {
		if !slices.Equal(f.Ints(), r.division()) {
			return false // the work was divided differently, for instance with another memory bound
		}
		r.read(f)
		return true
	})
}

func (r *run) read(f *state.Reader) {
	progress := f.Ints()
	if len(progress) != 4 || progress[0] < 0 || progress[0] > len(r.groups) || progress[1] < 0 || progress[2] < 0 {
		f.Fail(fmt.Errorf("group, stage, images and total images are %v, which the run does not have", progress))
		return
	}
	r.group, r.stage, r.seen, r.done = progress[0], progress[1], progress[2], int64(progress[3])
	f.Int32sInto(r.index)
	f.Int32sInto(r.label)
	for _, found := range r.results {
		found.read(f)
	}
	var g group
	if r.group < len(r.groups) {
		g = r.groups[r.group]
	}
	r.readAccumulators(f, g)
	if r.group > 0 || r.stage > 0 {
		r.indexSamples()
	}
}

// Each list of accumulators is empty or has an element for every chunk.
func (r *run) readAccumulators(f *state.Reader, g group) {
	if r.readLength(f, g) {
		for _, c := range g {
			e := r.newEstimator(c)
			e.read(f)
			r.estimators = append(r.estimators, e)
		}
	}
	if r.readLength(f, g) {
		for _, c := range g {
			m := &moments{n: f.Int(), mean: make([]float64, c.count()), m2: make([]float64, c.count())}
			f.FloatsInto(m.mean)
			f.FloatsInto(m.m2)
			r.moments = append(r.moments, m)
		}
	}
	if r.readLength(f, g) {
		for at, c := range g {
			m := r.newFullStats(c, at, r.trajectories[0])
			m.images = f.Int()
			for _, v := range m.all() {
				f.FloatsInto(v)
			}
			r.fullStats = append(r.fullStats, m)
		}
	}
	if r.readLength(f, g) {
		for _, c := range g {
			t := newClassCounts(c.count(), len(r.job.Data.Classes()), r.results[c.layer].sides())
			for side := range t.fires {
				f.Int32sInto(t.fires[side])
				f.Int32sInto(t.null[side])
			}
			r.classCounts = append(r.classCounts, t)
		}
	}
}

// readLength reports whether the length of a list is the number of chunks. Any other, except 0, is
// an error.
func (r *run) readLength(f *state.Reader, g group) bool {
	n := f.Int()
	if n != 0 && n != len(g) {
		f.Fail(fmt.Errorf("a list has %d elements, but the group has %d chunks", n, len(g)))
	}
	return n > 0 && n == len(g)
}

// additionalNames gives the order of layerResult.additional in checkpoints and scores.
var additionalNames = []string{statTransformational, statSample, statNormalised, statSame, statNormal}

// write writes by unit, for each side, q, the largest value, the firing count and the strongest
// input; for each kind of trajectory the counts; and the mutual information.
func (f *layerResult) write(w *state.Writer) {
	for side := range f.sides() {
		w.Float32s(f.q[side])
		w.Float32s(f.largest[side])
		w.Int32s(f.fires[side])
		w.Int32s(f.strongest[side])
		for _, p := range f.trajectories {
			w.Int32s(p.fires[side])
			w.Int32s(p.null[side])
		}
		w.Bool(f.information[side] != nil)
		if f.information[side] != nil {
			w.Floats(f.information[side])
			w.Floats(f.informationNull[side])
		}
	}
	for _, name := range additionalNames {
		w.Bool(f.additional[name] != nil)
		if f.additional[name] != nil {
			w.Floats(f.additional[name])
		}
	}
}

func (f *layerResult) read(r *state.Reader) {
	for side := range f.sides() {
		r.Float32sInto(f.q[side])
		r.Float32sInto(f.largest[side])
		r.Int32sInto(f.fires[side])
		r.Int32sInto(f.strongest[side])
		for _, p := range f.trajectories {
			r.Int32sInto(p.fires[side])
			r.Int32sInto(p.null[side])
		}
		if r.Bool() {
			f.information[side], f.informationNull[side] = make([]float64, f.units.count()), make([]float64, f.units.count())
			r.FloatsInto(f.information[side])
			r.FloatsInto(f.informationNull[side])
		}
	}
	for _, name := range additionalNames {
		if r.Bool() {
			r.FloatsInto(f.statistic(name))
		}
	}
}
