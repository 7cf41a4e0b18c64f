package firing

import (
	"context"
	"fmt"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
)

// A run is one job in progress: the measure of one model on its data, under one transformation.
// Units are divided into groups that fit into memory. Each group goes through the same stages, and
// a stage is one pass over images. The place of a sample is its position in the random order in
// which the study reads the data. The references of a unit are the inputs that activate it most.
type run struct {
	*firing // the measure with its settings
	layout  // how the work is divided, with rank (k) and the number of references
	job     *procedure.Job
	units   map[int]*unitSet // by layer
	sparse  []bool           // by layer: its units fire only at high values (the sign s is 1)
	results []*layerResult   // by layer

	index    []int32    // sample index by place; unread if the sample cannot be read
	label    []int32    // label by place
	places   placeIndex // finds places by sample index
	readable []int      // places of the samples that can be read
	tracks   trackIndex // which samples have trajectories with images in common
	nulls    nullInputs // inputs drawn at random for the null

	// current group and stage, and the number of images that are done
	group, stage, seen int
	done               int64         // images of all stages and groups that are done
	lastSave           time.Time     // when the last checkpoint was saved
	saveTime           time.Duration // duration of the last save

	estimators  []*ThresholdEstimator // by chunk of the group
	moments     []*moments            // by chunk: mean and variance of each unit; nil without NormalThreshold
	fullStats   []*fullStats          // by chunk; only in the stage of full trajectories
	classCounts []*classCounts        // by chunk; only in the stage of classes
}

// unread is the index of a sample that cannot be read.
const unread = -1

func (m *firing) start(j *procedure.Job) (*run, error) {
	r := &run{firing: m, layout: m.newLayout(j), job: j, units: map[int]*unitSet{}, lastSave: time.Now()}
	if err := r.findSparse(); err != nil {
		return nil, err
	}
	for i, l := range j.A.Layers {
		r.units[i] = newUnitSet(l, m.settings, j.Key.Seed)
		sides := 2 // the signs s = 1 and s = -1
		if r.sparse[i] {
			sides = 1
		}
		r.results = append(r.results, newLayerResult(r.units[i], sides, len(r.trajectories)))
	}
	r.index, r.label = make([]int32, j.Data.Len()), make([]int32, j.Data.Len())
	r.tracks = newTrackIndex(j.Data, j.Transform == nil)
	return r, state.Load(j.Checkpoint, stateKind, stateVersion, r.Code)
}

func (r *run) findSparse() error {
	r.sparse = make([]bool, len(r.job.A.Layers))
	if len(r.settings.Sparse) == 0 {
		return nil
	}
	layers, err := r.job.A.Model.Select(r.settings.Sparse...)
	if err != nil {
		return fmt.Errorf("sparse: %w", err)
	}
	for _, l := range layers {
		for i, measured := range r.job.A.Layers {
			r.sparse[i] = r.sparse[i] || measured.Name == l.Name
		}
	}
	return nil
}

func (r *run) run(ctx context.Context) error {
	for ; r.group < len(r.groups); r.group++ {
		if err := r.runGroup(ctx, r.groups[r.group]); err != nil {
			return err
		}
		r.estimators, r.moments, r.fullStats, r.classCounts, r.stage, r.seen = nil, nil, nil, nil, 0, 0
	}
	return r.reportUnits(ctx)
}

// A stage is one pass over images. Its functions are called in this order, read and each on every
// batch: prepare (may be nil) allocates accumulators unless a checkpoint has restored them, numbers
// returns image numbers, read reads images, each processes activations, finish ends the stage.
type stage struct {
	name    string
	prepare func()
	numbers func() []int
	read    func(ctx context.Context, numbers []int) ([]image, error)
	each    func(s *activations) error
	finish  func() error
}

func (r *run) stages(g group) []stage {
	out := []stage{r.thresholdStage(g)}
	if sketched(r.rank, r.settings.tolerance()) {
		out = append(out, r.rateStage(g))
	}
	for kind := range r.trajectories { // such as the phase and the orientation of gratings
		out = append(out, r.localStage(g, kind))
	}
	for _, p := range r.trajectories {
		if r.needsFullTrajectories() && p.tmeasures {
			out = append(out, r.fullStage(g, p))
		}
	}
	if r.settings.also(MutualInformation) && r.job.Data.Classes() != nil {
		out = append(out, r.classStage(g))
	}
	return out
}

func (r *run) runGroup(ctx context.Context, g group) error {
	e, err := newReader(r.job, g, r.units, r.batch)
	if err != nil {
		return err
	}
	defer e.close()
	for i, s := range r.stages(g) {
		if i < r.stage {
			continue
		}
		if err := r.runStage(ctx, e, s); err != nil {
			return err
		}
		r.stage, r.seen = i+1, 0
		if err := r.saveIfDue(); err != nil {
			return err
		}
	}
	return nil
}

// runStage runs a stage from the image where it was interrupted.
func (r *run) runStage(ctx context.Context, e *reader, s stage) error {
	if s.prepare != nil {
		s.prepare()
	}
	numbers := s.numbers()
	from := r.seen
	note := s.name
	if len(r.groups) > 1 {
		note = fmt.Sprintf("%s, units %d of %d", s.name, r.group+1, len(r.groups))
	}
	err := e.forEach(ctx, numbers[from:], r.batch, s.read, func(a *activations, seen int) error {
		if err := s.each(a); err != nil {
			return err
		}
		r.done += int64(from + seen - r.seen)
		r.seen = from + seen
		r.job.Progress(r.done, note)
		return r.saveIfDue()
	})
	if err != nil {
		return err
	}
	return s.finish()
}

