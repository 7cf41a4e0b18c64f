package similarity

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// The other programs are ReSi, a benchmark of representational similarity
// (github.com/mklabunde/resi), netrep (github.com/ahwillia/netrep), scipy and scikit-learn.

// A programValue says which statistic of this package, with which settings, gives a value of one of
// the other programs.
type programValue struct {
	statistic string
	set       func(*Settings)             // nil: default settings
	transform func(value float64) float64 // from this package's value to that of the program; nil: the same value
	except    []string                    // names of cases for which the other program has another value, or none
}

// likeReSi sets the settings with which neighbours and dissimilarities are those of ReSi.
func likeReSi(s *Settings) { s.Metric, s.Centre, s.Neighbours = "cosine", "none", 10 }

// programValues lists the values of testdata/programs.json, by program and its name of the
// statistic. Neighbours of equal rows are left out: ReSi takes the nearest sample for the sample
// itself, but an equal one can precede it.
func programValues() map[string]programValue {
	// Names of cases in testdata/list.json.
	wide, ties := []string{"more variables than samples", "one side wide"}, []string{"duplicated rows", "duplicated rows far away"}
	out := map[string]programValue{
		"ReSi CKA":                                  {statistic: LinearCKA},
		"ReSi HardCorrelationMatch":                 {statistic: HardCorrelationMatch},
		"ReSi SoftCorrelationMatch":                 {statistic: SoftCorrelationMatch},
		"ReSi DistanceCorrelation":                  {statistic: DistanceCorrelation},
		"ReSi EigenspaceOverlapScore":               {statistic: EigenspaceOverlap, set: likeReSi},
		"ReSi JaccardSimilarity":                    {statistic: Jaccard, set: likeReSi, except: ties},
		"ReSi RankSimilarity":                       {statistic: RankSimilarity, set: likeReSi, except: ties},
		"ReSi SecondOrderCosineSimilarity":          {statistic: SecondOrderCosine, set: likeReSi, except: ties},
		"ReSi AlignedCosineSimilarity":              {statistic: AlignedCosine, set: likeReSi},
		"ReSi PermutationProcrustes":                {statistic: PermutationProcrustes, set: likeReSi},
		"ReSi ProcrustesSizeAndShapeDistance":       {statistic: ProcrustesDistance},
		"ReSi OrthogonalAngularShapeMetricCentered": {statistic: ShapeMetric},
		"ReSi ConcentricityDifference":              {statistic: ConcentricityDifference},
		"ReSi MagnitudeDifference":                  {statistic: MagnitudeDifference},
		"ReSi UniformityDifference":                 {statistic: UniformityDifference},
		"ReSi RSMNormDifference":                    {statistic: RSMNormDifference, set: func(s *Settings) { s.Norm = "spectral" }},
		// Dissimilarities of equal rows tie here, since they are rounded; ReSi's differ by rounding
		// errors.
		"ReSi RSA": {statistic: RSA, set: func(s *Settings) { s.Dissimilarity, s.Centre = "correlation", "none" }, except: ties},
		// ReSi returns the square of the distance.
		"ReSi Gulp": {statistic: GULP, transform: func(d float64) float64 { return d * d }, except: wide},
		"ReSi OrthogonalProcrustesCenteredAndNormalized": {statistic: Procrustes, transform: func(c float64) float64 { return math.Sqrt(2 - 2*c) }},
		// ReSi inverts YᵀY, which is singular for more variables than samples and for a constant
		// column.
		"ReSi LinearRegression": {statistic: LinearRegression, except: append(wide[:1:1], "constant columns")},
		// ReSi compares fractions of the variance, which are at most 1, with 0.99 times the total
		// variance. Where the total is above 1.01, it keeps one component only.
		"ReSi SVCCA": {statistic: SVCCA, set: func(s *Settings) { s.Variance = 1e-9 }},

		"netrep LinearMetric 1":              {statistic: ShapeMetric},
		"netrep LinearMetric 0.5":            {statistic: ShapeMetric, set: func(s *Settings) { s.Alpha = 0.5 }},
		"netrep LinearMetric 0.1":            {statistic: ShapeMetric, set: func(s *Settings) { s.Alpha = 0.1 }},
		"netrep LinearMetric euclidean":      {statistic: ProcrustesDistance},
		"netrep PermutationMetric euclidean": {statistic: PermutationProcrustes},
		"netrep LinearCKA":                   {statistic: LinearCKA, transform: math.Acos},
		// Copies of the variables make the transport between p and q variables an assignment.
		"scipy linear_sum_assignment of copies": {statistic: SoftMatching},
		"scikit-learn Ridge":                    {statistic: RidgePredictivity},
		"scikit-learn PLSRegression 2":          {statistic: PLSPredictivity, set: func(s *Settings) { s.Components = 2 }},
	}
	for inner, name := range map[string]string{"cosine": "cosine", "correlation": "correlation", "euclidean": "euclidean", "sqeuclidean": "squared-euclidean"} {
		for _, outer := range []string{"spearman", "kendall", "pearson"} {
			out["scipy "+inner+" "+outer] = programValue{statistic: RSA, set: func(s *Settings) { s.Dissimilarity, s.Comparison = name, outer }}
		}
	}
	return out
}

// TestOtherPrograms compares statistics with the code of ReSi, netrep, scipy and scikit-learn, as
// testdata/programs.py ran it. source (see golden_test.go) makes a matrix of rows of P values.
func TestOtherPrograms(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Name string
		P, Q int
		X, Y []float32 // n x P and n x Q
	}
	var values map[string]map[string]*float64
	for file, to := range map[string]any{"testdata/list.json": &cases, "testdata/programs.json": &values} {
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	known, compared, want := programValues(), 0, 0
	for _, k := range known {
		want += len(cases) - len(k.except)
	}
	for _, c := range cases {
		for name, want := range values[c.Name] {
			k, ok := known[name]
			if !ok && name != "ReSi PWCCA" { // see docs/reference/measures/similarity.md
				t.Errorf("%s: no statistic to compare with", name)
			}
			if !ok || slices.Contains(k.except, c.Name) {
				continue
			}
			if want == nil {
				t.Errorf("%s, %s: the program gives no value", c.Name, name)
				continue
			}
			s := Defaults()
			if k.set != nil {
				k.set(&s)
			}
			got, err := Value(context.Background(), k.statistic, source(t, c.X, c.P), source(t, c.Y, c.Q), s)
			if k.transform != nil {
				got = k.transform(got)
			}
			if err != nil || !(math.Abs(got-*want) <= 1e-6*max(math.Abs(*want), 1e-2)) {
				t.Errorf("%s, %s: %.10f, %v; want %.10f", c.Name, name, got, err, *want)
			}
			compared++
		}
	}
	if compared != want {
		t.Errorf("%d values compared, want %d", compared, want)
	}
}
