package similarity

import (
	"math"
	"slices"
	"sort"
)

// dissimilarityRanks returns ranks, doubled, of cosine dissimilarities of i < j, from inner
// products k.
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

// cosineDissimilarity is 0 for two zero vectors, 1 for one.
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

// ranks returns twice the ranks, from 2 on: mean ranks of ties are then whole. No value may be
// negative.
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

// A sortItem is a value's index and bits, which order like numbers that are not negative.
type sortItem struct {
	bits uint64
	at   uint32
}

// radixSort takes eleven bits at a time, several times faster than comparing millions of values.
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

// rsa returns Spearman's correlation of dissimilarities (Kriegeskorte et al. 2008), from doubled
// ranks. Over all matchings its mean is 0. A replicate leaves out pairs with a sample from cuts[g]
// to cuts[g+1] - 1 and ranks again, to first order.
func rsa(x, y []uint32, n int, cuts []int) estimate {
	xx, yy, xy := newRankProducts(x, x, n, cuts), newRankProducts(y, y, n, cuts), newRankProducts(x, y, n, cuts)
	if xx.all == 0 || yy.all == 0 {
		return undefinedEstimate("all dissimilarities are equal, so their ranks are undefined")
	}
	e := estimate{value: xy.all / math.Sqrt(xx.all) / math.Sqrt(yy.all)}
	for g := range xy.without {
		value := xy.without[g] / math.Sqrt(xx.without[g]) / math.Sqrt(yy.without[g])
		e.replicates = append(e.replicates, replicate(value, cuts[g+1]-cuts[g]))
	}
	return e
}

// rankProducts holds sums of a b over pairs, a and b doubled ranks minus their mean.
type rankProducts struct {
	all     float64
	without []float64 // of the pairs without a sample in each group, up to a factor that depends on the group alone
}

// newRankProducts returns the sums for doubled ranks of the pairs i < j of n samples. The group g
// has the samples from cuts[g] to cuts[g+1] - 1.
//
// Let f be the fraction of the N pairs that have a sample in a group, in short the pairs of the
// group. Without them, (1 - f) N pairs are left, and the doubled rank a falls by
//
//	R(a) = 2 |pairs of the group below a| + |pairs of the group that tie with a|
//
// which is f times the doubled rank on average. The sum over the others of the products of new
// ranks, divided by (1 - f)^2, is to first order in the deviations of R from that average
//
//	(1 + 2 f) sum a b - sum over pairs of the group of (a b + B(a) + A(b))
//
// where B(a) is twice the sum of the b of all pairs above a, plus that of all pairs that tie with
// a; and A(b) likewise.
func newRankProducts(x, y []uint32, n int, cuts []int) rankProducts {
	centre := float64(len(x) + 1) // twice the mean rank
	var p rankProducts
	for i, a := range x {
		p.all += (float64(a) - centre) * (float64(y[i]) - centre)
	}
	if len(cuts) < 2 {
		return p
	}
	b, a := sumsAbove(x, y), sumsAbove(y, x)
	pairs := make([]float64, len(cuts)-1) // number of pairs of each group
	lost := make([]float64, len(cuts)-1)  // the second sum above, of each group
	at := 0
	for i := range n {
		own := sort.SearchInts(cuts, i+1) - 1 // the group of sample i
		for g := own; g < len(lost); g++ {    // the groups of the samples after i
			var sum float64
			from := at
			for j := max(i+1, cuts[g]); j < cuts[g+1]; j++ {
				sum += (float64(x[at])-centre)*(float64(y[at])-centre) + b[x[at]/2] + a[y[at]/2]
				at++
			}
			lost[g] += sum
			pairs[g] += float64(at - from)
			if own != g {
				lost[own] += sum
				pairs[own] += float64(at - from)
			}
		}
	}
	for g, sum := range lost {
		p.without = append(p.without, (1+2*pairs[g]/float64(len(x)))*p.all-sum)
	}
	return p
}

// sumsAbove returns, at v / 2, twice the sum of y where x is above v, plus that where x is v; y
// counts from the mean rank. Doubled ranks differ by 2 or more.
func sumsAbove(x, y []uint32) []float64 {
	centre := float64(len(x) + 1)
	out := make([]float64, len(x)+1)
	for i, v := range x {
		out[v/2] += float64(y[i]) - centre
	}
	var above float64
	for i, own := range slices.Backward(out) {
		out[i] = 2*above + own
		above += own
	}
	return out
}
