package firing

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/noether-ml/noether/internal/state"
)

const (
	keptKind    = "firing"
	keptVersion = 2
	saveEvery   = time.Minute
	savingShare = 20 // a checkpoint takes one part in so many of the time at most
)

// keepIfDue saves a checkpoint once a minute, a large one less often.
func (r *run) keepIfDue() error {
	if time.Since(r.saved) < max(saveEvery, savingShare*r.saving) {
		return nil
	}
	return r.keep()
}

// manner changes when stages do other things than before, so that none goes on with what a program before this one has begun.
const manner = 3

// shape tells one division of the work from another: a checkpoint of another is of no use.
func (r *run) shape() []int {
	out := []int{manner, r.job.Data.Len(), len(r.paths), len(r.groups), r.rank, r.references}
	for _, g := range r.groups {
		for _, c := range g {
			out = append(out, c.layer, c.lo, c.hi)
		}
	}
	return out
}

// keep saves all that the run can go on from.
func (r *run) keep() error {
	if r.job.Checkpoint == nil {
		r.saved = time.Now()
		return nil
	}
	started := time.Now()
	err := r.job.Checkpoint.Save(r.write)
	r.saved, r.saving = time.Now(), time.Since(started)
	return err
}

// write writes all that the run can go on from.
func (r *run) write(to io.Writer) error {
	w := state.Stream(to, keptKind, keptVersion)
	w.Ints(r.shape())
	w.Ints([]int{r.group, r.stage, r.seen, int(r.done)})
	w.Int32s(r.index)
	w.Int32s(r.label)
	for _, f := range r.found {
		f.write(w)
	}
	w.Int(len(r.globals))
	for _, g := range r.globals {
		g.write(w)
	}
	w.Int(len(r.moments))
	for _, m := range r.moments {
		w.Int(m.n)
		w.Floats(m.mean)
		w.Floats(m.m2)
	}
	w.Int(len(r.matrix))
	for _, m := range r.matrix {
		w.Int(m.fed)
		for _, f := range m.all() {
			w.Floats(f)
		}
	}
	w.Int(len(r.tables))
	for _, t := range r.tables {
		for side := range t.fires {
			w.Int32s(t.fires[side])
			w.Int32s(t.null[side])
		}
	}
	return w.Close()
}

// restore takes up what an earlier run of the same job has saved.
func (r *run) restore() error {
	if r.job.Checkpoint == nil {
		return nil
	}
	return state.Load(r.job.Checkpoint, keptKind, keptVersion, func(f *state.Reader) bool {
		if !slices.Equal(f.Ints(), r.shape()) {
			return false // of another division of the work: its memory was another
		}
		r.read(f)
		return true
	})
}

func (r *run) read(f *state.Reader) {
	where := f.Ints()
	if len(where) != 4 || where[0] < 0 || where[0] > len(r.groups) || where[1] < 0 || where[2] < 0 {
		f.Fail(fmt.Errorf("a place %v in the work that does not exist", where))
		return
	}
	r.group, r.stage, r.seen, r.done = where[0], where[1], where[2], int64(where[3])
	f.Int32sInto(r.index)
	f.Int32sInto(r.label)
	for _, found := range r.found {
		found.read(f)
	}
	var g group
	if r.group < len(r.groups) {
		g = r.groups[r.group]
	}
	r.readGathered(f, g)
	if r.group > 0 || r.stage > 0 {
		r.settle()
	}
}

// readGathered reads what the group in hand has gathered. Each list is empty, or has an entry for each chunk.
func (r *run) readGathered(f *state.Reader, g group) {
	if r.sized(f, g) {
		for _, c := range g {
			global := r.newGlobal(c)
			global.read(f)
			r.globals = append(r.globals, global)
		}
	}
	if r.sized(f, g) {
		for _, c := range g {
			m := &moments{n: f.Int(), mean: make([]float64, c.count()), m2: make([]float64, c.count())}
			f.FloatsInto(m.mean)
			f.FloatsInto(m.m2)
			r.moments = append(r.moments, m)
		}
	}
	if r.sized(f, g) {
		for at, c := range g {
			m := r.newMatrix(c, at, r.paths[0])
			m.fed = f.Int()
			for _, v := range m.all() {
				f.FloatsInto(v)
			}
			r.matrix = append(r.matrix, m)
		}
	}
	if r.sized(f, g) {
		for _, c := range g {
			t := newClasses(c.count(), len(r.job.Data.Classes()), r.found[c.layer].sides())
			for side := range t.fires {
				f.Int32sInto(t.fires[side])
				f.Int32sInto(t.null[side])
			}
			r.tables = append(r.tables, t)
		}
	}
}

// sized reads the length of a list: none, or that of the group.
func (r *run) sized(f *state.Reader, g group) bool {
	n := f.Int()
	if n != 0 && n != len(g) {
		f.Fail(fmt.Errorf("a list of %d where the group has %d chunks", n, len(g)))
	}
	return n > 0 && n == len(g)
}

var alsoNames = []string{statTransformational, statSample, statNormalised, statSame, statNormal}

func (f *found) write(w *state.Writer) {
	for side := range f.sides() {
		w.Float32s(f.q[side])
		w.Int32s(f.fires[side])
		w.Int32s(f.best[side])
		for _, p := range f.paths {
			w.Int32s(p.fires[side])
			w.Int32s(p.null[side])
		}
		w.Bool(f.info[side] != nil)
		if f.info[side] != nil {
			w.Floats(f.info[side])
			w.Floats(f.infoNull[side])
		}
	}
	for _, name := range alsoNames {
		w.Bool(f.also[name] != nil)
		if f.also[name] != nil {
			w.Floats(f.also[name])
		}
	}
}

func (f *found) read(r *state.Reader) {
	for side := range f.sides() {
		r.Float32sInto(f.q[side])
		r.Int32sInto(f.fires[side])
		r.Int32sInto(f.best[side])
		for _, p := range f.paths {
			r.Int32sInto(p.fires[side])
			r.Int32sInto(p.null[side])
		}
		if r.Bool() {
			f.info[side], f.infoNull[side] = make([]float64, f.units.count()), make([]float64, f.units.count())
			r.FloatsInto(f.info[side])
			r.FloatsInto(f.infoNull[side])
		}
	}
	for _, name := range alsoNames {
		if r.Bool() {
			r.FloatsInto(f.want(name))
		}
	}
}
