package similarity

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/quickselect"
)

// neighbourLists holds the nearest neighbours of each of n samples, nearest first. The lists are
// longer than needed, so that enough neighbours remain if a jackknife leaves out a group, one of up
// to twenty parts of the samples. Samples that tie with the last one of a list are all in it.
type neighbourLists struct {
	starts []int       // n + 1 indices into all: where the list of each sample starts, and the end
	all    []neighbour // the lists
}

// A neighbour is an entry of a list. Consecutive entries at the same distance are ties.
type neighbour struct {
	index int32 // of the sample
	tied  bool  // it ties with the entry before it
}

func (l neighbourLists) list(i int) []neighbour { return l.all[l.starts[i]:l.starts[i+1]] }

// tieTolerance is a fraction of the sum of two squared norms. Squared distances that differ by less
// are considered equal: the difference may be a rounding error.
const tieTolerance = 1e-12

// nearest returns the neighbours of every sample from squared distances and the squared norms of
// the centred samples. Each list has at least k + k/2 + 12 neighbours if there are as many: if a
// twentieth of the samples is left out, at least k of them practically always remain.
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

// A neighbourWeight is the probability that a sample is among the k nearest when ties are broken at
// random.
type neighbourWeight struct {
	index  int32
	weight float64
}

// neighbourWeights appends to out, which is empty, the weights of the k nearest samples of a list,
// and of all that tie with the k-th. It skips the samples with indices from (inclusive) to to
// (exclusive). shared is how many of the k are chosen among ties, because there are more samples at
// the distance of the k-th than are needed.
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

// neighbourOverlap returns the mean fraction of the k nearest neighbours that two representations
// have in common (Huh et al. 2024). It is the expected value if ties are broken at random and
// independently in both representations. So unrelated representations with many ties share no more
// than others, and the null, the mean over all permutations of the samples of y, is k / (n - 1). A
// replicate, from which the jackknife computes an interval, leaves out the samples of a group, also
// as neighbours of others. Group g has the samples cuts[g] to cuts[g+1] - 1; if cuts is nil, there
// are no replicates.
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

// meanOverlap returns the mean fraction of common neighbours without the samples with indices from
// (inclusive) to to (exclusive), and the fractions of the neighbours in x and in y chosen among
// ties.
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
