package linalg

// A meanStep describes how the mean changes when nb observations of mean mb are added to na
// observations of mean ma. A scatter is the matrix of sums of products of deviations from the mean.
type meanStep struct {
	n      int       // na + nb
	mean   []float64 // of all observations
	delta  []float64 // mb - ma
	factor float64   // na nb / (na + nb): the weight of delta deltaᵀ in the scatter
	first  bool      // na is 0
}

// newMeanStep returns the step of adding nb observations of mean mb to na observations of mean ma.
func newMeanStep(na int, ma []float64, nb int, mb []float64) meanStep {
	st := meanStep{n: na + nb, first: na == 0, mean: make([]float64, len(ma)), delta: make([]float64, len(ma))}
	if st.n == 0 {
		return st
	}
	fraction := float64(nb) / float64(st.n)
	st.factor = float64(na) * fraction
	for i := range ma {
		st.delta[i] = mb[i] - ma[i]
		st.mean[i] = ma[i] + fraction*st.delta[i]
	}
	return st
}

// addRow adds a row of products, of variable i with the variables from j on, to a row of a scatter
// matrix. x is the change of the mean of variable i, y that of the other variables. The first
// observations replace the values of the row, which are zero: reading memory that was never written
// would cost a further page fault.
func addRow[S, T float32 | float64](dst []S, products []T, x, y meanStep, i, j int) {
	products = products[:len(dst)]
	if x.first {
		for j := range dst {
			dst[j] = S(products[j])
		}
		return
	}
	a, delta := x.factor*x.delta[i], y.delta[j:j+len(dst)]
	for j := range dst {
		dst[j] = S(float64(dst[j]) + float64(products[j]) + a*delta[j])
	}
}

// An Update adds observations to a Scatter in tiles (rectangular parts of the matrix), for a caller
// that computes the products itself. The zero Update has no effect.
type Update[T float32 | float64] struct {
	s *Scatter[T]
	meanStep
}

// Begin starts adding n observations of the given mean. The caller must add each tile of the upper
// triangle once with AddProducts, and then call End.
func (s *Scatter[T]) Begin(n int, mean []float64) Update[T] {
	return Update[T]{s, newMeanStep(s.N, s.Mean, n, mean)}
}

// AddProducts adds one tile of the sums, over the new observations, of products of deviations from
// their mean: of the variables from top to bottom-1 with those from left to right-1, row-major.
// Values below the diagonal are ignored.
func AddProducts[S, E float32 | float64](u Update[S], products []E, top, bottom, left, right int) {
	if u.s == nil {
		return
	}
	for i := top; i < bottom; i++ {
		from := max(i, left)
		if from >= right {
			return
		}
		row := products[(i-top)*(right-left)+from-left : (i-top+1)*(right-left)]
		// Row is row i of the matrix from column from on
		addRow(u.s.Row(i, from)[:right-from], row, u.meanStep, u.meanStep, i, from)
	}
}

// End sets the number and the mean of all observations.
func (u Update[T]) End() {
	if u.s != nil {
		u.s.N, u.s.Mean = u.n, u.mean
	}
}

// A CrossUpdate adds observations to a CrossScatter tile by tile. The zero CrossUpdate has no
// effect.
type CrossUpdate[T float32 | float64] struct {
	c    *CrossScatter[T]
	x, y meanStep
}

// Begin starts adding n observations of the given means. The caller must add each tile once with
// AddCrossProducts, and then call End.
func (c *CrossScatter[T]) Begin(n int, meanX, meanY []float64) CrossUpdate[T] {
	return CrossUpdate[T]{c, newMeanStep(c.N, c.MeanX, n, meanX), newMeanStep(c.N, c.MeanY, n, meanY)}
}

// AddCrossProducts adds one tile of the sums, over the new observations, of products of deviations
// from their means: of the variables of x from top to bottom-1 with those of y from left to
// right-1, row-major.
func AddCrossProducts[S, E float32 | float64](u CrossUpdate[S], products []E, top, bottom, left, right int) {
	if u.c == nil { // products may be nil
		return
	}
	cols := right - left
	for i := top; i < bottom; i++ {
		addCrossRow(u, products[(i-top)*cols:(i-top+1)*cols], i, left)
	}
}

// addCrossRow adds products of variable i of x with the variables of y from left on.
func addCrossRow[S, E float32 | float64](u CrossUpdate[S], products []E, i, left int) {
	if u.c == nil {
		return
	}
	row := u.c.Data[i*u.c.Q+left:][:len(products)]
	addRow(row, products, u.x, u.y, i, left)
}

// End sets the number and the means of all observations.
func (u CrossUpdate[T]) End() {
	if u.c != nil {
		u.c.N, u.c.MeanX, u.c.MeanY = u.x.n, u.x.mean, u.y.mean
	}
}

// bandSize is the approximate number of values that one call of read in MergeStored reads.
const bandSize = 1 << 16

// MergeStored adds n observations of the given mean whose scatter is stored outside of memory, in
// float32 or float64. read must fill values with the elements of the stored Scatter.Data from index
// at on. If it fails, MergeStored returns its error and s is not usable.
func MergeStored[S, T float32 | float64](s *Scatter[S], n int, mean []float64, read func(values []T, at int) error) error {
	u := s.Begin(n, mean)
	values := make([]T, bandSize+s.P)
	for from := 0; from < s.P; {
		to, start := from, s.offset(from)
		for to < s.P && s.offset(to)-start < bandSize {
			to++
		}
		if err := read(values[:s.offset(to)-start], start); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			addRow(s.Row(i, i), values[s.offset(i)-start:], u.meanStep, u.meanStep, i, i)
		}
		from = to
	}
	u.End()
	return nil
}

// offset returns the index of the first value of row i in Data, which holds the rows of the upper
// triangle of the P x P matrix. offset(P) is len(Data).
func (s *Scatter[T]) offset(i int) int { return i * (2*s.P - i + 1) / 2 }
