package firing

import (
	"context"
	"fmt"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
)

// A run is the work on one job: for each group of units one stage after the other, each a walk through images.
type run struct {
	*firing
	layout
	job    *procedure.Job
	units  map[int]*unitSet
	sparse []bool // by layer
	found  []*found

	index    []int32 // of the sample at each place; unread where it cannot be read
	label    []int32 // of the same
	places   places  // by index
	readable []int   // places
	nulls    []int   // places whose trajectories stand for chance

	group, stage, seen int // what is in hand: images of the stage that are done
	done               int64
	saved              time.Time
	saving             time.Duration // that the last checkpoint took

	globals []*Global  // of the chunks of the group
	moments []*moments // the same, for NormalThreshold
	matrix  []*matrix  // the same, while whole trajectories are run
	tables  []*classes // the same, while firing is held against classes
}

// unread stands for the index of a sample that cannot be read.
const unread = -1

func (m *firing) start(j *procedure.Job) (*run, error) {
	r := &run{firing: m, layout: m.layOut(j), job: j, units: map[int]*unitSet{}, saved: time.Now()}
	if err := r.findSparse(); err != nil {
		return nil, err
	}
	for i, l := range j.A.Layers {
		r.units[i] = newUnits(l, m.settings, j.Key.Seed)
		sides := 2
		if r.sparse[i] {
			sides = 1
		}
		r.found = append(r.found, newFound(r.units[i], sides, len(r.paths)))
	}
	r.index, r.label = make([]int32, j.Data.Len()), make([]int32, j.Data.Len())
	return r, r.restore()
}

// findSparse finds the layers that are declared sparse.
func (r *run) findSparse() error {
	r.sparse = make([]bool, len(r.job.A.Layers))
	if len(r.settings.Sparse) == 0 {
		return nil
	}
	layers, err := r.job.A.Model.Graph().Select(r.settings.Sparse...)
	if err != nil {
		return fmt.Errorf("sparse: %w", err)
	}
	for _, l := range layers {
		for i, own := range r.job.A.Layers {
			r.sparse[i] = r.sparse[i] || own.Name == l.Name
		}
	}
	return nil
}

// run goes on from where the checkpoint was left.
func (r *run) run(ctx context.Context) error {
	for ; r.group < len(r.groups); r.group++ {
		if err := r.work(ctx, r.groups[r.group]); err != nil {
			return err
		}
		r.globals, r.moments, r.matrix, r.tables, r.stage, r.seen = nil, nil, nil, nil, 0, 0
	}
	return r.hand(ctx)
}

// A stage is one walk through images.
type stage struct {
	name    string
	prepare func() // makes room, unless a checkpoint has; nil: nothing to prepare
	numbers func() []int
	read    func(ctx context.Context, numbers []int) ([]image, error)
	each    func(s *sight) error
	finish  func() error
}

// stages are those of a group.
func (r *run) stages(g group) []stage {
	out := []stage{r.globalStage(g)}
	if sketched(r.rank, r.settings.tolerance()) {
		out = append(out, r.rateStage(g))
	}
	for p := range r.paths {
		out = append(out, r.localStage(g, p))
	}
	for _, p := range r.paths {
		if r.wantsMatrix() && p.matrix {
			out = append(out, r.matrixStage(g, p))
		}
	}
	if r.settings.also(MutualInformation) && r.job.Data.Classes() != nil {
		out = append(out, r.classStage(g))
	}
	return out
}

func (r *run) work(ctx context.Context, g group) error {
	e, err := openEye(r.job, g, r.units, r.batch)
	if err != nil {
		return err
	}
	defer e.close()
	for i, s := range r.stages(g) {
		if i < r.stage {
			continue
		}
		if err := r.walk(ctx, e, s); err != nil {
			return err
		}
		r.stage, r.seen = i+1, 0
		if err := r.keepIfDue(); err != nil {
			return err
		}
	}
	return nil
}

// walk does a stage from where it was left.
func (r *run) walk(ctx context.Context, e *eye, s stage) error {
	if s.prepare != nil {
		s.prepare()
	}
	numbers := s.numbers()
	from := r.seen
	note := s.name
	if len(r.groups) > 1 {
		note = fmt.Sprintf("%s, units %d of %d", s.name, r.group+1, len(r.groups))
	}
	err := e.walk(ctx, numbers[from:], r.batch, s.read, func(sight *sight, seen int) error {
		if err := s.each(sight); err != nil {
			return err
		}
		r.done += int64(from + seen - r.seen)
		r.seen = from + seen
		r.job.Progress(r.done, note)
		return r.keepIfDue()
	})
	if err != nil {
		return err
	}
	return s.finish()
}

