package similarity

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/internal/linalg"
)

// A subset s is a representation of n samples: s.of has all, p variables, s.at the indices. A
// pairMatrix is n x n. The setting centre says whether the origin is the mean or 0.

// dissimilarities returns a new matrix by the setting dissimilarity, rounded, so that rounding
// errors tie.
func (v *subsetPair) dissimilarities(s *subset) (pairMatrix, error) {
	var k pairMatrix
	var err error
	kind := v.settings.Dissimilarity
	switch kind {
	case "correlation":
		k, err = s.correlationGram(v.ctx, v.centring())
	case "cosine":
		k, err = s.gram(v.ctx, v.centring())
	default:
		k, err = s.gram(v.ctx, centred)
	}
	if err != nil {
		return k, err
	}
	k.data = slices.Clone(k.data)
	squares := k.diagonal() // squared norms
	if kind == "correlation" || kind == "cosine" {
		k.cosines(squares)
		return k, nil
	}
	k.squaredDistances()
	unit := slices.Max(squares) / 1e12 // values are rounded to multiples of it
	unit = cmp.Or(unit, 1)
	for i, d := range k.data {
		if k.data[i] = math.Round(d/unit) * unit; kind == "euclidean" {
			k.data[i] = math.Sqrt(k.data[i])
		}
	}
	return k, nil
}

// cosines turns a Gram matrix into cosine dissimilarities in place. Its diagonal is squares.
func (s pairMatrix) cosines(squares []float64) {
	length, largest := make([]float64, s.n), math.Sqrt(slices.Max(squares))
	for i, v := range squares {
		if length[i] = sqrt(v); length[i] < 1e-12*largest { // rounding errors of a sample at the origin
			length[i] = 0
		}
	}
	for i := range s.n {
		row := s.row(i)
		for j, v := range row {
			row[j] = cosineDissimilarity(v, length[i], length[j])
		}
		row[i] = 0
	}
}

// correlationGram returns inner products of samples minus the mean of their p values. Beyond
// maxPoints values it is an error.
func (s *subset) correlationGram(ctx context.Context, centring int) (pairMatrix, error) {
	if s.of.p > maxPoints/len(s.at) {
		return pairMatrix{}, errTooWide
	}
	m, err := s.points(ctx, centring)
	if err != nil {
		return pairMatrix{}, err
	}
	rows, p := slices.Clone(m.RawMatrix().Data), s.of.p
	for i := range s.at {
		row := rows[i*p : (i+1)*p]
		floats.AddConst(-floats.Sum(row)/float64(p), row)
	}
	source, err := Of(rows, len(s.at), p)
	if err != nil {
		return pairMatrix{}, err
	}
	return gram(ctx, &centredSample{source: source, order: identityOrder(len(s.at)), n: len(s.at), p: p, mean: make([]float64, p), scale: 1})
}

// above returns the values above the diagonal, row by row.
func (s pairMatrix) above() []float64 {
	out := make([]float64, 0, s.n*(s.n-1)/2)
	for i := range s.n {
		out = append(out, s.row(i)[i+1:]...)
	}
	return out
}

// chosenRSA returns RSA (Kriegeskorte et al. 2008) by the settings dissimilarity and comparison.
func chosenRSA(v *subsetPair) (float64, error) {
	x, y, err := v.each(v.dissimilarities)
	if err != nil {
		return 0, err
	}
	a, b := x.above(), y.above()
	var out float64
	switch v.settings.Comparison {
	case "pearson":
		out = stat.Correlation(a, b, nil)
	case "kendall":
		out = kendall(a, b)
	case "cosine":
		out = floats.Dot(a, b) / floats.Norm(a, 2) / floats.Norm(b, 2)
	default:
		out = stat.Correlation(meanRanks(a), meanRanks(b), nil)
	}
	if math.IsNaN(out) {
		return v.undefined("all dissimilarities are equal, so their correlation is undefined")
	}
	return out, nil
}

// meanRanks shares mean ranks among ties; values must not be negative.
func meanRanks(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, r := range ranks(values) {
		out[i] = float64(r) / 2 // ranks are doubled
	}
	return out
}

