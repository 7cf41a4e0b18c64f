package similarity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/noether-ml/noether/internal/quickselect"
)

// dissimilarityRanks returns the ranks of the cosine dissimilarities of all pairs of samples i < j,
// in that order. They are doubled as in ranks.
func dissimilarityRanks(k pairMatrix) []uint32 {
	norm := make([]float64, k.n)
	for i := range norm {
		norm[i] = sqrt(k.row(i)[i])
	}
	values := make([]float64, 0, k.n*(k.n-1)/2)
	for i := range k.n {
		row := k.row(i)
		for j := i + 1; j < k.n; j++ {
			values = append(values, cosineDissimilarity(row[j], norm[i], norm[j]))
		}
	}
	return ranks(values)
}

// cosineDissimilarity returns 1 - cos for an inner product and two norms. It is 0 for two zero
// vectors, and 1 for one.
func cosineDissimilarity(product, a, b float64) float64 {
	switch {
	case a == 0 && b == 0:
		return 0
	case a == 0 || b == 0:
		return 1
	}
	// Round to twelve decimals, so that values that differ by rounding errors tie.
	return max(math.Round((1-product/a/b)*1e12)/1e12, 0)
}

// ranks returns twice the ranks of the values, from 2 on. Ties share their mean rank, which doubled
// is a whole number. No value may be negative.
func ranks(values []float64) []uint32 {
	sorted := radixSort(values)
	out := make([]uint32, len(values))
	for from := 0; from < len(sorted); {
		to := from + 1
		for to < len(sorted) && sorted[to].bits == sorted[from].bits {
			to++
		}
		for _, s := range sorted[from:to] {
			out[s.at] = uint32(from + 1 + to)
		}
		from = to
	}
	return out
}

// A sortItem is the index of a value and its bits. The bits of numbers that are not negative have
// the same order as the numbers.
type sortItem struct {
	bits uint64
	at   uint32
}

// radixSort sorts the values by radix, eleven bits at a time. That is several times faster than
// comparing millions of values.
func radixSort(values []float64) []sortItem {
	const bits, digits = 11, 1 << 11
	from, to := make([]sortItem, len(values)), make([]sortItem, len(values))
	for i, v := range values {
		from[i] = sortItem{math.Float64bits(v + 0), uint32(i)} // + 0 makes -0 a 0
	}
	count := make([]uint32, digits)
	for shift := 0; shift < 64; shift += bits {
		clear(count)
		for _, k := range from {
			count[k.bits>>shift&(digits-1)]++
		}
		var sum uint32
		for d, c := range count {
			count[d], sum = sum, sum+c
		}
		for _, k := range from {
			d := k.bits >> shift & (digits - 1)
			to[count[d]] = k
			count[d]++
		}
		from, to = to, from
	}
	return from
}

// correlationSums holds the sums from which Pearson's correlation is computed. The caller subtracts
// the means from the values, to avoid cancellation.
type correlationSums struct{ n, a, b, aa, bb, ab float64 }

func (p *correlationSums) add(a, b float64) {
	p.n, p.a, p.b, p.aa, p.bb, p.ab = p.n+1, p.a+a, p.b+b, p.aa+a*a, p.bb+b*b, p.ab+a*b
}

func (p correlationSums) plus(o correlationSums) correlationSums {
	return correlationSums{p.n + o.n, p.a + o.a, p.b + o.b, p.aa + o.aa, p.bb + o.bb, p.ab + o.ab}
}

func (p correlationSums) minus(o correlationSums) correlationSums {
	return p.plus(correlationSums{-o.n, -o.a, -o.b, -o.aa, -o.bb, -o.ab})
}

func (p correlationSums) correlation() float64 {
	aa, bb := p.aa-p.a*p.a/p.n, p.bb-p.b*p.b/p.n
	if aa <= 0 || bb <= 0 {
		return math.NaN()
	}
	return (p.ab - p.a*p.b/p.n) / math.Sqrt(aa) / math.Sqrt(bb)
}

// rsa returns Spearman's correlation between the dissimilarities of two representations
// (Kriegeskorte et al. 2008), from their ranks. Its mean over all shuffles of the pairs is 0. A
// replicate leaves out all pairs with a sample in a group, but keeps the ranks among all pairs.
func rsa(x, y []uint32, n int, cuts []int) estimate {
	centre := float64(len(x) + 1) // twice the mean rank
	groups := max(0, len(cuts)-1)
	if groups == 0 {
		cuts = []int{0, n}
	}
	touching := make([]correlationSums, len(cuts)-1)
	var all correlationSums
	at := 0
	for i := range n {
		own := sort.SearchInts(cuts, i+1) - 1
		for g := own; g < len(touching); g++ { // the groups of the samples after i
			var sums correlationSums
			for j := max(i+1, cuts[g]); j < cuts[g+1]; j++ {
				sums.add(float64(x[at])-centre, float64(y[at])-centre)
				at++
			}
			all = all.plus(sums)
			touching[g] = touching[g].plus(sums)
			if own != g {
				touching[own] = touching[own].plus(sums)
			}
		}
	}
	e := estimate{value: all.correlation()}
	if math.IsNaN(e.value) {
		return undefinedEstimate("all dissimilarities are equal, so their ranks are undefined")
	}
	for g, t := range touching[:groups] {
		e.replicates = append(e.replicates, replicate(all.minus(t).correlation(), cuts[g+1]-cuts[g]))
	}
	return e
}

// neighbourLists holds the nearest neighbours of every sample, nearest first. The lists are longer
// than needed, so that enough neighbours remain without a group of samples. Samples that tie with
// the last one of a list are all in it.
type neighbourLists struct {
	starts []int       // of n + 1: where the list of each sample starts, and the end
	all    []neighbour // the lists
}

// A neighbour is the index of a sample, and whether it is as far away as the one before it in the
// list.
type neighbour struct {
	index int32
	tied  bool
}

func (l neighbourLists) list(i int) []neighbour { return l.all[l.starts[i]:l.starts[i+1]] }

// tieTolerance is a fraction of the sum of two squared norms. Squared distances that differ by less
// are considered equal: the difference may be a rounding error.
const tieTolerance = 1e-12

// nearest returns the neighbours of every sample from squared distances and the squared norms of
// the centred samples. Without a group of a twentieth of the samples, k of k + k/2 + 12 neighbours
// practically always remain.
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
		first := 0 // of the samples that tie with the last
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

// neighbourWeights appends the weights of the k nearest of a list to out. It skips the samples with
// indices from (inclusive) to to (exclusive). shared is the number of the k neighbours for which more
// samples at the same distance compete.
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

// manyTies is the fraction of neighbours chosen among ties at which a warning is given.
const manyTies = 0.05

// neighbourOverlap returns the mean fraction of the k nearest neighbours that two representations
// have in common (Huh et al. 2024). It is the expected value if ties are broken at random and
// independently in both representations. So unrelated representations with many ties share no more
// than others, and the mean over all shuffles of the pairs is k / (n - 1). A replicate leaves out the
// samples of a group, also as neighbours of others.
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
// (inclusive) to to (exclusive), and the fractions of the neighbours in x and in y chosen among ties.
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
