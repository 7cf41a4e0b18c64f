package firing

import (
	"fmt"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// matrix is what is gathered of a chunk while the whole trajectory of every sample is run: the samples by steps of tmeasures.
type matrix struct {
	fed         int        // images, in the order of trajectories and of steps
	plain, back *variances // of the units, and of the units moved back; nil unless wanted
	limit       []float64  // normal thresholds; nil unless wanted
	base, local []float64  // images at which a unit exceeds its own: among the samples, and along the trajectories
}

func (r *run) newMatrix(c chunk, at int, p path) *matrix {
	m := &matrix{}
	n := c.count()
	if r.settings.also(Variance) {
		m.plain = newVariances(n, len(p.amounts))
	}
	if r.settings.also(SameEquivariance) && p.back != nil && movable(r.job.A.Layers[c.layer].Axes) {
		m.back = newVariances(n, len(p.amounts))
	}
	if r.settings.also(NormalThreshold) {
		m.limit, m.base, m.local = make([]float64, n), make([]float64, n), make([]float64, n)
		for u := range m.limit {
			m.limit[u] = r.moments[at].threshold(u, r.settings.Rate)
		}
	}
	return m
}

// matrixStage runs the whole trajectory of every sample that has one.
func (r *run) matrixStage(g group, p path) stage {
	return stage{
		name: "whole trajectories",
		prepare: func() {
			if r.matrix != nil {
				return
			}
			for at, c := range g {
				r.matrix = append(r.matrix, r.newMatrix(c, at, p))
			}
		},
		numbers: func() []int {
			var out []int
			for _, place := range r.readable {
				out = append(out, p.steps(place)...)
			}
			return out
		},
		read: p.read,
		each: func(s *sight) error {
			r.lookAlong(g, s, p)
			return nil
		},
		finish: func() error {
			err := r.takeMatrix(g, p)
			r.matrix = nil
			return err
		},
	}
}

// lookAlong feeds the matrix with images in the order of trajectories and of steps.
func (r *run) lookAlong(g group, s *sight, p path) {
	back, steps := r.movedBack(g, s, p), len(p.amounts)
	g.each(func(at int, c chunk) {
		m, lo := r.matrix[at], c.lo-g[at].lo
		for i := range s.images {
			row := s.rows[c.layer].row(i, c)
			sample, step := (m.fed+i)/steps, (m.fed+i)%steps
			if m.plain != nil {
				m.plain.add(row, lo, sample, step)
			}
			if m.back != nil {
				m.back.add(back[c.layer].row(i, c), lo, sample, step)
			}
			if m.limit != nil {
				m.exceed(row, lo, step == p.centre)
			}
		}
	})
	for _, m := range r.matrix {
		m.fed += len(s.images)
	}
}

// exceed counts the units above their normal threshold.
func (m *matrix) exceed(row []float32, lo int, centre bool) {
	for i, v := range row {
		if float64(v) > m.limit[lo+i] {
			m.local[lo+i]++
			if centre {
				m.base[lo+i]++
			}
		}
	}
}

// movedBack are the units of each layer after its feature maps were moved back, where that is wanted.
func (r *run) movedBack(g group, s *sight, p path) map[int]rows {
	out := map[int]rows{}
	for at, c := range g {
		if _, done := out[c.layer]; done || r.matrix[at].back == nil {
			continue
		}
		of := s.rows[c.layer]
		z := tensor.New(of.z.Shape...)
		last := r.job.A.Layers[c.layer].Axes == "NHWC"
		for i, image := range s.images {
			undo(p.back(image), z.At(i), of.z.At(i), last)
		}
		u := r.units[c.layer]
		out[c.layer] = rows{u.read(nil, z), u.count(), z}
	}
	return out
}

// movable reports whether a layer's values are feature maps, which can be moved back.
func movable[S ~string](axes S) bool { return axes == "NCHW" || axes == "NHWC" }

// undo applies an Op to one sample's feature maps; nil leaves them as they are.
func undo(op transform.Op, dst, src tensor.Tensor, channelsLast bool) {
	if op == nil {
		copy(dst.Data, src.Data)
		return
	}
	if !channelsLast {
		op.Apply(dst, src)
		return
	}
	h, w, c := src.Shape[0], src.Shape[1], src.Shape[2]
	first, moved := tensor.New(c, h, w), tensor.New(c, h, w)
	for p := range h * w {
		for k := range c {
			first.Data[k*h*w+p] = src.Data[p*c+k]
		}
	}
	op.Apply(moved, first)
	for p := range h * w {
		for k := range c {
			dst.Data[p*c+k] = moved.Data[k*h*w+p]
		}
	}
}

// takeMatrix enters what the matrices of a group have found.
func (r *run) takeMatrix(g group, p path) error {
	for at, c := range g {
		m, f := r.matrix[at], r.found[c.layer]
		n := m.fed / len(p.amounts)
		if n < 2 {
			return fmt.Errorf("%w: variances over samples take two, and %d have a complete trajectory", measure.ErrTooFew, n)
		}
		for u := range c.count() {
			i := c.lo + u
			if m.plain != nil {
				tv, sv := m.plain.transformational(u, n), m.plain.sample(u, n)
				f.want(statTransformational)[i], f.want(statSample)[i], f.want(statNormalised)[i] = tv, sv, Quotient(tv, sv)
			}
			if m.back != nil {
				f.want(statSame)[i] = Quotient(m.back.transformational(u, n), m.back.sample(u, n))
			}
			if m.limit != nil {
				f.want(statNormal)[i] = Quotient(m.local[u]/float64(m.fed), m.base[u]/float64(n))
			}
		}
	}
	return nil
}

// all is what a matrix holds besides its thresholds, for a checkpoint.
func (m *matrix) all() [][]float64 {
	return append(append(m.plain.all(), m.back.all()...), m.base, m.local)
}
