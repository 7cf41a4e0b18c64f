package similarity

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// variables has products and squared norms of columns of both.
type variables struct {
	cross *mat.Dense // p x q: inner products
	x, y  []float64  // squared norms
}

// variables are over the samples of v, centred if centring says so.
func (v *subsetPair) variables(centring int) (variables, error) {
	a, err := v.x.points(v.ctx, centring)
	if err != nil {
		return variables{}, err
	}
	b, err := v.y.points(v.ctx, centring)
	if err != nil {
		return variables{}, err
	}
	out := variables{cross: new(mat.Dense), x: squaredColumns(a), y: squaredColumns(b)}
	out.cross.Mul(a.T(), b)
	return out, nil
}

// inUnits undoes the subsets' scale.
func (w variables) inUnits(x, y *subset) variables {
	a, b := x.unit(), y.unit()
	w.cross.Scale(a*b, w.cross)
	floats.Scale(a*a, w.x)
	floats.Scale(b*b, w.y)
	return w
}

func squaredColumns(m *mat.Dense) []float64 {
	n, p := m.Dims()
	out := make([]float64, p)
	for i := range n {
		for j, v := range m.RawRowView(i) {
			out[j] += v * v
		}
	}
	return out
}

// correlations turns the inner products into correlations, 0 with a constant variable.
func (w variables) correlations() {
	w.cross.Apply(func(i, j int, v float64) float64 {
		if w.x[i] == 0 || w.y[j] == 0 {
			return 0
		}
		return v / math.Sqrt(w.x[i]) / math.Sqrt(w.y[j])
	}, w.cross)
}

// hardCorrelationMatch returns the largest mean correlation of one-to-one matches (Li et al. 2015),
// with the wider's rest unmatched.
func hardCorrelationMatch(v *subsetPair) (float64, error) {
	w, err := v.variables(centred)
	if err != nil {
		return 0, err
	}
	w.correlations()
	p, q := w.cross.Dims()
	return assign(w.cross) / float64(min(p, q)), nil
}

// softCorrelationMatch averages each variable's largest correlation with the other's, over both (Li
// et al. 2015).
func softCorrelationMatch(v *subsetPair) (float64, error) {
	w, err := v.variables(centred)
	if err != nil {
		return 0, err
	}
	w.correlations()
	p, q := w.cross.Dims()
	best := slices.Repeat([]float64{math.Inf(-1)}, q)
	var rows float64
	for i := range p {
		row := w.cross.RawRowView(i)
		rows += floats.Max(row) / float64(p)
		for j, c := range row {
			best[j] = max(best[j], c)
		}
	}
	return (rows + floats.Sum(best)/float64(q)) / 2, nil
}

// permutationProcrustes returns min |X P - Y| over permutations, the narrower zero-padded (Williams
// et al. 2021), centred by setting.
func permutationProcrustes(v *subsetPair) (float64, error) {
	w, err := v.variables(v.centring())
	if err != nil {
		return 0, err
	}
	w = w.inUnits(v.x, v.y)
	total := floats.Sum(w.x) + floats.Sum(w.y)
	if rest := total - 2*assign(w.cross); rest > 1e-14*total {
		return math.Sqrt(rest), nil
	}
	return 0, nil // rest is a rounding error
}

// softMatching returns the root of the least transport cost between variables by squared distance
// (Khosla and Williams 2024), of mass 1 / p each.
func softMatching(v *subsetPair) (float64, error) {
	w, err := v.variables(centred)
	if err != nil {
		return 0, err
	}
	w = w.inUnits(v.x, v.y)
	p, q := w.cross.Dims()
	var largest float64
	w.cross.Apply(func(i, j int, c float64) float64 {
		largest = max(largest, w.x[i]+w.y[j])
		return max(w.x[i]+w.y[j]-2*c, 0)
	}, w.cross)
	total := transport(w.cross, q, p) / float64(p) / float64(q)
	if total <= 1e-14*largest { // a rounding error
		return 0, nil
	}
	return math.Sqrt(total), nil
}

// assign returns the largest sum over one-to-one matches of all rows, or of all columns if fewer.
func assign(m *mat.Dense) float64 {
	c := mat.DenseCopyOf(m)
	if p, q := m.Dims(); p > q {
		c = mat.DenseCopyOf(m.T())
	}
	c.Scale(-1, c)
	return -transport(c, 1, 1)
}

// transport returns the least cost of moving supply units from each row to columns of demand. cost
// is p x q with p supply <= q demand. The Hungarian algorithm with capacities: shortest augmenting
// paths.
func transport(cost *mat.Dense, supply, demand int) float64 {
	p, q := cost.Dims()
	flow := make([]int, p*q)
	// left counts a row's units not moved yet, free a column's room.
	left, free := slices.Repeat([]int{supply}, p), slices.Repeat([]int{demand}, q)
	rowPrice, columnPrice := make([]float64, p), make([]float64, q)
	for i := range rowPrice { // so that reduced costs are not negative, and columns with room have the price 0
		rowPrice[i] = floats.Min(cost.RawRowView(i))
	}
	// Memory for shortestPath.
	near, from, done := make([]float64, q), make([]int, q), make([]bool, q)
	rowNear, rowFrom := make([]float64, p), make([]int, p)
	for start := range p {
		for left[start] > 0 {
			end := shortestPath(cost, flow, free, start, rowPrice, columnPrice, near, from, done, rowNear, rowFrom)
			units := min(left[start], free[end])
			for j := end; ; { // the path is limited by the flows that it undoes
				i := from[j]
				if i == start {
					break
				}
				j = rowFrom[i]
				units = min(units, flow[i*q+j])
			}
			left[start] -= units
			free[end] -= units
			for j := end; ; {
				i := from[j]
				flow[i*q+j] += units
				if i == start {
					break
				}
				j = rowFrom[i]
				flow[i*q+j] -= units
			}
		}
	}
	var total float64
	for i := range p {
		for j, c := range cost.RawRowView(i) {
			total += c * float64(flow[i*q+j])
		}
	}
	return total
}

// shortestPath finds the cheapest path from a row to a column with room, and updates prices. It may
// go back along flows. It returns the last column; from and rowFrom have the steps before; near,
// rowNear and done are memory for reduced costs.
func shortestPath(cost *mat.Dense, flow, free []int, start int, rowPrice, columnPrice, near []float64, from []int, done []bool, rowNear []float64, rowFrom []int) int {
	q := len(near)
	for j := range near {
		near[j], done[j] = math.Inf(1), false
	}
	for i := range rowNear {
		rowNear[i] = math.Inf(1)
	}
	relax := func(i int) {
		row := cost.RawRowView(i)
		for j, c := range row {
			if d := rowNear[i] + max(c-rowPrice[i]-columnPrice[j], 0); !done[j] && d < near[j] {
				near[j], from[j] = d, i
			}
		}
	}
	rowNear[start] = 0
	relax(start)
	for {
		j := -1
		for k, d := range near {
			if !done[k] && (j < 0 || d < near[j]) {
				j = k
			}
		}
		done[j] = true
		if free[j] > 0 {
			for i, d := range rowNear {
				if d < near[j] {
					rowPrice[i] += near[j] - d
				}
			}
			for k, d := range near {
				if done[k] {
					columnPrice[k] -= near[j] - d
				}
			}
			return j
		}
		for i := range rowNear { // a flow can be undone at no reduced cost
			if flow[i*q+j] > 0 && math.IsInf(rowNear[i], 1) {
				rowNear[i], rowFrom[i] = near[j], j
				relax(i)
			}
		}
	}
}
