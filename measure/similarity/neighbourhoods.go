package similarity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
)

// A neighbourhood holds each sample's k nearest, nearest first, and the dissimilarities.
type neighbourhood struct {
	lists         [][]int32
	dissimilarity pairMatrix
}

// neighbourhoods are those of both representations, with warnings of ties.
type neighbourhoods struct {
	x, y     neighbourhood
	warnings []string
}

// neighbourhoods uses the setting metric, breaks ties at random, independently in both, and is
// shared by statistics in succession.
func (v *subsetPair) neighbourhoods() (x, y neighbourhood, err error) {
	near, err := cached(&v.near, func() (out neighbourhoods, err error) {
		if v.settings.Neighbours > v.n()-1 {
			return out, fmt.Errorf("%d neighbours of %d samples: set fewer", v.settings.Neighbours, v.n())
		}
		for i, s := range []*subset{v.x, v.y} {
			d, norms, err := v.settings.neighbourDissimilarities(func(centring int) (pairMatrix, error) { return s.gram(v.ctx, centring) })
			if err != nil {
				return out, err
			}
			g := seed.Rand(v.seed, "similarity ties", i)
			lists, shared := nearest(d, norms, v.settings.Neighbours).breakTies(v.settings.Neighbours, g)
			if shared >= manyTies {
				out.warnings = append(out.warnings, fmt.Sprintf("%.0f %% of the nearest neighbours in the %s representation are as far away as samples beyond them: they are chosen at random",
					100*shared, [2]string{"first", "second"}[i]))
			}
			*[]*neighbourhood{&out.x, &out.y}[i] = neighbourhood{lists, d}
		}
		return out, nil
	})
	v.warnings = append(v.warnings, near.warnings...)
	return near.x, near.y, err
}

// neighbourDissimilarities returns squared Euclidean distances or cosine dissimilarities, new. gram
// returns inner products, centred or raw; norms scales the tolerance for ties: squared norms, or
// ones.
func (s Settings) neighbourDissimilarities(gram func(centring int) (pairMatrix, error)) (pairMatrix, []float64, error) {
	centring := centred
	if s.Metric == "cosine" && s.Centre == "none" {
		centring = raw
	}
	k, err := gram(centring)
	if err != nil {
		return k, nil, err
	}
	k.data = slices.Clone(k.data)
	norms := k.diagonal()
	if s.Metric == "cosine" {
		k.cosines(norms)
		return k, ones(k.n), nil
	}
	k.squaredDistances()
	return k, norms, nil
}

// breakTies returns the k nearest, ties at random, and the fraction so chosen.
func (l neighbourLists) breakTies(k int, g *rand.Rand) (lists [][]int32, shared float64) {
	n := len(l.starts) - 1
	for i := range n {
		list := l.list(i)
		chosen := make([]int32, 0, k)
		for from := 0; from < len(list) && len(chosen) < k; {
			to := from + 1
			for to < len(list) && list[to].tied {
				to++
			}
			first := len(chosen)
			for _, f := range list[from:to] {
				chosen = append(chosen, f.index)
			}
			if to-from > 1 {
				g.Shuffle(to-from, func(a, b int) {
					chosen[first+a], chosen[first+b] = chosen[first+b], chosen[first+a]
				})
			}
			if len(chosen) > k {
				shared += float64(k - first)
			}
			from = to
		}
		lists = append(lists, chosen[:min(k, len(chosen))])
	}
	return lists, shared / float64(n*k)
}

// meanOverSamples passes f the ranks of neighbours, from 1, 0 for others.
func meanOverSamples(x, y neighbourhood, f func(i int, rankX, rankY []int32) float64) float64 {
	n := len(x.lists)
	rankX, rankY := make([]int32, n), make([]int32, n)
	var sum float64
	for i := range n {
		for r, j := range x.lists[i] {
			rankX[j] = int32(r + 1)
		}
		for r, j := range y.lists[i] {
			rankY[j] = int32(r + 1)
		}
		sum += f(i, rankX, rankY)
		for _, j := range x.lists[i] {
			rankX[j] = 0
		}
		for _, j := range y.lists[i] {
			rankY[j] = 0
		}
	}
	return sum / float64(n)
}

