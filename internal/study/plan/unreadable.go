package plan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/transform"
)

// UnreadableSamples is a set of samples that could not be read. It is safe for concurrent use.
type UnreadableSamples struct {
	n      int    // number of samples of the data
	strict bool   // any unreadable sample is an error
	data   string // name of the data
	log    *slog.Logger
	mu     sync.Mutex
	causes map[string]error // by name of the sample; nil where the cause is not known
}

// Add adds the names of samples.
func (u *UnreadableSamples) Add(names ...string) {
	for _, n := range names {
		u.add(n, nil)
	}
}

func (u *UnreadableSamples) add(name string, cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.causes == nil {
		u.causes = map[string]error{}
	}
	if u.causes[name] == nil {
		u.causes[name] = cause
		if u.log != nil && cause != nil {
			u.log.Warn("unreadable sample", "data", u.data, "sample", name, "error", cause)
		}
	}
}

// NoteUnreadable records a sample that cannot be read. If there are too many (see TooMany), it
// looks for further ones, read in the frame f, and returns an error that names them.
func (d *Data) NoteUnreadable(ctx context.Context, bad *dataset.BadSample, f dataset.Frame) error {
	d.Unreadable.add(bad.Name, bad.Err)
	if d.Unreadable.TooMany() == nil {
		return nil
	}
	if d.Source != nil {
		d.findUnreadable(ctx, f)
	}
	return fmt.Errorf("data %s: %w", d.Entry.Name, d.Unreadable.TooMany())
}

const (
	maxNamedUnreadable = 20   // unreadable samples that an error names
	maxSearched        = 2000 // samples that findUnreadable reads
)

// findUnreadable reads at most maxSearched samples, so that all that an error names can be repaired
// at once.
func (d *Data) findUnreadable(ctx context.Context, f dataset.Frame) {
	for _, err := range dataset.Read(ctx, d.Source, d.Order.First(maxSearched), f, dataset.ReadOptions{}) {
		if bad := (*dataset.BadSample)(nil); errors.As(err, &bad) {
			d.Unreadable.add(bad.Name, bad.Err)
			if len(d.Unreadable.Names()) >= maxNamedUnreadable {
				return
			}
		}
	}
}

// Names returns the names of the samples in sorted order.
func (u *UnreadableSamples) Names() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.causes))
}

// TooMany returns an error if more than half of the samples are unreadable, or any with
// Options.Strict.
func (u *UnreadableSamples) TooMany() error {
	names := u.Names()
	n := len(names)
	if n == 0 || !u.strict && n <= u.n/2 {
		return nil
	}
	why := ""
	if !u.strict {
		why = ", more than half"
	}
	var causes []string
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range names[:min(n, maxNamedUnreadable)] {
		if cause := u.causes[name]; cause != nil {
			name += ": " + cause.Error()
		}
		causes = append(causes, name)
	}
	text := strings.Join(causes, "; ")
	if n >= maxNamedUnreadable {
		text += "; there may be more"
	}
	return fmt.Errorf("%d of %d samples cannot be read%s: %s", n, u.n, why, text)
}

// RedrawCounts counts rejected draws by the transformation's name. It is safe for concurrent use.
type RedrawCounts struct {
	mu   sync.Mutex
	by   map[string]*[2]int // numbers of rejected draws, and of all draws
	jobs map[string]bool    // trials and transformations already counted
}

// AddJob counts the draws of a job. Measures share draws, so each transformation counts once per
// trial.
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
func (r *RedrawCounts) Add(name string, rejected int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]*[2]int{}
	}
	if r.by[name] == nil {
		r.by[name] = &[2]int{}
	}
	r.by[name][0] += rejected
	r.by[name][1] += 1 + rejected
}

// Warnings returns a sentence for each transformation with rejected draws.
func (r *RedrawCounts) Warnings(data string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r.by)) {
		if n := r.by[name]; n[0] > 0 {
			out = append(out, fmt.Sprintf("data %s: %d of %d values drawn for %s were invalid and were drawn again", data, n[0], n[1], name))
		}
	}
	return out
}
