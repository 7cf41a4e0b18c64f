package linalg

import (
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/noether-ml/noether/internal/huge"
)

// A Leaving leaves parts of the observations of a Whole out, one part at a time. It is not for several goroutines at a time.
type Leaving struct {
	whole Whole
	all   *Scatter[float64]
	seen  int        // observations in the parts so far
	sum   PairSingle // of these parts, about the mean of all observations
}

// Leaving begins to leave out parts of all observations, of which no two share one.
func (w Whole) Leaving(all *Scatter[float64]) *Leaving { return &Leaving{whole: w, all: all} }

// Without returns the scatters of coordinates in the subspaces that a Scatter has without a part of its observations,
// which is a tenth of them or so. With n and m observations of means a and b, what remains is
//
//	S = S_n - S_m - n m / (n - m) (b - a)(b - a)ᵀ.
//
// Finding its eigenvectors afresh is what takes long, so the subspaces are moved only where they end: the first
// eigenvectors of all observations stay, and the last of them, with those of the margin, are turned to the
// eigenvectors of S among them and cut off anew at the fraction of the variance.
//
// They are valid until the next part is left out. Without the last part, what remains is the sum of the others, which need not be computed again.
func (l *Leaving) Without(part *Scatter[float32]) (PairSingle, error) {
	f, all := l.whole.frame, l.all
	n, m := float64(all.N), float64(part.N)
	factor := n * m / (n - m)
	delta := make([]float32, all.P)
	for i := range delta {
		delta[i] = float32(part.Mean[i] - all.Mean[i])
	}
	d := all.P / 2
	dx, dy := coordinates(f.u, delta[:d]), coordinates(f.v, delta[d:])
	var rest PairSingle
	if last := l.seen + part.N; l.seen > 0 && last == all.N {
		rest = l.others(m*m/(n-m), dx, dy)
	} else {
		rest = l.remaining(f.reduce(part), factor, m, dx, dy)
	}
	l.seen += part.N
	tx, ty := remaining(all, part, factor, delta)
	ex, err := f.x.end(rest.XX, tx, rest.work)
	if err != nil {
		return PairSingle{}, err
	}
	ey, err := f.y.end(rest.YY, ty, rest.work)
	if err != nil {
		return PairSingle{}, err
	}
	return rest.cut(ex, ey), nil
}

// remaining turns the scatters of the coordinates of a part of m observations into those of the others, and adds them to the sum.
func (l *Leaving) remaining(part PairSingle, factor, m float64, dx, dy []float32) PairSingle {
	if l.sum.XX.Data == nil {
		l.sum = PairSingle{XX: alike(part.XX), YY: alike(part.YY), XY: alike(part.XY), Overlap: part.Overlap, work: part.work}
	}
	remain(part.XX, l.sum.XX, float32(factor), float32(m), dx, dx, true)
	remain(part.YY, l.sum.YY, float32(factor), float32(m), dy, dy, true)
	remain(part.XY, l.sum.XY, float32(factor), float32(m), dx, dy, false)
	addDiagonal(part.XX, l.whole.xx)
	addDiagonal(part.YY, l.whole.yy)
	for i := range part.XY.Rows {
		row := rowOf(part.XY, i)
		for j, v := range l.whole.xy.RawRowView(i) {
			row[j] = float32(v + float64(row[j]))
		}
	}
	return part
}

// others are the scatters without the last part, of m of n observations: with those of the other parts about the mean of all, and
// the m observations that are missing there,
//
//	S = sum - m² / (n - m) (b - a)(b - a)ᵀ.
//
// The sum is used up.
func (l *Leaving) others(factor float64, dx, dy []float32) PairSingle {
	rest := l.sum
	l.sum = PairSingle{}
	rest.work.reset(0)
	subtract(rest.XX, float32(factor), dx, dx)
	subtract(rest.YY, float32(factor), dy, dy)
	subtract(rest.XY, float32(factor), dx, dy)
	return rest
}

// remaining is the variance of x and of y without a part.
func remaining(all *Scatter[float64], part *Scatter[float32], factor float64, delta []float32) (x, y float64) {
	a, p := all.Variances(), part.Variances()
	for i := range a {
		v := a[i] - float64(p[i]) - factor*float64(delta[i])*float64(delta[i])
		if i < len(a)/2 {
			x += v
		} else {
			y += v
		}
	}
	return x, y
}

// remain replaces s by -(s + factor a bᵀ), and adds s + m a bᵀ to a sum; where triangle is set, on and above the diagonal.
func remain(s, sum blas32.General, factor, m float32, a, b []float32, triangle bool) {
	for i := range s.Rows {
		from := 0
		if triangle {
			from = i
		}
		row, to, by, add := rowOf(s, i)[from:], rowOf(sum, i)[from:], factor*a[i], m*a[i]
		for j, v := range b[from:] {
			to[j] += row[j] + add*v
			row[j] = -row[j] - by*v
		}
	}
}

// subtract takes factor a bᵀ from s.
func subtract(s blas32.General, factor float32, a, b []float32) {
	for i := range s.Rows {
		row, by := rowOf(s, i), factor*a[i]
		for j, v := range b {
			row[j] -= by * v
		}
	}
}

func addDiagonal(s blas32.General, values []float64) {
	for i, v := range values {
		at := i*s.Stride + i
		s.Data[at] = float32(v + float64(s.Data[at]))
	}
}

func alike(m blas32.General) blas32.General {
	return blas32.General{Rows: m.Rows, Cols: m.Cols, Stride: m.Cols, Data: huge.Make[float32](m.Rows * m.Cols)}
}
