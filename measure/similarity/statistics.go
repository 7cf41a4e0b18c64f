package similarity

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// The names of the statistics in study files, commands and scores.
// docs/reference/measures/similarity.md gives formulas and sources. RSM stands for the matrix of
// distances.
const (
	LinearCKA        = "linear-cka"
	DebiasedCKA      = "debiased-cka"
	MinibatchCKA     = "minibatch-cka"
	RBFCKA           = "rbf-cka"
	CCA              = "cca"
	SVCCA            = "svcca"
	PWCCA            = "pwcca"
	Procrustes       = "procrustes"
	LinearRegression = "linear-regression"
	RSA              = "rsa"
	MutualKNN        = "mutual-knn"

	RSMNormDifference            = "rsm-norm-difference"
	DistanceCorrelation          = "distance-correlation"
	Jaccard                      = "jaccard"
	SecondOrderCosine            = "second-order-cosine"
	RankSimilarity               = "rank-similarity"
	CKNNA                        = "cknna"
	ShapeMetric                  = "shape-metric"
	ProcrustesDistance           = "procrustes-distance"
	AlignedCosine                = "aligned-cosine"
	PermutationProcrustes        = "permutation-procrustes"
	HardCorrelationMatch         = "hard-correlation-match"
	SoftCorrelationMatch         = "soft-correlation-match"
	SoftMatching                 = "soft-matching"
	RidgePredictivity            = "ridge-predictivity"
	PLSPredictivity              = "pls-predictivity"
	GULP                         = "gulp"
	EigenspaceOverlap            = "eigenspace-overlap"
	MagnitudeDifference          = "magnitude-difference"
	ConcentricityDifference      = "concentricity-difference"
	UniformityDifference         = "uniformity-difference"
	IntrinsicDimensionDifference = "intrinsic-dimension-difference"
	EffectiveRankDifference      = "effective-rank-difference"
)

type statistic struct {
	name       string
	minSamples int   // smallest number of samples that it is defined for
	input      input // what it is computed from
	float64    bool  // products in float64, since small eigenvalues matter
	wideBelow  int   // scores of fewer samples get a warning that the interval is too wide
	drawnNull  bool  // the null has no closed form: it is a mean over drawn shuffles

	// compute is for resampled, nil for statistics with faster replicates or nulls, which of the
	// fields below use neighbours only.
	compute    func(*subsetPair) (float64, error)
	cost       func(n, p, q float64) float64 // multiplications, roughly, for n samples of p and q variables
	neighbours bool                          // it needs more samples than Settings.Neighbours
	columns    bool                          // it needs n x p, n x q and p x q values in memory
	difference bool                          // 0 rather than 1 if the two representations are equal
	unpaired   bool                          // it does not depend on how samples are paired: there is no null
	zeroNull   func(Settings) bool           // whether the mean over all shuffles is 0; nil: shuffles are drawn
	exponent   float64                       // it grows as this power of the number of samples
}

type input int

const (
	momentInput    input = iota // p x p second moments of the variables, or n x n Gram matrices where those are smaller
	pairwiseInput               // the values of at most Settings.Samples samples, most often as n x n values of their pairs
	minibatchInput              // Gram matrices of minibatches
)

// Values of statistic.wideBelow: intervals were too wide for 200 samples but not 1,000
// (wideForFew), or for both (wideForAll).
const (
	wideForFew = 1000
	wideForAll = math.MaxInt
)

