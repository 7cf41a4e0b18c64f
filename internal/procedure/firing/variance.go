package firing

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// The statistics below are those of the library tmeasures (Quiroga et al., "Measuring (in)variances
// in convolutional networks", 2019, and "Invariance and same-equivariance measures for
// convolutional neural networks", 2020). a(x, t) is a unit's value on t(x), for all samples x and
// all steps t of their trajectories, including the identity:
//
//	transformational variance  TV = mean over x of the standard deviation over t of a(x, t)
//	sample variance            SV = mean over t of the standard deviation over x of a(x, t)
//	normalised variance        TV / SV; 1 if both are 0, infinite if only SV is
//	same-equivariance          TV / SV of t^-1 a(x, t): the inverse transformation of feature maps
//
// Standard deviations have n - 1 in the denominator. The library calls them variances.

// variances accumulates standard deviations, trajectory by trajectory and step by step.
type variances struct {
	units, steps int
	mean, m2     []float64 // steps x units: mean over samples, and sum of squared deviations from it
	within, w2   []float64 // by unit: the same over the steps of the current trajectory
	sum          []float64 // by unit: sum over trajectories of the standard deviation over steps
}

func newVariances(units, steps int) *variances {
	return &variances{units: units, steps: steps,
		mean: make([]float64, steps*units), m2: make([]float64, steps*units),
		within: make([]float64, units), w2: make([]float64, units), sum: make([]float64, units)}
}

func variancesBytes(steps int) int64 { return int64(8 * (2*steps + 3)) }

// add adds the units from lo on at a step of a sample's trajectory, by Welford's method.
func (v *variances) add(row []float32, lo, sample, step int) {
	mean := v.mean[step*v.units+lo:][:len(row)]
	m2 := v.m2[step*v.units+lo:][:len(row)]
	within, w2, sum := v.within[lo:][:len(row)], v.w2[lo:][:len(row)], v.sum[lo:][:len(row)]
	overSamples, overSteps := 1/float64(sample+1), 1/float64(step+1)
	for i, a := range row {
		x := float64(a)
		d := x - mean[i]
		mean[i] += d * overSamples
		m2[i] += d * (x - mean[i])
		d = x - within[i]
		within[i] += d * overSteps
		w2[i] += d * (x - within[i])
	}
	if step == v.steps-1 {
		for i := range row {
			sum[i] += math.Sqrt(max(w2[i], 0) / float64(v.steps-1))
			within[i], w2[i] = 0, 0
		}
	}
}

func (v *variances) transformational(u, samples int) float64 { return v.sum[u] / float64(samples) }

// sample returns SV of a unit after a number of samples, at least two.
func (v *variances) sample(u, samples int) float64 {
	var sum float64
	for t := range v.steps {
		sum += math.Sqrt(max(v.m2[t*v.units+u], 0) / float64(samples-1))
	}
	return sum / float64(v.steps)
}

// varianceRatio returns a / b as tmeasures defines it: 1 if both are 0, infinite if only b is.
func varianceRatio(a, b float64) float64 {
	switch {
	case b > 0:
		return a / b
	case a > 0:
		return math.Inf(1)
	}
	return 1
}

// all returns the arrays that make up the state, nil for a nil v.
func (v *variances) all() [][]float64 {
	if v == nil {
		return nil
	}
	return [][]float64{v.mean, v.m2, v.within, v.w2, v.sum}
}

// moments accumulates mean and sum of squared deviations (m2) of units over n inputs.
type moments struct {
	n        int
	mean, m2 []float64
}

func (m *moments) add(row []float32, lo, n int) {
	mean, m2 := m.mean[lo:][:len(row)], m.m2[lo:][:len(row)]
	over := 1 / float64(n+1)
	for i, a := range row {
		d := float64(a) - mean[i]
		mean[i] += d * over
		m2[i] += d * (float64(a) - mean[i])
	}
}

// threshold returns what a normal variable with the unit's mean and deviation exceeds at the rate.
func (m *moments) threshold(u int, rate float64) float64 {
	sigma := max(math.Sqrt(m.m2[u]/float64(m.n-1)), 1e-16) // above 0 for a constant unit too
	return distuv.Normal{Mu: m.mean[u], Sigma: sigma}.Quantile(1 - rate)
}

// needsFullTrajectories reports whether the model runs on the trajectories of all samples, not only
// of the references.
func (m *firing) needsFullTrajectories() bool {
	return m.settings.also(Variance) || m.settings.also(SameEquivariance) || m.settings.also(NormalThreshold)
}

// fullStatsBytes returns the bytes of the fields of a fullStats for one unit.
func (m *firing) fullStatsBytes(p trajectory) int64 {
	var bytes int64
	if m.settings.also(Variance) {
		bytes += variancesBytes(len(p.amounts))
	}
	if m.settings.also(SameEquivariance) {
		bytes += variancesBytes(len(p.amounts))
	}
	if m.settings.also(NormalThreshold) {
		bytes += 32 // fullStats.threshold, and the counts fullStats.base and local, rounded up
	}
	return bytes
}