// thresholdStage finds thresholds over P(x), the distribution of the inputs.
func (r *run) thresholdStage(g group) stage {
	return stage{
		name: "thresholds",
		prepare: func() {
			if r.estimators != nil {
				return
			}
			for _, c := range g {
				r.estimators = append(r.estimators, r.newEstimator(c))
				if r.settings.also(NormalThreshold) { // thresholds from mean and variance
					r.moments = append(r.moments, &moments{mean: make([]float64, c.count()), m2: make([]float64, c.count())})
				}
			}
			for place := range r.index {
				r.index[place] = unread
			}
		},
		numbers: func() []int { return dataset.Indices(r.job.Data.Len()) },
		read:    r.readAvailable,
		each:    func(s *activations) error { return r.updateThresholds(g, s) },
		finish:  func() error { return r.storeThresholds(g) },
	}
}

func (r *run) newEstimator(c chunk) *ThresholdEstimator {
	return NewThresholdEstimator(ThresholdOptions{Units: c.count(), Rank: r.rank,
		References: r.references, sparse: r.sparse[c.layer], Error: r.settings.tolerance(), first: c.lo})
}

// rateStage counts the inputs at which units fire if thresholds are from a sketch.
func (r *run) rateStage(g group) stage {
	return stage{
		name:    "global rates",
		numbers: func() []int { return r.readable },
		read:    r.readAvailable,
		each: func(s *activations) error {
			g.forEachPart(func(_ int, c chunk) {
				for i := range s.images {
					r.results[c.layer].count(s.values[c.layer].row(i, c), c)
				}
			})
			return nil
		},
		finish: func() error { return nil },
	}
}

// readAvailable leaves out samples that cannot be read.
func (r *run) readAvailable(ctx context.Context, places []int) ([]image, error) {
	frame := r.job.A.Model.Frame()
	samples, err := r.job.Read(ctx, places, frame)
	if err != nil {
		return nil, err
	}
	if len(samples) == len(places) {
		return images(places, samples), nil
	}
	var out []image // one by one, to find out which are missing
	for _, p := range places {
		one, err := r.job.Read(ctx, []int{p}, frame)
		if err != nil {
			return nil, err
		}
		out = append(out, images([]int{p}, one)...)
	}
	return out, nil
}

func images(places []int, samples []dataset.Sample) []image {
	out := make([]image, len(samples))
	for i, s := range samples {
		out[i] = newImage(places[i], s)
	}
	return out
}

// updateThresholds adds activations to the estimators and, if wanted, to the moments. The number of
// an image is the place of its sample here.
func (r *run) updateThresholds(g group, s *activations) error {
	in := make([]Input, len(s.images))
	for i, p := range s.images {
		in[i] = Input{Index: p.index, Reference: eligible(r.trajectories, p.number)}
		r.index[p.number], r.label[p.number] = int32(p.index), int32(p.label)
	}
	g.forEachPart(func(at int, c chunk) {
		wholeChunk, values := g[at], s.values[c.layer]
		lo, hi := c.lo-wholeChunk.lo, c.hi-wholeChunk.lo
		r.estimators[at].updateUnits(values.data[c.lo:], values.n, lo, hi, in)
		if r.moments != nil {
			for i := range in {
				r.moments[at].add(values.row(i, c), lo, r.moments[at].n+i)
			}
		}
	})
	for at := range g {
		r.estimators[at].count(in)
		if r.moments != nil {
			r.moments[at].n += len(in)
		}
	}
	return nil
}

func (r *run) storeThresholds(g group) error {
	r.indexSamples()
	if len(r.readable) < r.settings.minInputs() || len(r.readable) < r.rank {
		return fmt.Errorf("%w: %d inputs can be read, but a global rate of %v needs at least %d", measure.ErrTooFew, len(r.readable), r.settings.Rate, r.settings.minInputs())
	}
	for at, c := range g {
		if r.estimators[at].References() == 0 {
			return fmt.Errorf("%w: no input has a complete trajectory", measure.ErrTooFew)
		}
		result := r.results[c.layer]
		for side, top := range r.estimators[at].sides { // the signs s = 1 and s = -1
			for u := range c.count() {
				q, count := top.threshold(u)
				result.q[side][c.lo+u], result.fires[side][c.lo+u], result.largest[side][c.lo+u] = q, int32(count), top.largest(u)
				result.strongest[side][c.lo+u] = top.strongestIndex[u*top.references]
				// References are not run again (see exclusiveImages), so they are counted here.
				fires := top.firesAtStrongest(u, q)
				for p := range r.trajectories {
					if r.trajectories[p].exclusive {
						result.trajectories[p].fires[side][c.lo+u] = fires
					}
				}
			}
		}
	}
	return nil
}

func (r *run) indexSamples() {
	r.places, r.readable = newPlaceIndex(r.index), nil
	var complete []int // places of samples with complete trajectories
	for place, index := range r.index {
		if index == unread {
			continue
		}
		r.readable = append(r.readable, place)
		if eligible(r.trajectories, place) {
			complete = append(complete, place)
		}
	}
	r.nulls = r.drawNulls(complete)
}

func (r *run) localStage(g group, kind int) stage {
	var references *referenceUnits
	var images trajectoryImages
	return stage{
		name: "trajectories",
		prepare: func() {
			references = newReferenceUnits(g, r.estimators, r.places, r.tracks, r.nulls)
			images = newTrajectoryImages(r.trajectories[kind], references.places, r.nulls.places)
		},
		numbers: func() []int { return images.numbers },
		read:    r.trajectories[kind].read,
		each: func(s *activations) error {
			g.forEachChunk(func(at int, c chunk) {
				for i, image := range s.images {
					references.chunks[at].countFiring(s.values[c.layer].row(i, c), images.memberships(image.number), c, r.results[c.layer], kind)
				}
			})
			return nil
		},
		finish: func() error { return nil },
	}
}