// statistics returns all statistics of two representations in the order in which they are reported.
func statistics() []statistic {
	return []statistic{
		{name: LinearCKA, minSamples: 2},
		{name: DebiasedCKA, minSamples: 4},
		{name: MinibatchCKA, minSamples: 4, input: minibatchInput},
		{name: RBFCKA, minSamples: 2, input: pairwiseInput},
		{name: CCA, minSamples: 3, float64: true, drawnNull: true, wideBelow: wideForAll},
		{name: SVCCA, minSamples: 3, float64: true, drawnNull: true},
		{name: PWCCA, minSamples: 3, float64: true, drawnNull: true, wideBelow: wideForFew},
		{name: Procrustes, minSamples: 2, float64: true, drawnNull: true},
		{name: LinearRegression, minSamples: 3, float64: true},
		{name: RSA, minSamples: 3, input: pairwiseInput},
		{name: MutualKNN, minSamples: 3, input: pairwiseInput, neighbours: true, wideBelow: wideForAll},

		{name: RSMNormDifference, minSamples: 3, input: pairwiseInput, compute: rsmNormDifference, cost: perPair, difference: true, exponent: 1},
		{name: DistanceCorrelation, minSamples: 3, input: pairwiseInput, compute: distanceCorrelation, cost: perPair},
		{name: Jaccard, minSamples: 3, input: pairwiseInput, compute: jaccard, cost: perPair, neighbours: true, wideBelow: wideForFew},
		{name: SecondOrderCosine, minSamples: 3, input: pairwiseInput, compute: secondOrderCosine, cost: perPair, neighbours: true},
		{name: RankSimilarity, minSamples: 3, input: pairwiseInput, compute: rankSimilarity, cost: perPair, neighbours: true, wideBelow: wideForAll},
		{name: CKNNA, minSamples: 3, input: pairwiseInput, compute: cknna, cost: perPair, neighbours: true, wideBelow: wideForAll},
		{name: ShapeMetric, minSamples: 3, input: pairwiseInput, compute: shapeMetric, cost: perAxis, columns: true, difference: true},
		{name: ProcrustesDistance, minSamples: 3, input: pairwiseInput, compute: procrustesDistance, cost: perAxis, columns: true, difference: true, exponent: 0.5},
		{name: AlignedCosine, minSamples: 3, input: pairwiseInput, compute: alignedCosine, cost: perAxis, columns: true},
		{name: PermutationProcrustes, minSamples: 3, input: pairwiseInput, compute: permutationProcrustes, cost: perVariable, columns: true, difference: true, exponent: 0.5},
		{name: HardCorrelationMatch, minSamples: 3, input: pairwiseInput, compute: hardCorrelationMatch, cost: perVariable, columns: true},
		{name: SoftCorrelationMatch, minSamples: 3, input: pairwiseInput, compute: softCorrelationMatch, cost: perProduct, columns: true},
		{name: SoftMatching, minSamples: 3, input: pairwiseInput, compute: softMatching, cost: perVariable, columns: true, difference: true, exponent: 0.5},
		{name: RidgePredictivity, minSamples: 4, input: pairwiseInput, compute: ridgePredictivity, cost: perAxis, columns: true},
		{name: PLSPredictivity, minSamples: 4, input: pairwiseInput, compute: plsPredictivity, cost: perComponent, columns: true},
		{name: GULP, minSamples: 3, input: pairwiseInput, compute: gulp, cost: perAxis, columns: true, difference: true, wideBelow: wideForFew},
		{name: EigenspaceOverlap, minSamples: 3, input: pairwiseInput, compute: eigenspaceOverlap, cost: perAxis, columns: true, wideBelow: wideForFew},
		{name: MagnitudeDifference, minSamples: 2, input: pairwiseInput, compute: differenceOf(magnitude), cost: perPair, difference: true, unpaired: true, wideBelow: wideForFew},
		{name: ConcentricityDifference, minSamples: 2, input: pairwiseInput, compute: differenceOf(concentricity), cost: perPair, difference: true, unpaired: true},
		{name: UniformityDifference, minSamples: 2, input: pairwiseInput, compute: differenceOf(uniformity), cost: perPair, difference: true, unpaired: true},
		{name: IntrinsicDimensionDifference, minSamples: 3, input: pairwiseInput, compute: differenceOf(intrinsicDimension), cost: perPair, difference: true, unpaired: true, wideBelow: wideForAll},
		{name: EffectiveRankDifference, minSamples: 2, input: pairwiseInput, compute: differenceOf(rankOf), cost: perAxis, columns: true, difference: true, unpaired: true},
	}
}

