package similarity

import (
	"math"
	"slices"
	"sort"
)

// dissimilarityRanks are the ranks of the cosine dissimilarities of all pairs of samples i < j, in that order, ties sharing their
// mean rank: twice the rank, so that it is a whole number.
func dissimilarityRanks(k square) []uint32 {
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

// cosineDissimilarity is 1 - cos; of two zero vectors 0, of one 1.
func cosineDissimilarity(product, a, b float64) float64 {
	switch {
	case a == 0 && b == 0:
		return 0
	case a == 0 || b == 0:
		return 1
	}
	// To twelve decimals, so that what is equal but for rounding ties.
	return max(math.Round((1-product/a/b)*1e12)/1e12, 0)
}

// ranks are twice the ranks of values, none of them negative, from 2 on, ties sharing their mean.
func ranks(values []float64) []uint32 {
	sorted := sortedByValue(values)
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

// A keyedIndex is where a value stands, and its bits, which order numbers that are not negative as the numbers themselves.
type keyedIndex struct {
	bits uint64
	at   uint32
}

// sortedByValue sorts the indices of values by radix, eleven bits at a time: millions of pairs are sorted several times faster
// than by comparing them.
func sortedByValue(values []float64) []keyedIndex {
	const bits, digits = 11, 1 << 11
	from, to := make([]keyedIndex, len(values)), make([]keyedIndex, len(values))
	for i, v := range values {
		from[i] = keyedIndex{math.Float64bits(v + 0), uint32(i)} // + 0 makes -0 a 0
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

// A product holds the sums that Pearson's correlation of ranks is made of. Ranks are taken less their mean, so nothing cancels.
type product struct{ n, a, b, aa, bb, ab float64 }

func (p *product) add(a, b float64) {
	p.n, p.a, p.b, p.aa, p.bb, p.ab = p.n+1, p.a+a, p.b+b, p.aa+a*a, p.bb+b*b, p.ab+a*b
}

func (p product) plus(o product) product {
	return product{p.n + o.n, p.a + o.a, p.b + o.b, p.aa + o.aa, p.bb + o.bb, p.ab + o.ab}
}

func (p product) less(o product) product {
	return p.plus(product{-o.n, -o.a, -o.b, -o.aa, -o.bb, -o.ab})
}

func (p product) correlation() float64 {
	aa, bb := p.aa-p.a*p.a/p.n, p.bb-p.b*p.b/p.n
	if aa <= 0 || bb <= 0 {
		return math.NaN()
	}
	return (p.ab - p.a*p.b/p.n) / math.Sqrt(aa) / math.Sqrt(bb)
}

// rsa is Spearman's correlation between the dissimilarities of two representations (Kriegeskorte et al. 2008). Its mean over all
// shuffles is 0. A replicate leaves out all pairs that a group has part in; the ranks stay those of all pairs.
func rsa(x, y []uint32, n int, cuts []int) estimate {
	centre := float64(len(x) + 1) // twice the mean rank
	groups := max(0, len(cuts)-1)
	touching := make([]product, groups)
	group := func(i int) int { return sort.SearchInts(cuts, i+1) - 1 }
	var all product
	at := 0
	for i := range n {
		gi := -1
		if groups > 0 {
			gi = group(i)
		}
		for g := max(gi, 0); g < max(groups, 1); g++ { // the groups of the samples after i
			lo, hi := i+1, n
			if groups > 0 {
				lo, hi = max(i+1, cuts[g]), cuts[g+1]
			}
			var here product
			for j := lo; j < hi; j++ {
				here.add(float64(x[at])-centre, float64(y[at])-centre)
				at++
			}
			all = all.plus(here)
			if groups > 0 {
				touching[g] = touching[g].plus(here)
				if gi != g {
					touching[gi] = touching[gi].plus(here)
				}
			}
		}
	}
	e := estimate{value: all.correlation()}
	if math.IsNaN(e.value) {
		return undefined("all dissimilarities are equal: ranks do not tell anything")
	}
	for g, t := range touching {
		e.replicates = append(e.replicates, replicate(all.less(t).correlation(), cuts[g+1]-cuts[g]))
	}
	return e
}

// neighbourLists are the nearest neighbours of every sample, nearest first: more than are asked for, so that enough remain without
// some of the samples.
type neighbourLists struct {
	each int     // length of a list
	all  []int32 // n x each
}

func (l neighbourLists) of(i int) []int32 { return l.all[i*l.each : (i+1)*l.each] }

// nearest lists the neighbours of every sample by squared distances; of equally near ones first those that come first. Without a
// group of a twentieth of the samples, k of k + k/2 + 12 are practically always left.
func nearest(d square, k int) neighbourLists {
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

// mutualNeighbours is the mean share of the k nearest neighbours that two representations have in common (Huh et al. 2024). Its mean
// over all shuffles is k / (n - 1). A replicate leaves a group out altogether: as samples, and as neighbours of the others.
func mutualNeighbours(x, y neighbourLists, n, k int, cuts []int) estimate {
	e := estimate{value: shared(x, y, n, k, 0, 0), null: float64(k) / float64(n-1)}
	for g := range max(0, len(cuts)-1) {
		if left := cuts[g+1] - cuts[g]; n-left > k {
			e.replicates = append(e.replicates, replicate(shared(x, y, n, k, cuts[g], cuts[g+1]), left))
		}
	}
	return e
}

// shared is the mean share of common neighbours without the samples from one place to another.
func shared(x, y neighbourLists, n, k, from, to int) float64 {
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
			total += common(without(x.of(i), a), without(y.of(i), b))
		}
	}
	return float64(total) / float64(k) / float64(n-(to-from))
}

// common is how many values two ascending lists share.
func common(a, b []int32) int {
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
