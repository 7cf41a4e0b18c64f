package plan

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

// UnreadableSamples is the set of samples of a data set that could not be read. It is safe for
// concurrent use.
type UnreadableSamples struct {
	n  int // number of samples of the data
	mu sync.Mutex
	by map[string]bool
}

// Add adds the names of samples.
func (u *UnreadableSamples) Add(names ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil {
		u.by = map[string]bool{}
	}
	for _, n := range names {
		u.by[n] = true
	}
}

// NoteUnreadable records a sample that cannot be read. It returns an error if there are too many of
// them.
func (d *Data) NoteUnreadable(bad *dataset.BadSample) error {
	d.Unreadable.Add(bad.Name)
	if err := d.Unreadable.TooMany(bad.Name, bad.Err); err != nil {
		return fmt.Errorf("data %s: %w", d.Entry.Name, err)
	}
	return nil
}

// Names returns the names in sorted order.
func (u *UnreadableSamples) Names() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []string
	for n := range u.by {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// TooMany returns an error if more than 1 % of the samples are unreadable. The error names one of
// them and its cause.
func (u *UnreadableSamples) TooMany(name string, cause error) error {
	n := len(u.Names())
	if float64(n) <= math.Floor(float64(u.n)/100) {
		return nil
	}
	return fmt.Errorf("%d of %d samples cannot be read, more than 1 %%; one is %s: %w", n, u.n, name, cause)
}

// RedrawCounts counts rejected draws of transformation parameters, by the transformation's name. It
// is safe for concurrent use.
type RedrawCounts struct {
	mu   sync.Mutex
	by   map[string]*[2]int // rejected draws, and all draws
	jobs map[string]bool    // trials and transformations already counted
}

// AddJob counts the draws for the samples of a procedure's job. Several measures share the same
// draws, so each transformation is counted once per trial.
func (r *RedrawCounts) AddJob(ctx context.Context, j *procedure.Job) {
	if j.Transform == nil || !slices.ContainsFunc(j.Transform.Values, func(v procedure.Value) bool { return redraws(v.Transform) }) {
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
			if err == nil { // unreadable samples are not transformed
				r.Add(j.Transform.Name, transform.RejectedDraws(j.Transform.Draw(j.Key, v, s.Index)))
			}
		}
	}
}

// Add counts one accepted draw, and the given number of rejected ones.
func (r *RedrawCounts) Add(name string, again int) {
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

// Warnings returns sentences for the record of a run, one for each transformation with rejected
// draws.
func (r *RedrawCounts) Warnings(data string) []string {
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
