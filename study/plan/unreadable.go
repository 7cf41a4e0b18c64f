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

// UnreadableSamples gathers the samples that could not be read.
type UnreadableSamples struct {
	n  int // samples of the data
	mu sync.Mutex
	by map[string]bool
}

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

// NoteUnreadable takes down a sample that cannot be read; that they are too many is an error.
func (d *Data) NoteUnreadable(bad *dataset.BadSample) error {
	d.Unreadable.Add(bad.Name)
	if err := d.Unreadable.TooMany(bad.Name, bad.Err); err != nil {
		return fmt.Errorf("data %s: %w", d.Entry.Name, err)
	}
	return nil
}

// Names are sorted.
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

// TooMany is the error of more than 1 % unreadable samples, with the name and the cause of one of
// them.
func (u *UnreadableSamples) TooMany(name string, cause error) error {
	n := len(u.Names())
	if float64(n) <= math.Floor(float64(u.n)/100) {
		return nil
	}
	return fmt.Errorf("%d of %d samples cannot be read, more than 1 %%; one is %s: %w", n, u.n, name, cause)
}

// RedrawCounts counts the values of transformations that were drawn again, by the transformation's
// name.
type RedrawCounts struct {
	mu   sync.Mutex
	by   map[string]*[2]int // thrown away, and draws in all
	jobs map[string]bool    // whose draws are counted
}

// AddJob counts what the samples of a procedure's job are drawn. Several measures move them by the
// same draws, and what they are kept as comes without a draw, so that each transformation is
// counted once for a trial.
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
			if err == nil { // one that cannot be read is moved by nothing
				r.Add(j.Transform.Name, transform.RejectedDraws(j.Transform.Draw(j.Key, v, s.Index)))
			}
		}
	}
}

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

// Warnings are sentences for the record of a run.
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