// The costs of statistics, in multiplications.
func perPair(n, _, _ float64) float64     { return 10 * n * n }
func perProduct(n, p, q float64) float64  { return n * p * q }
func perVariable(n, p, q float64) float64 { return n*p*q + 4*p*q*min(p, q) }
func perAxis(n, p, q float64) float64     { return 8*n*p*min(n, p) + 8*n*q*min(n, q) }
func perComponent(n, p, q float64) float64 { // of the default numbers of folds and components
	a, b := min(n, p), min(n, q)
	return perAxis(n, p, q) + 5*25*(4*a*b*min(a, b)+2*n*(a+b))
}

// chosenRSAStatistic is rsa with another dissimilarity or comparison than the default ones.
func chosenRSAStatistic() statistic {
	return statistic{name: RSA, minSamples: 3, compute: chosenRSA, cost: func(n, _, _ float64) float64 { return 100 * n * n },
		zeroNull: func(s Settings) bool { return s.Comparison != "cosine" }}
}

// Names returns the statistics of two representations in the order of reports.
func Names() []string {
	var out []string
	for _, s := range statistics() {
		out = append(out, s.name)
	}
	return out
}

// notComputed says why ReSi's (Klabunde et al. 2025) other statistics are missing, and what to
// take.
var notComputed = map[string]string{
	"imd":            "the multi-scale intrinsic distance needs heat kernels of neighbour graphs; take intrinsic-dimension-difference or cknna",
	"rtd":            "the representation topology divergence needs persistent homology; take rsa or rank-similarity",
	"geometry-score": "the geometry score needs persistent homology; take intrinsic-dimension-difference or uniformity-difference",
}

// NotComputed returns why a statistic of Klabunde et al. 2025 is not computed, and what to take
// instead; nil for other names.
func NotComputed(name string) error {
	if why := notComputed[strings.ReplaceAll(strings.ToLower(name), "_", "-")]; why != "" {
		return fmt.Errorf("the statistic %s is not computed: %s", name, why)
	}
	return nil
}

