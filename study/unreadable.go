package study

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/transform"
)

// unreadable gathers the samples that could not be read.
type unreadable struct {
	n  int // samples of the data
	mu sync.Mutex
	by map[string]bool
}

func (u *unreadable) add(names ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil {
		u.by = map[string]bool{}
	}
	for _, n := range names {
		u.by[n] = true
	}
}

// note takes down a sample that cannot be read; that they are too many is an error.
func (d *openData) note(bad *dataset.BadSample) error {
	d.unreadable.add(bad.Name)
	if err := d.unreadable.tooMany(bad.Name, bad.Err); err != nil {
		return fmt.Errorf("data %s: %w", d.spec.Name, err)
	}
	return nil
}

// names are sorted.
func (u *unreadable) names() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []string
	for n := range u.by {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// tooMany is the error of more than 1 % unreadable samples, with the name and the cause of one of them.
func (u *unreadable) tooMany(name string, cause error) error {
	n := len(u.names())
	if float64(n) <= math.Floor(float64(u.n)/100) {
		return nil
	}
	return fmt.Errorf("%d of %d samples cannot be read, more than 1 %%; one is %s: %w", n, u.n, name, cause)
}

// redrawn counts the values of transformations that were drawn again, by the transformation's name.
type redrawn struct {
	mu   sync.Mutex
	by   map[string]*[2]int // thrown away, and draws in all
	jobs map[string]bool    // whose draws are counted
}

// of counts what the samples of a procedure's job are drawn. Several measures move them by the same draws, and what they are kept as comes without
// a draw, so that each transformation is counted once for a trial.
func (r *redrawn) of(ctx context.Context, j *procedure.Job) {
	if j.Transform == nil || !slices.ContainsFunc(j.Transform.Values, func(v procedure.Value) bool { return redraws(v.Law) }) {
		return
	}
	r.mu.Lock()
	job := fmt.Sprintf("%d %s", j.Key.Trial, j.Transform.Name)
	counted := r.jobs[job]
	if r.jobs == nil {
		r.jobs = map[string]bool{}
	}
	r.jobs[job] = true
	r.mu.Unlock()
	if counted {
		return
	}
	for v := range j.Transform.Values {
		for i := range j.Data.Len() {
			s, err := dataset.Describe(ctx, j.Data, i)
			if err == nil { // one that cannot be read is moved by nothing
				r.add(j.Transform.Name, transform.RejectedDraws(j.Transform.Draw(j.Key, v, s.Index)))
			}
		}
	}
}

func (r *redrawn) add(name string, again int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]*[2]int{}
	}
	if r.by[name] == nil {
		r.by[name] = &[2]int{}
	}
	r.by[name][0] += again
	r.by[name][1] += 1 + again
}

// warnings are sentences for the record of a run.
func (r *redrawn) warnings(data string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r.by)) {
		if n := r.by[name]; n[0] > 0 {
			out = append(out, fmt.Sprintf("data %s: %d of %d values drawn for %s cannot be had, and were drawn again", data, n[0], n[1], name))
		}
	}
	return out
}
