package similarity

import (
	"math"
	"slices"
	"sort"
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

// correlationSums holds the sums that Pearson's correlation is made of. Values are added less their
// mean, so nothing cancels.
type correlationSums struct{ n, a, b, aa, bb, ab float64 }

func (p *correlationSums) add(a, b float64) {
	p.n, p.a, p.b, p.aa, p.bb, p.ab = p.n+1, p.a+a, p.b+b, p.aa+a*a, p.bb+b*b, p.ab+a*b
}

func (p correlationSums) plus(o correlationSums) correlationSums {
	return correlationSums{p.n + o.n, p.a + o.a, p.b + o.b, p.aa + o.aa, p.bb + o.bb, p.ab + o.ab}
}

func (p correlationSums) less(o correlationSums) correlationSums {
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
		e.replicates = append(e.replicates, replicate(all.less(t).correlation(), cuts[g+1]-cuts[g]))
	}
	return e
}

// neighbourLists holds the nearest neighbours of every sample, nearest first. The lists are longer
// than needed, so that enough neighbours remain without a group of samples.
type neighbourLists struct {
	each int     // length of a list
	all  []int32 // n x each
}

func (l neighbourLists) of(i int) []int32 { return l.all[i*l.each : (i+1)*l.each] }

// nearest returns the neighbours of every sample from squared distances. Of equally near samples
// the one with the smaller index comes first. Without a group of a twentieth of the samples, k of k
// + k/2 + 12 neighbours practically always remain.
func nearest(d pairMatrix, k int) neighbourLists {
	each := min(d.n-1, k+k/2+12)
	l := neighbourLists{each, make([]int32, 0, d.n*each)}
	type neighbour struct {
		distance float64
		index    int32
	}
	found := make([]neighbour, 0, each+1)
	for i := range d.n {
		found = found[:0]
		for j, v := range d.row(i) {
			if j == i || len(found) == each && v >= found[each-1].distance {
				continue
			}
			at := sort.Search(len(found), func(a int) bool { return found[a].distance > v })
			found = slices.Insert(found, at, neighbour{v, int32(j)})
			found = found[:min(len(found), each)]
		}
		for _, f := range found {
			l.all = append(l.all, f.index)
		}
	}
	return l
}

// neighbourOverlap returns the mean part of the k nearest neighbours that two representations have
// in common (Huh et al. 2024). Its mean over all shuffles of the pairs is k / (n - 1). A replicate
// leaves a group out as samples and as neighbours of other samples.
func neighbourOverlap(x, y neighbourLists, n, k int, cuts []int) estimate {
	e := estimate{value: meanOverlap(x, y, n, k, 0, 0), null: float64(k) / float64(n-1)}
	for g := range max(0, len(cuts)-1) {
		if left := cuts[g+1] - cuts[g]; n-left > k {
			e.replicates = append(e.replicates, replicate(meanOverlap(x, y, n, k, cuts[g], cuts[g+1]), left))
		}
	}
	return e
}

// meanOverlap returns the mean part of common neighbours without the samples from to to
// (exclusive).
func meanOverlap(x, y neighbourLists, n, k, from, to int) float64 {
	without := func(list []int32, dst []int32) []int32 {
		for _, j := range list {
			if (int(j) < from || int(j) >= to) && len(dst) < k {
				dst = append(dst, j)
			}
		}
		slices.Sort(dst)
		return dst
	}
	a, b := make([]int32, 0, k), make([]int32, 0, k)
	total := 0
	for i := range n {
		if i < from || i >= to {
			total += countCommon(without(x.of(i), a), without(y.of(i), b))
		}
	}
	return float64(total) / float64(k) / float64(n-(to-from))
}

// countCommon returns the number of values that two ascending lists share.
func countCommon(a, b []int32) int {
	n := 0
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n, a, b = n+1, a[1:], b[1:]
		}
	}
	return n
}