// Settings configure the measure, and comparisons of arrays.
type Settings struct {
	Statistics []string `key:"statistics" json:"statistics" default:"[minibatch-cka]" doc:"names of statistics: see docs/reference/measures/similarity.md"`
	Pool       string   `key:"pool" json:"pool" default:"none" enum:"none|mean|class|patch" doc:"variables of a layer: none, every channel at every position; mean, the mean of each channel over positions; class, those of the class token; patch, the mean over the tokens of patches"`
	Variance   float64  `key:"variance" json:"variance" default:"0.99" min:"0" max:"1" doc:"svcca: fraction of the variance that the leading components hold"`
	Bandwidth  float64  `key:"bandwidth" json:"bandwidth" default:"0.4" min:"0" doc:"rbf-cka: width of the kernel, as a fraction of the median distance"`
	Neighbours int      `key:"neighbours" json:"neighbours" default:"10" min:"1" doc:"mutual-knn, jaccard, second-order-cosine, rank-similarity, cknna: number of nearest neighbours of a sample"`
	Samples    int      `key:"samples" json:"samples" default:"4096" min:"4" max:"32768" doc:"rbf-cka, rsa, mutual-knn and the statistics under Further statistics on that page: largest number of samples, taken in random order; memory grows with its square"`

	Metric        string  `key:"metric" json:"metric" default:"euclidean" enum:"euclidean|cosine" doc:"statistics of nearest neighbours: how neighbours are chosen"`
	Centre        string  `key:"centre" json:"centre" default:"columns" enum:"columns|none" doc:"rsa, neighbours by cosine, aligned-cosine, permutation-procrustes, eigenspace-overlap: whether the mean of each column is subtracted"`
	Dissimilarity string  `key:"dissimilarity" json:"dissimilarity" default:"cosine" enum:"cosine|correlation|euclidean|squared-euclidean" doc:"rsa: dissimilarity of two samples"`
	Comparison    string  `key:"comparison" json:"comparison" default:"spearman" enum:"spearman|pearson|kendall|cosine" doc:"rsa: how dissimilarities are compared"`
	Norm          string  `key:"norm" json:"norm" default:"frobenius" enum:"frobenius|spectral" doc:"rsm-norm-difference: norm of the difference"`
	Alpha         float64 `key:"alpha" json:"alpha" default:"1" min:"0" max:"1" doc:"shape-metric: 1 compares up to rotations, 0 up to invertible linear maps"`
	Lambda        float64 `key:"lambda" json:"lambda" default:"0" min:"0" doc:"gulp: regularisation, relative to a total variance of 1"`
	Folds         int     `key:"folds" json:"folds" default:"5" min:"2" doc:"ridge-predictivity, pls-predictivity: number of folds"`
	Ridge         float64 `key:"ridge" json:"ridge" default:"0.01" min:"0" doc:"ridge-predictivity: penalty, as a fraction of the mean variance of the variables"`
	Components    int     `key:"components" json:"components" default:"25" min:"1" doc:"pls-predictivity: largest number of components"`

	Interval bool `key:"interval" json:"interval" default:"true" doc:"compute intervals, which takes up to twenty times as long as the values"`
	Null     bool `key:"null" json:"null" default:"true" doc:"shuffle pairs for the nulls that have no closed form"`

	Calibrate bool `key:"calibrate" json:"calibrate" doc:"also (value - null) / (1 - null), the variant calibrated: 0 for unrelated representations of any number of samples and variables, 1 for equal ones"`
}

// shuffles returns the largest number of shuffles of a null that is drawn.
func (s Settings) shuffles() int {
	if s.Calibrate {
		return calibratedShuffles
	}
	return 10
}

// encoded identifies scores. Newer settings are left out at defaults, so that earlier scores stay
// valid.
type encoded struct {
	Statistics []string       `json:"statistics"`
	Pool       string         `json:"pool"`
	Variance   float64        `json:"variance"`
	Bandwidth  float64        `json:"bandwidth"`
	Neighbours int            `json:"neighbours"`
	Samples    int            `json:"samples"`
	Others     map[string]any `json:"others,omitempty"`
}

func (s Settings) encode() encoded {
	d, others := Defaults(), map[string]any{}
	for name, pair := range map[string][2]any{
		"metric": {s.Metric, d.Metric}, "centre": {s.Centre, d.Centre}, "dissimilarity": {s.Dissimilarity, d.Dissimilarity},
		"comparison": {s.Comparison, d.Comparison}, "norm": {s.Norm, d.Norm}, "alpha": {s.Alpha, d.Alpha}, "lambda": {s.Lambda, d.Lambda},
		"folds": {s.Folds, d.Folds}, "ridge": {s.Ridge, d.Ridge}, "components": {s.Components, d.Components}, "interval": {s.Interval, d.Interval}, "null": {s.Null, d.Null}, "calibrate": {s.Calibrate, d.Calibrate},
	} {
		if pair[0] != pair[1] {
			others[name] = pair[0]
		}
	}
	return encoded{s.Statistics, s.Pool, s.Variance, s.Bandwidth, s.Neighbours, s.Samples, others}
}

// Defaults returns the default settings.
func Defaults() Settings {
	return Settings{Statistics: []string{MinibatchCKA}, Pool: "none", Variance: 0.99, Bandwidth: 0.4, Neighbours: 10, Samples: 4096,
		Metric: "euclidean", Centre: "columns", Dissimilarity: "cosine", Comparison: "spearman", Norm: "frobenius", Alpha: 1, Folds: 5, Ridge: 0.01, Components: 25, Interval: true, Null: true}
}

