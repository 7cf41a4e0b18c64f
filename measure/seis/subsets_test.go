package seis

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/linalg"
)

// coordinatesOf returns the scatters of the coordinates of x and of y in their principal subspaces,
// which hold the given fraction of the variance, and the scatter of (x, y) itself. A scatter is the
// sum of products of deviations from the mean. Each row is an observation of (x, y), d variables
// each: a channel of a sample on the clean and on the transformed input. A cleanView computes what
// depends on x alone, here with some eigenvectors more (true).
func coordinatesOf(t *testing.T, rows []float32, d int, fraction float64) (coordinates, *linalg.Scatter[float64]) {
	t.Helper()
	s := linalg.NewScatter[float64](2 * d)
	s.Add(linalg.Centre(append([]float32(nil), rows...), 2*d), nil, new(linalg.Scratch))
	x, err := new(cleanView).scores(s, fraction, true)
	if err != nil {
		t.Fatal(err)
	}
	y, err := leading(s.Square(d, 2*d), d, fraction)
	if err != nil {
		t.Fatal(err)
	}
	f := newBases(x, y)
	return f.coordinates(s.Between(0, d, 2*d)), s
}

// decaying returns n observations of (x, y), d variables each: variable j has a smaller standard
// deviation than variable j - 1. y is x plus noise.
func decaying(n, d int) []float32 {
	g := rand.New(rand.NewPCG(9, 9))
	rows := make([]float32, n*2*d)
	for i := range n {
		row := rows[i*2*d : (i+1)*2*d]
		for j := range d {
			scale := float32(math.Exp(-float64(j) / 3))
			row[j] = scale*float32(g.NormFloat64()) + 2
			row[d+j] = row[j] + scale*float32(g.NormFloat64())
		}
	}
	return rows
}

// TestSubsetCorrelations checks that the canonical correlations that subsets accumulates for a set
// of observations are those of its coordinates in the subspaces of all observations. The
// observations are divided into four parts. Sets with the last part are accumulated as all
// observations minus the missing parts, others as sums of parts.
func TestSubsetCorrelations(t *testing.T) {
	t.Parallel()
	const n, d = 200, 6
	rows := decaying(n, d)
	cuts := []int{0, 30, 35, 120, n}
	// The bits of set, from 0 to 15, are the parts that it contains.
	contains := func(set, part int) bool { return set&(1<<part) != 0 }
	for _, fraction := range []float64{0.8, 0.95, 1} {
		whole, all := coordinatesOf(t, rows, d, fraction)
		sets := whole.bases.newSubsets(all, 16) // 16 empty sets
		for set := range 16 {
			if contains(set, 3) {
				sets.addAllObservations(set, whole)
			}
		}
		// The function returns 1 if the part is added to a set, and -1 if it is removed.
		for i := range 3 {
			sets.add(scatterOf(rows[cuts[i]*2*d:cuts[i+1]*2*d], 2*d), func(set int) int {
				switch {
				case !contains(set, 3) && contains(set, i):
					return 1
				case contains(set, 3) && !contains(set, i):
					return -1
				}
				return 0
			})
		}
		for set := 1; set < 16; set++ {
			var chosen []float32
			for i := range 4 {
				if contains(set, i) {
					chosen = append(chosen, rows[cuts[i]*2*d:cuts[i+1]*2*d]...)
				}
			}
			p, size := sets.take(set, new(workspace))
			if size != len(chosen)/(2*d) {
				t.Fatalf("%d observations, want %d", size, len(chosen)/(2*d))
			}
			if size < 10 {
				continue // too few for six variables each of x and y
			}
			rho, cos, err := p.correlations()
			if err != nil {
				t.Fatal(err)
			}
			want, exact := projectedCorrelations(t, whole, chosen, d)
			equal(t, "correlations", rho, want, 1e-5)
			equal(t, "cosines", cos, exact, 1e-4)
		}
	}
}

// scatterOf returns the scatter of rows of p values in float32.
func scatterOf(rows []float32, p int) *linalg.Scatter[float32] {
	s := linalg.NewScatter[float32](p)
	linalg.NewScatter[float64](p).Add(linalg.Centre(append([]float32(nil), rows...), p), s, new(linalg.Scratch))
	return s
}

// projectedCorrelations returns the canonical correlations of the rows' coordinates in the bases of
// w, and the cosines between the canonical vectors of x and y. It projects the rows, in float64.
func projectedCorrelations(t *testing.T, w coordinates, rows []float32, d int) (rho, cos []float64) {
	t.Helper()
	n := len(rows) / (2 * d)
	z := mat.NewDense(n, 2*d, nil)
	for i, v := range rows {
		z.RawMatrix().Data[i] = float64(v)
	}
	// The margin of a basis is a few eigenvectors beyond its rank.
	u, v := w.bases.x.withoutMargin().basis, w.bases.y.withoutMargin().basis
	var x, y, xx, yy, xy, overlap mat.Dense
	x.Mul(z.Slice(0, n, 0, d), u)
	y.Mul(z.Slice(0, n, d, 2*d), v)
	centre(&x)
	centre(&y)
	xx.Mul(x.T(), &x)
	yy.Mul(y.T(), &y)
	xy.Mul(x.T(), &y)
	overlap.Mul(u.T(), v)
	rho, cos, err := referenceCorrelations(&xx, &yy, &xy, &overlap)
	if err != nil {
		t.Fatal(err)
	}
	return rho, cos
}

