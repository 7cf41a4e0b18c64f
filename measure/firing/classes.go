package firing

import (
	"math"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
)

// Information is the mutual information in nats between firing and class, from counts of the inputs of each class, and of those among
// them at which a unit fires (section 8 of the paper):
//
//	I = sum over f, c of p(f, c) ln(p(f, c) / (p(f) p(c)))
func Information(fires, all []int) float64 {
	var n, fired float64
	for c := range all {
		n += float64(all[c])
		fired += float64(fires[c])
	}
	var sum float64
	for c := range all {
		of := float64(all[c])
		for _, cell := range [2][2]float64{{float64(fires[c]), fired}, {of - float64(fires[c]), n - fired}} {
			if joint := cell[0]; joint > 0 {
				sum += joint / n * math.Log(joint*n/(cell[1]*of))
			}
		}
	}
	return max(sum, 0)
}

// classes counts the inputs of each class at which units of a chunk fire, and the same with the labels shuffled.
type classes struct {
	n           int        // classes
	fires, null [2][]int32 // by side: units x classes
}

func newClasses(units, n, sides int) *classes {
	c := &classes{n: n}
	for s := range sides {
		c.fires[s], c.null[s] = make([]int32, units*n), make([]int32, units*n)
	}
	return c
}

// add notes who fires at an input of a class.
func (t *classes) add(row []float32, q []float32, side, lo, class, shuffled int) {
	for i, v := range row {
		if v*signs[side] >= q[i] {
			t.fires[side][(lo+i)*t.n+class]++
			t.null[side][(lo+i)*t.n+shuffled]++
		}
	}
}

// information is that of a unit, and of the unit with shuffled labels.
func (t *classes) information(u, side int, all []int) (value, null float64) {
	count := func(of []int32) []int {
		out := make([]int, t.n)
		for c, v := range of[u*t.n : (u+1)*t.n] {
			out[c] = int(v)
		}
		return out
	}
	return Information(count(t.fires[side]), all), Information(count(t.null[side]), all)
}

// labels are those of the places of P(x), and the same shuffled among the inputs that carry one.
type labels struct {
	own, shuffled map[int]int
	all           []int // inputs of each class
}

// several tells whether there are inputs of two classes or more.
func (l labels) several() bool {
	n := 0
	for _, inputs := range l.all {
		if inputs > 0 {
			n++
		}
	}
	return n > 1
}

func (r *run) labelled(own map[int]int) labels {
	l := labels{own: own, shuffled: map[int]int{}, all: make([]int, len(r.job.Data.Classes()))}
	var places []int
	for _, p := range r.readable {
		if c, ok := own[p]; ok {
			places = append(places, p)
			l.all[c]++
		}
	}
	k := r.job.Key
	order := seed.Rand(k.Seed, "firing: labels", k.Data, k.Trial).Perm(len(places))
	for i, p := range places {
		l.shuffled[p] = own[places[order[i]]]
	}
	return l
}

// classStage runs P(x) once more, to hold firing against class.
func (r *run) classStage(g group) stage {
	n := len(r.job.Data.Classes())
	var l labels
	return stage{
		name: "classes",
		prepare: func() {
			own := map[int]int{}
			for p, label := range r.label {
				if r.index[p] != unread && label != dataset.NoLabel && int(label) < n {
					own[p] = int(label)
				}
			}
			l = r.labelled(own)
			if r.tables == nil {
				for _, c := range g {
					r.tables = append(r.tables, newClasses(c.count(), n, r.found[c.layer].sides()))
				}
			}
		},
		numbers: func() []int { return r.readable },
		read:    r.readAny,
		each: func(s *sight) error {
			g.each(func(at int, c chunk) {
				f, lo := r.found[c.layer], c.lo-g[at].lo
				for i, p := range s.images {
					if class, ok := l.own[p.number]; ok {
						for side := range f.sides() {
							r.tables[at].add(s.rows[c.layer].row(i, c), f.q[side][c.lo:c.hi], side, lo, class, l.shuffled[p.number])
						}
					}
				}
			})
			return nil
		},
		finish: func() error {
			for at, c := range g {
				r.takeClasses(at, c, l)
			}
			r.tables = nil
			return nil
		},
	}
}

func (r *run) takeClasses(at int, c chunk, l labels) {
	f := r.found[c.layer]
	for side := range f.sides() {
		if f.info[side] == nil {
			f.info[side], f.infoNull[side] = make([]float64, f.units.count()), make([]float64, f.units.count())
		}
		for u := range c.count() {
			if !l.several() {
				f.info[side][c.lo+u], f.infoNull[side][c.lo+u] = math.NaN(), math.NaN()
				continue
			}
			f.info[side][c.lo+u], f.infoNull[side][c.lo+u] = r.tables[at].information(u, side, l.all)
		}
	}
}