func (s Settings) check() error {
	names := Names()
	if len(s.Statistics) == 0 {
		return fmt.Errorf("no statistics: name some of %s", strings.Join(names, ", "))
	}
	for i, name := range s.Statistics {
		if err := NotComputed(name); err != nil {
			return err
		}
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown statistic %q: there are %s", name, strings.Join(names, ", "))
		}
		if slices.Contains(s.Statistics[:i], name) {
			return fmt.Errorf("the statistic %s is named twice", name)
		}
	}
	for _, word := range []struct {
		key, value string
		known      []string
	}{
		{"pool", s.Pool, []string{"none", "mean", "class", "patch"}},
		{"metric", s.Metric, []string{"euclidean", "cosine"}},
		{"centre", s.Centre, []string{"columns", "none"}},
		{"dissimilarity", s.Dissimilarity, []string{"cosine", "correlation", "euclidean", "squared-euclidean"}},
		{"comparison", s.Comparison, []string{"spearman", "pearson", "kendall", "cosine"}},
		{"norm", s.Norm, []string{"frobenius", "spectral"}},
	} {
		if !slices.Contains(word.known, word.value) {
			return fmt.Errorf("unknown %s %q: use %s", word.key, word.value, strings.Join(word.known, " or "))
		}
	}
	if err := s.checkCalibrated(); err != nil {
		return err
	}
	switch {
	case !(s.Alpha >= 0 && s.Alpha <= 1):
		return fmt.Errorf("alpha is %v; it must be 0 to 1", s.Alpha)
	case !(s.Lambda >= 0) || math.IsInf(s.Lambda, 0):
		return fmt.Errorf("lambda is %v; it must be at least 0", s.Lambda)
	case !(s.Ridge >= 0) || math.IsInf(s.Ridge, 0):
		return fmt.Errorf("ridge is %v; it must be at least 0", s.Ridge)
	case s.Components < 1:
		return fmt.Errorf("components is %d; it must be at least 1", s.Components)
	case s.Folds < 2:
		return fmt.Errorf("folds is %d; it must be at least 2", s.Folds)
	case !(s.Variance > 0 && s.Variance <= 1):
		return fmt.Errorf("variance is %v; it must be above 0 and at most 1", s.Variance)
	case !(s.Bandwidth > 0) || math.IsInf(s.Bandwidth, 0):
		return fmt.Errorf("bandwidth is %v; it must be above 0", s.Bandwidth)
	case s.Neighbours < 1:
		return fmt.Errorf("neighbours is %d; it must be at least 1", s.Neighbours)
	case s.Samples < 4:
		return fmt.Errorf("samples is %d; it must be at least 4", s.Samples)
	}
	return nil
}

// isDefaultRSA reports whether rsa has its default form, for which replicates need no new ranks.
func (s Settings) isDefaultRSA() bool {
	return s.Dissimilarity == "cosine" && s.Comparison == "spearman" && s.Centre == "columns"
}

// selected returns the chosen statistics with one of the inputs (none: any), in the order of
// reports.
func (s Settings) selected(inputs ...input) (out []statistic) {
	for _, k := range knownStatistics() {
		if slices.Contains(s.Statistics, k.name) && (len(inputs) == 0 || slices.Contains(inputs, k.input)) {
			out = append(out, k)
		}
	}
	return out
}

// knownStatistics are those of two representations and of one, not to be changed.
var knownStatistics = sync.OnceValue(func() []statistic { return append(statistics(), geometryStatistics()...) })

// inFloat64 returns those with float64 products: canonical correlations, Procrustes, regression.
func inFloat64(all []statistic) []statistic {
	return slices.DeleteFunc(slices.Clone(all), func(k statistic) bool { return !k.float64 })
}
