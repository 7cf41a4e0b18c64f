package probe

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/transform"
)

// retrievalDefaults returns settings with the default of 10 points of the curve over a parameter.
func retrievalDefaults() RetrievalSettings {
	return RetrievalSettings{Parts: 10, Representation: Representation{Pool: "mean"}}
}

// vectors returns an input of n rows of d values, scaled to unit length.
func vectors(n, d int, data []float32) *probeInput {
	in := newProbeInput("", dataset.Indices(n), features.NewTable(nil, d, data))
	in.unit = true
	return in
}

// TestRetrievalGolden checks that the statistics of ranks agree with those of NumPy
// (testdata/retrieval.py), without a bound on memory (0) and with one of 1 byte. The clean vector
// (on x) of a sample is its candidate and the transformed one (on T(x)) its query. rankSamples
// returns the rank of each candidate among all, by their cosines with the query.
func TestRetrievalGolden(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/retrieval.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string]any
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	const n, d = 300, 7 // more than rankRows, so that a bound on memory makes blocks
	clean, transformed := make([]float32, n*d), make([]float32, n*d)
	for i := range n {
		for j := range d {
			x, y := float64(i), float64(j)
			clean[i*d+j] = float32(math.Sin(1.7*x + 0.9*y + 0.1*x*y))
			transformed[i*d+j] = float32(float64(clean[i*d+j]) + 0.9*math.Cos(2.3*x-1.1*y))
		}
	}
	// As in retrieval.py: clean vectors 20 to 25 are equal, and query 20 equals them. One clean
	// vector and one query are 0.
	for i := 21; i < 26; i++ {
		copy(clean[i*d:(i+1)*d], clean[20*d:21*d])
	}
	clear(clean[30*d : 31*d])
	clear(transformed[40*d : 41*d])
	copy(transformed[20*d:21*d], clean[20*d:21*d])
	for _, memory := range []int64{0, 1} {
		ranks, err := rankSamples(t.Context(), vectors(n, d, clean), vectors(n, d, transformed), dataset.Indices(n), memory)
		if err != nil {
			t.Fatal(err)
		}
		harmonic := newHarmonic(n)
		got := map[string]float64{}
		for _, r := range ranks {
			got["recall-1"] += r.recall(1) / n
			got["recall-10"] += r.recall(10) / n
			got["mean-reciprocal-rank"] += r.reciprocal(harmonic) / n
		}
		chance := rank{tied: n}
		for name, null := range map[string]float64{"recall-1": chance.recall(1), "recall-10": chance.recall(10), "mean-reciprocal-rank": chance.reciprocal(harmonic)} {
			if want := golden[name].(float64); math.Abs(got[name]-want) > 1e-9 {
				t.Errorf("%s is %v, want %v", name, got[name], want)
			}
			if want := golden["chance"].(map[string]any)[name].(float64); math.Abs(null-want) > 1e-12 {
				t.Errorf("%s by chance is %v, want %v", name, null, want)
			}
		}
	}
}

// TestRanksInExpectation checks that the recall and the reciprocal rank of a vector that ties with
// others are means over the places that it may have among them. better is the number of vectors
// ahead of it, and tied the number of vectors in the tie, itself included.
func TestRanksInExpectation(t *testing.T) {
	t.Parallel()
	harmonic := newHarmonic(40) // sums of 1/i up to the largest rank, 20 + 20
	rapid.Check(t, func(t *rapid.T) {
		r := rank{rapid.IntRange(0, 20).Draw(t, "better"), rapid.IntRange(1, 20).Draw(t, "tied")}
		k := rapid.IntRange(1, 25).Draw(t, "k")
		var recall, reciprocal float64
		for place := r.better + 1; place <= r.better+r.tied; place++ {
			if place <= k {
				recall++
			}
			reciprocal += 1 / float64(place)
		}
		n := float64(r.tied)
		if math.Abs(r.recall(k)-recall/n) > 1e-12 || math.Abs(r.reciprocal(harmonic)-reciprocal/n) > 1e-12 {
			t.Fatalf("%+v: recall %v, want %v; reciprocal %v, want %v", r, r.recall(k), recall/n, r.reciprocal(harmonic), reciprocal/n)
		}
	})
}

// TestRetrievalInBlocks checks ranks that are computed in several blocks of queries and of
// candidates. If each query equals its own candidate, no other is better; if the candidates are
// shifted by one, another is better for each query.
func TestRetrievalInBlocks(t *testing.T) {
	t.Parallel()
	const n, d = 2*rankColumns + 3, 16
	data := make([]float32, n*d)
	for i := range data {
		data[i] = float32(math.Sin(float64(i) * float64(i%1009)))
	}
	shifted := append(append([]float32(nil), data[d:]...), data[:d]...)
	for _, memory := range []int64{0, 16 * 300 * d} { // no bound; enough for blocks of 300 queries
		same, err := rankSamples(t.Context(), vectors(n, d, data), vectors(n, d, data), dataset.Indices(n), memory)
		if err != nil {
			t.Fatal(err)
		}
		other, err := rankSamples(t.Context(), vectors(n, d, shifted), vectors(n, d, data), dataset.Indices(n), memory)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if same[i] != (rank{tied: 1}) || other[i].better == 0 {
				t.Fatalf("sample %d: %+v, and %+v with other candidates; want no better candidate, and at least one", i, same[i], other[i])
			}
		}
	}
}

// TestRetrievalCurve checks the scores of a transformation that adds 0 or 1000 to one pixel: with 0
// every sample is retrieved, with 1000 few are. There is a score for each value, and their mean.
// The null is the score of a random order. mustRun (see factors_test.go) returns the scores by
// statistic and value. The 300 samples are images of four pixels, and the model returns them.
func TestRetrievalCurve(t *testing.T) {
	t.Parallel()
	m, err := Retrieval(retrievalDefaults())
	list := &procedure.Transform{Name: "list", Identity: "list", Values: []procedure.Value{{Parameter: "0", Transform: addToPixel{2, transform.Fixed(0)}}, {Parameter: "1000", Transform: addToPixel{2, transform.Fixed(1000)}}}}
	found := mustRun(t, m, err, factorJob(t, 300, linearModel(t, identity()), list))
	unchanged, far, mean := found["recall-1 0"], found["recall-1 1000"], found["recall-1"]
	if unchanged.Value != 1 || unchanged.N != 300 || math.Abs(unchanged.Null-1./300) > 1e-12 {
		t.Errorf("with 0: %+v, want 1 with the null 1/300", unchanged)
	}
	if far.Value > 0.02 || math.Abs(mean.Value-(unchanged.Value+far.Value)/2) > 1e-12 {
		t.Errorf("with 1000: %+v, want at most 0.02; over both %+v, want the mean", far, mean)
	}
	if r := found["recall-10 1000"]; r.Value < far.Value || !(r.Low <= r.Value && r.Value <= r.High) {
		t.Errorf("recall at 10: %+v, want at least that at 1, within its interval", r)
	}
	if r := found["mean-reciprocal-rank 0"]; r.Value != 1 || math.Abs(r.Null-newHarmonic(300)[300]/300) > 1e-12 {
		t.Errorf("mean reciprocal rank: %+v, want 1 with the null of random ranks", r)
	}
}
