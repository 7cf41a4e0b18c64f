package similarity

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/quickselect"
)

// neighbourLists holds each sample's nearest neighbours, nearest first, enough without a jackknife
// group, and all ties with the last.
type neighbourLists struct {
	starts []int       // n + 1 indices into all: where the list of each sample starts, and the end
	all    []neighbour // the lists
}

// Successive neighbours at one distance are ties.
type neighbour struct {
	index int32 // of the sample
	tied  bool  // it ties with the entry before it
}

func (l neighbourLists) list(i int) []neighbour { return l.all[l.starts[i]:l.starts[i+1]] }

// tieTolerance is relative to the sum of two squared norms: smaller differences may be rounding.
const tieTolerance = 1e-12

// nearest takes squared distances and centred squared norms. A list has k + k/2 + 12 neighbours if
// there are as many: without a twentieth, k practically always remain.
func nearest(d pairMatrix, norms []float64, k int) neighbourLists {
	each := min(d.n-1, k+k/2+12)
	l := neighbourLists{starts: make([]int, 1, d.n+1), all: make([]neighbour, 0, d.n*each)}
	values := make([]float64, 0, d.n)
	type candidate struct {
		distance float64
		index    int32
	}
	var found []candidate
	for i := range d.n {
		row := d.row(i)
		values, found = append(append(values[:0], row[:i]...), row[i+1:]...), found[:0]
		last := quickselect.Nth(values, each-1)
		for j, v := range row {
			if j != i && v <= last+tieTolerance*(norms[i]+norms[j]) {
				found = append(found, candidate{v, int32(j)})
			}
		}
		slices.SortFunc(found, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.index, b.index))
		})
		first := 0 // the nearest of the samples that tie with the one before
		for at, f := range found {
			tied := at > 0 && f.distance-found[first].distance <= tieTolerance*(norms[i]+max(norms[f.index], norms[found[first].index]))
			if !tied {
				first = at
			}
			l.all = append(l.all, neighbour{f.index, tied})
		}
		l.starts = append(l.starts, len(l.all))
	}
	return l
}

// A neighbourWeight is the probability to be among the k nearest, ties broken at random.
type neighbourWeight struct {
	index  int32
	weight float64
}

// neighbourWeights appends to the empty out the weights of the k nearest of a list and all ties
// with the k-th, but for samples from up to to. shared is how many are chosen among ties.
func neighbourWeights(list []neighbour, k, from, to int, out []neighbourWeight) (weights []neighbourWeight, shared int) {
	for len(list) > 0 && len(out) < k {
		first := len(out)
		for i, f := range list {
			if i > 0 && !f.tied {
				break
			}
			list = list[1:]
			if int(f.index) < from || int(f.index) >= to {
				out = append(out, neighbourWeight{f.index, 1})
			}
		}
		if len(out) > k {
			shared = k - first
			for i := range out[first:] {
				out[first+i].weight = float64(shared) / float64(len(out)-first)
			}
		}
	}
	return out, shared
}

// manyTies is the fraction of neighbours chosen among ties from which on a warning is given.
const manyTies = 0.05

// neighbourOverlap returns the mean common fraction of the k nearest (Huh et al. 2024), expected
// over independent random ties. So ties do not raise it, and the null over permutations is k / (n -
// 1). A replicate leaves out a group, also as neighbours, from cuts[g] to cuts[g+1] - 1; nil: no
// replicates.
func neighbourOverlap(x, y neighbourLists, n, k int, cuts []int) estimate {
	value, shared := meanOverlap(x, y, n, k, 0, 0)
	e := estimate{value: value, null: float64(k) / float64(n-1)}
	for i, which := range [2]string{"first", "second"} {
		if shared[i] >= manyTies {
			e.warnings = append(e.warnings, fmt.Sprintf("%.0f %% of the nearest neighbours in the %s representation are as far away as samples beyond them: each counts in part, so the value is below 1 even for equal representations", 100*shared[i], which))
		}
	}
	for g := range max(0, len(cuts)-1) {
		if left := cuts[g+1] - cuts[g]; n-left > k {
			v, _ := meanOverlap(x, y, n, k, cuts[g], cuts[g+1])
			e.replicates = append(e.replicates, replicate(v, left))
		}
	}
	return e
}

// meanOverlap leaves out samples from up to to; the fractions are of neighbours chosen among ties.
func meanOverlap(x, y neighbourLists, n, k, from, to int) (overlap float64, shared [2]float64) {
	weightOf := make([]float64, n)
	var a, b []neighbourWeight
	var ties [2]int
	for i := range n {
		if i >= from && i < to {
			continue
		}
		var tiesOf [2]int
		a, tiesOf[0] = neighbourWeights(x.list(i), k, from, to, a[:0])
		b, tiesOf[1] = neighbourWeights(y.list(i), k, from, to, b[:0])
		for _, w := range a {
			weightOf[w.index] = w.weight
		}
		for _, w := range b {
			overlap += weightOf[w.index] * w.weight
		}
		for _, w := range a {
			weightOf[w.index] = 0
		}
		ties[0], ties[1] = ties[0]+tiesOf[0], ties[1]+tiesOf[1]
	}
	slots := float64(k) * float64(n-(to-from))
	return overlap / slots, [2]float64{float64(ties[0]) / slots, float64(ties[1]) / slots}
}