// referenceCorrelations returns the canonical correlations of variables with the scatters xx, yy
// and xy, and the cosines between their canonical vectors, in float64 by Cholesky factors. overlap
// holds the inner products of the vectors of both bases.
func referenceCorrelations(xx, yy, xy, overlap *mat.Dense) (rho, cos []float64, err error) {
	inverse := func(m *mat.Dense) (*mat.Dense, error) { // of the lower Cholesky factor
		n, _ := m.Dims()
		var c mat.Cholesky
		if !c.Factorize(mat.NewSymDense(n, mat.DenseCopyOf(m).RawMatrix().Data)) {
			return nil, errSingular
		}
		var l mat.TriDense
		c.LTo(&l)
		out := new(mat.Dense)
		return out, out.Inverse(&l)
	}
	l, err := inverse(xx)
	if err != nil {
		return nil, nil, err
	}
	m, err := inverse(yy)
	if err != nil {
		return nil, nil, err
	}
	var k, w, v mat.Dense
	k.Product(l, xy, m.T()) // whitened; its singular values are the canonical correlations
	p, rho, q, err := linalg.Decompose(&k)
	if err != nil {
		return nil, nil, err
	}
	w.Mul(l.T(), p)
	v.Mul(m.T(), q)
	return rho, cosines(&w, &v, overlap), nil
}

// centre subtracts the mean of each column.
func centre(x *mat.Dense) {
	n, p := x.Dims()
	for j := range p {
		var mean float64
		for i := range n {
			mean += x.At(i, j) / float64(n)
		}
		for i := range n {
			x.Set(i, j, x.At(i, j)-mean)
		}
	}
}

// TestInfluenceIsADerivative checks that the influence of a group is the derivative of the
// fractional rank with respect to the group's weight, and that the influence of all observations is
// 0. The fractional rank is the number of leading eigenvalues that hold 95 % of the variance,
// interpolated between integers.
func TestInfluenceIsADerivative(t *testing.T) {
	t.Parallel()
	const n, d, more = 200, 6, 0.01
	rows := decaying(n, d)
	whole, all := coordinatesOf(t, rows, d, 0.95)
	sets := whole.bases.newSubsets(all, 1)
	var sum float64
	for from := 0; from < n; from += 50 {
		part := rows[from*2*d : (from+50)*2*d]
		x, y := sets.add(scatterOf(part, 2*d), func(int) int { return 1 })
		sum += math.Abs(x)
		for i, got := range []float64{x, y} {
			want := (rankWith(t, rows, part, d, i, more) - rankWith(t, rows, part, d, i, -more)) / (2 * more)
			if math.Abs(got-want) > 0.01+0.02*math.Abs(want) {
				t.Errorf("the part from row %d on has the influence %v on %s, want %v", from, got, []string{"x", "y"}[i], want)
			}
		}
	}
	if x, _ := whole.bases.newSubsets(all, 1).add(scatterOf(rows, 2*d), func(int) int { return 1 }); math.Abs(x) > 1e-4*sum {
		t.Errorf("all observations have the influence %v, want 0", x)
	}
}

// rankWith returns the fractional rank of x (side 0) or y (side 1) if the weight of a part is
// increased by more.
func rankWith(t *testing.T, rows, part []float32, d, side int, more float64) float64 {
	t.Helper()
	var sum []float64
	var weight float64
	square := mat.NewDense(d, d, nil)
	add := func(rows []float32, by float64) {
		for ; len(rows) > 0; rows = rows[2*d:] {
			x := make([]float64, d)
			for j := range x {
				x[j] = float64(rows[side*d+j])
			}
			v := mat.NewVecDense(d, x)
			square.RankOne(square, by, v, v)
			for j := range x {
				sum[j] += by * x[j]
			}
			weight += by
		}
	}
	sum = make([]float64, d)
	add(rows, 1)
	add(part, more)
	v := mat.NewVecDense(d, sum)
	square.RankOne(square, -1/weight, v, v)
	s, err := leading(square.RawMatrix().Data, d, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	return s.FractionalRank()
}

// TestSubsetWithoutVarianceIsAnError accumulates the 30 constant observations twice: in set 0 as
// their own scatter, in set 1 as all observations minus the others.
func TestSubsetWithoutVarianceIsAnError(t *testing.T) {
	t.Parallel()
	const n, d = 40, 3
	rows := decaying(n, d)
	for i := range 30 * 2 * d {
		rows[i+10*2*d] = 1 // only the first ten observations vary
	}
	whole, all := coordinatesOf(t, rows, d, 0.99)
	sets := whole.bases.newSubsets(all, 2)
	sets.addAllObservations(1, whole)
	sets.add(scatterOf(rows[:10*2*d], 2*d), func(set int) int { return []int{0, -1}[set] })
	sets.add(scatterOf(rows[10*2*d:], 2*d), func(set int) int { return []int{1, 0}[set] })
	for set := range 2 {
		p, _ := sets.take(set, new(workspace))
		if _, _, err := p.correlations(); err == nil {
			t.Errorf("set %d of constant observations has correlations, want an error", set)
		}
	}
}

// equal fails the test unless all values are within the tolerance of want.
func equal(t rapid.TB, what string, got, want []float64, tolerance float64) {
	t.Helper()
	for i := range want {
		if math.Abs(got[i]-want[i]) > tolerance {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}