// jaccard returns the mean of |A and B| / |A or B| of neighbours (Klabunde et al. 2025).
func jaccard(v *subsetPair) (float64, error) {
	x, y, err := v.neighbourhoods()
	if err != nil {
		return 0, err
	}
	return meanOverSamples(x, y, func(i int, _, rankY []int32) float64 {
		both := 0
		for _, j := range x.lists[i] {
			if rankY[j] > 0 {
				both++
			}
		}
		return float64(both) / float64(2*len(x.lists[i])-both)
	}), nil
}

// secondOrderCosine returns the mean cosine of a sample's dissimilarities in x and in y to its
// neighbours in either (Hamilton et al. 2016).
func secondOrderCosine(v *subsetPair) (float64, error) {
	x, y, err := v.neighbourhoods()
	if err != nil {
		return 0, err
	}
	root := func(d float64) float64 {
		if v.settings.Metric == "cosine" {
			return d
		}
		return math.Sqrt(d)
	}
	return meanOverSamples(x, y, func(i int, rankX, _ []int32) float64 {
		var xy, xx, yy float64
		add := func(j int32) {
			a, b := root(x.dissimilarity.row(i)[j]), root(y.dissimilarity.row(i)[j])
			xy, xx, yy = xy+a*b, xx+a*a, yy+b*b
		}
		for _, j := range x.lists[i] {
			add(j)
		}
		for _, j := range y.lists[i] {
			if rankX[j] == 0 {
				add(j)
			}
		}
		return ratio(xy, xx, yy)
	}), nil
}

// rankSimilarity returns how well the ranks of common neighbours agree (Klabunde et al. 2025). With
// r and s the ranks of a common neighbour j and K their number, a sample has
//
//	sum_j 2 / ((1 + |r - s|) (r + s)) / sum_{k <= K} 1 / k.
func rankSimilarity(v *subsetPair) (float64, error) {
	x, y, err := v.neighbourhoods()
	if err != nil {
		return 0, err
	}
	return meanOverSamples(x, y, func(i int, rankX, rankY []int32) float64 {
		var sum, norm float64
		common := 0
		for _, j := range x.lists[i] {
			if rankY[j] == 0 {
				continue
			}
			r, s := float64(rankX[j]), float64(rankY[j])
			common++
			norm += 1 / float64(common)
			sum += 2 / ((1 + math.Abs(r-s)) * (r + s))
		}
		if common == 0 {
			return 0
		}
		return sum / norm
	}), nil
}

// cknna returns centred kernel nearest-neighbour alignment (Huh et al. 2024): centred kernel
// alignment (CKA) of neighbours only. With K and L the inner products of the centred samples of X
// and Y it is
//
//	sum_ij K_ij L_ij [j near i in both] / sqrt(sum K_ij^2 [j near i in X] sum L_ij^2 [j near i in Y]).
func cknna(v *subsetPair) (float64, error) {
	x, y, err := v.neighbourhoods()
	if err != nil {
		return 0, err
	}
	k, l, err := v.each(func(s *subset) (pairMatrix, error) { return s.gram(v.ctx, centred) })
	if err != nil {
		return 0, err
	}
	var kl, kk, ll float64
	meanOverSamples(x, y, func(i int, _, rankY []int32) float64 {
		for _, j := range x.lists[i] {
			a := k.row(i)[j]
			kk += a * a
			if rankY[j] > 0 {
				kl += a * l.row(i)[j]
			}
		}
		for _, j := range y.lists[i] {
			b := l.row(i)[j]
			ll += b * b
		}
		return 0
	})
	return ratio(kl, kk, ll), nil
}
