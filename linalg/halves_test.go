package linalg

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func framed(t *testing.T, rows []float32, d int, fraction float64) (Whole, *Scatter[float64]) {
	t.Helper()
	s := NewScatter[float64](2 * d)
	s.Add(Centre(append([]float32(nil), rows...), 2*d), nil, new(Scratch))
	x, err := Leading(s.Square(0, d), d, fraction)
	if err != nil {
		t.Fatal(err)
	}
	y, err := Leading(s.Square(d, 2*d), d, fraction)
	if err != nil {
		t.Fatal(err)
	}
	f := NewFrame(x, y)
	return f.Whole(s.Between(0, d, 2*d)), s
}

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

// A set has the scatters, about its own mean, of the coordinates of its observations in the subspaces of all.
func TestASetHasTheCorrelationsOfItsObservations(t *testing.T) {
	t.Parallel()
	const n, d = 200, 6
	rows := decaying(n, d)
	cuts := []int{0, 30, 35, 120, n}
	member := func(set, part int) bool { return set&(1<<part) != 0 } // every choice of the four parts
	for _, fraction := range []float64{0.8, 0.95, 1} {
		whole, all := framed(t, rows, d, fraction)
		h := whole.Halves(all, 16)
		for i := range 4 {
			h.Add(scatterOf(rows[cuts[i]*2*d:cuts[i+1]*2*d], 2*d), func(set int) bool { return member(set, i) })
		}
		for set := 1; set < 16; set++ {
			var chosen []float32
			for i := range 4 {
				if member(set, i) {
					chosen = append(chosen, rows[cuts[i]*2*d:cuts[i+1]*2*d]...)
				}
			}
			p, size := h.Set(set)
			if size != len(chosen)/(2*d) {
				t.Fatalf("%d observations, want %d", size, len(chosen)/(2*d))
			}
			if size < 10 {
				continue
			}
			rho, cos, err := p.Correlations()
			if err != nil {
				t.Fatal(err)
			}
			want, exact := projectedCorrelations(t, whole, chosen, d)
			equal(t, "correlations", rho, want, 1e-5)
			equal(t, "cosines", cos, exact, 1e-4)
		}
	}
}

func scatterOf(rows []float32, p int) *Scatter[float32] {
	s := NewScatter[float32](p)
	NewScatter[float64](p).Add(Centre(append([]float32(nil), rows...), p), s, new(Scratch))
	return s
}

// projectedCorrelations are those of coordinates, in float64 and from the observations themselves.
func projectedCorrelations(t *testing.T, w Whole, rows []float32, d int) (rho, cos []float64) {
	t.Helper()
	n := len(rows) / (2 * d)
	z := mat.NewDense(n, 2*d, nil)
	for i, v := range rows {
		z.RawMatrix().Data[i] = float64(v)
	}
	u, v := w.frame.x.Bare().Basis, w.frame.y.Bare().Basis
	var x, y, xx, yy, xy, overlap mat.Dense
	x.Mul(z.Slice(0, n, 0, d), u)
	y.Mul(z.Slice(0, n, d, 2*d), v)
	takeMean(x.RawMatrix().Data, columnSums(&x))
	takeMean(y.RawMatrix().Data, columnSums(&y))
	xx.Mul(x.T(), &x)
	yy.Mul(y.T(), &y)
	xy.Mul(x.T(), &y)
	overlap.Mul(u.T(), v)
	_, p := x.Dims()
	_, q := y.Dims()
	rho, cos, err := Pair{XX: mat.NewSymDense(p, xx.RawMatrix().Data), YY: mat.NewSymDense(q, yy.RawMatrix().Data), XY: &xy, Overlap: &overlap}.Correlations()
	if err != nil {
		t.Fatal(err)
	}
	return rho, cos
}

func columnSums(x *mat.Dense) []float64 {
	_, p := x.Dims()
	sum := make([]float64, p)
	sumRows(sum, x.RawMatrix().Data)
	return sum
}

// What a part pulls is the derivative of Reach by its weight, and all parts together change nothing.
func TestPullsAreDerivatives(t *testing.T) {
	t.Parallel()
	const n, d, more = 200, 6, 0.01
	rows := decaying(n, d)
	whole, all := framed(t, rows, d, 0.95)
	h := whole.Halves(all, 1)
	var sum float64
	for from := 0; from < n; from += 50 {
		part := rows[from*2*d : (from+50)*2*d]
		x, y := h.Add(scatterOf(part, 2*d), func(int) bool { return true })
		sum += math.Abs(x)
		for i, got := range []float64{x, y} {
			want := (reachWith(t, rows, part, d, i, more) - reachWith(t, rows, part, d, i, -more)) / (2 * more)
			if math.Abs(got-want) > 0.01+0.02*math.Abs(want) {
				t.Errorf("the part from %d on pulls side %d by %v, want %v", from, i, got, want)
			}
		}
	}
	if x, _ := whole.Halves(all, 1).Add(scatterOf(rows, 2*d), func(int) bool { return true }); math.Abs(x) > 1e-4*sum {
		t.Errorf("all observations pull by %v", x)
	}
}

// reachWith is the Reach of one half of the variables with a part weighing more.
func reachWith(t *testing.T, rows, part []float32, d, side int, more float64) float64 {
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
	s, err := Leading(square.RawMatrix().Data, d, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	return s.Reach()
}

func TestASetWithoutVarianceIsAnError(t *testing.T) {
	t.Parallel()
	const n, d = 40, 3
	rows := decaying(n, d)
	for i := range 30 * 2 * d {
		rows[i+10*2*d] = 1 // only the first ten observations vary
	}
	whole, all := framed(t, rows, d, 0.99)
	h := whole.Halves(all, 2)
	h.Add(scatterOf(rows[:10*2*d], 2*d), func(set int) bool { return set == 0 })
	h.Add(scatterOf(rows[10*2*d:], 2*d), func(set int) bool { return set == 1 })
	p, _ := h.Set(1)
	if _, _, err := p.Correlations(); err == nil {
		t.Error("no error where nothing varies")
	}
}
