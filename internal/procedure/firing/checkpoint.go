package firing

import (
	"fmt"
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
	started := time.Now()
	err := state.Save(r.job.Checkpoint, stateKind, stateVersion, r.Code)
	r.lastSave, r.saveTime = time.Now(), time.Since(started)
	return err
}

// Code writes or reads the progress, the sample index and label by place, the results by layer, and
// the accumulators of the current group by chunk. A side is an index of a sign: 0 if units fire at
// high values, 1 if at low ones.
func (r *run) Code(c *state.Codec) {
	if !c.Matches(r.division()) { // the work was divided differently, as with less memory
		return
	}
	progress := []int{r.group, r.stage, r.seen, int(r.done)}
	if c.Values(progress); progress[0] < 0 || progress[0] > len(r.groups) || progress[1] < 0 ||
		progress[2] < 0 {
		c.Fail(fmt.Errorf("the run does not have group, stage, images and total images %v",
			progress))
		return
	}
	c.Values(r.index, r.label)
	for _, f := range r.results {
		f.code(c)
	}
	if !c.Reads() {
		r.codeAccumulators(c, nil)
		return
	}
	r.group, r.stage, r.seen, r.done = progress[0], progress[1], progress[2], int64(progress[3])
	var g group
	if r.group < len(r.groups) {
		g = r.groups[r.group]
	}
	r.codeAccumulators(c, g)
	if r.group > 0 || r.stage > 0 {
		r.indexSamples()
	}
}

// codeAccumulators writes or reads lists of accumulators. Each is empty or has an element for every
// chunk of the group g.
func (r *run) codeAccumulators(c *state.Codec, g group) {
	codeChunks(c, g, &r.estimators, func(_ int, k chunk) *ThresholdEstimator {
		return r.newEstimator(k)
	})
	codeChunks(c, g, &r.moments, func(_ int, k chunk) *moments {
		return &moments{mean: make([]float64, k.count()), m2: make([]float64, k.count())}
	})
	codeChunks(c, g, &r.fullStats, func(at int, k chunk) *fullStats {
		return r.newFullStats(k, at, r.trajectories[0])
	})
	codeChunks(c, g, &r.classCounts, func(_ int, k chunk) *classCounts {
		return newClassCounts(k.count(), len(r.job.Data.Classes()), r.results[k.layer].sides())
	})
}

// codeChunks writes a list, or reads one into elements that empty returns for each chunk and its
// index. A number of elements that is neither 0 nor that of the chunks is an error.
func codeChunks[T state.Coder](c *state.Codec, g group, list *[]T, empty func(at int, k chunk) T) {
	n := len(*list)
	c.Values(&n)
	c.Check(n == 0 || n == len(g), "a list has %d elements for %d chunks", n, len(g))
	if c.Reads() && !c.Failed() && n > 0 {
		for at, k := range g {
			*list = append(*list, empty(at, k))
		}
	}
	for _, element := range *list {
		c.Values(element)
	}
}

func (m *moments) Code(c *state.Codec) { c.Values(&m.n, m.mean, m.m2) }

func (m *fullStats) Code(c *state.Codec) {
	c.Values(&m.images)
	for _, f := range m.all() {
		c.Values(f)
	}
}

func (t *classCounts) Code(c *state.Codec) {
	for side := range t.fires {
		c.Values(t.fires[side], t.null[side])
	}
}

// additionalNames gives the order of layerResult.additional in checkpoints and scores.
var additionalNames = []string{statTransformational, statSample, statNormalised, statSame, statNormal}

// code writes or reads by unit, for each side, q, the largest value, the firing count and the
// strongest input; for each kind of trajectory the counts; and the mutual information.
func (f *layerResult) code(c *state.Codec) {
	for side := range f.sides() {
		c.Values(f.q[side], f.largest[side], f.fires[side], f.strongest[side])
		for _, p := range f.trajectories {
			c.Values(p.fires[side], p.null[side])
		}
		known := f.information[side] != nil
		if c.Values(&known); known && c.Reads() {
			f.information[side], f.informationNull[side] = make([]float64, f.units.count()), make([]float64, f.units.count())
		}
		if known {
			c.Values(f.information[side], f.informationNull[side])
		}
	}
	for _, name := range additionalNames {
		known := f.additional[name] != nil
		if c.Values(&known); known {
			c.Values(f.statistic(name))
		}
	}
}