// kendall returns tau-b by merge sort (Knight 1966), NaN for a constant list.
func kendall(a, b []float64) float64 {
	n := len(a)
	order := identityOrder(n)
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(a[i], a[j]), cmp.Compare(b[i], b[j])) })
	tied := func(same func(i, j int) bool) (pairs float64) {
		for from := 0; from < n; {
			to := from + 1
			for to < n && same(order[from], order[to]) {
				to++
			}
			pairs += float64(to-from) * float64(to-from-1) / 2
			from = to
		}
		return pairs
	}
	tiedA := tied(func(i, j int) bool { return a[i] == a[j] })
	tiedBoth := tied(func(i, j int) bool { return a[i] == a[j] && b[i] == b[j] })
	sorted := make([]float64, n)
	for i, at := range order {
		sorted[i] = b[at]
	}
	swaps := float64(inversions(sorted, make([]float64, n)))
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(b[i], b[j]) })
	tiedB := tied(func(i, j int) bool { return b[i] == b[j] })
	total := float64(n) * float64(n-1) / 2
	if tiedA == total || tiedB == total {
		return math.NaN()
	}
	return (total - tiedA - tiedB + tiedBoth - 2*swaps) / math.Sqrt(total-tiedA) / math.Sqrt(total-tiedB)
}

func inversions(values, scratch []float64) int {
	n := len(values)
	if n < 2 {
		return 0
	}
	a, b := values[:n/2], values[n/2:]
	count := inversions(a, scratch[:n/2]) + inversions(b, scratch[n/2:])
	merged := scratch[:0]
	for len(a) > 0 && len(b) > 0 {
		if b[0] < a[0] {
			count += len(a)
			merged, b = append(merged, b[0]), b[1:]
		} else {
			merged, a = append(merged, a[0]), a[1:]
		}
	}
	copy(values, append(append(merged, a...), b...))
	return count
}

// rsmNormDifference returns the norm of the difference of Euclidean distance matrices (Shahbazi et
// al. 2021; Yin and Shen 2018): Frobenius or, as in ReSi, spectral.
func rsmNormDifference(v *subsetPair) (float64, error) {
	x, y, err := v.distances(true) // of the samples as given
	if err != nil {
		return 0, err
	}
	floats.Sub(x.data, y.data)
	if v.settings.Norm == "frobenius" {
		return floats.Norm(x.data, 2), nil
	}
	values, _, err := linalg.Eigen(x.data, x.n)
	if err != nil {
		return 0, err
	}
	return max(math.Abs(values[0]), math.Abs(values[len(values)-1])), nil
}

// distanceCorrelation returns sqrt(<A, B> / (|A| |B|)) of doubly centred distances (Szekely, Rizzo
// and Bakirov 2007).
func distanceCorrelation(v *subsetPair) (float64, error) {
	x, y, err := v.distances(false) // of samples scaled by a constant, which changes no result
	if err != nil {
		return 0, err
	}
	x.centre()
	y.centre()
	return sqrt(ratio(floats.Dot(x.data, y.data), sumOfSquares(x.data), sumOfSquares(y.data))), nil
}

// concentricity returns the mean cosine of samples with the mean sample, 0 at the origin. s is a
// Gram matrix about it.
func (s pairMatrix) concentricity() float64 {
	length := sqrt(floats.Sum(s.data)) // n times the length of the mean
	var sum float64
	for i := range s.n {
		if own := sqrt(s.row(i)[i]); own > 0 && length > 0 {
			sum += floats.Sum(s.row(i)) / own / length
		}
	}
	return sum / float64(s.n)
}

// kernelSum returns the sum of exp(-2 d^2) over ordered pairs, self included, for uniformity.
func (s pairMatrix) kernelSum() float64 {
	var sum float64
	for _, d := range s.data {
		sum += math.Exp(-2 * d * d)
	}
	return sum
}

// twoNN returns the intrinsic dimension (Facco et al. 2017): the slope through 0 of -log(1 - F)
// against log mu, the ratio of second to first neighbour distance with distribution F. The largest
// tenth is left out, as in the paper, and so are equal samples. NaN: too few are left.
func (s pairMatrix) twoNN() float64 {
	var logs []float64
	for i := range s.n {
		first, second := math.Inf(1), math.Inf(1)
		for j, d := range s.row(i) {
			switch {
			case j == i:
			case d < first:
				first, second = d, first
			case d < second:
				second = d
			}
		}
		if first > 0 && !math.IsInf(second, 1) {
			logs = append(logs, math.Log(second/first))
		}
	}
	slices.Sort(logs)
	n := float64(len(logs))
	var xy, xx float64
	for i, x := range logs[:int(0.9*n)] {
		xy -= x * math.Log(1-float64(i+1)/n)
		xx += x * x
	}
	return xy / xx
}
