package seis

import (
	"fmt"
	"math"
	"sync"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// Settings are the settings of the measure.
type Settings struct {
	Variance  float64 `key:"variance" json:"variance" default:"0.99" min:"0" max:"1" doc:"fraction of the variance that the leading subspaces hold"`
	Positions int     `key:"positions" json:"positions" default:"1024" min:"2" max:"16384" doc:"largest number of positions; larger feature maps are average-pooled; memory grows with the square"`
	Null      bool    `key:"null" json:"null" default:"true" doc:"also compute the scores of shuffled pairs"`
	Interval  bool    `key:"interval" json:"interval" default:"true" doc:"compute an interval from groups of samples, if memory allows"`
}

// Defaults returns the SEIS paper's settings, with null and interval, for maps of at most 32 x 32.
func Defaults() Settings {
	return Settings{Variance: 0.99, Positions: 32 * 32, Null: true, Interval: true}
}

func (s Settings) check() error {
	switch {
	case !(s.Variance > 0 && s.Variance <= 1):
		return fmt.Errorf("seis: variance is %v; it must be above 0 and at most 1", s.Variance)
	case s.Positions < 2:
		return fmt.Errorf("seis: positions is %d; it must be at least 2", s.Positions)
	}
	return nil
}

// New returns the measure seis: equivariance, invariance, rank, null-equivariance, null-invariance.
func New(s Settings) measure.Measure { return &seis{settings: s} }

// seis implements measure.Measure. An observation, or row, is one channel of one sample, clean and
// transformed.
type seis struct {
	settings Settings
	scratch  sync.Pool  // of *scratch: an accumulator needs one only while it adds a segment
	clean    cleanViews // results of clean activations, which accumulators of a layer share
	scorers  scorers    // the accumulators whose scores are being computed
	rows     sync.Map   // from a number of values to a *sync.Pool of *[]float32: an accumulator needs rows only while its segment is not empty
}

// takeRows returns n values. Their contents are undefined.
func (m *seis) takeRows(n int) []float32 {
	if r, ok := m.rowPool(n).Get().(*[]float32); ok {
		return *r
	}
	return make([]float32, n)
}

func (m *seis) giveRows(rows []float32) { m.rowPool(len(rows)).Put(&rows) }

// rowPool has a pool for each size, so that small segments do not hold large memory.
func (m *seis) rowPool(n int) *sync.Pool {
	pool, _ := m.rows.LoadOrStore(n, new(sync.Pool))
	return pool.(*sync.Pool)
}

func (*seis) Name() string { return "seis" }

func (*seis) Descriptor() measure.Descriptor { return Descriptor() }

func (*seis) Version() int { return 6 }

func (m *seis) Settings() any { return m.settings }

func (*seis) Needs() measure.Needs { return measure.Needs{Transformed: true} }

func (m *seis) Skip(s measure.Site) string {
	_, why := featureMapsOf(s.Layer, m.settings.Positions)
	return why
}

// Cost implements measure.Measure. It counts second moments, the segment and, if Site.Budget allows
// and there is no Store, groups; with few observations, these instead. It leaves out about ten d x
// d matrices of float64 that Scores needs.
func (m *seis) Cost(s measure.Site) int64 {
	p, why := featureMapsOf(s.Layer, m.settings.Positions)
	if why != "" || s.Layout.Block < 1 {
		return 0
	}
	if fewRows(s, p) {
		const views = 2
		return single * int64(s.Layout.N) * int64(p.channels) * views * int64(p.positions())
	}
	need := m.memory(s, p)
	if m.groups(s, p) > 0 && s.Store == nil {
		return need.base + need.groups
	}
	return need.base
}

func (m *seis) Borrowed(s measure.Site) int64 {
	p, why := featureMapsOf(s.Layer, m.settings.Positions)
	if why != "" || s.Layout.Block < 1 || fewRows(s, p) {
		return 0
	}
	return m.memory(s, p).scratch
}

// A memoryNeed is bytes: always, for groups, and for adding a segment.
type memoryNeed struct{ base, groups, scratch int64 }

func (n memoryNeed) all() int64 { return n.base + n.groups + n.scratch }

func (m *seis) memory(s measure.Site, p featureMaps) memoryNeed {
	d := int64(p.positions())
	triangle := d * (2*d + 1) // elements of the upper triangle of a 2d x 2d matrix
	rows := int64(m.parts(s.Layout, p.channels).longest()) * int64(p.channels)
	// moments of (z, z'), the activations on x and on T(x), and sums; double and single are the
	// bytes of a float64 and of a float32
	b := memoryNeed{base: double * (triangle + 4*d)}
	b.base += single * rows * 2 * d // the observations of a segment
	if d <= tile {
		b.base += single * d * d // products of clean activations, which accumulators of the layer share
	}
	b.scratch = scratchSize(int(rows), int(d))
	if m.settings.Null { // moments of z with z' of shuffled pairs
		b.base += double * (d*d + 2*d)
	}
	if m.settings.Interval {
		b.groups = int64(intervalGroups(s.Layout)) * (single*triangle + double*2*d)
	}
	return b
}

// groups returns how many groups fit the budget of a site, all or none.
func (m *seis) groups(s measure.Site, p featureMaps) int {
	n := intervalGroups(s.Layout)
	if !m.settings.Interval || n == 0 || s.Budget > 0 && m.memory(s, p).all() > s.Budget {
		return 0
	}
	return n
}

// parts uses groups in a measure with intervals even if memory lacks them, so that memory does not
// affect scores.
func (m *seis) parts(l measure.Layout, channels int) parts {
	groups := 0
	if m.settings.Interval {
		groups = intervalGroups(l)
	}
	return newParts(l, channels, groups)
}

// maxGroups is below measure.MaxGroups, since each group's moments are kept.
const maxGroups = resample.HalfGroups

// intervalGroups returns maxGroups, or 0 if the layout has fewer groups.
func intervalGroups(l measure.Layout) int {
	if l.Groups < maxGroups {
		return 0
	}
	return maxGroups
}

func (m *seis) New(s measure.Site) (measure.Accumulator, error) {
	if err := m.settings.check(); err != nil {
		return nil, err
	}
	p, why := featureMapsOf(s.Layer, m.settings.Positions)
	if why != "" {
		return nil, fmt.Errorf("seis cannot measure layer %q: %s", s.Layer.Name, why)
	}
	if s.Layout.Block < 1 || s.Layout.Groups < 1 {
		return nil, fmt.Errorf("seis: a layout of %d samples without blocks or groups", s.Layout.N)
	}
	const maxValues = 4 * math.MaxInt32 // 64 GiB of float64
	if d := int64(p.positions()); d*(2*d+1) > maxValues {
		return nil, fmt.Errorf("seis cannot measure layer %q: the second moments of %d positions do not fit in memory", s.Layer.Name, d)
	}
	if fewRows(s, p) {
		return newRowAccumulator(m, s, p), nil
	}
	return newAccumulator(m, s, p, m.clean.view(s, p)), nil
}
