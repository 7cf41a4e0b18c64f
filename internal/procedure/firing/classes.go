package firing

import (
	"math"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
)

// Information returns the mutual information in nats between the firing of a unit (one value of a
// layer) and the class (Goodfellow et al. 2009, section 8). all[c] is the number of inputs of class
// c, and fires[c] the number of those at which the unit fires. p are relative frequencies, and f is
// 1 if the unit fires, else 0.
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
		inputs := float64(all[c])
		// both cells of the contingency table for class c: fires or not
		for _, cell := range [2][2]float64{{float64(fires[c]), fired}, {inputs - float64(fires[c]), n - fired}} {
			if joint := cell[0]; joint > 0 {
				sum += joint / n * math.Log(joint*n/(cell[1]*inputs))
			}
		}
	}
	return max(sum, 0)
}

// classCounts counts the inputs of each class at which units of a chunk fire, with the labels and
// with shuffled labels. A unit of activation h and sign s fires where s h reaches its threshold: at
// high h for s = 1, at low h for s = -1. A side is an index in signs, which holds both s.
type classCounts struct {
	n           int        // classes
	fires, null [2][]int32 // by side: units x classes
}

// sides is 1 or 2.
func newClassCounts(units, n, sides int) *classCounts {
	c := &classCounts{n: n}
	for s := range sides {
		c.fires[s], c.null[s] = make([]int32, units*n), make([]int32, units*n)
	}
	return c
}

// add counts under the class and the shuffled class. row holds the values of the chunk's units from
// lo on, q their thresholds.
func (t *classCounts) add(row []float32, q []float32, side, lo, class, shuffled int) {
	for i, v := range row {
		if v*signs[side] >= q[i] {
			t.fires[side][(lo+i)*t.n+class]++
			t.null[side][(lo+i)*t.n+shuffled]++
		}
	}
}

// information returns the mutual information of a unit, and the same for shuffled labels.
func (t *classCounts) information(u, side int, all []int) (value, null float64) {
	ofUnit := func(counts []int32) []int {
		out := make([]int, t.n)
		for c, v := range counts[u*t.n : (u+1)*t.n] {
			out[c] = int(v)
		}
		return out
	}
	return Information(ofUnit(t.fires[side]), all), Information(ofUnit(t.null[side]), all)
}

// labels holds the labels by place. Inputs without a label are left out.
type labels struct {
	class    map[int]int // the label
	shuffled map[int]int // the labels, permuted at random among these inputs
	all      []int       // number of inputs of each class
}

func (l labels) hasTwoClasses() bool {
	n := 0
	for _, inputs := range l.all {
		if inputs > 0 {
			n++
		}
	}
	return n > 1
}

// class holds the class of each place; for the null they are shuffled among these samples.
func (r *run) newLabels(class map[int]int) labels {
	l := labels{class: class, shuffled: map[int]int{}, all: make([]int, len(r.job.Data.Classes()))}
	var places []int
	for _, p := range r.readable {
		if c, ok := class[p]; ok {
			places = append(places, p)
			l.all[c]++
		}
	}
	k := r.job.Key
	order := seed.Rand(k.Seed, "firing: labels", k.Data, k.Trial).Perm(len(places))
	for i, p := range places {
		l.shuffled[p] = class[places[order[i]]]
	}
	return l
}

func (r *run) classStage(g group) stage {
	n := len(r.job.Data.Classes())
	var l labels
	return stage{
		name: "classes",
		prepare: func() {
			class := map[int]int{}
			for p, label := range r.label {
				if r.index[p] != unread && label != dataset.NoLabel && int(label) < n {
					class[p] = int(label)
				}
			}
			l = r.newLabels(class)
			if r.classCounts == nil {
				for _, c := range g {
					r.classCounts = append(r.classCounts, newClassCounts(c.count(), n, r.results[c.layer].sides()))
				}
			}
		},
		numbers: func() []int { return r.readable },
		read:    r.readAvailable,
		each: func(s *activations) error {
			g.forEachPart(func(at int, c chunk) {
				f, lo := r.results[c.layer], c.lo-g[at].lo
				for i, p := range s.images { // the number of an input is its place
					if class, ok := l.class[p.number]; ok {
						for side := range f.sides() {
							r.classCounts[at].add(s.values[c.layer].row(i, c), f.q[side][c.lo:c.hi], side, lo, class, l.shuffled[p.number])
						}
					}
				}
			})
			return nil
		},
		finish: func() error {
			for at, c := range g {
				r.storeInformation(at, c, l)
			}
			r.classCounts = nil
			return nil
		},
	}
}

// at is the chunk's index in the group. The information is NaN for fewer than two classes.
func (r *run) storeInformation(at int, c chunk, l labels) {
	f := r.results[c.layer]
	for side := range f.sides() {
		if f.information[side] == nil {
			f.information[side], f.informationNull[side] = make([]float64, f.units.count()), make([]float64, f.units.count())
		}
		for u := range c.count() {
			if !l.hasTwoClasses() {
				f.information[side][c.lo+u], f.informationNull[side][c.lo+u] = math.NaN(), math.NaN()
				continue
			}
			f.information[side][c.lo+u], f.informationNull[side][c.lo+u] = r.classCounts[at].information(u, side, l.all)
		}
	}
}