// globalStage finds thresholds over P(x).
func (r *run) globalStage(g group) stage {
	return stage{
		name: "thresholds",
		prepare: func() {
			if r.globals != nil {
				return
			}
			for _, c := range g {
				r.globals = append(r.globals, r.newGlobal(c))
				if r.settings.also(NormalThreshold) {
					r.moments = append(r.moments, &moments{mean: make([]float64, c.count()), m2: make([]float64, c.count())})
				}
			}
			for place := range r.index {
				r.index[place] = unread
			}
		},
		numbers: r.everyPlace,
		read:    r.readAny,
		each:    func(s *sight) error { return r.lookGlobally(g, s) },
		finish:  func() error { return r.takeThresholds(g) },
	}
}

func (r *run) newGlobal(c chunk) *Global { return NewGlobal(r.globalOptions(c)) }

func (r *run) globalOptions(c chunk) GlobalOptions {
	return GlobalOptions{Units: c.count(), Rank: r.rank, References: r.references, Sparse: r.sparse[c.layer], Error: r.settings.tolerance(), First: c.lo}
}

// rateStage counts over P(x) how often units fire at thresholds that are not exact.
func (r *run) rateStage(g group) stage {
	return stage{
		name:    "global rates",
		numbers: func() []int { return r.readable },
		read:    r.readAny,
		each: func(s *sight) error {
			g.each(func(_ int, c chunk) {
				for i := range s.images {
					r.found[c.layer].count(s.rows[c.layer].row(i, c), c)
				}
			})
			return nil
		},
		finish: func() error { return nil },
	}
}

func (r *run) everyPlace() []int {
	out := make([]int, r.job.Data.Len())
	for i := range out {
		out[i] = i
	}
	return out
}

// readAny reads samples of P(x), and leaves out those that cannot be read.
func (r *run) readAny(ctx context.Context, places []int) ([]image, error) {
	frame := r.job.A.Model.Frame()
	samples, err := r.job.Read(ctx, places, frame)
	if err != nil {
		return nil, err
	}
	if len(samples) == len(places) {
		return images(places, samples), nil
	}
	var out []image // one by one, to know which ones are missing
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

func (r *run) lookGlobally(g group, s *sight) error {
	in := make([]Input, len(s.images))
	for i, p := range s.images {
		in[i] = Input{Index: p.index, Reference: eligible(r.paths, p.number)}
		r.index[p.number], r.label[p.number] = int32(p.index), int32(p.label)
	}
	g.each(func(at int, c chunk) {
		whole, of := g[at], s.rows[c.layer]
		lo, hi := c.lo-whole.lo, c.hi-whole.lo
		r.globals[at].update(of.data[c.lo:], of.n, lo, hi, in)
		if r.moments != nil {
			for i := range in {
				r.moments[at].add(of.row(i, c), lo, r.moments[at].n+i)
			}
		}
	})
	for at := range g {
		r.globals[at].count(in)
		if r.moments != nil {
			r.moments[at].n += len(in)
		}
	}
	return nil
}

// takeThresholds enters what the globals of the group have found.
func (r *run) takeThresholds(g group) error {
	r.settle()
	if len(r.readable) < r.settings.minimum() || len(r.readable) < r.rank {
		return fmt.Errorf("%w: %d inputs can be read, and a global rate of %v takes %d", measure.ErrTooFew, len(r.readable), r.settings.Rate, r.settings.minimum())
	}
	for at, c := range g {
		if r.globals[at].References() == 0 {
			return fmt.Errorf("%w: no input has a complete trajectory around it", measure.ErrTooFew)
		}
		f := r.found[c.layer]
		for side, t := range r.globals[at].sides {
			for u := range c.count() {
				q, count := t.threshold(u)
				f.q[side][c.lo+u], f.fires[side][c.lo+u] = q, int32(count)
				f.best[side][c.lo+u] = t.at[u*t.z]
				fires := t.firesAtStrongest(u, q)
				for p := range r.paths {
					if r.paths[p].whole {
						f.paths[p].fires[side][c.lo+u] = fires
					}
				}
			}
		}
	}
	return nil
}

// settle notes where samples stand, once all have been read.
func (r *run) settle() {
	r.places, r.readable = placesOf(r.index), nil
	var whole []int
	for place, index := range r.index {
		if index == unread {
			continue
		}
		r.readable = append(r.readable, place)
		if eligible(r.paths, place) {
			whole = append(whole, place)
		}
	}
	r.nulls = nullReferences(whole, nullPlaces, r.job.Key)
}

// nullPlaces is around how many inputs trajectories are followed for chance. Gratings are all at hand.
const nullPlaces = 100

// localStage counts firing along the trajectories of one path.
func (r *run) localStage(g group, p int) stage {
	var f *following
	var t itinerary
	return stage{
		name: "trajectories",
		prepare: func() {
			f = newFollowing(g, r.globals, r.places, r.nulls)
			t = newItinerary(r.paths[p], f.places, r.nulls)
		},
		numbers: func() []int { return t.numbers },
		read:    r.paths[p].read,
		each: func(s *sight) error {
			g.whole(func(at int, c chunk) {
				for i, image := range s.images {
					f.chunks[at].fire(s.rows[c.layer].row(i, c), t.visits(image.number), c, r.found[c.layer], p)
				}
			})
			return nil
		},
		finish: func() error { return nil },
	}
}
