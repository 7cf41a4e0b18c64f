package firing

import (
	"fmt"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// fullStats accumulates the statistics of the Python library tmeasures (see variances) for a chunk,
// which is a range of units of one layer. They are over the trajectories of all samples. A variance
// here is a standard deviation: the transformational one over steps, the sample one over samples.
// Of a trajectory, amounts has the parameter of each step, centre is the step of the sample itself,
// and inverse returns the inverse of an image's transformation (nil for the sample itself).
type fullStats struct {
	images    int        // number of images so far, trajectory by trajectory and step by step
	plain     *variances // of the units; nil if not needed
	inverted  *variances // of the units after the inverse transformation; nil if not needed
	threshold []float64  // of each unit: a quantile of the normal distribution with its mean and variance; nil if not needed
	base      []float64  // for each unit: number of untransformed samples at which it exceeds its threshold
	local     []float64  // for each unit: number of images of all trajectories at which it does
}

// at is the chunk's index in the group.
func (r *run) newFullStats(c chunk, at int, p trajectory) *fullStats {
	m := &fullStats{}
	n := c.count()
	if r.settings.also(Variance) {
		m.plain = newVariances(n, len(p.amounts))
	}
	if r.settings.also(SameEquivariance) && p.inverse != nil && hasFeatureMaps(r.job.A.Layers[c.layer].Axes) {
		m.inverted = newVariances(n, len(p.amounts))
	}
	if r.settings.also(NormalThreshold) {
		m.threshold, m.base, m.local = make([]float64, n), make([]float64, n), make([]float64, n)
		for u := range m.threshold {
			m.threshold[u] = r.moments[at].threshold(u, r.settings.Rate)
		}
	}
	return m
}

func (r *run) fullStage(g group, p trajectory) stage {
	return stage{
		name: "whole trajectories",
		prepare: func() {
			if r.fullStats != nil {
				return
			}
			for at, c := range g {
				r.fullStats = append(r.fullStats, r.newFullStats(c, at, p))
			}
		},
		numbers: func() []int { // of the images that the stage reads, for the samples that could be read
			var out []int
			for _, place := range r.readable { // a place is a position in the random order of the samples
				out = append(out, p.images(place)...)
			}
			return out
		},
		read: p.read,
		each: func(s *activations) error {
			r.updateFullStats(g, s, p)
			return nil
		},
		finish: func() error {
			err := r.storeFullStats(g, p)
			r.fullStats = nil
			return err
		},
	}
}

// Images must come trajectory by trajectory and step by step.
func (r *run) updateFullStats(g group, s *activations, p trajectory) {
	back, steps := r.inverseValues(g, s, p), len(p.amounts)
	g.forEachPart(func(at int, c chunk) {
		m, lo := r.fullStats[at], c.lo-g[at].lo
		for i := range s.images {
			row := s.values[c.layer].row(i, c)
			sample, step := (m.images+i)/steps, (m.images+i)%steps
			if m.plain != nil {
				m.plain.add(row, lo, sample, step)
			}
			if m.inverted != nil {
				m.inverted.add(back[c.layer].row(i, c), lo, sample, step)
			}
			if m.threshold != nil {
				m.countAbove(row, lo, step == p.centre)
			}
		}
	})
	for _, m := range r.fullStats {
		m.images += len(s.images)
	}
}

// row has the values of the units from lo on; centre: the image is the sample itself.
func (m *fullStats) countAbove(row []float32, lo int, centre bool) {
	for i, v := range row {
		if float64(v) > m.threshold[lo+i] {
			m.local[lo+i]++
			if centre {
				m.base[lo+i]++
			}
		}
	}
}

// inverseValues returns the units after the inverse transformation of feature maps, where needed.
func (r *run) inverseValues(g group, s *activations, p trajectory) map[int]unitValues {
	out := map[int]unitValues{}
	for at, c := range g {
		if _, done := out[c.layer]; done || r.fullStats[at].inverted == nil {
			continue
		}
		of := s.values[c.layer]
		z := tensor.New(of.z.Shape...)
		channelsLast := r.job.A.Layers[c.layer].Axes == "NHWC"
		for i, image := range s.images {
			transformMaps(p.inverse(image), z.At(i), of.z.At(i), channelsLast)
		}
		u := r.units[c.layer]
		out[c.layer] = unitValues{u.read(nil, z), u.count(), z} // nil: no memory to reuse
	}
	return out
}

func hasFeatureMaps[S ~string](axes S) bool { return axes == "NCHW" || axes == "NHWC" }

// transformMaps applies an Op to one sample's feature maps: h x w x c if channelsLast, else c x h x
// w. A nil Op copies them.
func transformMaps(op transform.Op, dst, src tensor.Tensor, channelsLast bool) {
	if op == nil {
		copy(dst.Data, src.Data)
		return
	}
	if !channelsLast {
		op.Apply(dst, src)
		return
	}
	h, w, c := src.Shape[0], src.Shape[1], src.Shape[2]
	first, transformed := tensor.New(c, h, w), tensor.New(c, h, w)
	for p := range h * w {
		for k := range c {
			first.Data[k*h*w+p] = src.Data[p*c+k]
		}
	}
	op.Apply(transformed, first)
	for p := range h * w {
		for k := range c {
			dst.Data[p*c+k] = transformed.Data[k*h*w+p]
		}
	}
}

func (r *run) storeFullStats(g group, p trajectory) error {
	for at, c := range g {
		m, f := r.fullStats[at], r.results[c.layer]
		n := m.images / len(p.amounts)
		if n < 2 {
			return fmt.Errorf("%w: variances over samples need at least 2 with a complete trajectory, not %d", measure.ErrTooFew, n)
		}
		for u := range c.count() {
			i := c.lo + u
			if m.plain != nil {
				tv, sv := m.plain.transformational(u, n), m.plain.sample(u, n)
				f.statistic(statTransformational)[i], f.statistic(statSample)[i], f.statistic(statNormalised)[i] = tv, sv, varianceRatio(tv, sv)
			}
			if m.inverted != nil {
				f.statistic(statSame)[i] = varianceRatio(m.inverted.transformational(u, n), m.inverted.sample(u, n))
			}
			if m.threshold != nil {
				f.statistic(statNormal)[i] = varianceRatio(m.local[u]/float64(m.images), m.base[u]/float64(n))
			}
		}
	}
	return nil
}

func (m *fullStats) all() [][]float64 {
	return append(append(m.plain.all(), m.inverted.all()...), m.base, m.local)
}
